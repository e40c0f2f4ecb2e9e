"""Two states of a store: affected presets, renames, and warnings that come and go."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from npuprof.compare import renames, sides, survey
from npuprof.document.profile import Profile
from npuprof.model import Context, NpuprofError
from npuprof.store.folder import Folder
from npuprof.store.gitstore.repository import TreeFile
from npuprof.store.gitstore.revisions import Revision, StoreRepository
from support.repositories import Repo
from support.running import Run

# -- who extends whom, found without parsing ------------------------------------------------------


#: How many ways there are to write the key; the texts that look like parents, and what is found.
ESCAPES = [
    "extends",
    '"extends"',
    "'extends'",
    '"\\u0065xtends"',
    '"extend\\U00000073"',
    '"ex\\u0074ends"',
]
FOUND = {
    "profile.extends = ['a', \"b/c\"]\n": ["a", "b/c"],
    "[profile]\r\nextends = [\r\n'a', # it's \"x\"\r\n'é']\r\n": ["a", "x", "é"],
    "profile = { description = 'extends = [\"', extends = ['a'] }\n": ['extends = ["', "a"],
    "'profile'.'extends' = []\n[options]\ndump_path = 'x'\n": ["profile", "extends", "x"],
    "[options]\ndump_path = '/x'\n": [],
    '[profile]\n"\\u0065xtends" = ["a"]\n': None,
    "profile.extends = ['''a''']\n": None,
    'profile.extends = ["""a"""]\n': None,
}


@pytest.mark.parametrize("text", FOUND)
def test_parents_found_without_parsing_miss_none_and_leave_escapes_to_the_parser(text: str) -> None:
    assert sides.read_plain_parents(text.encode()) == FOUND[text]


# -- what a change reaches ------------------------------------------------------------------------


def compare(
    repo: Repo, before: str, after: str | None, names: tuple[str, ...] = ()
) -> survey.Survey:
    """Compare two commits, or a commit with the work tree, in the store of a repository."""
    folder = Folder(str(repo.folder / "profiles"))
    later = Folder(folder.root).repository.load_revision(after) if after else folder
    return survey.compare_store_states(
        folder.repository.load_revision(before), later, ("before", "after"), Context(), names
    )


def test_an_heir_is_reached_through_any_spelling_and_plain_ones_are_not_parsed(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    heirs = {
        f"heir{number}": f"[profile]\n{key} = ['base']\n" for number, key in enumerate(ESCAPES)
    }
    first = repo.commit(
        {
            "base": "options.hccl_timeout = 1\n",
            "plain": "[profile]\nextends = ['other']\n",
            "other": "",
            **heirs,
        }
    )
    last = repo.commit({"base": "options.hccl_timeout = 2\n"})
    parsed = []
    real = Profile.__init__
    monkeypatch.setattr(
        Profile,
        "__init__",
        lambda self, document, *rest, **named: (
            parsed.append(document.name),
            real(self, document, *rest, **named),
        )[1],
    )
    assert [pair.name for pair in compare(repo, first, last).touched_pairs] == ["base", *heirs]
    assert "plain" not in parsed
    assert "other" not in parsed


@pytest.mark.parametrize(
    ("before", "after", "touched"),
    [
        ({"a": "x = 1\n"}, {"a": "x = 1\r\n"}, []),  # git would store it as it was
        ({"a": "", "b": "broken ="}, {"a": "options.hccl_timeout = 1"}, ["a"]),
        ({"a": "", "b": 'profile.extends = ["a"]'}, {"a": None}, ["a", "b"]),
        ({"b": 'profile.extends = ["a"]'}, {"a": ""}, ["a", "b"]),
        (
            {"a": "options.hccl_timeout = 1", "b": 'profile.extends = ["a"]'},
            {"b": "options.hccl_timeout = 1"},
            [],
        ),
        ({"a": "", "b": 'profile.extends = ["a"]'}, {"a": "options.hccl_timeot = 1"}, ["a", "b"]),
    ],
)
def test_the_work_tree_is_compared_as_git_would_store_it(
    repo: Repo, before: dict[str, str], after: dict[str, str | None], touched: list[str]
) -> None:
    first = repo.commit({name: text.encode() for name, text in before.items()})
    repo.write({name: text if text is None else text.encode() for name, text in after.items()})
    assert [pair.name for pair in compare(repo, first, None).touched_pairs] == touched


def test_a_link_is_never_taken_for_unchanged(repo: Repo) -> None:
    repo.write({"a": "options.hccl_timeout = 1\n", "b": "options.hccl_timeout = 1\n"})
    (repo.folder / "profiles/link.toml").symlink_to("a.toml")
    first = repo.commit()
    last = repo.commit({"a": "options.hccl_timeout = 2\n"})
    assert [pair.name for pair in compare(repo, first, last).touched_pairs] == ["a", "link"]
    (repo.folder / "profiles/b.toml").unlink()
    (repo.folder / "profiles/b.toml").symlink_to("a.toml")
    assert [pair.name for pair in compare(repo, last, None).touched_pairs] == ["b"]


def test_names_that_are_in_neither_state_are_all_refused_with_the_nearest(repo: Repo) -> None:
    first = repo.commit({"base": "", "leaf": ""})
    repo.commit({"leaf": None, "later": ""})
    with pytest.raises(NpuprofError) as caught:
        compare(repo, first, None, ("bse", "leaf", "later", "nothing"))
    assert [(finding.code, finding.message, finding.hint) for finding in caught.value.findings] == [
        ("NP008", "no preset 'bse' on either side", "did you mean 'base'?"),
        ("NP008", "no preset 'nothing' on either side", ""),
    ]
    assert [pair.name for pair in compare(repo, first, None, ("later", "base", "later")).pairs] == [
        "base",
        "later",
    ]


# -- what is called renamed -----------------------------------------------------------------------

ONE, TWO, SIX = "a = 1\n", "a = 1\nb = 2\n", "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\n"
COMMON = (
    '[profile]\nextends = ["base"]\nscenario = "training"\n'
    'cann = ">=8.0"\nowner = "us"\n\n[options]\n'
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": SIX}, {"b": SIX}, {"b": "a"}, id="equal text"),
        pytest.param({"a": SIX}, {"b": SIX + "g = 7\n"}, {"b": "a"}, id="most lines in common"),
        pytest.param(
            {"a": SIX},
            {"b": SIX.replace("\n", "  \n\n")},
            {"b": "a"},
            id="blanks and empty lines aside",
        ),
        pytest.param({"a": TWO}, {"b": "a = 1\nz = 2\n"}, {"b": "a"}, id="just half"),
        pytest.param({"a": TWO}, {"b": "a = 1\nz = 2\ny = 3\n"}, {}, id="less than half"),
        pytest.param(
            {"a": "a = 1\n" * 3},
            {"b": "a = 1\nx = 1\ny = 1\n"},
            {},
            id="a line counts as often as it stands",
        ),
        pytest.param({"a": ""}, {"b": ""}, {}, id="nothing in common with nothing"),
        pytest.param(
            {"a": SIX, "keep": SIX},
            {"b": SIX, "keep": SIX},
            {"b": "a"},
            id="what stays is no source",
        ),
        pytest.param({"keep": SIX}, {"b": SIX, "keep": SIX}, {}, id="a copy is no rename"),
        pytest.param(
            {"a": SIX, "b": SIX}, {"c": SIX, "d": SIX}, {"c": "a", "d": "b"}, id="two into two"
        ),
        pytest.param(
            {"x/a": SIX, "x/b": SIX},
            {"y/b": SIX, "y/c": SIX},
            {"y/b": "x/b", "y/c": "x/a"},
            id="last part of the name",
        ),
        pytest.param(
            {"a": SIX, "b": SIX + "g = 7\n"},
            {"c": SIX + "g = 7\n", "d": SIX},
            {"c": "b", "d": "a"},
            id="equal text goes first",
        ),
        pytest.param(
            {"x/a": SIX, "b": SIX + "g = 7\n"},
            {"y/a": SIX + "g = 7\n"},
            {"y/a": "b"},
            id="likeness before the name",
        ),
        pytest.param({"a": SIX + ONE, "b": SIX}, {"c": SIX}, {"c": "b"}, id="the nearest"),
        pytest.param(
            {"a": COMMON + "x = 1\n"},
            {"b": COMMON + "y = 2\n"},
            {},
            id="what all presets have alike says nothing",
        ),
        pytest.param(
            {"a": COMMON + "x = 1\n"},
            {"b": COMMON + "x = 1\ny = 2\n"},
            {"b": "a"},
            id="beside it what is its own counts",
        ),
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_a_file_is_called_renamed_by_the_lines_in_common(
    repo: Repo,
    before: Mapping[str, str],
    after: Mapping[str, str],
    expected: dict[str, str],
    committed: bool,
) -> None:
    first = repo.commit(before)
    repo.write(dict.fromkeys(before.keys() - after.keys()))
    repo.write(after)
    found = compare(repo, first, repo.commit() if committed else None)
    assert {pair.name: pair.was for pair in found.pairs if pair.was} == expected
    assert {pair.name for pair in found.pairs} == (before.keys() | after.keys()) - set(
        expected.values()
    )


def test_more_files_than_can_be_compared_are_renamed_only_where_they_are_equal(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renames, "_MOST_COMPARED", 3)
    first = repo.commit({"a": SIX, "b": SIX + ONE, "c": TWO})
    repo.commit(
        {
            "a": None,
            "b": None,
            "c": None,
            "x": SIX,
            "y": SIX + ONE + "z = 1\n",
            "z": TWO + "z = 1\n",
        }
    )
    assert {pair.name: pair.was for pair in compare(repo, first, repo.head).pairs if pair.was} == {
        "x": "a"
    }


# -- the ids of files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "oid", "same"),
    [
        (b"a\n", "78981922613b2afb6025042ff6bd878ac1994e85", True),
        (b"a\r\n", "78981922613b2afb6025042ff6bd878ac1994e85", True),
        (b"b\n", "78981922613b2afb6025042ff6bd878ac1994e85", False),
        (b"a\r\n", "eb5d2b1b3ecbdc0eaa7d0cbf0efb1c8ec6c7ae45", False),
        (b"a\n", "e1e7c06d6ea1de6c0ce3a0cb7d2e17e1dba1e2c3d4f5061728394a5b6c7d8e9f", False),
    ],
)
def test_a_file_has_the_id_that_git_gives_it(repo: Repo, text: bytes, oid: str, same: bool) -> None:
    repo.write({"a": text})
    folder = Folder("profiles")
    assert (
        sides.WorkTree(folder, Revision(StoreRepository("profiles"), "", {})).is_same_file(
            "a", TreeFile("100644", oid)
        )
        is same
    )


# -- warnings that come and go --------------------------------------------------------------------

WAITING = (
    '[profile]\nscenario = "training"\n[options]\nhccl_timeout = {}\nstream_sync_timeout = {}\n'
)


def test_warnings_that_a_change_brings_are_told_in_every_form_and_are_no_errors(
    repo: Repo, run: Run
) -> None:
    repo.commit(
        {
            "base": WAITING.format(1700, 1900000),
            "leaf": '[profile]\nextends = ["base"]\n',
            "other": WAITING.format(5, 4000),
        }
    )
    repo.write({"base": WAITING.format(1904, 1900000)})
    marks = {
        "text": "\n! warns NP378: ",
        "markdown": "\n**2 presets**: `warns NP378: ",
        "html": '<p class="doubtful">warns NP378: ',
    }
    assert marks
    for form, mark in marks.items():
        shown = run("diff", "--rev", "HEAD", "--format", form).out
        assert shown.count("warns NP378") == (2 if form == "html" else 1), form
        assert mark in shown
        assert "INVALID" not in shown
        assert "more errors" not in shown
    found = json.loads(run("diff", "--rev", "HEAD", "--format", "json").out)["presets"]
    assert [
        (pair["preset"], [(f["code"], f["severity"]) for f in pair["newly_broken"]])
        for pair in found
    ] == [
        ("base", [("NP378", "warning")]),
        ("leaf", [("NP378", "warning")]),
    ]
    assert {pair["valid"]["after"] for pair in found} == {True}
    assert run("diff", "leaf").out.count("! warns NP378") == 1
    assert run("commit").code == 0
    assert "! warns NP378" in repo.git("log", "-1", "--format=%B")
    repo.write({"base": WAITING.format(1800, 1900000)})
    assert "! no longer NP378" in run("diff", "--rev", "HEAD").out
    repo.write({"other": WAITING.format(5, 9000)})  # a finding of one preset is listed below it
    shown = run("diff", "other", "--rev", "HEAD", "--format", "markdown").out
    assert "\n- `no longer NP378: " in shown


def test_other_warnings_alone_make_no_difference(repo: Repo, run: Run) -> None:
    leaf = '[profile]\nextends = ["base"]\n'
    repo.commit({"base": "[options]\nhccl_timeout = 600\n", "leaf": leaf})
    repo.write({"leaf": leaf + "[options]\nhccl_timeout = 600\n"})
    done = run("diff", "--rev", "HEAD", "--exit-code")
    assert done.code == 0
    assert done.out.count("! warns NP701") == 1
    assert "0 presets differ, 2 do not" in done.out
    assert run("diff", "--rev", "HEAD", "--name-only").out == ""
    assert run("commit").code == 0
    assert repo.git("log", "-1", "--format=%s") == "Reword leaf"


@pytest.mark.parametrize(
    "more",
    [(), ("--stat",), ("--raw",), ("--name-only",), ("--exit-code",), ("a",), ("--format", "json")],
)
def test_a_preset_that_cannot_be_read_leaves_the_comparison_open(
    more: tuple[str, ...], repo: Repo, run: Run
) -> None:
    good, other = "[options]\nhccl_timeout = 600\n", "[options]\nhccl_timeout = 900\n"
    repo.commit({"a": good, "b": good})
    repo.write({"a": "x = [", "b": other})
    done = run("diff", "--rev", "HEAD", *more)
    assert done.code == 2
    assert "cannot compare a: cannot be read or resolved now" in done.err
    assert ("b" in done.out.split("NP001")[-1]) == (more != ("a",))
    repo.write({"a": other})
    assert run("diff", "--rev", "HEAD", *more).code == ("--exit-code" in more)
    repo.write({"a": 'profile.extends = ["nowhere"]\n'})
    assert run("diff", "--rev", "HEAD", *more).code == (0 if "--raw" in more else 2)
    repo.commit({"a": "x = [", "b": good})
    repo.write({"a": good})
    assert run("diff", "--rev", "HEAD", *more).code == ("--exit-code" in more), (
        "what was broken before is mended"
    )


#: A store of two middle presets with three jobs each. Files that an edit changes, and for the text
#: form the lines of changes and verdicts that ``a`` and its jobs share, without revisions and
#: risks.
GROWN = {
    "base": "[options]\nhccl_timeout = 1800\n",
    "mixin": "[options]\ndeterministic = 1\nhccl_timeout = 900\n",
    **dict.fromkeys("ab", '[profile]\nextends = ["base", "mixin"]\n'),
    **{
        f"{name}{number}": f'[profile]\nextends = ["{name}"]\n'
        for name in "ab"
        for number in range(3)
    },
}
FOUR = "in a, a0, a1, a2"
EDITS: dict[str, tuple[dict[str, str], list[str]]] = {
    "a parent is taken away": (
        {"a": '[profile]\nextends = ["base"]\n'},
        [
            "- 4 presets: deterministic 1 via a.toml:2: removes mixin.toml:2",
            (
                "~ 4 presets: hccl_timeout 900 → 1800 s via "
                "a.toml:2: base.toml:2 in place of mixin.toml:3"
            ),
            FOUR,
        ],
    ),
    "a parent is added": (
        {
            "a": '[profile]\nextends = ["base", "mixin", "extra"]\n',
            "extra": "[options]\nop_debug_config = 'x'\nhccl_timeout = 800\n",
        },
        [
            '+ 4 presets: op_debug_config "x" via a.toml:2: adds extra.toml:2',
            (
                "~ 4 presets: hccl_timeout 900 → 800 s via "
                "a.toml:2: extra.toml:3 in place of mixin.toml:3"
            ),
            FOUR,
        ],
    ),
    "a value of a parent is edited": (
        {"mixin": "[options]\ndeterministic = 1\nhccl_timeout = 700\n"},
        [
            "~ 9 presets: hccl_timeout 900 → 700 s via mixin.toml:3, before mixin.toml:3",
            "in a, a0, a1, a2, b, b0, b1, b2, mixin",
        ],
    ),
    "a value breaks a rule": (
        {"a": '[profile]\nextends = ["base", "mixin"]\n[options]\nhccl_timeout = -5\n'},
        [
            "~ 4 presets: hccl_timeout 900 → -5 s via a.toml:4, before mixin.toml:3",
            "! breaks NP203: hccl_timeout = -5 is out of range (a.toml:4:1)",
            FOUR,
            "INVALID NOW: a, a0, a1, a2",
        ],
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_change_of_many_presets_is_told_once_by_the_line_that_was_edited(
    edit: str, repo: Repo, run: Run
) -> None:
    edited, lines = EDITS[edit]
    repo.commit(GROWN)
    repo.commit(edited)
    printed = run("diff", "--rev", "HEAD~1..HEAD").out.splitlines()
    plain = [
        re.sub(r"\[[a-z, -]+\] +|\b[0-9a-f]{7}:profiles/", "", line).strip() for line in printed
    ]
    assert [
        re.sub(r"  +", " ", line)
        for line in plain
        if line and "differ" not in line and line.partition(" ")[0] != "extra"
    ] == lines
    page = run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown").out
    place, count = re.search(r"via (\w+\.toml:\d+)", lines[0]), re.search(r"\d+", lines[0])
    assert place is not None
    assert count is not None
    assert f"**`profiles/{place[1]}` → {count[0]} presets**" in page


# -- order ----------------------------------------------------------------------------------------

#: Unknown tables, which the reader of a preset reports.
UNKNOWN_TABLES = "".join(f"[append.{name}]\nx = 1\n" for name in ("one", "two", "three", "four"))
#: Overridden settings with a fault each, which are checked in several contexts.
OVERRIDDEN = """\
[options]
modify_mixlist = { black-list = { to-add = ["Add"] } }
[[override]]
match = { product = "atlas-a3" }
options = { hccl_timeout = -5, op_wait_timeout = -1, dump_path = "", op_debug_level = 9 }
[[override]]
match = { cann = ">=9.0" }
options = { enable_dump = true, dump_step = "x", precision_mode_v2 = "fp16", deterministic = 7 }
[[override]]
match = { target = "atc" }
env = { HCCL_CONNECT_TIMEOUT = -1, HCCL_EXEC_TIMEOUT = "x" }
"""


@pytest.mark.parametrize("text", [UNKNOWN_TABLES, OVERRIDDEN], ids=["tables", "overrides"])
def test_findings_of_a_diff_have_the_same_order_for_every_hash_seed(repo: Repo, text: str) -> None:
    repo.commit({"job": "[options]\n"})
    repo.write({"job": text})
    command = [sys.executable, "-m", "npuprof", "diff", "--format", "json"]
    printed = {
        subprocess.run(
            command,
            cwd=repo.folder,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(printed) == 1
    assert b'"code"' in printed.pop()
