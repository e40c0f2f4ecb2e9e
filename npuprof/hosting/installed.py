"""How this npuprof was installed (PEP 610), if that is a URL with a commit or a hash."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from importlib import metadata
from urllib.parse import SplitResult, urlsplit, urlunsplit

from npuprof.model import Fields, build_error

#: Characters that need no escaping in single quotes in a shell and unquoted in YAML.
_WORD = r"[A-Za-z0-9._~/+%=-]+"
_HOST = r"(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::[0-9]{1,5})?"
_COMMIT = r"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_BELOW = rf"subdirectory={_WORD}"
_PINNED = re.compile(
    rf"git\+(?:https://|ssh://(?:[A-Za-z0-9_-]+@)?){_HOST}/{_WORD}@{_COMMIT}(?:#{_BELOW})?"
    rf"|https://{_HOST}/{_WORD}\.(?:whl|zip|tar\.gz)#sha256=[0-9a-f]{{64}}(?:&{_BELOW})?"
)


def check_address(written: str) -> str:
    """Return a URL as a pip requirement. Raises NpuprofError (NP063) if it is not immutable."""
    address = re.sub(r"^npuprof\s*@\s*", "", written.strip())
    if _PINNED.fullmatch(address):
        return f"npuprof @ {address}"
    why = (
        "CI installs it in a job with a token that may write: a name, a branch or a tag can point "
        "to another program tomorrow."
    )
    shown = repr(written)
    # the message must not repeat a password
    if re.search(r"//[^/@]*:[^/@]*@|^[^@]*https://[^/]*@", address):
        shown = "the address"
        why = "It contains a password or a token, which everybody could read in the file."
    hint = (
        "name a commit, git+https://HOST/npuprof@ and its 40 digits, or an archive, "
        "https://HOST/npuprof.whl#sha256= and its 64"
    )
    raise build_error("NP063", f"{shown} is not pinned to a commit or a hash", why, hint)


def _find_distribution() -> metadata.Distribution | None:
    """Return the metadata of this npuprof, None if it is not installed."""
    with suppress(metadata.PackageNotFoundError, OSError):
        distribution = metadata.distribution("npuprof")
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        # the record may be that of another npuprof, as in a checkout next to an installed one
        if os.path.samefile(str(distribution.locate_file("npuprof")), here):
            return distribution
    return None


def find_requirement() -> str:
    """Return the pip requirement of this npuprof.

    An empty string if it is not publicly installable.
    """
    distribution = _find_distribution()
    record = distribution.read_text("direct_url.json") if distribution else ""
    return read_direct_url(record or "")


def find_documentation() -> str:
    """Return the URL of the documentation of this npuprof, empty if none is known."""
    if match := re.fullmatch(r"npuprof @ git\+(https://.+)@(\w+)", find_requirement()):
        return f"{match[1].removesuffix('.git')}/blob/{match[2]}/npuprof/docs"
    distribution = _find_distribution()
    for entry in distribution.metadata.get_all("Project-URL", ()) if distribution else ():
        if entry.startswith("Documentation, "):
            return str(entry).removeprefix("Documentation, ")
    return ""


def read_direct_url(text: str) -> str:
    """Return the requirement in an installation record (``direct_url.json``).

    Empty if it pins nothing public. User and password are removed.
    """
    try:
        record: Fields = json.loads(text)
        url = urlsplit(record["url"])
        host = url.hostname or ""
        address = _format_address(record, url)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    # ssh needs a key, and an IP address or a name without a dot is one of a private network
    is_public = url.scheme == "https" and "." in host and not re.fullmatch(r"[0-9.]+", host)
    # a query may be the signature of a private URL
    if not is_public or url.query or not _PINNED.fullmatch(address):
        return ""
    return f"npuprof @ {address}"


def _format_address(record: Fields, url: SplitResult) -> str:
    """Return the URL of a record with its commit or hash, and its subdirectory."""
    _, _, location = url.netloc.rpartition("@")
    address = urlunsplit((url.scheme, location, url.path, "", ""))
    subdirectory = record.get("subdirectory")
    if "vcs_info" in record:
        vcs = record["vcs_info"]
        address = f"{vcs['vcs']}+{address}@{vcs['commit_id']}"
        return f"{address}#subdirectory={subdirectory}" if subdirectory else address
    archive = record["archive_info"]
    digest = archive.get("hashes", {}).get("sha256")
    if not digest:  # written by older pips
        digest = archive.get("hash", "").removeprefix("sha256=")
    address = f"{address}#sha256={digest}"
    return f"{address}&subdirectory={subdirectory}" if subdirectory else address
