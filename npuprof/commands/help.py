"""``help``: list documentation topics, print one, or print the help of a verb."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from npuprof import docs
from npuprof.commands.framework import Verb, arguments, list_verb_names
from npuprof.commands.framework.parameters import COLOR, FORMAT, OUTPUT
from npuprof.model import build_usage_error, did_you_mean
from npuprof.report import Answer
from npuprof.report.tables import Markdown, Table
from npuprof.system import join_normal

_ALL = "\nnpuprof help TOPIC shows one of these; npuprof VERB --help lists the flags of a verb.\n"


class Help(Verb):
    """List documentation topics, or print one.

    For a verb, prints its flags, like npuprof VERB --help.
    """

    group = "reference"

    topic = arguments("TOPIC...", "Topic or verb [default: list all topics]", "topic")
    format = FORMAT
    color = COLOR
    output = OUTPUT

    def run(self) -> Answer:
        """Return a page, the help of a verb, or the list of pages.

        Raises NpuprofError for an unknown word.
        """
        topics = docs.load_topics()
        requested = " ".join(self.topic).lower()
        group = [topic for topic in topics if topic.group == requested]
        if group or not self.topic:
            topics = group or topics
            rows = [
                {
                    "name": topic.name,
                    "title": topic.title,
                    "summary": topic.summary,
                    "path": topic.path,
                    "group": topic.group,
                }
                for topic in topics
            ]
            table = Table(
                list(_list_rows(topics)), after=_ALL, header=("topic", "what it is about")
            )
            return Answer(
                {
                    "text": lambda: table,
                    "json": lambda: {"schema": "npuprof.topics/1", "topics": rows},
                }
            )
        name = os.path.basename(requested).removesuffix(".md")  # also of a path that a page had
        for chosen in topics:
            if name == chosen.name:
                break
        else:
            return _show_verb(self.topic, topics)
        page = Markdown(
            chosen.text, tuple(docs.split_code(chosen.text)), _build_link_words(chosen, topics)
        )
        return Answer(
            {
                "text": lambda: page,
                "json": lambda: {"schema": "npuprof.topic/1", **chosen._asdict()},
            }
        )


def _list_rows(topics: Sequence[docs.Topic]) -> Iterator[tuple[str, str]]:
    """Yield a row per topic, and a title above each group."""
    for before, topic in zip([None, *topics], topics, strict=False):
        if before and topic.group != before.group:
            yield "", ""
        if not before or topic.group != before.group:
            yield f"{docs.GROUP_TITLES[topic.group]}:", ""
        yield topic.name, topic.summary


def _build_link_words(here: docs.Topic, topics: Sequence[docs.Topic]) -> Callable[[str, str], str]:
    """Return a function that renders links on a terminal: as the command to type, or the URL."""
    names = {topic.path: topic.name for topic in topics}

    def show(label: str, target: str) -> str:
        path = join_normal(os.path.dirname(here.path), target.partition("#")[0])
        if "://" in target:
            return f"{label} ({target})"
        if path in names and path != here.path:
            return f"{label} (`npuprof help {names[path]}`)"
        return label

    return show


def _show_verb(typed: Sequence[str], topics: Sequence[docs.Topic]) -> Answer:
    """Return the help of a verb or of a group of two-word verbs.

    Raises NpuprofError if there is none.
    """
    names = [" ".join(names) for names, _ in list_verb_names()]
    families = {name.partition(" ")[0] for name in names if " " in name}
    verb = " ".join(typed)
    if verb not in names and verb not in families:
        about = [
            topic.name
            for topic in topics
            if f" {verb}".lower() in f" {topic.title} {topic.summary}".lower()
        ]
        about.sort(key=lambda name: not name.startswith(verb.lower()))
        hint = " or ".join(f"npuprof help {name}" for name in about[:3]) or did_you_mean(
            verb,
            (*(topic.name for topic in topics), *names),
            "npuprof help lists the topics, npuprof --help the verbs",
        )
        why = "A finding is explained by npuprof rule CODE, a setting by npuprof option KEY."
        raise build_usage_error(f"there is no topic {verb!r}", hint, why)
    # Typer takes longer to import than a page to print
    from npuprof.commands.framework.application import format_help

    text = format_help(verb.split())
    return Answer(
        {
            "text": lambda: text,
            "json": lambda: {"schema": "npuprof.help/1", "verb": verb, "text": text},
        }
    )


VERB = Help
