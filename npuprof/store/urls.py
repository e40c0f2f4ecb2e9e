"""URLs of sources: validation, comparison, and display."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from npuprof.document.secrets import KNOWN_USERS, TOKEN
from npuprof.document.secrets import hide_credentials as hide_credentials
from npuprof.model import Record
from npuprof.resolve.digests import digest_bytes

#: ``x::rest`` names a git remote helper.
_TRANSPORT = re.compile(r"([A-Za-z0-9+.-]*)::")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: ``user@host:path``, the scp form; the host may be an address in brackets.
_SCP = re.compile(
    r"(?:(?P<user>[^/:@]*)@)?(?P<host>\[[^/\]]+\]|[^/:@\[\]]+):(?P<path>.*)", re.DOTALL
)
#: The part between ``//`` and the path.
_AUTHORITY = re.compile(r"(?:(?P<user>.*)@)?(?P<host>[^@]*?)(?::(?P<port>[0-9]*))?", re.DOTALL)
_SECRET = re.compile(r"(?i)token|passw|secret|key=|auth")
_PORTS = {"ssh": "22", "https": "443"}
_UNKNOWN_USER = (
    "its user may be a token; omit it, and configure it in git: git config "
    "credential.https://HOST.username NAME"
)
_CREDENTIALS = "credentials belong to git's own helpers, not into an address"


def find_url_fault(url: str) -> str:
    """Return why a URL is not accepted for a source, an empty string if it is.

    The result contains no password.
    """
    if not url:
        return "it is empty"
    if url.startswith("-"):
        return "it starts with '-', as a flag of git does"
    if match := _TRANSPORT.match(url):
        return f"{match[1]}:: starts a program of that name; write ssh://, https:// or file://"
    decoded = unquote(url) if _SCHEME.match(url) else url
    # a line end would split entries of the lock and requests to git
    if any(char.isspace() or not char.isprintable() for char in url):
        return "a blank or a control character is in it; file:// takes %20 for a blank"
    if not decoded.isprintable() or "\N{REPLACEMENT CHARACTER}" in decoded:
        return "its percent-encoding contains a control character"
    if match := _SCHEME.match(decoded):
        return _find_scheme_fault(match[1], decoded[match.end() :], decoded)
    if url.startswith("/"):
        return ""
    return _find_scp_fault(url)


def _find_scp_fault(url: str) -> str:
    """Return the fault of a URL without a scheme: ``user@host:path`` is the only valid form."""
    if match := _SCP.fullmatch(url):
        user, host, path = match["user"] or "", match["host"], match["path"]
        # user:password@host is read as the host "user" with the path "password@host..."
        if re.search(r"@[^/]*:", path) or (not user and re.match(r"[^/]*@", path)):
            return _CREDENTIALS
        return _find_host_fault(user, host, path)
    first = url.partition("/")[0]
    # user:password@path without a host: the message must not quote it
    if "@" in first and ":" in first:
        return _CREDENTIALS
    return (
        "it is a relative path, which means another place in every clone; write the absolute one, "
        "or ssh:// or https://"
    )


def _find_scheme_fault(scheme: str, rest: str, decoded: str) -> str:
    """Return the fault of a URL ``scheme://rest``."""
    if scheme == "file":
        if rest.startswith("/"):
            return ""
        return "file:// is followed by an absolute path: file:///srv/presets.git"
    if scheme not in _PORTS:
        return f"{scheme}:// is not ssh://, https:// or file://"
    authority, _, path = rest.partition("/")
    login = _split_authority(authority)
    user, host = login.user, login.host
    is_https = scheme == "https"
    if ":" in user or (is_https and TOKEN.match(user)):
        return _CREDENTIALS
    if "@" in path and ":" in user + host and not host.startswith("["):
        return _CREDENTIALS  # a password with a slash ends the authority too early
    if is_https and _SECRET.search(decoded.partition("?")[2]):
        return _CREDENTIALS
    if is_https and user and user not in KNOWN_USERS and user not in path.split("/"):
        return _UNKNOWN_USER
    return _find_host_fault(user, host, path)


def _find_host_fault(user: str, host: str, path: str) -> str:
    if not host:
        return "it names no host"
    if user.startswith("-") or host.startswith("-") or path.startswith("-"):
        return "a part of it starts with '-', as a flag of ssh does"
    if not path.strip("/"):
        return "it names no repository on the host"
    return ""


class _Authority(Record):
    """``user@host:port`` of a URL; each part may be empty."""

    user: str
    host: str
    port: str


def _split_authority(authority: str) -> _Authority:
    match = _AUTHORITY.fullmatch(authority)
    assert match is not None, "the pattern matches every text"
    return _Authority(match["user"] or "", match["host"], match["port"] or "")


def normalize_url(url: str) -> str:
    """Return a canonical form of a URL.

    A trailing slash, ``file://`` before a path, the default port and the host's case do not matter;
    ``.git`` does.
    """
    match = _SCHEME.match(url)
    if url.startswith("/") or (match and match[1] == "file"):
        # git decodes %20 in URLs, and takes a plain path as it is
        path = unquote(url.removeprefix("file://")) if match else url
        return "file://" + os.path.normpath("/" + path.lstrip("/"))
    if match and match[1] in _PORTS:
        authority, slash, path = url[match.end() :].partition("/")
        login = _split_authority(authority)
        user = f"{login.user}@" if login.user else ""
        port = f":{login.port}" if login.port not in ("", _PORTS[match[1]]) else ""
        return f"{match[1]}://{user}{login.host.lower()}{port}{slash}{path.strip('/')}"
    scp = _SCP.fullmatch(url)
    if scp is None:
        return url
    user = f"{scp['user']}@" if scp["user"] else ""
    host, path = scp["host"].lower(), scp["path"].rstrip("/")
    if path.startswith("/"):  # the same as ssh://; other paths are relative to the home folder
        return f"ssh://{user}{host}/{path.strip('/')}"
    return f"{user}{host}:{path}"


def mark_texts(*texts: str) -> str:
    """Return 16 hexadecimal digits that identify texts: for cache folders and the lock's seals."""
    return digest_bytes("\n".join(texts).encode(errors="surrogateescape"))[:16]
