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
from npuprof.document.keys import format_toml_value, is_visible
from support.repositories import Repo
from support.running import Run

#: A C1 control, changes of the text direction, and characters that show nothing.
EVIL = "\x9b31m\u202e\u2066\u200f\u061c\u200b\ufe0f\u3164"
#: A colour that npuprof never uses, markup of Rich, HTML and Markdown, an alert, these characters,
#: line ends, and a command of a CI job.
NAME = f"e\x1b[35;5m[bold red]<b id=x>**m**\x07{EVIL}\u2028\r\n::error::x"
BRANCH = EVIL.replace("\x9b31m", "branch")
#: The same without line ends, for a folder in a repository: git finds no other.
STORE = NAME.replace("\r\n", "")
#: The beginning of what is printed for it: of TOML, of other text, of Markdown and of HTML.
SHOWN = re.compile(r"\\{1,2}(?:x1b|u001b)\\?\[35;5m\\?\[bold red\\?\](?:\\?<|&lt;)b")
VALUE = format_toml_value(f"{NAME}[/]</b>")
#: What changes a colour: npuprof's own, which NAME does not contain.
COLOUR = re.compile(r"\x1b\[(?:\d{1,2}(?:;3\d)?)?m")

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
BLOCK = f"# >>> npuprof good >>>\n# {EVIL}\n# <<< npuprof <<<\n"
RULE = 'code = "TEAM-1"\nrequire = "hccl_timeout == 1"\nmessage = "[bold red]<b id=x>"\n'
#: Command lines of every verb; ``{}`` is the name, ``{py}`` a script with it.
LINES = """
check
check --severity info --format github
check --format gitlab
check --format concise
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
scan --statistics {}.toml
scan --severity info
scan {py} --severity info --format github
bisect good valid -- false
bisect good {} -- false
doctor --adapter {}
run variables -- true
run {} -- true
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
{}
show --{}
show good --set {}=1
show {}.toml
check {}.toml --format github
diff good {}.toml
diff --rev {branch}
env good --diff
env valid --format k8s-configmap
import {py} -o {new}/
inject . --all --dry-run --force
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
    arguments = line.split()
    return " ".join(arguments[: 2 if arguments[0] in ("git", "source") else 1])


def list_unseen(text: str) -> list[str]:
    """Return the characters of a text that a terminal would obey or not show.

    Line ends of a patch are those of its file.
    """
    lines = [line.removesuffix("\r") for line in COLOUR.sub("", text).split("\n")]
    return [char for line in lines if not is_visible(line) for char in line if not is_visible(char)]


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
    (repo.folder / f"{NAME}.sh").write_text(f"export HCCL_BUFSIZE=1\n{BLOCK}")
    (store / "valid.toml").write_text(PRESETS["valid"].replace("</b>", "</i>"))
    (repo.folder / f"{NAME}.toml").write_text(PRESETS["wrong"])
    repo.commit(message=f"second {NAME}")
    repo.git("commit", "-q", "--amend", "--no-edit", f"--author=e\x1b[35;5m[bold red]{EVIL} <a@b>")
    repo.git("branch", BRANCH, "HEAD~1")
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
    known = {
        "py": f"{NAME}.py",
        "new": f"{NAME} new",
        "store": f"{STORE}/profiles",
        "branch": BRANCH,
    }
    return [argument.format(NAME, **known) for argument in line.split()]


@pytest.mark.parametrize("line", LINES)
def test_no_verb_prints_a_control_character_or_markup_that_was_written(
    line: str, folder: None, run: Run
) -> None:
    done = run(*list_words(line))
    out = "" if line in FOR_PROGRAMS else done.out
    assert "\x1b" not in out + done.err
    assert list_unseen(out + done.err) == []
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
    assert list_unseen(done.out + done.err) == []
    assert bool(SHOWN.search(COLOUR.sub("", done.out + done.err))) == (line not in WITHOUT_NAME)


def test_each_verb_is_among_those_that_print_hostile_text() -> None:
    verbs = {" ".join(names) for names, verb in list_verbs() if not verb.hidden}
    assert {name_verb(line) for line in LINES} - {"{}"} == verbs
