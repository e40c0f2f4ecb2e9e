"""Requests to a service's API: the token is sent only to that URL."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from npuprof.model import Fields, Record, __version__, has_only_digits

_TIMEOUT = 20.0  # the timeout of an answer, in seconds
_LONGEST_ANSWER = 16 * 1024 * 1024
_LONGEST_WAIT = 60.0  # the maximum wait that a service may request, in seconds
_TOKEN = re.compile(r"[!-~]+")


class ServiceError(Exception):
    """Raised if a service rejects a request.

    ``passing`` is set if a retry may succeed, after ``wait`` seconds; ``refused`` if no retry can.
    """

    def __init__(
        self, message: str, passing: bool = False, wait: float = 0.0, refused: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.passing = passing
        self.wait = wait
        self.refused = refused


class Reply(Record):
    """A service's answer: its JSON and its headers."""

    data: Any
    headers: Mapping[str, str]


class Service:
    """The API at a URL, authorised by a token in a header.

    ``authority`` is a file with additional trusted certificates.
    """

    def __init__(
        self,
        name: str,
        address: str,
        header: tuple[str, str],
        more: Mapping[str, str] | None = None,
        authority: str = "",
    ) -> None:
        self.name = name
        self.address = address
        self._header = header
        self._more = dict(more or {})
        self._authority = authority

    def at(self, address: str) -> Service:
        """Return the same service with the same token, at another of its URLs."""
        return Service(self.name, address, self._header, self._more, self._authority)

    def ask(self, method: str, path: str, data: Mapping[str, object] | None = None) -> Reply:
        """Return the answer to one request, without retries. Raises ServiceError."""
        name, token = self._header
        # a line end would start another header
        if not _TOKEN.fullmatch(token.removeprefix("Bearer ")):
            raise ServiceError("the token contains invalid characters")
        body = None if data is None else json.dumps(data).encode()
        headers = {
            "User-Agent": f"npuprof/{__version__}",
            "Accept": "application/json",
            **self._more,
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        url = f"{self.address}{path}"
        request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - http(s)
        # a second guard: redirects are not followed at all
        request.add_unredirected_header(name, token)
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as reply:
                raw = reply.read(_LONGEST_ANSWER + 1)
                reply_headers = reply.headers
        except urllib.error.HTTPError as error:
            with error:
                raise self._explain_status(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            # a wrong certificate stays wrong, while a network may recover
            is_lasting = isinstance(
                reason, (ssl.SSLCertVerificationError, FileNotFoundError, PermissionError)
            )
            complaint = self._clean(str(reason) or type(reason).__name__)
            what = f"{self.name} does not answer: {complaint}"
            raise ServiceError(what, passing=not is_lasting) from None
        except ValueError as error:
            raise ServiceError(f"{self.name} cannot be asked: {self._clean(str(error))}") from None
        if len(raw) > _LONGEST_ANSWER:
            raise ServiceError(f"{self.name} answers without end")
        try:
            return Reply(json.loads(raw) if raw.strip() else None, reply_headers)
        except (ValueError, RecursionError):
            raise ServiceError(f"{self.address} is not the API of {self.name}") from None

    @cached_property
    def _opener(self) -> urllib.request.OpenerDirector:
        """The URL opener: follows no redirects, with the trusted certificates.

        Raises OSError if they cannot be read.
        """
        context = ssl.create_default_context()
        if self._authority:
            context.load_verify_locations(self._authority)
        return urllib.request.build_opener(_StayHere, urllib.request.HTTPSHandler(context=context))

    def _explain_status(self, error: urllib.error.HTTPError) -> ServiceError:
        code = error.code
        headers = error.headers
        reason = self._read_message(error)
        is_limit = (
            code == 429
            or "retry-after" in headers
            or headers.get("x-ratelimit-remaining") == "0"
            or "rate limit" in reason
        )
        message = f"{self.name} refuses it ({code}{reason})"
        # GitHub also answers 403 for a limit, which passes
        if not is_limit:
            return ServiceError(message, passing=code >= 500, refused=code in (403, 404))
        wait = headers.get("retry-after") or ""
        seconds = float(wait) if has_only_digits(wait) and len(wait) < 9 else _LONGEST_WAIT + 1
        return ServiceError(message, passing=seconds <= _LONGEST_WAIT, wait=seconds)

    def _read_message(self, error: urllib.error.HTTPError) -> str:
        """Return the shortened message of a failed request, to append to its status."""
        try:
            answer = json.loads(error.read(65536))
            text = answer.get("message") or answer.get("error") or ""
        except (OSError, http.client.HTTPException, ValueError, AttributeError, RecursionError):
            return ""
        return f": {self._clean(str(text))}" if text else ""

    def _clean(self, text: str) -> str:
        """Return a text of the service on one line, shortened, without the token."""
        token = self._header[1].removeprefix("Bearer ")
        line = " ".join(text.replace(token, "***").split() if token else text.split())
        return line if len(line) <= 200 else f"{line[:200]}..."


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Rejects redirects: they would receive the token, and turn a write into a read."""

    def redirect_request(self, *_: Any) -> None:
        return None


def require_list(reply: Reply, name: str) -> list[Fields]:
    """Return the objects in a service's list. Raises ServiceError for anything else."""
    if not isinstance(reply.data, list) or not all(isinstance(row, dict) for row in reply.data):
        raise ServiceError(f"{name} answers with something other than a list")
    return reply.data
