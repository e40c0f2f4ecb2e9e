"""A change lists each newly accepted finding with its reason, first those about execution."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog.execution import find_execution
from support.repositories import Repo
from support.running import Run

PRELOAD = 'env.LD_PRELOAD = "/opt/a.so"\n'
EVIL = PRELOAD.replace("/opt/a.so", "/tmp/evil.so")
JOB = 'env.JOB_ID = "1"\n'
HEIR = 'profile.extends = ["a"]\n'
FOR_ONE = '\n[[override]]\nmatch = { product = "atlas-a2" }\nenv.LD_PRELOAD = "/tmp/evil.so"\n'


def accept(code: str, reason: str = "known") -> str:
    """Return the line of a preset that accepts a finding."""
    return f'profile.ignore = [{{ code = "{code}", reason = "{reason}" }}]\n'


def accept_all(*globs: str, code: str = "NP605", reason: str = "known") -> str:
    """Return the entry of npuprof.toml that accepts a finding in presets."""
    return f'[[ignore]]\ncode = "{code}"\nreason = "{reason}"\npresets = {json.dumps(globs)}\n'


def commit(repo: Repo, files: Mapping[str, str | None]) -> str:
    """Commit presets by name, and the policy as ``npuprof.toml``."""
    if policy := files.get("npuprof.toml"):
        (repo.folder / "npuprof.toml").write_text(policy)
    return repo.commit({name: text for name, text in files.items() if name != "npuprof.toml"})


def list_accepted(answer: str) -> list[tuple[str, str, str]]:
    """Return the newly accepted findings of an answer in JSON: preset, code and key."""
    pairs = json.loads(answer)["presets"]
    return [
        (pair["preset"], accepted["code"], accepted["key"].removeprefix("env."))
        for pair in pairs
        for accepted in pair["newly_accepted"]
    ]


#: Two states of a store, and what the second accepts newly.
STATES: dict[str, tuple[dict[str, str], dict[str, str | None], list[tuple[str, str, str]]]] = {
    "with the variable": (
        {"a": ""},
        {"a": PRELOAD + accept("NP605")},
        [("a", "NP605", "LD_PRELOAD")],
    ),
    "after the variable": (
        {"a": PRELOAD},
        {"a": PRELOAD + accept("NP605")},
        [("a", "NP605", "LD_PRELOAD")],
    ),
    "in a new preset": (
        {"a": ""},
        {"b": PRELOAD + accept("NP605")},
        [("b", "NP605", "LD_PRELOAD")],
    ),
    "in a preset that could not be read": (
        {"a": "x = ["},
        {"a": PRELOAD + accept("NP605")},
        [("a", "NP605", "LD_PRELOAD")],
    ),
    "inherited from a base": (
        {"a": PRELOAD, "b": HEIR},
        {"a": PRELOAD + accept("NP605")},
        [("a", "NP605", "LD_PRELOAD"), ("b", "NP605", "LD_PRELOAD")],
    ),
    "by a new parent": (
        {"a": PRELOAD + accept("NP605"), "b": ""},
        {"b": HEIR},
        [("b", "NP605", "LD_PRELOAD")],
    ),
    "in npuprof.toml only": (
        {"a": PRELOAD, "b": JOB},
        {"npuprof.toml": accept_all("*")},
        [("a", "NP605", "LD_PRELOAD")],
    ),
    "in npuprof.toml, with the variable": (
        {"a": ""},
        {"a": PRELOAD, "npuprof.toml": accept_all("a")},
        [("a", "NP605", "LD_PRELOAD")],
    ),
    "by a wider glob": (
        {"a": PRELOAD, "b": PRELOAD, "npuprof.toml": accept_all("a")},
        {"npuprof.toml": accept_all("*")},
        [("b", "NP605", "LD_PRELOAD")],
    ),
    "by a glob in place of an entry of the preset": (
        {"a": PRELOAD + accept("NP605"), "b": PRELOAD},
        {"a": PRELOAD, "npuprof.toml": accept_all("*")},
        [("b", "NP605", "LD_PRELOAD")],
    ),
    "an unknown variable": (
        {"a": ""},
        {"a": 'env.MY_X = "1"\n' + accept("NP606")},
        [("a", "NP606", "MY_X")],
    ),
    "another value under the same entry": (
        {"a": PRELOAD + accept("NP605")},
        {"a": EVIL + accept("NP605")},
        [("a", "NP605", "LD_PRELOAD")],
    ),
    "another value of an unknown variable": (
        {"a": 'env.MY_X = "1"\n' + accept("NP606")},
        {"a": 'env.MY_X = "2"\n' + accept("NP606")},
        [("a", "NP606", "MY_X")],
    ),
    "another variable under the same entry": (
        {"a": PRELOAD + accept("NP605")},
        {"a": PRELOAD + 'env.GCONV_PATH = "/x"\n' + accept("NP605")},
        [("a", "NP605", "GCONV_PATH")],
    ),
    "another value for one product": (
        {"a": PRELOAD + accept("NP605")},
        {"a": PRELOAD + accept("NP605") + FOR_ONE},
        [("a", "NP605", "LD_PRELOAD")],
    ),
    "a value that runs a command": (
        {"a": 'env.OMP_NUM_THREADS = "8"\n' + accept("NP608")},
        {"a": 'env.OMP_NUM_THREADS = "$(id)"\n' + accept("NP608")},
        [("a", "NP608", "OMP_NUM_THREADS")],
    ),
    "another value that runs a command": (
        {"a": 'env.MY_X = "a b"\n' + accept("NP608")},
        {"a": 'env.MY_X = "a `id`"\n' + accept("NP608")},
        [("a", "NP608", "MY_X")],
    ),
    "a protection that is unset": (
        {"a": 'profile.unset = ["env.PYTHONSAFEPATH"]\n'},
        {"a": 'profile.unset = ["env.PYTHONSAFEPATH"]\n' + accept("NP605")},
        [("a", "NP605", "PYTHONSAFEPATH")],
    ),
    "another value that is not about execution": (
        {"a": JOB + accept("NP603")},
        {"a": 'env.JOB_ID = "2"\n' + accept("NP603")},
        [],
    ),
    "another reason": (
        {"a": PRELOAD + accept("NP605")},
        {"a": PRELOAD + accept("NP605", "other")},
        [],
    ),
    "another reason in npuprof.toml": (
        {"a": PRELOAD, "npuprof.toml": accept_all("*")},
        {"npuprof.toml": accept_all("*", reason="x")},
        [],
    ),
    "another file": (
        {"a": PRELOAD + accept("NP605")},
        {"a": None, "moved": PRELOAD + accept("NP605")},
        [],
    ),
    "no longer": ({"a": PRELOAD + accept("NP605")}, {"a": PRELOAD}, []),
    "a code that occurs nowhere": ({"a": JOB}, {"a": JOB + accept("NP605")}, []),
}


@pytest.mark.parametrize("case", STATES)
def test_what_only_the_later_state_accepts_is_newly_accepted(
    case: str, repo: Repo, run: Run
) -> None:
    before, after, expected = STATES[case]
    first = commit(repo, before)
    commit(repo, after)
    assert list_accepted(run("diff", "--rev", f"{first}..HEAD", "--format", "json").out) == expected
    texts = [
        run("diff", "--rev", f"{first}..HEAD", "--format", form).out
        for form in ("text", "markdown", "html")
    ]
    counts = [
        len(re.findall(mark, text))
        for mark, text in zip(("! accepts NP", "  reason: ", ">accepts NP"), texts, strict=True)
    ]
    assert counts == [len({key for _, _, key in expected})] * 3, "equal findings are listed once"
    done = run("diff", "--rev", f"HEAD..{first}", "--format", "json")
    assert done.code == (2 if "cannot compare a: " in done.err else 0)


REASONS = {"NP603": "fourth", "NP606": "third", "NP608": "second", "NP605": "first"}
ENTRIES = ", ".join(
    f'{{ code = "{code}", reason = "{reason}" }}' for code, reason in REASONS.items()
)
MANY = f"profile.ignore = [{ENTRIES}]\n"


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_those_about_execution_come_first_in_every_form_each_with_its_reason(
    form: str, repo: Repo, run: Run
) -> None:
    repo.commit({"a": "", "b": ""})
    repo.commit({"a": MANY + JOB + 'env.MY_X = "1"\n', "b": MANY + 'env.MY_Y = "a b"\n' + PRELOAD})
    out = run("diff", "--rev", "HEAD~1..HEAD", "--format", form).out.rpartition("<main>")[2]
    if form == "json":
        in_a, in_b = (
            [("a", "NP606", "MY_X"), ("a", "NP603", "JOB_ID")],
            [("b", "NP605", "LD_PRELOAD"), ("b", "NP608", "MY_Y")],
        )
        assert list_accepted(out) == in_a + in_b
        accepted = json.loads(out)["presets"][1]["newly_accepted"][0]
        assert accepted["reason"] == "first"
        assert accepted["accepted_by"]["path"] == "profiles/b.toml"
        assert accepted["accepted_by"]["line"] == 1
        return
    listed = re.findall(r"NP60\d|first|second|third|fourth", out)
    assert listed == ["NP605", "first", "NP608", "second", "NP606", "third", "NP603", "fourth"]
    assert out.index("first") < out.index("/opt/a.so"), "before the changes"


def test_two_revisions_of_a_preset_differ_in_what_they_accept(repo: Repo, run: Run) -> None:
    repo.commit({"a": PRELOAD})
    repo.write({"a": PRELOAD + accept("NP605")})
    for arguments in (("a@HEAD", "a"), ("a",)):
        out = run("diff", *arguments).out
        assert re.search(
            (
                r"^! accepts NP605: env\.LD_PRELOAD .* \(profiles/a\.toml:1:5\); "
                r"reason: known \(profiles/a\.toml:2\)$"
            ),
            out,
            re.M,
        )
        assert "no longer" not in out, "it is accepted, not fixed"
    assert [
        accepted["code"]
        for accepted in json.loads(run("diff", "a", "--format", "json").out)["newly_accepted"]
    ] == ["NP605"]
    assert run("diff", "a", "--exit-code").code == 0, "an ignore changes no setting"
    assert run("commit").code == 0
    assert "! accepts NP605" in repo.git("log", "-1", "--format=%B")


# -- the page of a pull request -------------------------------------------------------------------

#: States in which much else would fill the page.
CROWDS: dict[str, dict[str, str | None]] = {
    "a reason without an end": {"z": PRELOAD + accept("NP605", "x" * 90_000)},
    "a name without an end": {"z": f'env.LD_{"X" * 90_000} = "/opt/a.so"\n' + accept("NP605")},
    "other accepted findings": {
        f"a{number:03}": JOB + accept("NP603", f"reason {number}") for number in range(400)
    },
    "other errors": {
        f"a{number:03}": f'options.hccl_timeout = "{number} s"\n' for number in range(400)
    },
    "presets in which it is accepted": {
        f"a{number:04}/{'x' * 200}": PRELOAD + accept("NP605", "the profiler")
        for number in range(300)
    },
    "other changes": {
        f"a{number:03}": f'options.dump_path = "/{"x" * 250}{number}"\n' for number in range(400)
    },
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_nothing_crowds_an_accepted_finding_about_execution_out_of_a_page(
    crowd: str, repo: Repo, run: Run
) -> None:
    repo.commit({"z": ""})
    repo.commit({"z": PRELOAD + accept("NP605", "the profiler"), **CROWDS[crowd]})
    page = run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown").out
    assert len(page) <= 60_000
    assert re.search(r"\*\*Newly accepted\*\*\n\n- NP605 `env\.LD_(PRELOAD|X+\.\.\.) ", page)
    assert re.search(
        (
            r"\n  reason: `(the profiler|known|x+… \(90,000 characters\))` "
            r"\(`profiles/\S+\.toml:2`\)\n"
        ),
        page,
    )
    assert re.search(r"^At risk: executes \d", page, re.M)


def test_the_first_line_counts_presets_that_only_accept(repo: Repo, run: Run) -> None:
    repo.commit({"a": PRELOAD, "b": HEIR})
    repo.commit({"a": PRELOAD + accept("NP605", "`known`\n| **x** <b>".replace("\n", "\\n"))})
    page = run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown").out
    assert page.startswith("### Presets: 2 with newly accepted findings\n")
    assert "  reason: `` `known`\\n| **x** <b> `` (`profiles/a.toml:2`)\n" in page


# -- the risk of what executes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "risky"),
    [
        ("LD_PRELOAD", "/a.so", True),
        ("LD_AUDIT", "/a.so", True),
        ("BASH_FUNC_ls", "() { :; }", True),
        ("PATH", "/a", True),
        ("ASCEND_CUSTOM_OPP_PATH", "/a", True),
        ("OMP_NUM_THREADS", "$(id)", True),
        ("MY_X", "`id`", True),
        ("PYTHONSAFEPATH", "", True),
        ("PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:32", False),
        ("OMP_NUM_THREADS", "8", False),
        ("MY_X", "1", False),
        ("HCCL_CONNECT_TIMEOUT", 600, False),
    ],
)
def test_each_change_of_a_variable_that_executes_has_that_risk_first(
    variable: str, value: Any, risky: bool, repo: Repo, run: Run
) -> None:
    assignment = f"env.{variable} = {json.dumps(value)}\n"
    repo.commit({"a": "", "b": assignment, "c": f'env.{variable} = "0"\n'})
    repo.commit({"a": assignment, "b": "", "c": assignment, "d": assignment})
    found = json.loads(run("diff", "--rev", "HEAD~1..HEAD", "--format", "json").out)["presets"]
    risks = {
        pair["preset"]: [change["risk"][:1] == ["executes"] for change in pair["changes"]]
        for pair in found
    }
    assert risks == {name: [risky] for name in "abcd"}
    page = run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown").out
    assert ("At risk: executes 4" in page) == risky
    assert ("[executes" in run("diff", "--rev", "HEAD~1..HEAD").out) == risky
    assert (
        re.search("<td>executes", run("diff", "--rev", "HEAD~1..HEAD", "--format", "html").out)
        is not None
    ) == risky


def test_the_catalogue_lists_that_risk_of_each_variable_that_executes(run: Run) -> None:
    listed = set(re.findall(r"^env\.(\w+)", run("options", "--risk", "executes").out, re.M))
    assert listed == {name for name in catalog.record_names("env") if find_execution(name)}
