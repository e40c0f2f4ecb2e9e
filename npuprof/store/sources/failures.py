"""Why a source could not be fetched, in words: what git, ssh and curl say, and what helps."""

from __future__ import annotations

import errno
import re

from npuprof.model import Finding, NpuprofError
from npuprof.report.output import describe_os_error
from npuprof.report.text import escape_controls
from npuprof.store.sources.urls import hide_credentials

_LONGEST = 300  # characters of what git said that are shown
_FULL_DISK = r"(?i:no space left on device|disk quota exceeded|file write error|out of disk)"
_UNWRITTEN = r"couldn't write|(?:unable|failed|cannot) to write|write error"  # git does not always say why
_LEAST_ROOM = 64 * 1024  # bytes: of what a disk has left, less than this is none
#: What git says of a repository that another user owns, of files it may not touch, and of one that another git writes.
_FOREIGN, _BARRED, _BUSY = r"dubious ownership", r"Permission denied|Read-only file system|insufficient permission", r"\.lock': File exists"

#: What git, ssh or curl print if a user can do something about a failure, in the order of search; what it means; what to try.
_CAUSES = (
    (r"unable to create temporary file|Read-only file system|insufficient permission for adding an object",
     "The cache cannot be written.", "check the permissions of {cache}, or let XDG_CACHE_HOME name another place"),
    (r"dubious ownership",
     "The repository belongs to somebody else.", "if you trust its owner: git config --global --add safe.directory PATH"),
    (r"transport '[^']*' not allowed|Protocol .?\w+.? (?:not supported|disabled)|protocol .* is not allowed",
     "It leads to another transport than ssh, https or file.",
     "git config --get-regexp '^url' shows what your git writes for an address; else the server redirects it"),
    (r"Could not resolve host|Name or service not known|Temporary failure in name resolution|No route to host|Network is unreachable|"
     r"Connection refused|Failed to connect|Couldn't connect to server",
     "Its host cannot be reached.", "check the address and the network; what was fetched before can be used without it"),
    (r"timed out|Operation too slow|Timeout, server",
     "Its host gives no sign of life.", "try again later; NPUPROF_TIMEOUT says for how many seconds to wait"),
    (r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
     "ssh does not know the key of its host.", "ssh to the host once, and compare the key it shows"),
    (r"SSL certificate|server certificate|certificate verify|certificate problem|CAfile|local issuer|unknown CA|gnutls_handshake|"
     r"SSL_(?:ERROR|connect)|SSL routines|TLS (?:connect error|handshake)|wrong version number",
     "No trusted encrypted connection to its host is possible.",
     "check the clock, the port and a proxy on the way; git config http.sslCAInfo names the certificates of your own authority"),
    (r"could not read (?:Username|Password)|terminal prompts disabled|Authentication failed|requested URL returned error: 40[13]|"
     r"HTTP Basic: Access denied",
     "It asks for a user and a password, and npuprof never prompts.",
     "let git know them: git config credential.helper, then git ls-remote with the address once; or use ssh"),
    (r"Permission denied \([\w,-]+\)|Too many authentication failures|read_passphrase|Permission denied, please try again",
     "ssh is not let in, or asks for a password, and npuprof never prompts.",
     "ssh-add -l shows the keys that ssh can offer; ssh to the host once"),
    (r"repository '[^']*' (?:not found|does not exist)|[Rr]epository not found|requested URL returned error: (?:404|410)|"
     r"project you were looking for could not be found|appear to be a git repository|not a git repository|info/refs not valid",
     "There is no such repository, or you may not see it.", "check the address, and that git ls-remote with it lists something"),
    (r"fsck error|fsck-objects|object fails fsck|error in object",
     "It holds an object that git's own check refuses.",
     "git fsck in it tells more; an old fault that you know is let pass by git config --global fetch.fsck.NAME ignore"),
    (r"", "", "git ls-remote with the address tells more; a damaged mirror is fetched again if you remove {mirror}"),
)  # fmt: skip


def build_failure(label: str, output: str, mirror: str) -> NpuprofError:
    """Return the error of a failed fetch from all that git printed; ``label`` names the source."""
    cache = mirror.rpartition("/")[0]
    if _tells_full_disk(output, cache):
        return NpuprofError([build_full_finding(cache, _quote_git(output))])
    why, hint = next((why, hint) for pattern, why, hint in _CAUSES if re.search(pattern, output))
    return build_fetch_error(label, f"{why} {_quote_git(output)}".strip(), hint.replace("{cache}", cache).replace("{mirror}", mirror))


def _tells_full_disk(output: str, folder: str) -> bool:
    """Return whether git says that a disk is full, or could not write and the disk of a folder has no room."""
    if re.search(_FULL_DISK, output):
        return True
    import shutil

    try:
        return re.search(_UNWRITTEN, output) is not None and shutil.disk_usage(folder).free < _LEAST_ROOM
    except OSError:
        return False


def _quote_git(output: str) -> str:
    line = _pick_line(output)
    return f"git said: {line}" if line else "git said nothing."


def _pick_line(output: str) -> str:
    """Return the line that tells most: one that names an object, what a program here says, else what the other side does."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marks = ("error: object ", "ssh:", "fatal:", "error:", "remote:", "")
    best = next((line for mark in marks for line in lines if line.startswith(mark) and "Could not read from remote" not in line), "")
    best = escape_controls(hide_credentials(best or (lines[0] if lines else "")))
    return best if len(best) <= _LONGEST else f"{best[:_LONGEST]}..."


def build_fetch_error(label: str, why: str, hint: str) -> NpuprofError:
    """Return that a source cannot be fetched; ``label`` names it."""
    return NpuprofError([Finding("NP045", f"{escape_controls(hide_credentials(label))} cannot be fetched", why, hint)])


def build_cache_error(folder: str, why: str) -> NpuprofError:
    """Return that the cache cannot be used."""
    hint = "check its owner and permissions, or let XDG_CACHE_HOME name another place"
    return NpuprofError([Finding("NP053", f"the cache {folder} cannot be used", why, hint)])


def build_foreign_error(folder: str) -> NpuprofError:
    """Return that the cache, or a part of it, is somebody else's."""
    return build_cache_error(folder, "It belongs to somebody else, who could change every preset that is read from it.")


def build_os_error(folder: str, error: OSError) -> NpuprofError:
    """Return that the system refuses what a mirror takes; a full disk is told with the folder that is on it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NpuprofError([build_full_finding(folder, "")])
    return build_cache_error(folder, f"{describe_os_error(error)}.")


def build_full_finding(folder: str, quote: str) -> Finding:
    """Return that there is no room for what was fetched."""
    hint = f"make room on the disk of {folder}, or let XDG_CACHE_HOME name another place"
    return Finding("NP053", f"the cache {folder} cannot be used", f"The disk is full. {quote}".rstrip(), hint)


def build_mirror_finding(label: str, mirror: str, output: str) -> Finding:
    """Return why git could not use the mirror of a source: whose it is, what is in its way, else that it is damaged.

    ``label`` names the source.
    """
    cache = mirror.rpartition("/")[0]
    if re.search(_FOREIGN, output):
        return build_foreign_error(mirror).findings[0]
    if _tells_full_disk(output, cache):
        return build_full_finding(cache, _quote_git(output))
    if re.search(_BARRED, output) or re.search(_UNWRITTEN, output):
        return build_cache_error(mirror, f"It cannot be read, or not be written. {_quote_git(output)}").findings[0]
    if re.search(_BUSY, output):
        return build_cache_error(mirror, f"Another git works there. {_quote_git(output)}").findings[0]
    why = f"It is a copy that can be fetched anew. {_quote_git(output)}"
    return Finding("NP054", f"the mirror of {label} is damaged: {mirror}", why, "fetch it anew: npuprof source sync")
