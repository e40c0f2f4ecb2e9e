"""``set`` beyond one value: lists that get longer or shorter, and many presets at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.running import Run, Store

PARENT = """\
[profile]
description = "parent"
products = ["atlas-a2-training"]
[options]
modify_mixlist = { black-list = { to-add = ["MatMul"] } }
dynamic_dims = [[20, 20], [40, 40]]
"""
HEAD = 'profile.description = "x"\n'


@pytest.fixture
def parent(store: Store) -> Path:
    return store({"parent": PARENT, "mixins/x": HEAD, "mixins/y": HEAD})


#: A text, words, and what becomes of it.
LISTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "a parent": (
        "[profile]\nextends = [ # why\n  'mixins/x', # x\n]\n",
        ("profile.extends+=mixins/y",),
        "[profile]\nextends = [ # why\n  'mixins/x', # x\n  \"mixins/y\",\n]\n",
    ),
    "one that goes": (
        '[profile]\nextends = ["parent", "mixins/x", "mixins/y"] # why\n',
        ("profile.extends-=mixins/x",),
        '[profile]\nextends = ["parent", "mixins/y"] # why\n',
    ),
    "the last one goes": (
        '[profile]\ndescription = "x"\nextends = ["parent"]\n',
        ("profile.extends-=parent",),
        '[profile]\ndescription = "x"\n',
    ),
    "products that it inherits": (
        '[profile]\nextends = ["parent"]\n',
        ("profile.products+=atlas-a3",),
        '[profile]\nextends = ["parent"]\nproducts = ["atlas-a2-training", "atlas-a3"]\n',
    ),
    "a list that it inherits": (
        '[profile]\nextends = ["parent"]\n',
        ("modify_mixlist.black-list.to-add+=Cast",),
        (
            '[profile]\nextends = ["parent"]\n\n[append.options]\n'
            'modify_mixlist = { black-list = { to-add = ["Cast"] } }\n'
        ),
    ),
    "what it inherits already": (
        '[profile]\nextends = ["parent"]\n',
        ("modify_mixlist.black-list.to-add+=MatMul",),
        '[profile]\nextends = ["parent"]\n',
    ),
    "what it added goes": (
        (
            '[profile]\nextends = ["parent"]\n[append.options.modify_mixlist]\n'
            'black-list = { to-add = ["Cast"] }\n'
        ),
        ("modify_mixlist.black-list.to-add-=Cast",),
        '[profile]\nextends = ["parent"]\n',
    ),
    "an inherited element is removed": (
        '[profile]\nextends = ["parent"]\n',
        ("modify_mixlist.black-list.to-add-=MatMul",),
        (
            '[profile]\nextends = ["parent"]\n\n[remove.options]\n'
            'modify_mixlist = { black-list = { to-add = ["MatMul"] } }\n'
        ),
    ),
    "a removed element comes back": (
        '[profile]\nextends = ["parent"]\n[remove.options.modify_mixlist]\n'
        'black-list = { to-add = ["MatMul", "Cast"] }\n',
        ("modify_mixlist.black-list.to-add+=MatMul",),
        (
            '[profile]\nextends = ["parent"]\n[remove.options.modify_mixlist]\n'
            'black-list = { to-add = ["Cast"] }\n'
        ),
    ),
    "the last removed element comes back": (
        '[profile]\nextends = ["parent"]\n[remove.options.modify_mixlist]\n'
        'black-list = { to-add = ["MatMul"] }\n',
        ("modify_mixlist.black-list.to-add+=MatMul",),
        '[profile]\nextends = ["parent"]\n',
    ),
    "one element that it added and one that it inherits go": (
        '[profile]\nextends = ["parent"]\n[append.options.modify_mixlist]\n'
        'black-list = { to-add = ["Cast", "Mul"] }\n',
        ('modify_mixlist.black-list.to-add-=["Cast", "MatMul"]',),
        (
            '[profile]\nextends = ["parent"]\n\n[remove.options]\n'
            'modify_mixlist = { black-list = { to-add = ["MatMul"] } }\n\n'
            '[append.options.modify_mixlist]\nblack-list = { to-add = ["Mul"] }\n'
        ),
    ),
    "an element of its own list goes": (
        '[profile]\nextends = ["parent"]\n[options]\ndynamic_dims = [[1], [2]]\n',
        ("dynamic_dims-=[[2]]",),
        '[profile]\nextends = ["parent"]\n[options]\ndynamic_dims = [[1]]\n',
    ),
    "the same by the name of the table": (
        '[profile]\nextends = ["parent"]\n',
        ("remove.options.modify_mixlist.black-list.to-add+=MatMul",),
        (
            '[profile]\nextends = ["parent"]\n\n[remove.options]\n'
            'modify_mixlist = { black-list = { to-add = ["MatMul"] } }\n'
        ),
    ),
    "a list that is nowhere": (
        "[options]\n",
        ("--append", "modify_mixlist.black-list.to-add=Cast"),
        '[options]\nmodify_mixlist = { black-list = { to-add = ["Cast"] } }\n',
    ),
    "a key that is cleared": (
        '[profile]\nextends = ["parent"]\nunset = ["dynamic_dims"]\n',
        ("profile.unset-=dynamic_dims", "profile.locked+=modify_mixlist"),
        '[profile]\nextends = ["parent"]\nlocked = ["modify_mixlist"]\n',
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_gets_longer_or_shorter_where_it_stands(name: str, parent: Path, run: Run) -> None:
    text, arguments, after = LISTS[name]
    (parent / "it.toml").write_text(text)
    result = run("set", "it", *arguments, "--no-check")
    assert result.code == 0, result.err
    assert (parent / "it.toml").read_text() == after
    assert ("nothing to change" in result.err) == (text == after)


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (("profile.extends-=mixins/y",), "NP924", "has no"),
        (("profile.description+=x",), "NP920", "no list"),
        (("modify_mixlist.black-list.to-add-=Mul",), "NP924", 'it is ["MatMul"]'),
        (("--append", "x"), "NP009", "KEY=VALUE"),
        (("profile.extends+=nowhere",), "NP101", "nowhere"),
        ((), "NP902", "KEY=VALUE"),
        (("hccl_timeout=1", "--yes"), "NP902", "--where"),
        (("hccl_timeout=1", "--where", "hccl_timeout is set"), "NP902", "omit one of them"),
    ],
)
def test_what_makes_no_list_is_refused(
    arguments: tuple[str, ...], code: str, hint: str, parent: Path, run: Run
) -> None:
    (parent / "it.toml").write_text(
        "[profile]\nextends = ['parent', 'mixins/x']\n[options]\nhccl_timeout = 1\n"
    )
    before = (parent / "it.toml").read_text()
    result = run("set", "it", *arguments)
    assert result.code == 2, result.err
    assert code in result.err, result.err
    assert hint in result.err, result.err
    assert (parent / "it.toml").read_text() == before


# -- many presets ---------------------------------------------------------------------------------

STORE = {
    "base": HEAD + "options.hccl_timeout = 1836 # why\n",
    "child": HEAD + 'profile.extends = ["base"]\n',
    "own": HEAD + 'profile.extends = ["base"]\noptions.hccl_timeout = 1836\n',
    "other": HEAD + 'profile.extends = ["base"]\noptions.hccl_timeout = 600\n',
    "apart": HEAD + "options.deterministic = 1\n",
    "heir": HEAD + 'profile.extends = ["apart"]\noptions.hccl_timeout = 600\n',
}


@pytest.fixture
def folder(store: Store) -> Path:
    return store(STORE)


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder))[:-5]: path.read_text() for path in folder.rglob("*.toml")}


def test_all_presets_that_meet_a_condition_are_changed_but_for_what_they_inherit(
    folder: Path, run: Run
) -> None:
    arguments = ("set", "--where", "hccl_timeout == 1836", "hccl_timeout=1700")
    tried = run(*arguments, "--dry-run")
    assert tried.code == 0
    assert texts(folder) == STORE
    result = run(*arguments, "--yes")
    assert result.code == 0, result.err
    assert result.out == tried.out, result.err
    changed = {name: STORE[name].replace("1836", "1700") for name in ("base", "own")}
    assert texts(folder) == {**STORE, **changed}
    assert "wrote 2 files of 3 presets that met the condition" in result.err


def test_nobody_to_ask_means_nothing_is_written(folder: Path, run: Run) -> None:
    result = run("set", "--where", "hccl_timeout == 1836", "hccl_timeout=1700")
    assert result.code == 1
    assert texts(folder) == STORE
    assert "--- a/profiles/base.toml" in result.out
    assert "--yes" in result.err


def test_presets_that_inherit_the_change_without_meeting_the_condition_are_told(
    folder: Path, run: Run
) -> None:
    result = run(
        "set",
        "--where",
        "deterministic == 1 and hccl_timeout is unset",
        "op_debug_level=1",
        "--yes",
    )
    assert result.code == 0, result.err
    assert "1 preset that did not meet it inherit the change: heir" in result.err
    assert texts(folder) == {**STORE, "apart": STORE["apart"] + "options.op_debug_level = 1\n"}


def test_what_would_break_any_preset_is_refused(folder: Path, run: Run) -> None:
    result = run("set", "--where", "hccl_timeout > 0", "precision_mode_v2=nonsense", "--yes")
    assert result.code == 2, result.err
    assert "NP203" in result.err, result.err
    assert texts(folder) == STORE
    (folder / "lock.toml").write_text(
        '[profile]\nextends = ["base"]\nlocked = ["op_debug_level"]\n'
        "[options]\nop_debug_level = 0\n"
    )
    (folder / "low.toml").write_text(
        '[profile]\nextends = ["lock"]\n[options]\ndeterministic = 1\n'
    )
    result = run(
        "set", "--where", "deterministic == 1 and op_debug_level == 0", "op_debug_level=1", "--yes"
    )
    assert result.code == 2, result.err


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("hccl_timeot > 1", "NP201"),
        ("hccl_timeout >", "NP013"),
        ("hccl_timeout == 7", "NP013"),
        ("deterministic == 3", "NP013"),
    ],
)
def test_a_condition_that_nothing_meets_is_an_error(
    where: str, code: str, folder: Path, run: Run
) -> None:
    result = run("set", "--where", where, "hccl_timeout=1")
    assert result.code == 2, result.err
    assert code in result.err, result.err


# -- values that an override changes --------------------------------------------------------------

A3 = '[[override]]\nmatch = { product = "atlas-a3" }\n'
LATE = f"{A3}options = {{ hccl_timeout = 900 }}\n"
NINE = '[[override]]\nmatch = { cann = "9.0.0" }\noptions = { hccl_timeout = 9 }\n'
TABLE = 'profiling_options={ output = "/y", training_trace = "on" }'
#: A preset, what is set, and the note on it.
OVERRULED = {
    "one": (
        LATE,
        "hccl_timeout=700",
        "hccl_timeout is changed again by an override: profiles/a.toml:4",
    ),
    "by two": (
        LATE + NINE,
        "hccl_timeout=700",
        "hccl_timeout is changed again by overrides: profiles/a.toml:4, profiles/a.toml:7",
    ),
    "cleared": (
        f"{A3}unset = ['hccl_timeout']\n",
        "hccl_timeout=700",
        "hccl_timeout is changed again by an override",
    ),
    "another key": (LATE, "graph_run_mode=1", ""),
    "a table that is changed in part": (
        f"{A3}options = {{ profiling_options = {{ output = '/x' }} }}\n",
        TABLE,
        "profiling_options is changed",
    ),
}


@pytest.mark.parametrize("name", OVERRULED)
def test_a_value_that_an_override_changes_is_noted(name: str, run: Run, store: Store) -> None:
    text, argument, result = OVERRULED[name]
    store({"a": text})
    for how in (
        ("a", argument, "--dry-run"),
        ("--where", "deterministic is unset", argument, "--yes"),
    ):
        done = run("set", *how, "--no-check")
        assert done.code == 0, done.err
        assert ("changed again" in done.err) == bool(result), done.err
        assert result in done.err, done.err
