"""What a second run of ``site`` makes anew: only what is made of something else now, and always what a first run would have made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from building import examples
from hypothesis import given
from hypothesis import strategies as st
from lanes import rest_at_night
from repositories import Repo

from npuprof.site import building, kept

pytest.importorskip("jinja2")

Run = Callable[..., Any]
PRESETS = {
    "base": '[profile]\ndescription = "shared"\n[options]\nhccl_timeout = 1836\n',
    "job": 'profile.extends = ["base"]\n[options]\nprecision_mode_v2 = "mixed_float16"\n',
    "other": 'profile.extends = ["base"]\n[options]\nop_wait_timeout = 200\n',
    "alone": "[options]\ndeterministic = 1\n",
    "broken": 'profile.extends = ["nowhere"]\n',
    "powerful": '[env]\nLD_PRELOAD = "x.so"\n',
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the presets whose pages were made, one after the other."""
    names: list[str] = []
    build_page = building.build_page

    def note_page(one: Any, top: str) -> Any:
        names.append(one.name)
        return build_page(one, top)

    monkeypatch.setattr(building, "build_page", note_page)
    return names


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write(folder: Path, path: str, text: str | None) -> None:
    (folder / path).unlink() if text is None else (folder / path).write_text(text)


ALWAYS = {"broken", "powerful"}  # why one cannot be resolved, and what the user has trusted, is not kept
CHANGES: dict[str, tuple[dict[str, str | None], set[str]]] = {  # what changes, and which pages are made anew
    "nothing": ({}, set()),
    "a comment": ({"profiles/job.toml": f"# new\n{PRESETS['job']}"}, {"job"}),
    "a value of a parent": ({"profiles/base.toml": PRESETS["base"].replace("1836", "1904")}, {"base", "job", "other"}),
    "whom it extends": ({"profiles/alone.toml": f'profile.extends = ["base"]\n{PRESETS["alone"]}'}, {"alone", "base"}),
    "a preset more": ({"profiles/new.toml": "[options]\ndeterministic = 0\n"}, {"new"}),
    "an heir more": ({"profiles/new.toml": 'profile.extends = ["job"]\n'}, {"new", "job"}),
    "a preset less": ({"profiles/other.toml": None}, {"base"}),
    "rules of the team": (
        {"npuprof.toml": '[[rule]]\ncode = "TEAM-1"\nrequire = "deterministic == 0"\nmessage = "no"\n'},
        {"base", "job", "other", "alone"},
    ),
    "a page that somebody changed": ({"public/presets/job.html": "<h1>mine</h1>"}, {"job"}),
    "a page that is gone": ({"public/presets/job.html": None}, {"job"}),
    "settings that somebody changed": ({f"public/{building.data.name_data(['job'])['job']}": "npuprof.settings('job',[]);\n"}, {"job"}),
    "no list of what is kept": ({f"public/{kept.FILE}": None}, {"base", "job", "other", "alone"}),
    "half a list": ({f"public/{kept.FILE}": '{"schema":"npuprof.site-kept/1","rows":[['}, {"base", "job", "other", "alone"}),
    "a list of another npuprof": ({f"public/{kept.FILE}": '{"schema":"npuprof.site-kept/9"}'}, {"base", "job", "other", "alone"}),
}


@pytest.mark.parametrize("title", rest_at_night(2, CHANGES))
def test_only_what_is_made_of_something_else_is_made_anew(title: str, repo: Repo, run: Run, made: list[str]) -> None:
    changes, anew = CHANGES[title]
    repo.commit(PRESETS)
    assert run("site", "public").code == 0
    assert set(made) == set(PRESETS)
    for path, text in changes.items():
        write(repo.folder, path, text)
    made.clear()
    assert run("site", "public").code == 0
    assert set(made) == anew | ALWAYS
    assert run("site", "fresh").code == 0
    assert read_files(repo.folder / "public") == read_files(repo.folder / "fresh")


def test_a_commit_makes_the_pages_anew_whose_history_it_is_part_of(repo: Repo, run: Run, made: list[str]) -> None:
    repo.commit(PRESETS)
    assert run("site", "public").code == 0
    repo.commit({"job": f"# new\n{PRESETS['job']}"}, message="two")
    made.clear()
    assert run("site", "public").code == 0
    assert set(made) == {"job"} | ALWAYS
    run("site", "fresh")
    assert read_files(repo.folder / "public") == read_files(repo.folder / "fresh")


def test_another_npuprof_makes_all_anew(store: Callable[..., Path], run: Run, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    store(PRESETS)
    assert run("site", "public").code == 0
    made.clear()
    monkeypatch.setattr(kept, "digest_npuprof", lambda: "another")
    assert run("site", "public").code == 0
    assert set(made) == set(PRESETS)


SPOILT: list[Any] = [
    None, 0, "x", [], {}, [1, 2, 3, 4, 5, 6], ["a", "b", "c", "d", [0, 0, 0], 7], ["a", "b", "c", "d", [0, 0, "<b>"], 0],
    ["a", "b", "c", "d", [0, 0, -1], 0], ["a", "b", "c", "d", [0, 0], 0], ["a", "b", "c", "d", [0, 0, 0], True],
    [1, "b", "c", "d", [0, 0, 0], 0],
]  # fmt: skip


@pytest.mark.parametrize("fields", SPOILT)
def test_a_list_that_somebody_spoilt_is_not_believed(fields: Any, store: Callable[..., Path], run: Run, tmp_path: Path) -> None:
    store(PRESETS)
    run("site", "public")
    path = tmp_path / "public" / kept.FILE
    said = json.loads(path.read_text())
    for name in said["presets"]:
        said["presets"][name] = fields
    path.write_text(json.dumps(said))
    assert kept.read_kept_presets(str(path.parent)) == {}
    assert run("site", "public").code == 0
    run("site", "fresh")
    assert read_files(tmp_path / "public") == read_files(tmp_path / "fresh")


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["base", "job", "other", "alone", "new", "broken"]),
        st.sampled_from([None, [], ["base"], ["job"], ["nowhere"], ["base", "alone"]]),
        st.sampled_from(["", "hccl_timeout = 1904\n", "hccl_timeout = 5\n", "nope = 1\n"]),
    ),
    min_size=1,
    max_size=4,
)


@examples(8)
@given(EDITS)
def test_a_folder_that_is_written_again_and_again_is_what_a_first_run_makes(edits: list[tuple[str, list[str] | None, str]]) -> None:
    import tempfile

    from npuprof.__main__ import main

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "profiles").mkdir()
        for preset, text in PRESETS.items():
            write(folder, f"profiles/{preset}.toml", text)
        for preset, parents, options in edits:
            assert main(["site", f"{folder}/public", "--store", f"{folder}/profiles"]) == 0
            path = folder / f"profiles/{preset}.toml"
            if parents is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(f"profile.extends = {json.dumps(parents)}\n[options]\n{options}")
        assert main(["site", f"{folder}/public", "--store", f"{folder}/profiles"]) == 0
        assert main(["site", f"{folder}/fresh", "--store", f"{folder}/profiles"]) == 0
        assert read_files(folder / "public") == read_files(folder / "fresh")
