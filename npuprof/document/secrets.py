"""What logs somebody in, taken out of texts before they are shown."""

from __future__ import annotations

import re

from npuprof.system import lazy_pattern

#: The files that hold addresses: of a line of theirs rather too much is hidden than too little.
_FILES_WITH_ADDRESSES = ("npuprof.toml", "npuprof.lock")
#: Users of an https address that hosts document, and that let nobody in alone; any other may be a token in their place.
KNOWN_USERS = frozenset(("git", "oauth2", "x-access-token", "x-token-auth", "gitlab-ci-token"))
#: A user that is none, but what a host gives out in place of a password.
TOKEN = lazy_pattern(r"gh[a-z]_\w{8}|github_pat_|glpat-|[A-Za-z0-9_]{36}", re.ASCII)
#: The same anywhere in a text, whole.
TOKEN_ANYWHERE = lazy_pattern(
    r"(?<![A-Za-z0-9])(?:(?:gh[a-z]_\w{8}|github_pat_|glpat-|(?:hf|npm)_[A-Za-z0-9]{20}|sk-[\w-]{20}|xox[a-z]-|pypi-AgE|AIza[\w-]{30})[\w-]*"
    r"|eyJ[\w-]{8,400}\.eyJ[\w.-]+)|(?<=//hooks\.slack\.com/services/)[\w/]+",
    re.ASCII,
)
_SCHEME = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://")
_USERINFO = lazy_pattern(r"(?<=://)[^/\s'\"]*@")
_QUERY = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s'\"?]*)\?[^\s'\"]*")
_SCP_USERINFO = lazy_pattern(r"(?<![^\s'\"])([^/:@\s'\"]*):[^/@\s]*@")
#: The same in a text that may be no address yet: what is between the beginning and the last @ may be anything but a quote.
_ANY_USERINFO = lazy_pattern(r"(?<=://)[^'\"\n]*@")
_ANY_SCP_USERINFO = lazy_pattern(r"(?<![^\s'\"=,\[({])([^/:@\s'\"=,\[({]*):(?!//)[^'\"\s]*@")
_PLAIN_USER = lazy_pattern(r"[A-Za-z0-9._-]+@")
_NAMED_SECRET = lazy_pattern(r"(?i)((?:token|passw|secret|credential)[\w\"'-]*\s*=\s*)(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,}\]]+)")


def hide_credentials(text: str) -> str:
    """Return an address, or a text of git's with addresses in it, as messages may show it: without what logs anybody in."""
    text = _QUERY.sub(r"\1?...", _USERINFO.sub(_hide_user, text))
    return text if _SCHEME.search(text) else _SCP_USERINFO.sub(r"\1:***@", text)


def hide_secrets(file: str, text: str) -> str:
    """Return a line of a file, or what is said of it, as it may be shown; ``file`` is its path.

    In the two files that hold addresses, what only looks like one is taken for one: it may stand in a wrong place, or be written wrongly.
    """
    if not file.endswith(_FILES_WITH_ADDRESSES):
        return text
    text = _QUERY.sub(r"\1?...", _ANY_USERINFO.sub(_hide_any_user, text))
    return _NAMED_SECRET.sub(r'\1"***"', TOKEN_ANYWHERE.sub("***", _ANY_SCP_USERINFO.sub(r"\1:***@", text)))


def unquote_url(text: str) -> str:
    """Return a text with what is written with % as it is meant."""
    if "%" not in text:
        return text
    from urllib.parse import unquote  # few addresses need it, and it takes long to import

    return unquote(text)


def _hide_user(match: re.Match[str]) -> str:
    user = unquote_url(match[0][:-1])
    return "***@" if ":" in user or "@" in user or TOKEN.match(user) or _may_be_token(match, user) else match[0]


def _hide_any_user(match: re.Match[str]) -> str:
    is_plain = _PLAIN_USER.fullmatch(match[0]) and not TOKEN.match(match[0]) and not _may_be_token(match, match[0][:-1])
    return match[0] if is_plain else "***@"


def _may_be_token(match: re.Match[str], user: str) -> bool:
    """Return whether what stands for the user of an https address may be what logs somebody in: no name that is known, or in the path."""
    if match.string[: match.start()][-8:].lower() != "https://" or user in KNOWN_USERS:
        return False
    path = re.match(r"[^/\s'\"]*([^\s'\"?#]*)", match.string[match.end() :])
    return not user or path is None or user not in path[1].split("/")
