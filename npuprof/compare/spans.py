"""Parts of a Markdown page: code spans, links to lines, lists of names, shortened values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from urllib.parse import quote

from npuprof.compare.changes import Change
from npuprof.compare.folds import format_change_sentence
from npuprof.compare.preset_states import Pair
from npuprof.document import keys
from npuprof.model import Finding, Origin, Record, build_usage_error
from npuprof.report.tables import format_code_span

#: GitHub limits comments to 65,536 characters; the rest is for a heading.
COMMENT_LIMIT = 60_000
# a password before the host would be on the page
_ADDRESS = re.compile(r"https?://[^\s()<>\[\]`|/?#@]+([/?#][^\s()<>\[\]`|]*)?")


class Faults(Record):
    """Findings on a page besides those of the changes, under a title.

    ``counted`` is their part of the first line.
    """

    title: str
    counted: str
    findings: Sequence[Finding]


class Page(Record):
    """The context of a page of changes: repository URL, owners, ``faults`` found elsewhere.

    ``revisions`` are the compared commits, if known: a line of another commit, as of a pinned
    parent, is cited with its commit. ``command`` prints what does not fit in ``limit`` characters.
    """

    address: str = ""
    owners: Mapping[str, Sequence[str]] = {}
    revisions: frozenset[str] = frozenset()
    faults: Sequence[Faults] = ()
    command: str = "npuprof diff"
    limit: int = COMMENT_LIMIT

    @property
    def list_limit(self) -> int:
        """The maximum number of characters of one list of names."""
        return self.limit // 10


def format_listed_span(text: str) -> str:
    """Return text as a code span outside of tables."""
    return format_code_span(text, in_table=False)


def join_fitting(texts: Sequence[str], room: int) -> str:
    """Return as many texts as fit in ``room`` characters as a list; the rest is counted."""
    fitting = sum(end <= room for end in accumulate(len(text) + 2 for text in texts))
    if fitting == len(texts):
        return ", ".join(texts)
    if not fitting:
        return f"{len(texts)} in all"
    return f"{', '.join(texts[:fitting])} and {len(texts) - fitting} more"


def list_names(names: Iterable[str], page: Page) -> str:
    """Return as many names as fit in one list of a page, as code spans; the rest is counted."""
    return join_fitting([format_listed_span(name) for name in names], page.list_limit)


def collect_revisions(pairs: Iterable[Pair]) -> frozenset[str]:
    """Return the commits at which presets are compared, if any of them could be resolved."""
    revisions = (
        side.profile.document.revision
        for pair in pairs
        for side in (pair.before, pair.after)
        if side and side.lineage
    )
    return frozenset(filter(None, revisions))


def is_address(text: str) -> bool:
    """Return whether a text can be the URL of a repository, or a template of URLs."""
    return _ADDRESS.fullmatch(text) is not None and ("{path}" in text or "{" not in text)


def require_address(flag: str, text: str | None) -> None:
    """Raise NpuprofError if a text is given and cannot be the URL of a repository."""
    if text is not None and not is_address(text):
        hint = "write it as a browser shows it: https://github.com/team/presets"
        raise build_usage_error(f"{flag} {text!r} is not a URL", hint)


def format_location(origin: Origin, page: Page, in_table: bool = False) -> str:
    """Return the file and line of an origin, with a link to the line if the URL is known."""
    location = f"{origin.file}:{origin.line}" if origin.line else origin.file
    is_compared = origin.revision is None or origin.revision in page.revisions
    if page.revisions and not is_compared:
        location = str(origin)  # with its commit; the head of the page names the compared ones
    span = format_code_span(location, in_table)
    link = build_link(origin, page.address)
    return f"[{span}]({link})" if link else span


def build_link(origin: Origin, address: str) -> str:
    """Return the URL of the line that set a value, empty for uncommitted lines."""
    if not address or not origin.revision or not origin.line:
        return ""
    return link_line(address, origin.revision, origin.file, origin.line)


def link_line(address: str, revision: str, path: str, line: int) -> str:
    """Return the URL of a line in a repository, for GitHub, GitLab, GitCode and Gitee.

    The URL of the repository may be a template with ``{rev}``, ``{path}`` and ``{line}``.
    """
    if "{path}" not in address:
        is_gitlab = "gitlab" in address.split("/")[2] or address.endswith("/-")
        # GitLab separates the path of a project, which may be nested, by "/-/"
        blob = "/-/blob/" if is_gitlab else "/blob/"
        address = (
            address.removesuffix("/-").rstrip("/").removesuffix(".git")
            + blob
            + "{rev}/{path}#L{line}"
        )
    address = address.replace("{rev}", revision).replace("{line}", str(line))
    return address.replace("{path}", quote(path))


#: The maximum number of characters of a value in a row, and of the common prefix of both sides.
VALUE_LIMIT = 300
_SHARED = 40


def format_short_sentence(change: Change) -> str:
    """Return a change as a sentence; long values are cut around their first difference."""
    texts = [
        keys.format_toml_value(side) for side in (change.before, change.after) if side is not None
    ]
    if all(len(text) <= VALUE_LIMIT for text in texts):
        return format_change_sentence(change)
    columns = enumerate(zip(*texts, strict=False))
    # 0 if one starts the other
    start = next((index for index, characters in columns if len(set(characters)) > 1), 0) - _SHARED
    if start <= VALUE_LIMIT - 2 * _SHARED:
        start = 0  # the difference is seen from the start, too
    shown = [shorten_text(text, start) for text in texts]
    scope = f"({change.scope}) " if change.scope else ""
    return f"{scope}{change.key} {' → '.join(shown)}"


def shorten_text(text: str, start: int = 0, limit: int = VALUE_LIMIT) -> str:
    """Return a text from an offset on, cut to the width of a row, or another limit."""
    if len(text) <= limit:
        return text
    return f"{'…' if start else ''}{text[start : start + limit]}… ({len(text):,} characters)"
