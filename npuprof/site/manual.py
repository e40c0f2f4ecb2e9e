"""The documentation as pages: Markdown as HTML within the content policy, with links."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from npuprof import docs
from npuprof.model import Record
from npuprof.report.html import escape_html
from npuprof.system import join_normal

#: The folder of topic pages in a site.
FOLDER = "docs"


class TopicPage(Record):
    """One documentation page: its path, its topic, its HTML, and its images by path."""

    path: str
    topic: docs.Topic
    html: str
    pictures: tuple[tuple[str, bytes], ...]


@cache
def load_topic_pages() -> tuple[TopicPage, ...]:
    """Return the documentation pages, equal in every site."""
    return tuple(build_topic_pages(docs.load_topics()))


def build_topic_pages(topics: Sequence[docs.Topic]) -> Iterator[TopicPage]:
    """Yield the page of each topic."""
    paths = {topic.path: f"{FOLDER}/{topic.name}.html" for topic in topics}
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    for topic in topics:
        writer = _Writer(parser, topic, paths)
        yield TopicPage(paths[topic.path], topic, writer.write(), tuple(writer.pictures.items()))


class _Writer:
    def __init__(self, parser: MarkdownIt, topic: docs.Topic, paths: Mapping[str, str]) -> None:
        self.parser = parser
        self.topic = topic
        self.paths = paths
        self.pictures: dict[str, bytes] = {}
        self.heading = topic.title
        self.regions: dict[str, int] = {}

    def write(self) -> str:
        """Return the text after the title."""
        tokens = self.parser.parse(self.topic.text)[3:]  # the page template contains the title
        for place, token in enumerate(tokens):
            if token.type == "th_open" and not tokens[place + 1].content:  # an empty header cell
                token.tag = tokens[place + 2].tag = "td"
            self._change_token(
                token, tokens[place + 1].content if token.type == "heading_open" else ""
            )
        return str(self.parser.renderer.render(tokens, self.parser.options, {}))

    def _change_token(self, token: Token, heading: str) -> None:
        if token.type == "heading_open":
            self.heading = heading
            token.attrSet("id", docs.make_anchor(heading))
        elif token.type == "inline":
            for child in token.children or ():
                self._change_inline(child)
        elif token.type in ("th_open", "td_open"):
            if (
                token.attrs.pop("style", None) == "text-align:right"
            ):  # the policy forbids style attributes
                token.attrSet("class", "number")
            if token.tag == "th":
                token.attrSet("scope", "col")
        # wide tables and code scroll by themselves, which keyboards reach by tabindex
        elif token.type in ("table_open", "table_close", "fence"):
            token.content = self._write_block(token)
            token.type = "html_block"

    def _write_block(self, token: Token) -> str:
        if token.type == "table_open":
            number = self.regions[self.heading] = (
                self.regions.get(self.heading, 0) + 1
            )  # each region needs a unique label
            label = f"{self.heading}, table{f' {number}' if number > 1 else ''}"
            return (
                '<div class="wide" role="region" '
                f'aria-label="{escape_html(label)}" tabindex="0"><table>\n'
            )
        if token.type == "table_close":
            return "</table></div>\n"
        code = "\n".join(map(escape_html, token.content.split("\n")))
        return f'<pre tabindex="0"><code>{code}</code></pre>\n'

    def _change_inline(self, token: Token) -> None:
        if token.type == "link_open":
            token.attrSet("href", self._find_target(str(token.attrGet("href"))))
        elif token.type == "image":
            path = join_normal(os.path.dirname(self.topic.path), str(token.attrGet("src")))
            self.pictures[f"{FOLDER}/{os.path.basename(path)}"] = docs.read_picture(path)
            token.attrSet("src", os.path.basename(path))

    def _find_target(self, target: str) -> str:
        """Return the target of a link in the site: for a topic's file, its page."""
        file, mark, anchor = target.partition("#")
        if "://" in target or not file:
            return target
        path = join_normal(os.path.dirname(self.topic.path), file)
        return f"{os.path.basename(self.paths[path])}{mark}{anchor}"
