"""Releases: ranges at a commit, records of tags, older lines, proposals, verification."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import npuprof
from npuprof.catalog import targets
from npuprof.store.versions import ParentRecord, parse_release_record, parse_version_text
from support.repositories import Repo
from support.running import Run, expect
from support.templates import copy_built

BASE = "[profile]\nabstract = true\n[options]\nhccl_timeout = {}\n"
HEIR = '[profile]\nextends = ["{}"]\nscenario = "training"\n[options]\niterations_per_loop = {}\n'


def release(run: Run, name: str, *arguments: str) -> None:
    expect(run("release", name, *arguments), 0)


def timeout(spec: str) -> Any:
    return npuprof.open_store().resolve(spec).options["hccl_timeout"]


def retag(repo: Repo, tag: str, message: str | None = None, commit: str = "") -> None:
    """Write an annotated tag anew: with another message, or at another commit."""
    if message is None:
        _, _, message = repo.git("cat-file", "tag", tag).partition("\n\n")
    repo.git(
        "tag", "-f", "-a", "--cleanup=verbatim", "-m", message, tag, commit or f"{tag}^{{commit}}"
    )


@pytest.fixture
def ranged(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, committer: None) -> Repo:
    """Two releases of a base, and an heir of its newest 1.x, released after each."""

    def build(empty: Path) -> int:
        made = Repo(empty / "repo")
        with monkeypatch.context() as patch:
            patch.chdir(made.folder)
            made.commit({"base": BASE.format(1836)}, "base")
            release(run, "base")
            made.commit({"heir": HEIR.format("base@1", 10)}, "heir")
            release(run, "heir")
            made.commit({"base": BASE.format(1904)}, "base again")
            release(run, "base")
            release(run, "heir")
        return made.day

    day = copy_built("ranged", tmp_path, build)
    made = Repo(tmp_path / "repo", init=False)
    made.day = day
    monkeypatch.chdir(made.folder)
    return made


def test_a_range_takes_the_newest_version_that_its_commit_can_see(ranged: Repo, run: Run) -> None:
    seen = [
        timeout(f"heir@{revision}")
        for revision in ("HEAD~1", "HEAD", "1.0.0", "1.1.0", "1", "heir/v1.0.0")
    ] + [timeout("heir")]
    assert seen == [1836, 1904, 1836, 1904, 1904, 1836, 1904]
    ranged.git("checkout", "-q", "HEAD~1")
    assert timeout("heir") == 1836
    assert timeout("heir@1") == 1836
    assert timeout("base@1") == 1836
    assert timeout("base@1.1.0") == 1904
    ranged.git("checkout", "-q", "-b", "line")
    ranged.commit({"base": BASE.format(1972)}, "older line")
    release(run, "base", "1.0.1")
    assert timeout("heir") == 1972
    assert timeout("heir@main") == 1904
    assert timeout("heir@1.0.0") == 1836
    assert timeout("heir@main~1") == 1836


def test_diff_and_log_tell_of_a_release_as_show_does(ranged: Repo, run: Run) -> None:
    (ranged.folder / "notes").write_text("x")
    ranged.commit({}, "beside the store")
    release(run, "base", "1.2.0")
    ranged.commit({"base": BASE.format(2040)}, "work goes on")
    ranged.git("checkout", "-q", "HEAD~1")
    (ranged.folder / "notes").write_text("y")
    ranged.git("checkout", "-q", "main")
    (ranged.folder / "notes").write_text("z")
    ranged.commit({}, "beside the store again")
    release(run, "base", "1.3.0")  # 2040, at a commit that touches no preset
    found = json.loads(run("log", "heir", "hccl_timeout", "--format", "json").out)["commits"]
    assert [(step["subject"], step["changes"][0]["after"]) for step in found] == [
        ("beside the store again", 2040),
        ("base again", 1904),
        ("heir", 1836),
    ]
    assert "hccl_timeout 1904 → 2040" in run("diff", "--rev", "HEAD~1..HEAD").out
    assert run("diff", "--rev", "HEAD~2..HEAD~1", "--name-only").out == "base\n"
    assert run("diff", "--rev", "HEAD", "--exit-code").code == 0


def test_a_tag_records_both_digests_their_form_and_what_each_parent_was(
    ranged: Repo, run: Run
) -> None:
    ranged.commit(
        {
            "top": HEIR.format("heir@1.0", 20),
            "aside": '[profile]\nextends = ["top", "base@main"]\n',
        },
        "top",
    )
    release(run, "aside")
    config = npuprof.open_store().resolve("aside@HEAD")
    lines = ranged.git("cat-file", "tag", "aside/v1.0.0").rpartition("\n\n")[2].splitlines()
    first, second = (
        ranged.git("rev-parse", "heir/v1.0.0^{}"),
        ranged.git("rev-parse", "base/v1.0.0^{}"),
    )
    assert lines == [
        f"Digest: {config.digest}",
        f"Preset-Digest: {config.preset_digest}",
        "Digest-Form: 3",
        f"Parent: base@main - {ranged.head}",
        f"Parent: heir@1.0 1.0.0 {first}",
        f"Parent: base@1 1.0.0 {second} by heir@1.0.0",
    ]
    assert run("verify", "--tags").code == 0
    ranged.commit({"base": BASE.format(7)}, "later")
    assert dict(npuprof.open_store().resolve("aside@1.0.0").options) == dict(config.options)


@pytest.mark.parametrize("tamper", ["released later", "moved", "gone"])
def test_a_released_version_stays_whatever_happens_to_the_tags_of_its_parents(
    ranged: Repo, run: Run, tamper: str
) -> None:
    config = npuprof.open_store().resolve("heir@1.0.0")
    rendered = run("render", "heir@1.0.0").out
    assert f"\n# version: {ranged.git('rev-parse', 'heir/v1.0.0^{}')}\n" in rendered
    ranged.commit({"on": HEIR.format("heir@1.0.0", 1)}, "an heir of it")
    if tamper == "released later":
        ranged.git("checkout", "-q", "heir/v1.0.0")
        ranged.git("tag", "-a", "-m", "base 1.5.0", "base/v1.5.0", "main")
        retag(ranged, "base/v1.5.0", commit="heir/v1.0.0^{commit}")
        ranged.git("checkout", "-q", "main")
    elif tamper == "moved":
        retag(ranged, "base/v1.0.0", commit="main")
    else:
        ranged.git("tag", "-d", "base/v1.0.0")
    after = npuprof.open_store().resolve("heir@1.0.0")
    assert after.digest == config.digest
    assert after.preset_digest == config.preset_digest
    assert run("render", "heir@1.0.0").out == rendered
    assert timeout("on") == 1836
    assert timeout("on@HEAD") == 1836
    assert "hccl_timeout 1836 → 1904" in run("diff", "heir@1.0.0", "heir@1.1.0").out
    assert (
        "hccl_timeout 1836 → 1904" in run("diff", "--rev", "heir/v1.0.0..heir/v1.1.0", "heir").out
    )
    assert "hccl_timeout = 1836" in run("restore", "heir@1.0.0", "--resolved", "--dry-run").out
    first = json.loads(run("log", "heir@1.0.0", "hccl_timeout", "--format", "json").out)["commits"][
        -1
    ]
    assert first["subject"] == "heir"
    assert first["changes"][0]["after"] == 1836


def test_a_release_sees_that_a_parent_was_released_and_that_an_override_changed(
    ranged: Repo, run: Run
) -> None:
    assert "nothing has changed" in run("release", "heir").err
    ranged.commit({"base": BASE.format(2040)}, "base")
    assert "nothing has changed" in run("release", "heir").err
    release(run, "base")
    assert (
        "minor: 1.2.0 is next\n  changed: hccl_timeout 1904 → 2040 s\n"
        in run("release", "heir", "--dry-run").out
    )
    release(run, "heir")
    places = [
        (product, target)
        for product in ("atlas-a2", "atlas-a3", "atlas-training")
        for target in targets.list_target_names()
    ]
    block = (
        '[[override]]\nmatch = {{ product = "{}", target = "{}" }}\n'
        "options = {{ hccl_timeout = {} }}\n"
    )
    texts = [block.format(*place, 68) for place in places]
    ranged.commit({"heir": HEIR.format("base@1", 10) + "".join(texts)}, "many overrides")
    release(run, "heir", "2.0.0")
    texts[-1] = block.format(*places[-1], 136)
    ranged.commit({"heir": HEIR.format("base@1", 10) + "".join(texts)}, "the last of them")
    reason = f"(product {places[-1][0]}, target {places[-1][1]}) hccl_timeout 68 → 136 s"
    assert f"minor: 2.1.0 is next\n  changed: {reason}\n" in run("release", "heir", "--dry-run").out


PLAIN = (
    '[profile]\ndescription = "x"\nscenario = "training"\ncann = ">=8.0,<10"\n'
    'products = ["atlas-a2", "atlas-a3"]\n'
)
BODY = '[options]\nhccl_timeout = 68\nprecision_mode_v2 = "fp16"\n'
OVER = '[[override]]\nmatch = {{ product = "atlas-a3" }}\noptions = {{ {} }}\n'
WHOLE = PLAIN + BODY + OVER.format("hccl_timeout = 136")


@pytest.mark.parametrize(
    ("text", "step", "reason"),
    [
        pytest.param(
            WHOLE.replace('"x"', '"y"'),
            "patch",
            "only the text changed, no resolved value",
            id="description",
        ),
        pytest.param(
            WHOLE.replace("136", "204"),
            "minor",
            "changed: (product atlas-a3) hccl_timeout 136 → 204 s",
            id="value of an override",
        ),
        pytest.param(
            PLAIN + BODY + OVER.format('hccl_timeout = 136, precision_mode_v2 = "mixed_float16"'),
            "major",
            "may change numerics",
            id="numerics in an override",
        ),
        pytest.param(
            PLAIN + BODY + OVER.replace("options = {{ {} }}", 'unset = ["hccl_timeout"]').format(),
            "major",
            "a key is gone: hccl_timeout",
            id="unset in an override",
        ),
        pytest.param(
            PLAIN + BODY,
            "minor",
            "changed: (product atlas-a3) hccl_timeout 136 → 68 s",
            id="override removed",
        ),
        pytest.param(
            WHOLE.replace("[options]", "abstract = true\n[options]", 1),
            "major",
            "abstract now",
            id="abstract",
        ),
        pytest.param(
            WHOLE.replace("[options]", 'locked = ["hccl_timeout"]\n[options]', 1),
            "major",
            "locked now, so a dependent may break: hccl_timeout",
            id="locked",
        ),
        pytest.param(
            WHOLE.replace(">=8.0,<10", ">=8.0,<9"),
            "major",
            "cann narrowed: >=8.0,<10 → >=8.0,<9",
            id="releases narrowed",
        ),
        pytest.param(
            WHOLE.replace(">=8.0,<10", ">=8.0"),
            "minor",
            "cann widened: >=8.0,<10 → >=8.0",
            id="releases widened",
        ),
        pytest.param(
            WHOLE.replace('cann = ">=8.0,<10"\n', ""),
            "minor",
            "cann widened: >=8.0,<10 → any",
            id="releases removed",
        ),
        pytest.param(
            WHOLE.replace('"atlas-a2", "atlas-a3"', '"atlas-a3"'),
            "major",
            "products narrowed: atlas-a2, atlas-a3 → atlas-a3",
            id="product removed",
        ),
        pytest.param(
            WHOLE.replace('"atlas-a3"]', '"atlas-a3", "atlas-training"]'),
            "minor",
            "products widened",
            id="product added",
        ),
        pytest.param(
            WHOLE.replace('scenario = "training"\n', ""),
            "minor",
            "scenario widened: training → any",
            id="scenario removed",
        ),
        pytest.param(
            WHOLE.replace('"training"', '"online-inference"'),
            "major",
            "scenario narrowed: training → online-inference",
            id="another scenario",
        ),
    ],
)
def test_a_proposal_weighs_what_a_preset_is_for_and_every_context(
    repo: Repo, run: Run, text: str, step: str, reason: str
) -> None:
    repo.commit({"x": WHOLE})
    release(run, "x")
    repo.commit({"x": text})
    number = {"major": "2.0.0", "minor": "1.1.0", "patch": "1.0.1"}[step]
    done = run("release", "x", "--dry-run")
    assert f"\n{step}: {number} is next\n" in done.out, done.out + done.err
    assert f"  {reason}" in done.out


def test_what_heirs_may_do_is_no_mere_text_when_it_goes(repo: Repo, run: Run) -> None:
    for name, freed in (("x", "abstract = true\n"), ("y", 'locked = ["hccl_timeout"]\n')):
        repo.commit({name: WHOLE.replace("[options]", f"{freed}[options]", 1)})
        release(run, name)
        repo.commit({name: WHOLE})
        assert "\nmajor: 2.0.0 is next\n" in run("release", name, "--dry-run").out


def test_nothing_is_proposed_from_a_release_that_was_tampered_with(ranged: Repo, run: Run) -> None:
    ranged.commit({"heir": HEIR.format("base@1", 11)})
    retag(ranged, "heir/v1.1.0", commit="HEAD")
    done = run("release", "heir")
    assert done.code == 2
    assert done.out == ""
    assert "heir 1.1.0 is not the released preset" in done.err
    release(run, "heir", "2.0.0")


def test_an_older_line_is_released_again_and_no_number_twice(repo: Repo, run: Run) -> None:
    repo.commit({"x": BASE.format(68)})
    release(run, "x", "1.0.0")
    repo.commit({"x": BASE.format(136)})
    release(run, "x", "2.0.0")
    repo.git("checkout", "-q", "-b", "line", "x/v1.0.0")
    assert run("list").out.split()[2] == "1.0.0"
    repo.commit({"x": BASE.format(204)})
    for number, reason in (("2.0.0", "released already"), ("0.9.0", "would go back")):
        expect(run("release", "x", number), 2, reason)
    assert run("release", "x").out == "x/v1.1.0\n"
    repo.commit({"x": BASE.format(272)})
    repo.git("tag", "-d", "x/v2.0.0")
    repo.git("tag", "-a", "-m", "x", "x/v1.2.0", "main")
    message = (
        "minor: 1.3.0 is next\n  changed: hccl_timeout 204 → 272 s\n"
        "  1.2.0 is taken by another line"
    )
    assert message in run("release", "x", "--dry-run").out
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "-s", "ours", "line")
    assert run("list").out.split()[2] == "1.2.0"


def test_a_pre_release_is_only_what_is_named_in_full(repo: Repo, run: Run) -> None:
    repo.commit({"x": BASE.format(68), "heir": HEIR.format("x@1", 1)})
    release(run, "x", "1.0.0-rc.1")
    assert timeout("x@1.0.0-rc.1") == 68
    assert timeout("x@v1.0.0-rc.1") == 68
    for requested in ("x@1", "x@1.0.0", "heir"):
        expect(run("show", requested), 2, "NP011")
    assert run("list").out.split() == [
        "x",
        "abstract",
        "-",
        "-",
        "-",
    ]  # nothing that heir extends is released
    repo.commit({"x": BASE.format(136)})
    for number in ("1.0.0-rc.2", "1.0.0-rc.10", "1.0.0-rc.10.a"):
        release(run, "x", number)
    for number, reason in (
        ("1.0.0-rc.9", "would go back"),
        ("1.0.0-rc.10", "released already"),
        ("1.0.0-rc.01", "not a version"),
    ):
        expect(run("release", "x", number), 2, reason)
    assert "first: 1.0.0 is next" in run("release", "x", "--dry-run").out
    release(run, "x")
    assert "would go back" in run("release", "x", "1.0.0-rc.11").err
    assert timeout("heir") == 136
    rows = [line.split()[1] for line in run("list", "--versions").out.splitlines()]
    assert rows == ["1.0.0-rc.1", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0-rc.10.a", "1.0.0"]
    assert run("verify", "--tags").code == 0


def test_a_renamed_preset_keeps_its_numbers_and_its_versions_their_names(
    repo: Repo, run: Run
) -> None:
    repo.commit({"old": PLAIN + BODY, "other": BASE.format(3)})
    release(run, "old", "1.2.0")
    repo.git("mv", "profiles/old.toml", "profiles/new.toml")
    repo.commit({}, "rename")
    assert (
        "\npatch: 1.2.1 is next\n  only the name changed, from old\n"
        in run("release", "new", "--dry-run").out
    )
    assert "would go back" in run("release", "new", "1.1.0").err
    done = run("show", "new@1.2.0")
    assert done.code == 2
    assert done.out == ""
    assert run("show", "old@1.2.0").code == 0
    repo.commit({"new": PLAIN + BODY.replace("68", "136")})
    assert run("release", "new").out == "new/v1.3.0\n"
    assert run("verify", "--tags").code == 0


ZERO = "0" * 64


def spoil(repo: Repo, how: str) -> None:
    tag = "heir/v1.1.0"
    _, _, record = repo.git("cat-file", "tag", tag).partition("\n\n")
    hexes = dict(re.findall(r"^([\w-]+): ([0-9a-f]{64})$", record, re.MULTILINE))
    texts = {
        "zero digest": record.replace(hexes["Digest"], ZERO),
        "zero preset digest": record.replace(hexes["Preset-Digest"], ZERO),
        "no digest": "heir 1.1.0",
        "no form": record.replace("Digest-Form: 3\n", ""),
        "a later form": record.replace("Digest-Form: 3", "Digest-Form: 99"),
        "no parent": re.sub(r"\nParent: .*", "", record),
        "two parents": re.sub(r"(\nParent: .*)", r"\1\1", record),
        "broken parent": record.replace("Parent: base@1 ", "Parent: base "),
        "a parent too many": f"{record}\nParent: base@2 2.0.0 {repo.head}",
        "a parent outside its range": record.replace("base@1 1.1.0", "base@1 2.0.0"),
        "another version of a parent": record.replace("base@1 1.1.0", "base@1 1.0.0"),
        "a parent that is missing": re.sub(r"1\.1\.0 [0-9a-f]{40}", f"1.1.0 {'12' * 20}", record),
    }
    if how in texts:
        retag(repo, tag, texts[how])
    elif how == "moved":
        retag(repo, tag, commit=repo.commit({"heir": HEIR.format("base@1", 11)}))
    elif how == "moved to before it was there":
        retag(repo, tag, commit="HEAD~2")
    elif how == "lightweight":
        repo.git("update-ref", f"refs/tags/{tag}", "HEAD")
    elif how == "copied":
        repo.git("update-ref", "refs/tags/heir/v1.2.0", repo.git("rev-parse", tag))
    elif how == "on a tree":
        retag(repo, tag, commit="HEAD^{tree}")
    elif how == "parent moved":
        retag(repo, "base/v1.1.0", commit="HEAD~1")
    elif how == "parent gone":
        repo.git("tag", "-d", "base/v1.1.0")
    elif how == "tag missing":
        oid = repo.git("rev-parse", tag)
        os.unlink(repo.folder / ".git/objects" / oid[:2] / oid[2:])


class TagCase(NamedTuple):
    """What is done to a tag, and what ``verify`` and ``show`` answer: exit codes and a message."""

    how: str
    code: int
    message: str
    shown: int = 0


TAMPERED = [
    TagCase("nothing", code=0, message=""),
    TagCase("zero digest", code=1, message="heir 1.1.0 has another digest than its tag records"),
    TagCase(
        "zero preset digest",
        code=1,
        message="heir 1.1.0 has another preset digest than its tag records",
        shown=2,
    ),
    TagCase("no digest", code=1, message="the tag heir/v1.1.0 has no digest"),
    TagCase("no form", code=1, message="malformed: Digest-Form is missing", shown=2),
    TagCase("a later form", code=2, message="in form 99, which this npuprof does not know"),
    TagCase("no parent", code=1, message="does not record the contents of base@1"),
    TagCase("two parents", code=1, message="malformed: base@1 is recorded twice", shown=2),
    TagCase("broken parent", code=1, message="malformed: Parent: ", shown=2),
    TagCase("a parent too many", code=1, message="records base@2, which nothing in it extends"),
    TagCase("a parent outside its range", code=1, message="was made with base 2.0.0"),
    TagCase("another version of a parent", code=1, message="was made with base 1.0.0 at"),
    TagCase("a parent that is missing", code=2, message="which this repository lacks", shown=2),
    TagCase(
        "moved",
        code=1,
        message="heir 1.1.0 has another preset digest than its tag records",
        shown=2,
    ),
    TagCase(
        "moved to before it was there",
        code=1,
        message="cannot be resolved: no preset 'heir'",
        shown=2,
    ),
    TagCase("lightweight", code=1, message="heir/v1.1.0 is a lightweight tag", shown=2),
    TagCase("copied", code=1, message="malformed: it is the tag heir/v1.1.0 under another name"),
    TagCase("on a tree", code=1, message="names no commit", shown=2),
    TagCase("parent moved", code=1, message="was made with base 1.1.0 at"),
    TagCase("parent gone", code=1, message="was made with base 1.1.0, whose tag is gone"),
    TagCase("tag missing", code=2, message="missing", shown=2),
]


@pytest.mark.parametrize("case", TAMPERED, ids=lambda case: case.how)
def test_a_tag_that_was_tampered_with_is_told(ranged: Repo, run: Run, case: TagCase) -> None:
    spoil(ranged, case.how)
    expect(run("verify", "--tags", "heir"), case.code, case.message)
    answer = json.loads(run("verify", "--tags", "--format", "json").out)
    states = {(row["name"], row["version"]): row["status"] for row in answer["versions"]}
    assert states["heir", "1.0.0"] == "holds"
    worst = {0: "holds", 1: "fails", 2: "unknown"}[case.code]
    assert worst in states.values()
    done = run("show", "heir@1.1.0")
    assert done.code == case.shown, done.err
    assert case.shown or "hccl_timeout = 1904" in done.out
    assert run("show", "heir@1.0.0").code == 0


def test_verify_leaves_alone_what_is_no_preset_and_refuses_what_it_cannot_know(
    ranged: Repo, run: Run
) -> None:
    ranged.git("tag", "-a", "-m", "the website", "site/v1.0.0")
    ranged.git("tag", "site/v1.1.0")
    ranged.git("tag", "-a", "-m", "x", "heir/v1.0", "HEAD")
    done = run("verify", "--tags")
    assert done.code == 0
    assert done.out.split()[::4] == ["base", "base", "heir", "heir"]
    assert done.err == "npuprof: 4 released versions verified: 4 match\n"
    for arguments, message in (
        ((), "--tags"),
        (("--tags", "nowhere"), "'nowhere'"),
        (("heir",), "--tags"),
    ):
        expect(run("verify", *arguments), 2, message)


def test_signatures_are_verified_where_the_user_asks_and_no_program_runs_otherwise(
    ranged: Repo, run: Run
) -> None:
    program = ranged.folder / "signer"
    program.write_text(
        '#!/bin/sh\ntouch "$0.ran"\n'
        "for word; do case $word in --verify) cat >/dev/null; "
        'echo; echo "[GNUPG:] GOODSIG 1 a"; exit 0;; esac; done\n'
        'cat >/dev/null; echo "[GNUPG:] SIG_CREATED " >&2\n'
        'printf -- "-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n"\n'
    )
    program.chmod(0o755)
    ranged.commit({"heir": HEIR.format("base@1", 99)})
    ranged.git("config", "gpg.program", str(program))
    ranged.git("config", "tag.gpgSign", "true")
    release(run, "heir", "1.2.0")
    (ranged.folder / "signer.ran").unlink()
    done = run("verify", "--tags", "--signatures", "heir")
    assert done.code == 1
    assert "the tag heir/v1.1.0 is not signed" in done.out
    assert "heir/v1.2.0" not in done.out
    assert (ranged.folder / "signer.ran").exists()
    (ranged.folder / "signer.ran").unlink()
    expect(run("verify", "--tags", "heir"), 0, "--signatures has git check them")
    assert run("show", "heir@1.2.0").code == 0
    assert not (ranged.folder / "signer.ran").exists()
    ranged.git("config", "--unset", "tag.gpgSign")
    assert run("verify", "--tags", "--signatures", "heir").code == 1, "whatever the repository says"
    ranged.git("config", "gpg.program", "/nowhere/signer")
    assert "cannot be checked here" in run("verify", "--tags", "--signatures", "heir").out
    assert run("verify", "--signatures", "heir", "log").code == 2


def test_a_version_that_a_commit_cannot_see_is_an_error_with_a_way_out(
    ranged: Repo, run: Run
) -> None:
    ranged.commit({"late": HEIR.format("base@2", 1)}, "heir first")
    ranged.git("checkout", "-q", "-b", "side")
    ranged.commit({"base": BASE.format(5)}, "parent later")
    release(run, "base", "2.0.0")
    ranged.git("checkout", "-q", "main")
    for requested, message in (
        ("late", "no released version 2 of base is in the history of"),
        ("late@HEAD", "released elsewhere, or later, or merge it first: 2.0.0"),
        ("heir@1.1.0-rc.1", "released are 1.0.0, 1.1.0"),
    ):
        expect(run("show", requested), 2, "NP011", message)


def test_numbers_are_read_and_sorted_as_semantic_versioning_has_it() -> None:
    read = {text: parse_version_text(text) for text in ("1.2.0", "v2.0.0-rc.1", "1.0.0-x-y.7z")}
    assert [found and found.number for found in read.values()] == [(1, 2, 0), (2, 0, 0), (1, 0, 0)]
    assert not any(
        map(
            parse_version_text,
            ("1.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0+x", "01.0.0", "1.0.0-ä"),
        )
    )
    behind = ["-alpha", "-alpha.1", "-alpha.beta", "-beta", "-beta.2", "-beta.11", "-rc.1", ""]
    texts = [*(f"1.0.0{text}" for text in behind), "1.0.1-0"]
    assert (
        sorted([*texts[4:], *texts[:4]], key=lambda text: parse_version_text(text).order) == texts
    )


@pytest.mark.parametrize("reference", ['base@"fix more"', "a/b@:/say 100% \n", "base@ä"])
def test_a_parent_is_read_back_as_it_was_recorded(reference: str) -> None:
    for view, version in (("", ""), ("top@1.0.0", "2.0.0-rc.1")):
        parent = ParentRecord(view, reference, version, "12" * 20)
        message = (
            f"x 1.0.0\n\ntext\n\nDigest: {ZERO}\nPreset-Digest: {ZERO}\nDigest-Form: 3\n{parent}\n"
            "-----BEGIN PGP\nDigest: x\n"
        )
        record = parse_release_record(message)
        assert record.parents == (parent,)
        assert record.faults == ()
        assert record.form == 3
