"""Whatever control characters and markup a path, a name or a value contains, every verb prints them
as text.
"""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest

from npuprof.commands.framework import list_verbs
from npuprof.document.keys import format_toml_value
from support.repositories import Repo
from support.running import Run

#: A colour that npuprof never uses, markup of Rich, HTML and Markdown, an alert, a C1 control, a
#: change of the text direction, line ends, and a command of a CI job.
NAME = "e\x1b[35;5m[bold red]<b id=x>**m**\x07\x9b31m\u202e\r\n::error::x"
#: The same without line ends, for a folder in a repository: git finds no other.
STORE = NAME.replace("\r\n", "")
#: The beginning of what is printed for it: of TOML, of other text, of Markdown and of HTML.
SHOWN = re.compile(r"\\{1,2}(?:x1b|u001b)\\?\[35;5m\\?\[bold red\\?\](?:\\?<|&lt;)b")
VALUE = format_toml_value(f"{NAME}[/]</b>")
#: What changes a colour: npuprof's own, which NAME does not contain.
COLOUR = re.compile(r"\x1b\[(?:\d{1,2}(?:;3\d)?)?m")
UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")

ABOUT = f"description = {VALUE}\nowner = {VALUE}\ndeprecated = {VALUE}\n"
PRESETS = {
    "wrong": (
        f"[profile]\nscenario = 'training'\n{ABOUT}[options]\nhccl_timeout = 2\n{VALUE} = 1\n"
        f"precision_mode_v2 = {VALUE}\nprofiling_options = {{ {VALUE} = {VALUE} }}\n"
    ),
    "valid": f"[profile]\n{ABOUT}[options]\nhccl_timeout = 1\ndump_path = {VALUE}\n",
    "next": f"[options]\nhccl_timeout = 1\ndump_path = {VALUE}\n",
    "variables": f"[options]\nhccl_timeout = 1\n[env]\nX = {VALUE}\n{VALUE} = 'x'\n",
    "names": f"[profile]\nextends = [{VALUE}]\nunset = [{VALUE}]\nlocked = [{VALUE}]\n",
    "good": "[options]\nhccl_timeout = 1\n",
}
SCRIPT = (
    "import npu_device as npu\n"
    f"npu.global_options().dump_path = {NAME!r}\n"
    f"npu.global_options().precision_mode = {NAME!r}\n"
    f"setattr(npu.global_options(), {NAME!r}, 1)\n"
)
RULE = 'code = "TEAM-1"\nrequire = "hccl_timeout == 1"\nmessage = "[bold red]<b id=x>"\n'
#: Command lines of every verb; ``{}`` is the name, ``{py}`` a script with it.
LINES = """
check
check --severity info --format github
check --format gitlab
check --format sarif
check --format json
copy valid z
copy valid {}
diff wrong valid
diff wrong valid --format markdown
diff wrong valid --format html
diff --rev HEAD~1
diff --rev HEAD~1 --format markdown
diff --rev HEAD~1 --format html
diff --rev HEAD~1 --raw
explain valid dump_path
explain variables {}
list
list --versions
list --format markdown
list --tree
log valid
log valid dump_path
blame valid
migrate valid --cann 9.0.0
render valid
render valid --to toml
render valid --to atc
render wrong
env variables --trust
env variables --trust --format json
env variables
show wrong
show valid --origin
show names
init {new}
new z --extends valid
new {}
rename valid z
rename valid {}
set good dump_path={}
set good hccl_timeout={}
unset good {}
unset valid dump_path
site {new}
commit
commit --dry-run
release wrong 1.0.0
release next --dry-run
restore valid@HEAD~1 --dry-run
restore valid@{}
yank next@1.0.0 --why {}
git install
git status
git uninstall
review --base {}
source add {} {}
source add ok {}
source list
source remove {}
source sync
source update
source vendor {}
trust
trust {store} X={}
adopt {py}
import {py}
import {py} --format text
inject {py} good
inject {py} {}
scan
scan --statistics
scan --statistics --format html
scan --severity info
scan {py} --severity info --format github
bisect good valid -- false
bisect good {} -- false
doctor --adapter {}
run variables -- true
run good -- {}
sweep good --vary dump_path={} -- true
verify valid {py}
verify {} {py}
verify --tags
whatran {py}
whatran {}
help {}
option {}
options {}
rule {}
schema {}
""".strip().splitlines()

#: Lines whose answer names nothing that a user wrote.
WITHOUT_NAME = {
    "commit",
    "git status",
    "git uninstall",
    "bisect good valid -- false",
    "release next --dry-run",
    "source sync",
    "yank next@1.0.0 --why {}",
}
#: Lines whose answer is a list of paths for programs, which get every byte.
FOR_PROGRAMS = {"init {new}"}
COMMANDS = {"::error", "::warning", "::notice"}


def name_verb(line: str) -> str:
    """Return the words of a command line that name its verb."""
    words = line.split()
    return " ".join(words[: 2 if words[0] in ("git", "source") else 1])


class Terminal(io.TextIOWrapper):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with presets, scripts, folders, files and commits with such names."""
    repo = Repo(tmp_path_factory.mktemp("hostile") / "repo")
    store = repo.folder / STORE / "profiles"
    store.mkdir(parents=True)
    for name, text in PRESETS.items():
        (store / f"{name}.toml").write_text(text)
    repo.commit(message=f"first {NAME}")
    (store / f"{NAME}.toml").write_text("")
    (repo.folder / STORE / "npuprof.toml").write_text(f"[[rule]]\n{RULE}")
    (repo.folder / f"{NAME}.py").write_text(SCRIPT)
    (repo.folder / f"{NAME}.sh").write_text("export HCCL_BUFSIZE=1\n")
    (store / "valid.toml").write_text(PRESETS["valid"].replace("</b>", "</i>"))
    repo.commit(message=f"second {NAME}")
    repo.release("valid", "1.0.0")
    repo.release("next", "1.0.0")
    repo.git("tag", "-a", "valid/v1.0.0.yanked", "-m", NAME, "valid/v1.0.0")
    (store / "good.toml").write_text(f"{PRESETS['good']}dump_path = {VALUE}\n")
    return repo.folder


@pytest.fixture
def folder(built: Path, tmp_path: Path, committer: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a copy of the repository, below a folder with such a name, which is the user's home
    too.
    """
    shutil.copytree(built, tmp_path / NAME, symlinks=True)
    monkeypatch.chdir(tmp_path / NAME)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / NAME / "home"))
    monkeypatch.setenv("NPUPROF_STORE", f"{STORE}/profiles")
    monkeypatch.setenv("NPUPROF_PAGER", "cat")
    monkeypatch.setenv("COLUMNS", "2000")  # so that nothing is wrapped
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


def list_words(line: str) -> list[str]:
    known = {"py": f"{NAME}.py", "new": f"{NAME} new", "store": f"{STORE}/profiles"}
    return [word.format(NAME, **known) for word in line.split()]


@pytest.mark.parametrize("line", LINES)
def test_no_verb_prints_a_control_character_or_markup_that_was_written(
    line: str, folder: None, run: Run
) -> None:
    done = run(*list_words(line))
    out = "" if line in FOR_PROGRAMS else done.out
    assert UNSEEN.findall(out + done.err) == []
    assert bool(SHOWN.search(out + done.err)) == (line not in WITHOUT_NAME)
    if line.endswith("--format html"):
        assert "<table" in out
        assert "<b " not in out
    if line.endswith("--format markdown"):
        markdown_it = pytest.importorskip("markdown_it")
        assert "<b " not in markdown_it.MarkdownIt("commonmark").render(out)
    if line.endswith("--format github"):
        assert {text.partition(" ")[0] for text in out.splitlines()} <= COMMANDS


@pytest.mark.parametrize("line", dict(zip(map(name_verb, LINES), LINES, strict=True)).values())
def test_no_verb_shows_a_control_character_on_a_terminal(
    line: str, folder: None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io, "TextIOWrapper", Terminal)
    done = run(*list_words(line))
    shown = COLOUR.sub("", done.out + done.err)
    assert UNSEEN.findall(shown) == []
    assert bool(SHOWN.search(shown)) == (line not in WITHOUT_NAME)


def test_each_verb_is_among_those_that_print_hostile_text() -> None:
    verbs = {" ".join(names) for names, verb in list_verbs() if not verb.hidden}
    assert {name_verb(line) for line in LINES} == verbs
