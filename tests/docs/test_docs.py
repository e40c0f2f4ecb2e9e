"""The documentation is true: commands print what its pages show, and what they name exists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog, docs
from npuprof.catalog.programs import load_programs
from npuprof.commands.framework import list_verb_names, list_verbs, load_verb
from support.building import REPOSITORY, Checkout
from support.documents import (
    GENERATED,
    LANGUAGES,
    PAGES,
    PART,
    README,
    World,
    fill_generated_parts,
    find_world,
    list_blocks,
    read_blocks,
    run_console,
)
from support.lanes import ACCEPT, more_at_night
from support.running import Run

TOPICS = docs.load_topics()
CONTRIBUTING = REPOSITORY / ".github" / "CONTRIBUTING.md"
#: Flags that pages name and that belong to other commands.
FOREIGN_FLAGS = {
    "--x",
    "--no-x",
    "--file",
    "--config-name",
    "--deepspeed",
    "--nproc_per_node",
    "--no-textconv",
    "--no-ext-diff",
    "--hook",
    "--ntasks-per-node",
    "--export",
    "--upgrade",
    "--npu_preset",
    "--npu_set",
    "--npu_unset",
    "--npu_store",
    "--npuprof",
    "--npuprof-strict",
    "--last-failed",
    "--max-model",  # a beginning of an argument of vLLM
    "--omni",
}
#: Pages whose commands run in the gate: one in two, and those with Python. Chinese guides have the
#: blocks of English ones, which test_pages.py compares.
IN_THE_GATE = [
    page
    for number, page in enumerate(page for page in PAGES if not page.endswith("-zh.md"))
    if number % 2 == 0 or list_blocks(page, "python")
]
every_page = pytest.mark.parametrize("page", PAGES)


def read(page: str) -> str:
    return PAGES[page].read_text(encoding="utf-8")


def write_back(page: str, text: str, request: pytest.FixtureRequest) -> None:
    """Accept what a page has to say, or hold it against what it says."""
    if request.config.getoption("--update-golden"):
        PAGES[page].write_text(text, encoding="utf-8")
    assert text == read(page), f"{page} is out of date; {ACCEPT}"


@pytest.mark.accepted
@pytest.mark.parametrize(
    "page", more_at_night(IN_THE_GATE, [page for page in PAGES if page not in IN_THE_GATE])
)
def test_what_a_page_shows_is_what_happens(
    page: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = read(page)
    blocks = list(read_blocks(text))
    made = find_world(text)
    if any(block.language == "console" for block in blocks):
        assert made is not None, (
            f"{page} says nowhere in which world its commands run: see WORLDS in "
            "tests/support/documents.py"
        )
    world = World(tmp_path, made or "true")
    parts: list[str] = []
    printed: list[str] = []
    cases = [*match_parts(text)]
    assert cases
    for (part, prose), block in cases:
        parts.append(part)
        printed.append(part)
        if prose or block is None:
            continue
        if block.path:
            world.write(
                block.path,
                block.text.partition("\n")[2] if block.language == "text" else block.text,
            )
        elif block.language == "console":
            failed: list[str] = []
            outputs: list[str] = []
            parts[-1] = part.replace(block.text, run_console(world, block.text, failed, outputs))
            printed[-1] = part.replace(block.text, outputs[0])
            assert bool(failed) == is_marked_as_failing(parts), (
                f"{page}: <!-- fails --> must stand above the blocks "
                f"in which a command fails, and no other: {failed}"
            )
        elif block.language == "python" and re.search(
            r"^import tensorflow\b", block.text, re.MULTILINE
        ):
            request.getfixturevalue("tensorflow")  # which this process imports once
            monkeypatch.chdir(world.folder)
            exec(compile(block.text, page, "exec", dont_inherit=True), {"__name__": "__main__"})
        elif block.language == "python":
            if "absl" in block.text:
                pytest.importorskip("absl")
            done = world.start([sys.executable, "-c", block.text])
            assert done.returncode == 0, done.stdout
        elif block.language == "toml":
            done = world.start(
                ["npuprof", "check", "-", "--strict", "--store", str(REPOSITORY / "profiles")],
                block.text,
            )
            assert done.returncode == 0, done.stdout
    # The commit ids and dates of a page are those of one run: a page with anything new is written
    # anew as a whole.
    write_back(page, text if "".join(parts) == text else "".join(printed), request)


def test_a_printed_commit_id_without_a_digit_is_a_commit_id(tmp_path: Path) -> None:
    block = "$ echo dbdedec 77fdfb3\n13c3ee1 95634b5\n$ echo dbdedec\n13c3ee1\n"
    world = World(tmp_path, "true")
    assert run_console(world, block) == block
    other = "$ echo 77fdfb3\n13c3ee1\n"
    assert run_console(world, other) != other, "the page shows another commit by this id"


def is_marked_as_failing(parts: list[str]) -> bool:
    """Return whether a page says above its last block that a command in it fails."""
    return len(parts) > 1 and parts[-2].endswith("<!-- fails -->\n")


def match_parts(text: str) -> Iterator[tuple[tuple[str, bool], Any]]:
    blocks = read_blocks(text)
    for part, prose in docs.split_code(text):
        yield (part, prose), None if prose else next(blocks)


@pytest.mark.accepted
@every_page
def test_generated_parts_say_what_there_is(page: str, request: pytest.FixtureRequest) -> None:
    unknown = {match[2] for match in PART.finditer(read(page))} - set(GENERATED)
    assert not unknown, "each is made by a row of GENERATED in tests/support/documents.py"
    write_back(page, fill_generated_parts(read(page)), request)


def test_every_generated_part_has_a_page() -> None:
    used = {match[2] for page in PAGES for match in PART.finditer(read(page))}
    assert used == set(GENERATED)


def test_there_are_blocks_of_every_language_links_and_commands_that_no_test_runs() -> None:
    assert sum(len(list_targets(path)) for path in PAGES.values()) > 60
    assert set(LANGUAGES) - {
        block.language for page in PAGES for block in read_blocks(read(page))
    } <= {"json"}
    assert sum("npuprof " in command for page in PAGES for command in list_commands(page)) > 100


@every_page
def test_blocks_are_of_a_language_that_is_tried_and_can_be_read(page: str) -> None:
    blocks = read_blocks(read(page))
    assert blocks
    for block in blocks:
        assert block.language in LANGUAGES, block
        if block.language == "python":
            compile(block.text, page, "exec")
        elif block.language == "yaml":
            yaml = pytest.importorskip("yaml")
            list(yaml.safe_load_all(block.text))
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "sh":
            done = subprocess.run(
                ["bash", "-n"], input=block.text, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr


def list_commands(page: str) -> Iterator[str]:
    """Yield the npuprof commands in the prose and ``sh`` blocks of a page, which no test runs."""
    text = read(page)
    for part, prose in docs.split_code(text):
        if prose:
            for span in re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", part, re.DOTALL):
                yield " ".join(span[1].split())
    for block in read_blocks(text):
        if block.language == "sh":
            yield from (
                line.split(" #")[0] for line in block.text.replace("\\\n", " ").splitlines()
            )


@every_page
def test_every_command_that_a_page_names_is_one_and_has_its_flags(page: str) -> None:
    flags = {
        flag
        for _, verb in list_verbs()
        for parameter in verb.parameters.values()
        for flag in parameter.flags
    }
    flags |= FOREIGN_FLAGS | {f"--{name}" for name in catalog.record_names("atc")}
    flags |= {f"--{name}" for name in catalog.record_names("megatron")}
    for program in load_programs():
        names = [flag[2:] for flag in program.flags if flag.startswith("--")]
        flags |= {f"--{name}" for known in names for name in (known, known.replace("-", "_"))}
    cases = [*list_commands(page)]
    assert cases
    for command in cases:
        found = re.search(r"(?:^|[ /(])npuprof (?P<arguments>(?:[a-z-]+|VERB).*)", command)
        if found is None:
            if re.fullmatch(r"--[a-z][\w-]*([ =].*)?", command):
                assert re.split(r"[ =]", command)[0] in flags, f"{page}: {command}"
            continue
        text = re.split(r" [|>&;] ?|\)\"?$|;", found["arguments"])[0]
        arguments = shlex.split(text.replace("...", ""))
        if arguments[0] in ("VERB", "--help") or arguments[0].startswith("--"):
            continue
        known = load_verb(arguments)
        if known is None:
            groups = {names[0] for names, _ in list_verb_names()}
            assert arguments[0] in groups, f"{page}: no verb: {command}"
            assert len(arguments) == 1, f"{page}: no verb: {command}"
            continue
        own = {*known.verb.spellings, "--help"}
        for argument in known.arguments:
            if argument == "--":  # the rest belongs to another command
                break
            if argument.startswith("-") and argument != "-":
                assert argument.partition("=")[0] in own, (
                    f"{page}: {' '.join(known.names)} has no {argument}: {command}"
                )


def list_anchors(path: Path) -> set[str]:
    """Return the names by which links find the headings of a page."""
    prose = "".join(
        part for part, prose in docs.split_code(path.read_text(encoding="utf-8")) if prose
    )
    return {docs.make_anchor(heading) for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)}


def list_targets(path: Path) -> list[str]:
    """Return where the links of a page lead."""
    prose = "".join(
        part for part, prose in docs.split_code(path.read_text(encoding="utf-8")) if prose
    )
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", prose))


@pytest.mark.parametrize("path", [*PAGES.values(), CONTRIBUTING], ids=lambda path: path.name)
def test_every_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    for target in list_targets(path):  # a page may have no link
        if "://" in target:
            assert target.startswith("https://"), target
            continue
        file, _, anchor = target.partition("#")
        place = path if not file else path.parent / file
        assert place.is_file(), f"{target} leads nowhere"
        assert REPOSITORY in place.resolve().parents
        if path != README and path != CONTRIBUTING:
            shipped = REPOSITORY / "npuprof" / "docs"
            assert shipped in place.resolve().parents, (
                f"{target} is not in the package: who reads the installed page has no such file"
            )
        assert not anchor or anchor in list_anchors(place), f"{target}: there is no such heading"


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.path)
def test_a_page_begins_with_its_title_and_one_sentence(topic: docs.Topic) -> None:
    assert topic.text.startswith(f"# {topic.title}\n\n")
    assert topic.summary.endswith((".", "。"))
    assert ". " not in topic.summary, "one sentence, which npuprof help lists"
    assert len(topic.summary) <= 120
    assert re.fullmatch(r"[a-z0-9-]+", topic.name)


def test_a_topic_has_one_page_and_no_verb_has_its_name() -> None:
    names = [topic.name for topic in TOPICS]
    assert len(set(names)) == len(names)
    assert not set(names) & {name[0] for name, _ in list_verb_names()}
    orders = [topic.order for topic in TOPICS]
    assert len(set(orders)) == len(orders), "two pages want the same place: <!-- order: N -->"


@every_page
def test_no_empty_line_divides_a_table(page: str) -> None:
    prose = "".join(part for part, is_prose in docs.split_code(read(page)) if is_prose)
    heads = re.findall(r"\n\n\|.*\n(.*)", prose)
    assert all(re.fullmatch(r"\|[-:| ]+\|", line) for line in heads), heads


@every_page
def test_no_page_names_a_folder_of_a_machine(page: str) -> None:
    machine_paths = (
        str(REPOSITORY),
        sys.prefix,
        sys.base_prefix + "/lib",
        tempfile.gettempdir() + "/",
        "pytest-",
        "site-packages/",
    )
    assert not [path for path in machine_paths if path in read(page)]


def count_own_words(text: str) -> int:
    """Return the number of words of a page that a person wrote and reads as prose or in tables.

    Fenced blocks, generated and measured parts, comments, inline code and the targets of links do
    not count. Two Chinese characters count as a word.
    """
    written = re.sub(r"(?s)<!-- (?:generated: [a-z-]+|measured) -->.*?<!-- end -->", "", text)
    prose = "".join(part for part, prose in docs.split_code(docs.drop_comments(written)) if prose)
    plain = re.sub(r"`[^`]+`|\]\([^)]*\)", " ", prose)
    chinese = re.findall(r"[\u3400-\u9fff]", plain)
    words = re.findall(r"[^\W\u3400-\u9fff][^\s\u3400-\u9fff]*", plain)
    return len(words) + len(chinese) // 2


def test_own_words_are_counted_without_code_links_and_generated_parts() -> None:
    text = (
        "# A title\n\n<!-- order: 1 -->\n\nSee [it](page.md), `x y`.\n\n```sh\nls\n```\n\n"
        "| a | b |\n\n<!-- generated: counts -->5 options<!-- end -->\n\n预设文件 here\n"
    )
    assert count_own_words(text) == 7 + 2  # A title See it a b here, and four characters


def test_the_pages_have_at_most_18000_words_of_their_own() -> None:
    counts = {topic.path: count_own_words(read(topic.path)) for topic in TOPICS}
    del counts["reference/changelog.md"]  # grows with each release
    assert sum(counts.values()) <= 18000, sorted(counts.items(), key=lambda row: -row[1])


def test_help_lists_the_topics_in_their_order_group_by_group_and_says_where_flags_are(
    run: Run,
) -> None:
    result = run("help")
    assert result.code == 0
    assert result.err == ""
    *parts, end = result.out.split("\n\n")
    assert [part.splitlines()[0].split("  ")[0] for part in parts] == [
        "Start:",
        "Guides:",
        "Concepts:",
        "Reference:",
    ]
    lines = [line for part in parts for line in part.splitlines() if "  " in line]
    assert [line.split()[0] for line in lines] == [topic.name for topic in TOPICS]
    assert all(topic.summary in line for topic, line in zip(TOPICS, lines, strict=True))
    assert "npuprof VERB --help lists the flags" in end
    listed = json.loads(run("help", "--format", "json").out)
    assert [topic["name"] for topic in listed["topics"]] == [topic.name for topic in TOPICS]
    assert list(dict.fromkeys(topic["group"] for topic in listed["topics"])) == list(
        docs.GROUP_TITLES
    )
    assert run("help", "concepts").out.startswith("Concepts:")


@pytest.mark.parametrize("topic", TOPICS[::6], ids=lambda topic: topic.path)
def test_help_shows_a_page_as_it_is_written_in_a_pipe(topic: docs.Topic, run: Run) -> None:
    result = run("help", topic.name)
    assert result.code == 0
    assert result.err == ""
    assert result.out == topic.text
    assert run("help", topic.path).out == topic.text
    assert json.loads(run("help", topic.name, "--format", "json").out)["text"] == topic.text
    assert "<!--" not in "".join(part for part, prose in docs.split_code(topic.text) if prose)


@pytest.mark.parametrize("names", [["show"], ["source"], ["source", "add"], ["git", "install"]])
def test_help_of_a_verb_is_what_the_verb_says_of_itself(names: list[str], run: Run) -> None:
    assert run("help", *names) == run("help", " ".join(names)) == run(*names, "--help")


@pytest.mark.parametrize(("word", "topic"), [("cann", "upgrade"), ("script", "scripts")])
def test_help_names_topics_about_a_word_before_names_that_resemble_it(
    word: str, topic: str, run: Run
) -> None:
    assert f"npuprof help {topic} or" in run("help", word).err


def test_completion_offers_topics_and_verbs() -> None:
    from npuprof.commands.completion import find_candidates

    found = dict(find_candidates(["help"], ""))
    assert {topic.name for topic in TOPICS} < set(found)
    assert "show" in found


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("# A title\n\nWords.\n", "A title\n\nWords.\n\n"),
        ("one\ntwo\n", "one two\n\n"),
        ("```sh\nls  -l <!-- x -->\n```\n", "    ls  -l <!-- x -->\n\n"),
        ("- a\n- b\n", " • a\n • b\n\n"),
        ("see [how](file.md#a)\n", "see how (npuprof help file)\n\n"),
        ("see [it](https://example.org)\n", "see it (https://example.org)\n\n"),
        ("see [above](#a)\n", "see above\n\n"),
        ("![A page](site.png)\n", "(a picture: A page)\n\n"),
        ("| a | b |\n|---|---|\n| `x` | y |\n", "a  b\n────\nx  y\n\n"),
    ],
)
def test_a_terminal_shows_a_page_laid_out(
    written: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from npuprof.commands.help import _build_link_words
    from npuprof.report.tables import Markdown

    topics = [
        docs.Topic("file", "file.md", "", "", "", 1, "start"),
        docs.Topic("here", "here.md", "", "", "", 2, "start"),
    ]
    page = Markdown(written, tuple(docs.split_code(written)), _build_link_words(topics[1], topics))
    plain = page.format_terminal(False)
    assert [line.strip() for line in plain.split("\n")] == [
        line.strip() for line in shown.split("\n")
    ]
    assert re.sub(r"\033\[[0-9;]*m", "", page.format_terminal(True)).replace(
        " ", ""
    ) == plain.replace(" ", "")
    assert page.format_plain() == written


def test_on_a_terminal_headings_stand_out_and_lines_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from npuprof.report.tables import Markdown

    monkeypatch.setenv("COLUMNS", "50")
    text = "# A title\n\n" + "word " * 60 + "\n\n```text\n" + "x" * 90 + "\n```\n"
    page = Markdown(text, tuple(docs.split_code(text)), lambda label, target: label)
    assert "\033[1mA title" in page.format_terminal(True)
    lines = page.format_terminal(False).split("\n")
    assert max(len(line) for line in lines if "word" in line) <= 50
    assert "    " + "x" * 90 in lines, "code is never broken by us"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a <!-- b -->c", "a c"),
        ("a\n<!-- b -->\n\nc\n", "a\n\nc\n"),
        ("| a |\n<!-- end -->\n\nb\n", "| a |\n\nb\n"),
        ("a\n\n<!-- order: 3 -->\n\nb\n", "a\n\nb\n"),
        ("```html\n<!-- b -->\n```\n", "```html\n<!-- b -->\n```\n"),
        ("````text\n```\n<!-- b -->\n```\n````\n", "````text\n```\n<!-- b -->\n```\n````\n"),
    ],
)
def test_comments_are_for_those_who_write_a_page(written: str, shown: str) -> None:
    assert docs.drop_comments(written) == shown


def test_a_page_is_added_by_adding_a_file(checkout: Checkout) -> None:
    page = checkout.package / "docs" / "guides" / "tea.md"
    page.write_text("# Tea\n\nHow tea is made.\n\n<!-- order: 2 -->\n", encoding="utf-8")
    assert "How tea is made." in checkout.run("help")
