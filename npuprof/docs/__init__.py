"""The documentation: each page is a Markdown file beside this one, or below ``recipes/``, and its name is its topic.

A page begins with its title and one sentence that says what it is about. Where it stands among the others is its own word:
``<!-- order: 30 -->``; one without it comes last. What nobody reads from top to bottom says ``<!-- group: look-up -->``. Comments are for
those who write the page, and not part of what is shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from npuprof.model import Record

_FOLDER = os.path.dirname(__file__)
#: The groups of pages in the order of a reader, and what their pages are called together.
GROUP_TITLES = {"": "Topics", "recipes": "Recipes", "look-up": "Reference"}
_FOLDERS = ("", "recipes")
_LAST = 1_000_000


class Topic(Record):
    """One page: the word that asks for it, its path below the folder of pages, its title, what it is about, its text, and its place.

    ``group`` is one of ``GROUP_TITLES``, ``order`` its place there.
    """

    name: str
    path: str
    title: str
    summary: str
    text: str
    order: int
    group: str


def load_topics() -> list[Topic]:
    """Return all pages in the order in which they are read."""
    groups = list(GROUP_TITLES)
    return sorted(map(_load_topic, _list_paths()), key=lambda topic: (groups.index(topic.group), topic.order, topic.path))


def _list_paths() -> Iterator[str]:
    for group in _FOLDERS:
        folder = os.path.join(_FOLDER, group)
        if os.path.isdir(folder):
            yield from (f"{group}/{name}".lstrip("/") for name in sorted(os.listdir(folder)) if name.endswith(".md"))


def _load_topic(path: str) -> Topic:
    with open(os.path.join(_FOLDER, path), encoding="utf-8") as file:
        written = file.read()
    order_comment = re.search(r"^<!-- order: (\d+) -->$", written, re.MULTILINE)
    text = drop_comments(written)
    title, summary, *_ = *text.split("\n\n", 2), ""
    name = os.path.basename(path).removesuffix(".md")
    apart = re.search(r"^<!-- group: ([a-z-]+) -->$", written, re.MULTILINE)
    group = apart[1] if apart else os.path.dirname(path)
    order = int(order_comment[1]) if order_comment else _LAST
    return Topic(name, path, title.removeprefix("# ").strip(), " ".join(summary.split()), text, order, group)


def read_picture(path: str) -> bytes:
    """Return a file that a page shows, by its path below the folder of pages."""
    with open(os.path.join(_FOLDER, path), "rb") as file:
        return file.read()


def drop_comments(text: str) -> str:
    """Return the text of a page without its comments, those in code left alone."""
    return "".join(_drop_from_prose(part) if prose else part for part, prose in split_code(text))


def _drop_from_prose(text: str) -> str:
    plain = re.sub(r"(?m)^<!--(?:(?!-->).)*-->\n|<!--(?:(?!-->).)*-->", "", text)
    return text if plain == text else re.sub(r"\n{3,}", "\n\n", re.sub(r"\A\n{2,}", "\n", plain))


def split_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a page, and of each whether it is prose: what stands between fences is not."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r" *(`{3,}|~{3,})", line)
        opens = mark is not None and not fence
        closes = mark is not None and bool(fence) and mark[1].startswith(fence) and not line.strip().strip(fence[0])
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
    """Return the name by which a link finds a heading, as the hosts of repositories make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain.strip().lower()))
