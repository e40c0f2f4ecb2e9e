"""Removes credentials from texts before they are shown."""

from __future__ import annotations

import re
from urllib.parse import unquote

#: The files that contain URLs: in their lines, hide too much rather than too little.
_FILES_WITH_ADDRESSES = ("npuprof.toml", "npuprof.lock")
#: Documented user names in https URLs that grant no access; any other user may be a token.
KNOWN_USERS = frozenset(("git", "oauth2", "x-access-token", "x-token-auth", "gitlab-ci-token"))
#: A user that is a token issued by the host.
TOKEN = re.compile(r"gh[a-z]_\w{8}|github_pat_|glpat-|[A-Za-z0-9_]{36}", re.ASCII)
#: The same pattern anywhere in a text, as a whole word.
TOKEN_ANYWHERE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:gh[a-z]_\w{8}|github_pat_|glpat-|(?:hf|npm)_[A-Za-z0-9]{20}"
    r"|sk-[\w-]{20}|xox[a-z]-|pypi-AgE|AIza[\w-]{30})[\w-]*"
    r"|eyJ[\w-]{8,400}\.eyJ[\w.-]+)|(?<=//hooks\.slack\.com/services/)[\w/]+",
    re.ASCII,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_USERINFO = re.compile(r"(?<=://)[^/\s'\"]*@")
_QUERY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s'\"?]*)\?[^\s'\"]*")
_SCP_USERINFO = re.compile(r"(?<![^\s'\"])([^/:@\s'\"]*):[^/@\s]*@")
#: The same in a text that may not be a valid URL yet: everything up to the last @ except quotes.
_ANY_USERINFO = re.compile(r"(?<=://)[^'\"\n]*@")
_ANY_SCP_USERINFO = re.compile(r"(?<![^\s'\"=,\[({])([^/:@\s'\"=,\[({]*):(?!//)[^'\"\s]*@")
_PLAIN_USER = re.compile(r"[A-Za-z0-9._-]+@")
_NAMED_SECRET = re.compile(
    r"(?i)((?:token|passw|secret|credential)[\w\"'-]*\s*=\s*)(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,}\]]+)"
)


def hide_credentials(text: str) -> str:
    """Return a URL, or git output that contains URLs, without credentials."""
    text = _QUERY.sub(r"\1?...", _USERINFO.sub(_hide_user, text))
    # in a URL, a colon before the host separates the port
    return text if _SCHEME.search(text) else _SCP_USERINFO.sub(r"\1:***@", text)


def hide_secrets(file: str, text: str) -> str:
    """Return a line of a file, or a message about it, without credentials; ``file`` is its path.

    In the two files that contain URLs, anything that looks like a credential is hidden, even in an
    invalid place.
    """
    if not file.endswith(_FILES_WITH_ADDRESSES):
        return text
    text = _ANY_USERINFO.sub(_hide_any_user, text)
    text = _QUERY.sub(r"\1?...", text)
    text = _ANY_SCP_USERINFO.sub(r"\1:***@", text)
    text = TOKEN_ANYWHERE.sub("***", text)
    return _NAMED_SECRET.sub(r'\1"***"', text)


def _hide_user(match: re.Match[str]) -> str:
    user = unquote(match[0].removesuffix("@"))
    if ":" in user or "@" in user or TOKEN.match(user) or _may_be_token(match, user):
        return "***@"
    return match[0]


def _hide_any_user(match: re.Match[str]) -> str:
    is_plain = _PLAIN_USER.fullmatch(match[0]) and not TOKEN.match(match[0])
    if not is_plain or _may_be_token(match, match[0].removesuffix("@")):
        return "***@"
    return match[0]


def _may_be_token(match: re.Match[str], user: str) -> bool:
    """Return whether the user of an https URL may be a token: not known, nor part of the path."""
    if match.string[: match.start()][-8:].lower() != "https://" or user in KNOWN_USERS:
        return False
    path = re.match(r"[^/\s'\"]*([^\s'\"?#]*)", match.string[match.end() :])
    return not user or path is None or user not in path[1].split("/")
