"""Unchanged presets that an edited ancestor changes alike are compared once, in text only."""

from __future__ import annotations

import json

import pytest

from npuprof.compare import survey
from npuprof.compare.text_changes import format_survey_text
from npuprof.model import Context
from npuprof.store.folder import Folder
from support.repositories import Repo
from support.running import Run

BASE = "[profile]\nscenario = 'training'\n[options]\n{}\n"
JOB = "[profile]\nextends = ['base']\n{}[options]\n{}\n"
#: The settings of the base before and after; of each preset its keys of [profile] and its settings;
#: how many presets are not compared themselves.
CASES = {
    "their own values are read alone": (
        ("hccl_timeout = 1", "hccl_timeout = 2"),
        [("", f"op_wait_timeout = {number}") for number in (200, 300, 400)],
        2,
    ),
    "they have other descriptions": (
        ("hccl_timeout = 1", "hccl_timeout = 2"),
        [("description = 'a'\n", ""), ("description = 'b'\n", ""), ("", "")],
        1,
    ),
    "they have other owners": (
        ("hccl_timeout = 1", "hccl_timeout = 2"),
        [("owner = 'a'\n", ""), ("owner = 'b'\n", "")],
        0,
    ),
    "a rule reads an own value with the changed one": (
        ("enable_dump = false", "enable_dump = true"),
        [("", "enable_dump_debug = false"), ("", "enable_dump_debug = true")],
        0,
    ),
    "an own value is the new one of the base": (
        ("hccl_timeout = 1", "hccl_timeout = 2"),
        [("", "hccl_timeout = 3"), ("", "hccl_timeout = 2")],
        0,
    ),
    "the new value is a fault": (
        ("hccl_timeout = 1", "hccl_timeout = -2"),
        [("", "op_wait_timeout = 200"), ("", "op_wait_timeout = 300")],
        0,
    ),
    "they add to a list": (
        ("modify_mixlist = { black-list = { to-add = ['A'] } }", "deterministic = 1"),
        [("", f"modify_mixlist = {{ black-list = {{ to-add = ['{name}'] }} }}") for name in "BC"],
        0,
    ),
    "they accept a finding": (
        ("hccl_timeout = 1", "hccl_timeout = 2"),
        [
            ("ignore = [{ code = 'NP203', reason = 'x' }]\n", f"op_wait_timeout = {number}")
            for number in (-5, 9)
        ],
        1,
    ),
    "the base sets the first argument of a program": (
        ("hccl_timeout = 1", "hccl_timeout = 1\n[vllm]\nmax-model-len = 1024"),
        [("", f"[env]\nASCEND_LAUNCH_BLOCKING = '{number}'") for number in (0, 1)],
        0,
    ),
    "an own value has the wrong kind": (
        ("hccl_timeout = 1", "hccl_timeout = 2"),
        [("description = 1\n", ""), ("description = 'x'\n", ""), ("", "jit_compile = ['x']")],
        0,
    ),
}


def compare(repo: Repo, is_brief: bool) -> survey.Survey:
    folder = Folder(str(repo.folder / "profiles"))
    before = folder.repository.load_revision(folder.repository.resolve_commit("HEAD"))
    return survey.compare_store_states(before, folder, ("a", "b"), Context(), is_brief=is_brief)


@pytest.mark.parametrize("case", CASES)
def test_text_is_the_same_if_presets_that_change_alike_are_compared_once(
    case: str, repo: Repo
) -> None:
    (before, after), jobs, shared = CASES[case]
    presets = {f"job{place}": JOB.format(*job) for place, job in enumerate(jobs)}
    repo.commit({"base": BASE.format(before), **presets})
    repo.write({"base": BASE.format(after)})
    whole, brief = (compare(repo, is_brief) for is_brief in (False, True))
    assert format_survey_text(brief) == format_survey_text(whole)
    assert sum(pair.after is None for pair in brief.different_pairs) == shared + sum(
        pair.after is None for pair in whole.different_pairs
    )


@pytest.mark.parametrize(
    "entry",
    [
        "[[ignore]]\ncode = 'NP203'\npresets = ['job1']\nreason = 'x'\n",
        "[[ignore]]\ncode = 1\n",
        "[env.JOB]\n",
    ],
)
def test_presets_of_a_store_with_a_policy_are_compared_one_by_one(
    entry: str, repo: Repo, run: Run
) -> None:
    jobs = {f"job{number}": JOB.format("", f"op_wait_timeout = {number}") for number in (200, 300)}
    repo.commit({"base": BASE.format("hccl_timeout = 1"), **jobs})
    (repo.folder / "npuprof.toml").write_text(entry)
    repo.git("add", ".")
    repo.git("commit", "-qm", "policy")
    repo.write({"base": BASE.format("hccl_timeout = -2")})
    whole, brief = (compare(repo, is_brief) for is_brief in (False, True))
    assert format_survey_text(brief) == format_survey_text(whole)


def test_text_names_ten_presets_of_a_change_and_other_forms_name_all(repo: Repo, run: Run) -> None:
    jobs = {
        f"job{number}": JOB.format("", f"op_wait_timeout = {number}") for number in range(200, 220)
    }
    repo.commit({"base": BASE.format("hccl_timeout = 1"), **jobs})
    repo.write({"base": BASE.format("hccl_timeout = 2")})
    printed = run("diff").out
    assert "~ 21 presets: hccl_timeout 1 → 2 s" in printed
    assert "    in base, " + ", ".join(list(jobs)[:9]) + " and 11 more\n" in printed
    assert run("diff", "--name-only").out.split() == ["base", *jobs]
    (change,) = json.loads(run("diff", "--format", "json").out)["changes"]
    assert change["presets"] == ["base", *jobs]
    repo.write({"base": BASE.format("hccl_timeout = -2")})
    printed = run("diff").out
    listed = "base, " + ", ".join(list(jobs)[:9]) + " and 11 more\n"
    assert f"INVALID NOW: {listed}" in printed
    assert printed.endswith(f"invalid now: {listed}")
