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

#: What is looked for in what git says, in this order; what it means; what to try.
_CAUSES = (
    (r"unable to create temporary file|Read-only file system|insufficient permission for adding an object",
     "The cache cannot be written.", "check the permissions of {cache}, or let XDG_CACHE_HOME name another place"),
    (r"dubious ownership",
     "The repository belongs to somebody else.", "if you trust its owner: git config --global --add safe.directory PATH"),
    (r"transport '[^']*' not allowed|Protocol .?\w+.? (?:not supported|disabled)|protocol .* is not allowed",
     "It leads to another transport than ssh, https or file.",
     "git config --get-regexp '^url' shows what your git writes for an address; else the server redirects it"),
    (r"Could not resolve host|Name or service not known|Temporary failure in name resolution|nodename nor servname|No address associated",
     "The name of its host is not known.", "check the address, and the network"),
    (r"No route to host|Network is unreachable|Network unreachable",
     "There is no way to its host.", "check the network; what was fetched before can be used without it"),
    (r"Connection refused|Failed to connect|Couldn't connect to server",
     "Its host refuses the connection.", "check the host and the port"),
    (r"timed out|Operation too slow|Timeout, server|Connection timed out",
     "Its host gives no sign of life.", "try again later; NPUPROF_TIMEOUT says for how many seconds to wait"),
    (r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
     "ssh does not know the key of its host.", "ssh to the host once, and compare the key it shows"),
    (r"SSL certificate|server certificate|certificate verify|certificate problem|CAfile|local issuer|SEC_E_UNTRUSTED_ROOT|CERT_E_|"
     r"unknown CA",
     "The certificate of its host is not trusted.",
     "check the clock; git config http.sslCAInfo names the certificates of your own authority"),
    (r"gnutls_handshake|SSL_(?:ERROR|connect)|SSL routines|TLS (?:connect error|handshake)|schannel:|wrong version number",
     "No encrypted connection came about: what answers does not speak https, or broke off.",
     "check the port, and a proxy on the way (git config http.proxy, $https_proxy)"),
    (r"requested URL returned error: 5\d\d|internal server error", "Its server is in trouble.", "try again later"),
    (r"could not read (?:Username|Password)|terminal prompts disabled|Authentication failed|requested URL returned error: 40[13]|"
     r"HTTP Basic: Access denied|Invalid username|Password authentication",
     "It asks for a user and a password, and npuprof never prompts.",
     "let git know them: git config credential.helper, then git ls-remote with the address once; or use ssh"),
    (r"Permission denied \([\w,-]+\)|Too many authentication failures|no mutual signature|read_passphrase|"
     r"Permission denied, please try again",
     "ssh is not let in, or asks for a password, and npuprof never prompts.",
     "ssh-add -l shows the keys that ssh can offer; ssh to the host once"),
    (r"repository '[^']*' (?:not found|does not exist)|[Rr]epository not found|requested URL returned error: (?:404|410)|"
     r"project you were looking for could not be found|: No such file or directory\n[^\n]*appear to be a git repository",
     "There is no such repository, or you may not see it.", "check the address, and that git ls-remote with it lists something"),
    (r"appear to be a git repository|not a git repository|info/refs not valid",
     "There is no git repository.", "check the path in the address"),
    (r"cannot run ssh|ssh: not found|ssh: command not found|remote-https' is not a git command|unable to find remote helper",
     "Here is no program for that transport.", "install ssh, or a git that speaks https"),
    (r"shallow update not allowed|shallow file has changed",
     "It is a shallow clone: its history ends somewhere.",
     "complete it there (git fetch --unshallow), or name the repository it comes from"),
    (r"fsck error|fsck-objects|missingSpace|object fails fsck|error in object",
     "It holds an object that git's own check refuses.",
     "git fsck in it tells more; an old fault that you know is let pass by git config --global fetch.fsck.NAME ignore"),
    (r"unable to update local ref|cannot lock ref|Unable to create '[^']*\.lock'",
     "Another git works in the mirror, or two of its names get in each other's way.",
     "wait for the other; else remove {mirror}, and it is fetched anew"),
    (r"packed-refs|object file .* is empty|is corrupt|loose object|inflate: data stream error|bad object refs|"
     r"missing (?:blob|tree|commit)|did not send all necessary objects",
     "The mirror of it, or the repository itself, is damaged.",
     "git fsck in {mirror} tells more; what is removed there is fetched anew, if the source still has it"),
    (r"Permission denied", "It may not be read.", "check who may read it"),
    (r"early EOF|non-properly terminated|unexpected disconnect|hung up|RPC failed|index-pack failed|invalid index-pack|Connection reset|"
     r"Connection closed|Broken pipe|bad pack header|bad line length|protocol error|expected flush|unexpected end|premature end|"
     r"Could not read from remote|expected '?(?:packfile|sideband)",
     "The other side ended before it was done.", "try again; git ls-remote with the address shows whether it answers"),
)  # fmt: skip


def build_failure(label: str, output: str, mirror: str, wanted: str = "") -> NpuprofError:
    """Return the error of a fetch that failed, from all that git said; ``label`` names the source, ``wanted`` what was to be fetched."""
    cache = mirror.rpartition("/")[0]
    if _tells_full_disk(output, cache):
        return NpuprofError([build_full_finding(cache, _quote_git(output))])
    for pattern, why, hint in _CAUSES:
        if re.search(pattern, output):
            advice = why, hint.replace("{cache}", cache).replace("{mirror}", mirror)
            break
    else:
        advice = "", "git ls-remote with the address tells more"
    why = f"Asked for was {wanted}. {advice[0]}".rstrip() if wanted else advice[0]
    return build_fetch_error(label, f"{why} {_quote_git(output)}".strip(), advice[1])


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
