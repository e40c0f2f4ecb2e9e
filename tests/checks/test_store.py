"""The check of a whole store: the library, the command and all others report the same findings."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof.checks.store import check_store
from npuprof.model import Finding, NpuprofError
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.store.checked import CheckedStore
from npuprof.store.spec import Workspace
from support.building import build_store
from support.repositories import Repo
from support.running import Run, Store

GOOD = "[options]\nhcom_parallel = true\n"
WRONG = "[options]\nhccl_timeot = 1\n"
HEIR = 'profile.extends = ["{}"]\n'
IDLE = '[profile]\nignore = [{ code = "NP605", reason = "x" }]\n'
#: A malformed preset whose values are checked all the same.
MALFORMED = '[profile]\nowner = 3\n[options]\nhccl_timeot = 1\nprecision_mode_v2 = "fp61"\n'
LOADED = (
    '[profile]\nignore = [{ code = "NP605", reason = "ours" }]\n[env]\nLD_PRELOAD = "/opt/x.so"\n'
)
#: The policy of a source that is not locked, and an accepted finding of the store itself.
POLICY = (
    '[sources.team]\nurl = "file:///nowhere/team.git"\nrules = true\n\n[[ignore]]\n'
    'code = "NP605"\nreason = "ours"\npresets = ["bare"]\n'
)


def link_out(profiles: Path) -> None:
    profiles.parent.joinpath("elsewhere.toml").write_text(GOOD)
    profiles.joinpath("out.toml").symlink_to("../elsewhere.toml")


def lock_away(profiles: Path) -> None:
    profiles.joinpath("locked.toml").write_text(GOOD)
    profiles.joinpath("locked.toml").chmod(0)


def write_beside(name: str, text: str) -> Callable[[Path], object]:
    return lambda profiles: profiles.parent.joinpath(name).write_text(text)


#: Presets of a store, what else is done to it, and the codes that must be reported.
STORES: dict[str, tuple[dict[str, str | bytes], list[Callable[[Path], object]], set[str]]] = {
    "a clean store": ({"good": GOOD}, [], set()),
    "stray names": ({"good": GOOD, "we`ird": GOOD, "-x": "x ="}, [], {"NP004"}),
    "nothing but a stray name": ({"we`ird": GOOD}, [], {"NP004"}),
    "names that differ in case": (
        {"bert": GOOD, "Bert": GOOD, "BERT": WRONG},
        [],
        {"NP016", "NP201"},
    ),
    "stores inside": (
        {"good": GOOD, "sub/profiles/b": GOOD, "other/npuprof": "requires = '1'\n"},
        [],
        {"NP017", "NP006"},
    ),
    "broken TOML": ({"good": GOOD, "bad": "a = "}, [], {"NP001"}),
    "not UTF-8": ({"good": GOOD, "bad": b"x = '\xff'\n"}, [], {"NP002"}),
    "a folder": ({"good": GOOD}, [lambda profiles: profiles.joinpath("x.toml").mkdir()], {"NP003"}),
    "a link out of the store": ({"good": GOOD}, [link_out], {"NP005"}),
    **({"an unreadable file": ({"good": GOOD}, [lock_away], {"NP003"})} if os.geteuid() else {}),
    "a missing parent": ({"lost": HEIR.format("gone"), "heir": HEIR.format("lost")}, [], {"NP101"}),
    "a cycle": (
        {"a": HEIR.format("b"), "b": HEIR.format("a"), "c": HEIR.format("a")},
        [],
        {"NP102"},
    ),
    "a malformed preset with wrong values": (
        {"good": GOOD, "bad": MALFORMED},
        [],
        {"NP007", "NP201", "NP203"},
    ),
    "an entry of ignore without effect": ({"good": GOOD, "idle": IDLE}, [], {"NP705"}),
    "accepted findings": (
        {"loaded": LOADED, "bare": LOADED.replace("NP605", "NP606")},
        [],
        {"NP605", "NP705"},
    ),
    "globs without effect": (
        {"good": GOOD},
        [
            write_beside(
                "npuprof.toml",
                '[[ignore]]\ncode = "NP605"\nreason = "x"\npresets = ["gone/*", "good"]\n',
            )
        ],
        {"NP709", "NP705"},
    ),
    "a team rule": (
        {"good": GOOD, "bad": MALFORMED},
        [write_beside("npuprof.toml", '[[rule]]\ncode = "T-1"\nrequire = "deterministic == 1"\n')],
        {"T-1", "NP007"},
    ),
    "the policy of a missing source": (
        {
            "good": GOOD,
            "wrong": WRONG,
            "torn": "x =",
            "bare": LOADED.partition("\n")[2].partition("\n")[2],
        },
        [write_beside("npuprof.toml", POLICY)],
        {"NP044", "NP201", "NP001"},
    ),
    "an invalid lock": (
        {"good": GOOD, "wrong": WRONG},
        [
            write_beside("npuprof.toml", POLICY.replace("rules = true\n", "")),
            write_beside("npuprof.lock", "x ="),
        ],
        {"NP001", "NP201"},
    ),
    "many faults at once": (
        {
            "good": GOOD,
            "Good": WRONG,
            "torn": "a = ",
            "bad": MALFORMED,
            "lost": HEIR.format("torn"),
            "-x": GOOD,
            "sub/profiles/b": GOOD,
            "loaded": LOADED,
        },
        [link_out, write_beside("npuprof.toml", POLICY)],
        {"NP001", "NP004", "NP005", "NP007", "NP016", "NP017", "NP044", "NP201", "NP203"},
    ),
}


def list_fields(findings: list[Finding]) -> list[dict[str, Any]]:
    """Return findings as the command lists them; hints name Python arguments in the library."""
    return [{**build_finding_dict(finding), "hint": None} for finding in findings]


def ask_command(run: Run, *arguments: str, code: int | None = None) -> list[dict[str, Any]]:
    done = run("check", "--format", "json", *arguments)
    assert done.out, done.err
    assert code in (None, done.code)
    return [{**fields, "hint": None} for fields in json.loads(done.out)["findings"]]


@pytest.mark.parametrize("kind", STORES)
def test_the_library_returns_the_findings_that_the_command_lists(
    kind: str, tmp_path: Path, run: Run
) -> None:
    presets, steps, codes = STORES[kind]
    profiles = build_store(tmp_path / "profiles", presets)
    for step in steps:
        step(profiles)
    found = list_fields(npuprof.check(npuprof.open_store()))
    assert found == ask_command(run)
    assert {fields["code"] for fields in found} >= codes


def break_copy(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    copy = app.folder / "vendor/team/base.toml"
    copy.write_text(f"{copy.read_text()}# edited\n")


def break_lock(app: Repo, run: Run) -> None:
    lock = app.folder / "npuprof.lock"
    lock.write_text(re.sub("(commit = .)[0-9a-f]{7}", r"\g<1>1234567", lock.read_text()))


def break_release(app: Repo, run: Run) -> None:
    app.commit({"own": GOOD, "used": GOOD})
    assert run("release", "own", "1.0.0").code == run("release", "used", "1.0.0").code == 0
    app.commit({"leaf": HEIR.format("used@1.0.0"), "idle": HEIR.format("own@1.0.0")})
    assert run("source", "vendor", ".").code == 0
    app.write({"idle": None})
    kept = app.folder / "profiles/.released/used@1.0.0/used.toml"
    kept.write_text(f"{kept.read_text()}hccl_timeout = 3\n")


def remove_lock(app: Repo, run: Run) -> None:
    app.folder.joinpath("npuprof.lock").unlink()


#: What is done to a repository that uses a source, and the codes that must be reported.
REPOSITORIES: dict[str, tuple[Callable[[Repo, Run], None], set[str]]] = {
    "an edited copy": (break_copy, {"NP049"}),
    "an edited lock": (break_lock, {"NP044"}),
    "a removed lock": (remove_lock, {"NP044"}),
    "an edited and an idle vendored release": (break_release, {"NP049", "NP710"}),
}


@pytest.mark.parametrize("kind", REPOSITORIES)
def test_the_library_and_the_command_agree_about_sources_and_releases(
    kind: str, app: Repo, run: Run
) -> None:
    step, codes = REPOSITORIES[kind]
    app.write({"wrong": WRONG, "we`ird": GOOD})
    step(app, run)
    found = list_fields(npuprof.check(npuprof.open_store()))
    assert found == ask_command(run)
    assert {fields["code"] for fields in found} >= {*codes, "NP201", "NP004"}


@pytest.mark.parametrize(
    "kind",
    [
        "names that differ in case",
        "stores inside",
        "broken TOML",
        "a malformed preset with wrong values",
    ],
)
def test_a_store_at_a_revision_is_checked_likewise(kind: str, repo: Repo, run: Run) -> None:
    presets, _, codes = STORES[kind]
    repo.commit({**presets, "we`ird": GOOD})
    repo.commit(dict.fromkeys(presets))
    found = list_fields(check_store(CheckedStore(Workspace(), "HEAD~1")).findings)
    assert found == ask_command(run, "--rev", "HEAD~1")
    assert {fields["code"] for fields in found} >= {*codes, "NP004"}


@pytest.mark.parametrize(
    ("project", "code"),
    [
        ("x = ", "NP001"),
        ("colour = 1\n", "NP040"),
        ('requires = ">=99"\n', "NP041"),
        (None, "NP010"),
    ],
)
def test_a_store_that_cannot_be_opened_is_the_same_error_for_both(
    project: str | None, code: str, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"good": GOOD, "wrong": WRONG})
    if project is None:
        repo.git("clone", "-q", "--bare", ".", "../hub.git")
        monkeypatch.chdir("../hub.git")
    else:
        Path("npuprof.toml").write_text(project)
    with pytest.raises(NpuprofError) as error:
        npuprof.open_store()
    done = run("check", "--format", "json")
    assert done.code == 2
    assert done.out == ""
    assert done.err == format_findings(error.value.findings)
    assert error.value.findings[0].code == code


def test_the_stores_of_these_tables_have_many_kinds_of_faults() -> None:
    codes = [codes for *_, codes in (*STORES.values(), *REPOSITORIES.values())]
    assert len(set().union(*codes)) >= 18


@pytest.mark.parametrize(
    "step",
    [
        "find_stray_files",
        "find_nested_stores",
        "find_source_faults",
        "find_kept_faults",
        "load_own_policy",
    ],
)
def test_a_bug_about_one_file_hides_no_finding_about_another(
    step: str, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"fine": GOOD, "doubtful": WRONG.replace("options", "env")})
    before = {fields["code"] for fields in ask_command(run)}

    def fail(*_: object) -> None:
        raise KeyError("nested")

    monkeypatch.setattr(CheckedStore, step, fail)
    found = ask_command(run, code=2)
    assert {fields["code"] for fields in found} == {*before, "NP831"}
    assert [fields["path"] for fields in found if fields["code"] == "NP831"] == ["profiles"]


def test_presets_are_judged_by_the_own_part_of_a_policy_that_cannot_be_read(
    store: Store, run: Run
) -> None:
    store({"bare": LOADED.partition("\n")[2].partition("\n")[2], "good": GOOD})
    Path("npuprof.toml").write_text(POLICY)
    opened = npuprof.open_store()
    assert [finding.code for finding in npuprof.check(opened) if finding.severity != "info"] == [
        "NP044"
    ]
    with pytest.raises(NpuprofError, match="NP044"):
        npuprof.check(opened.resolve("good"))


#: How each consumer is asked about a store, and the file with its answer; none for the output.
CONSUMERS = {
    "check": "",
    "check --staged": "",
    "check --rev HEAD": "",
    "review": "",
    "git receive": "",
    "site public": "public/index.html",
}


@pytest.mark.parametrize("arguments", CONSUMERS)
def test_each_consumer_reports_a_fault_of_the_store(
    arguments: str, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = repo.commit({"good": GOOD})
    repo.commit({"we`ird": GOOD, "sub/profiles/b": GOOD})
    for name in ("GITLAB_CI", "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    event = {"number": 7, "base": {"sha": before, "ref": "main"}, "head": {"sha": repo.head}}
    Path("event.json").write_text(
        json.dumps({"action": "synchronize", "number": 7, "pull_request": event})
    )
    job = {
        "ACTIONS": "true",
        "EVENT_NAME": "pull_request",
        "EVENT_PATH": "event.json",
        "REPOSITORY": "team/presets",
    }
    for name, value in job.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    done = run(*arguments.split(), stdin=f"{before} {repo.head} refs/heads/main\n".encode())
    answer = Path(CONSUMERS[arguments]).read_text() if CONSUMERS[arguments] else done.out
    assert "NP004" in answer, done
    assert "NP017" in answer, done


def test_a_hook_reports_names_that_differ_in_case_after_a_merge(repo: Repo, run: Run) -> None:
    repo.commit({"good": GOOD, "sub/profiles/b": GOOD})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"bert": GOOD})
    repo.git("checkout", "-q", "main")
    repo.commit({"Bert": GOOD})
    repo.git("merge", "-q", "--no-edit", "side")
    done = run("git", "after", "merge", "--", "0")
    assert done.code == 1, done
    assert "NP016" in done.err, done
    assert "NP017" not in done.err, done
