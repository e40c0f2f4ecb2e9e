"""The documentation topics: Markdown files in a folder for each kind of page.

The file name is the topic.

A page begins with its title and a one-sentence summary. ``<!-- order: 30 -->`` sets its position in
the list; pages without one come last. Comments are for authors and are not shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from npuprof.model import Record

_FOLDER = os.path.dirname(__file__)
#: The groups of pages in reading order, which are folders, with the heading of each.
GROUP_TITLES = {
    "start": "Start",
    "guides": "Guides",
    "concepts": "Concepts",
    "reference": "Reference",
}
_LAST = 1_000_000


class Topic(Record):
    """One page: its topic, its path below the docs folder, its title, its summary and its text.

    ``group`` is one of ``GROUP_TITLES``, ``order`` its position in the group.
    """

    name: str
    path: str
    title: str
    summary: str
    text: str
    order: int
    group: str


def load_topics() -> list[Topic]:
    """Return all pages in reading order."""
    groups = list(GROUP_TITLES)
    return sorted(
        map(_load_topic, _list_paths()),
        key=lambda topic: (groups.index(topic.group), topic.order, topic.path),
    )


def _list_paths() -> Iterator[str]:
    for group in GROUP_TITLES:
        for name in sorted(os.listdir(os.path.join(_FOLDER, group))):
            if name.endswith(".md"):
                yield f"{group}/{name}"


def _load_topic(path: str) -> Topic:
    with open(os.path.join(_FOLDER, path), encoding="utf-8") as file:
        written = file.read()
    order_comment = re.search(r"^<!-- order: (\d+) -->$", written, re.MULTILINE)
    text = drop_comments(written)
    title, summary, *_ = *text.split("\n\n", 2), ""
    group, name = path.removesuffix(".md").split("/")
    order = int(order_comment[1]) if order_comment else _LAST
    return Topic(
        name, path, title.removeprefix("# ").strip(), " ".join(summary.split()), text, order, group
    )


def read_picture(path: str) -> bytes:
    """Return the content of an image on a page, by its path below the docs folder."""
    with open(os.path.join(_FOLDER, path), "rb") as file:
        return file.read()


def drop_comments(text: str) -> str:
    """Return the text of a page without HTML comments; comments inside code blocks stay."""
    return "".join(_drop_from_prose(part) if prose else part for part, prose in split_code(text))


def _drop_from_prose(text: str) -> str:
    plain = re.sub(r"(?m)^<!--(?:(?!-->).)*-->\n|<!--(?:(?!-->).)*-->", "", text)
    return text if plain == text else re.sub(r"\n{3,}", "\n\n", re.sub(r"\A\n{2,}", "\n", plain))


def split_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a page with a flag: True for prose, False for fenced code."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r" *(`{3,}|~{3,})", line)
        opens = mark is not None and not fence
        closes = (
            mark is not None
            and bool(fence)
            and mark[1].startswith(fence)
            and not line.strip().strip(fence[0])
        )
        if opens and lines:
            yield "".join(lines), True
            lines = []
        lines.append(line)
        if opens and mark is not None:
            fence = mark[1]
        elif closes:
            yield "".join(lines), False
            lines, fence = [], ""
    if lines:
        yield "".join(lines), not fence


def make_anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and GitLab generate it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain.strip().lower()))
