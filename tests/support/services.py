"""Stand-ins for services with pull requests: they check tokens and rights as these do."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

#: GitHub takes no longer comment, in characters.
LONGEST = 65_536


class Token(NamedTuple):
    """Who has a token, and whether it may write; an ``app`` may not ask who it is."""

    author: str
    may_write: bool = True
    app: bool = False
    ident: int = 0


class Fault(NamedTuple):
    """What is answered instead, once.

    ``done`` says whether the request is carried out all the same.
    """

    method: str
    status: int
    headers: dict[str, str] = {}
    done: bool = False
    text: str = '{"message": "fault"}'


class RefusalError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class StandIn:
    """A service with one pull request; ``comments`` are on it, ``calls`` is all that was asked."""

    #: Where the API begins, the comments of the request and each of them below that; how one is
    #: edited, the key of its author.
    prefix, listed, edited, edits, who = "", "", "", "", ("", "")
    denied = "Must have admin rights to Repository."

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.tokens: dict[str, Token] = {}
        self.faults: list[Fault] = []
        self.calls: list[str] = []
        self.url = ""

    @property
    def writes(self) -> list[str]:
        """All that was asked besides reading."""
        return [call for call in self.calls if not call.startswith("GET") and "graphql" not in call]

    def list_bodies(self, author: str) -> list[str]:
        """What somebody has written."""
        return [comment["body"] for comment in self.comments if self.author_of(comment) == author]

    def author_of(self, comment: dict[str, Any]) -> str:
        return str(comment[self.who[0]][self.who[1]])

    def add_comment(self, author: str, body: str) -> dict[str, Any]:
        """Let somebody write a comment."""
        ident = next((token.ident for token in self.tokens.values() if token.author == author), 9)
        kind = "Bot" if author.endswith("[bot]") else "User"
        person = {self.who[1]: author, "id": ident, "type": kind}
        self.comments.append(
            {"id": 100 + len(self.comments), "body": body, self.who[0]: person, "system": False}
        )
        return self.comments[-1]

    def find_token(self, headers: Any) -> Token:
        raise NotImplementedError

    def link_next_page(self, path: str, after: int) -> dict[str, str]:
        """Return the headers that name the next page."""
        raise NotImplementedError

    def read_body(self, data: Any) -> str:
        """Return the text of a comment that is sent."""
        if not isinstance(data, dict) or set(data) != {"body"} or not isinstance(data["body"], str):
            raise RefusalError(422, "Invalid request")
        if not data["body"] or len(data["body"]) > LONGEST:
            raise RefusalError(422, "body is too long (maximum is 65536 characters)")
        return data["body"]

    def answer(
        self, method: str, path: str, query: dict[str, str], token: Token, data: Any
    ) -> tuple[Any, dict[str, str]]:
        requested = path.removeprefix(self.prefix)
        if (method, requested) == ("GET", "/user"):
            if token.app:
                raise RefusalError(403, "Resource not accessible by integration")
            return {self.who[1]: token.author, "id": token.ident}, {}
        if method == "POST" and path == f"{self.prefix.removesuffix('/v3')}/graphql":
            return {"data": {"viewer": {"login": token.author}}}, {}
        if (method, requested) == ("GET", self.listed):
            page, after = cut_page(self.comments, query)
            return page, self.link_next_page(path, after)
        if method in ("POST", self.edits) and not token.may_write:
            raise RefusalError(403, "Resource not accessible by integration")
        if (method, requested) == ("POST", self.listed):
            return self.add_comment(token.author, self.read_body(data)), {}
        found = [
            comment for comment in self.comments if requested == f"{self.edited}/{comment['id']}"
        ]
        if method != self.edits or not found:
            raise RefusalError(404, "Not Found")
        if self.author_of(found[0]) != token.author:
            raise RefusalError(403, self.denied)
        found[0]["body"] = self.read_body(data)
        return found[0], {}


def cut_page(items: list[Any], query: dict[str, str]) -> tuple[list[Any], int]:
    """Return one page, and the number of the next, 0 where there is none."""
    size, page = min(int(query.get("per_page", "30")), 100), int(query.get("page", "1"))
    return items[(page - 1) * size : page * size], page + 1 if len(items) > page * size else 0


class GitHub(StandIn):
    """GitHub's REST API for pull request 7 of team/presets."""

    listed, edited = "/repos/team/presets/issues/7/comments", "/repos/team/presets/issues/comments"
    edits, who = "PATCH", ("user", "login")

    def find_token(self, headers: Any) -> Token:
        kind, _, text = (headers["Authorization"] or "").partition(" ")
        if kind not in ("Bearer", "token") or text not in self.tokens:
            raise RefusalError(401, "Bad credentials")
        return self.tokens[text]

    def link_next_page(self, path: str, after: int) -> dict[str, str]:
        link = (
            f'<{self.url}{path}?per_page=100&page={after}>; rel="next", '
            f'<{self.url}{path}?page=9>; rel="last"'
        )
        return {"Link": link} if after else {}


class GitLab(StandIn):
    """GitLab's REST API for merge request 5 of project 3."""

    prefix, denied = "/api/v4", "403 Forbidden"
    listed = edited = "/projects/3/merge_requests/5/notes"
    edits, who = "PUT", ("author", "username")

    def find_token(self, headers: Any) -> Token:
        if headers["PRIVATE-TOKEN"] not in self.tokens:
            raise RefusalError(401, "401 Unauthorized")
        return self.tokens[headers["PRIVATE-TOKEN"]]

    def link_next_page(self, path: str, after: int) -> dict[str, str]:
        return {"x-next-page": str(after or "")}

    def read_body(self, data: Any) -> str:
        return super().read_body(data).rstrip()


@contextmanager
def serve(service: StandIn, certificate: Path | None = None) -> Iterator[StandIn]:
    """Let a stand-in answer at an address of this machine.

    With a certificate and its key, in one file, as https.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            service.calls.append(f"{self.command} {url.path}")
            raw = self.rfile.read(int(self.headers["Content-Length"] or 0))
            fault = next((one for one in service.faults if one.method == self.command), None)
            try:
                if fault is None or fault.done:
                    token = service.find_token(self.headers)
                    if not self.headers["User-Agent"] or (
                        raw and self.headers["Content-Type"] != "application/json"
                    ):
                        raise RefusalError(400, "Problems parsing JSON")
                    query = {name: values[0] for name, values in parse_qs(url.query).items()}
                    answer, headers = service.answer(
                        self.command, url.path, query, token, json.loads(raw) if raw else None
                    )
                    status = 201 if self.command == "POST" else 200
                if fault is not None:
                    service.faults.remove(fault)
                    return self.reply(fault.status, fault.text, fault.headers)
                self.reply(status, json.dumps(answer), headers)
            except RefusalError as refusal:
                self.reply(refusal.status, json.dumps({"message": refusal.message}), {})

        do_POST = do_PATCH = do_PUT = do_GET  # noqa: N815

        def reply(self, status: int, text: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        service.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        yield service
        server.shutdown()
        thread.join()


def describe_gitlab_job(service: GitLab, base: str, head: str) -> dict[str, str]:
    """Return the environment of a GitLab job for the merge request of a fork."""
    return {
        "GITLAB_CI": "true",
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_API_V4_URL": f"{service.url}/api/v4",
        "CI_PROJECT_ID": "77",
        "CI_PROJECT_URL": "https://gitlab.example.org/ada/presets",
        "CI_COMMIT_SHA": head,
        "CI_MERGE_REQUEST_IID": "5",
        "CI_MERGE_REQUEST_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.example.org/team/presets",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
    }


def describe_github_job(service: GitHub, folder: Path) -> dict[str, str]:
    """Return the environment of a GitHub job for the pull request of ``event.json``."""
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_API_URL": service.url,
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "team/presets",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
