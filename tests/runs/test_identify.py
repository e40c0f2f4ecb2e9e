"""``whatran``: digests of both kinds, traced to presets, commits and versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.adapterlogs.process import write_log
from support.repositories import Repo
from support.running import Run, Store
from support.waiting import wait_for

NPUPROF = [sys.executable, "-m", "npuprof"]
BASE = (
    '[profile]\nscenario = "training"\n[options]\n'
    'precision_mode_v2 = "mixed_float16"\nhccl_timeout = {}\n'
)
HEIR = '[profile]\nextends = ["base"]\n[options]\niterations_per_loop = 10\n'
OVERRIDDEN = HEIR + (
    '[[override]]\nmatch = { product = "atlas-a3" }\n'
    'options = { precision_mode_v2 = "mixed_bfloat16" }\n'
)


def digests_of(run: Run, *arguments: str) -> tuple[str, str]:
    shown = json.loads(run("show", *arguments, "--format", "json").out)
    return shown["digest"], shown["preset_digest"]


def identify(run: Run, *arguments: str) -> list[dict[str, Any]]:
    done = run("whatran", *arguments, "--format", "json")
    assert done.code in (0, 1), done.err
    rows: list[dict[str, Any]] = [
        match for clue in json.loads(done.out)["found"] for match in clue["presets"]
    ]
    assert (done.code == 0) is bool(rows)
    return rows


def test_a_digest_of_either_kind_or_its_beginning_leads_to_the_commits_that_had_it(
    repo: Repo, run: Run
) -> None:
    first = repo.commit({"base": BASE.format(600), "bert": HEIR}, "make it")
    digest, preset = digests_of(run, "bert")
    repo.commit({"other": "[options]\nhccl_timeout = 5\n"})
    last = repo.commit({"unrelated": "[options]\nhccl_timeout = 7\n"})
    repo.commit({"base": BASE.format(700)}, "raise it")
    for identity, kind in (
        (digest, "resolved"),
        (preset, "preset"),
        (digest[:8], "resolved"),
        (f"sha256:{preset}", "preset"),
    ):
        (match,) = identify(run, identity)
        assert match["name"] == "bert"
        assert match["matched"] == kind
        assert match["commits"] == 3
        assert match["first"]["commit"] == first
        assert match["newest"]["commit"] == last
        assert match["first"]["author"] == "Ada Lovelace"
        assert match["first"]["subject"] == "make it"
        assert [
            (change["key"], change["before"], change["after"]) for change in match["changes_since"]
        ] == [("hccl_timeout", 600, 700)]
    done = run("whatran", digest)
    assert done.code == 0
    assert "hccl_timeout 600 → 700" in done.out


def test_a_version_is_named(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    repo.release("bert", "1.2.0")
    digest, _ = digests_of(run, "bert")
    repo.commit({"base": BASE.format(700)})
    assert identify(run, digest)[0]["versions"] == ["1.2.0"]
    assert "bert@1.2.0" in run("whatran", digest).out


def test_a_preset_that_is_gone_or_in_a_store_that_was_moved_is_found(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR, "gone": "[options]\nhccl_timeout = 9\n"})
    (digest, _), (gone, _) = digests_of(run, "bert"), digests_of(run, "gone")
    repo.commit({"gone": None})
    repo.git("mv", "profiles", "presets")
    repo.git("commit", "-qm", "move")
    Path("presets/base.toml").write_text(BASE.format(700))
    (moved,) = identify(run, digest, "--store", "presets")
    assert moved["commits"] == 3
    assert [(change["key"], change["after"]) for change in moved["changes_since"]] == [
        ("hccl_timeout", 700)
    ]
    assert [
        (match["name"], match["changes_since"])
        for match in identify(run, gone, "--store", "presets")
    ] == [("gone", None)]


def test_a_preset_that_was_renamed_is_compared_with_what_it_is_now(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    digest, _ = digests_of(run, "bert")
    repo.git("mv", "profiles/bert.toml", "profiles/large.toml")
    repo.git("commit", "-qm", "rename")
    moved = next(match for match in identify(run, digest) if match["name"] == "bert")
    assert moved["renamed_to"] == "large"
    assert moved["changes_since"] == []
    assert "now      renamed to large, the same" in run("whatran", digest).out
    repo.commit({"base": BASE.format(700)})
    repo.git("mv", "profiles/large.toml", "profiles/huge.toml")
    repo.git("commit", "-qm", "rename again")
    moved = next(match for match in identify(run, digest) if match["name"] == "bert")
    assert moved["renamed_to"] == "huge"
    assert len(moved["changes_since"]) == 1
    repo.commit({"bert": "[options]\nhccl_timeout = 5\n"})
    other = next(match for match in identify(run, digest) if match["name"] == "bert")
    assert other["renamed_to"] is None, "a name that is there again is the name that is meant"
    assert other["changes_since"], "a name that is there again is the name that is meant"


def test_what_only_the_work_tree_has_is_told_and_what_nobody_had_is_exit_1(
    repo: Repo, run: Run
) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    repo.write({"base": BASE.format(650)})
    digest, _ = digests_of(run, "bert")
    (match,) = identify(run, digest)
    assert match["work_tree"] is True
    assert match["commits"] == 0
    done = run("whatran", "0" * 64)
    assert done.code == 1
    assert "not committed" in done.out


def test_without_a_repository_the_presets_as_they_are_are_looked_at(store: Store, run: Run) -> None:
    store({"base": BASE.format(600)})
    digest, _ = digests_of(run, "base")
    done = run("whatran", digest)
    assert done.code == 0
    assert "not in a git repository" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        "render bert --to session -o out",
        "render bert --to toml -o x.toml",
        "render bert --to json -o x.json",
        *(f"env bert --shell {shell} -o x.sh" for shell in ("bash", "tcsh", "pwsh")),
        *(
            f"env bert --format {form} -o x"
            for form in ("systemd", "k8s-configmap", "k8s-env", "json")
        ),
    ],
)
def test_what_is_rendered_or_exported_says_what_it_was_made_of(
    arguments: str, repo: Repo, run: Run
) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    done = run(*arguments.split())
    assert done.code == 0, done.err
    made = next(
        path
        for path in Path().rglob("*")
        if path.is_file() and path.parts[0] in ("out", "x", "x.toml", "x.json", "x.sh")
    )
    assert {match["name"] for match in identify(run, str(made))} == {"bert"}


def edit_record(path: Path) -> None:
    fields = json.loads(path.read_text())
    next(setting for setting in fields["settings"] if setting["key"] == "hccl_timeout")["value"] = (
        999
    )
    path.write_text(json.dumps(fields))


def edit_script(path: Path) -> None:
    path.write_text(path.read_text() + "# mine\n")


def test_what_was_edited_since_is_told_beside_what_it_was_made_of(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    assert run("render", "bert", "-o", "x.py").code == 0
    for path, edit in ((Path("x.py"), edit_script), (Path(record()), edit_record)):
        assert "edited it" not in run("whatran", path).err
        edit(path)
        result = run("whatran", path)
        assert result.code == 0, path
        assert "bert" in result.out, path
        assert "somebody edited it" in result.err, path


def test_a_block_in_a_script_says_what_it_was_made_of(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    Path("train.py").write_text("import tensorflow as tf\nconfig = tf.compat.v1.ConfigProto()\n")
    assert run("inject", "train.py", "bert").code == 0
    assert {match["name"] for match in identify(run, "train.py")} == {"bert"}


OVER = "[options]\nstream_sync_timeout = 7000000\n"


@pytest.mark.parametrize(
    ("over", "product"), [("over+more", ""), ("over@first", " --product atlas-a3")]
)
def test_presets_that_were_laid_over_one_another_are_found_by_what_says_so(
    over: str, product: str, repo: Repo, run: Run
) -> None:
    first = repo.commit(
        {
            "base": BASE.format(600),
            "bert": OVERRIDDEN,
            "over": OVER,
            "more": "[options]\ndeterministic = 1\n",
        }
    )
    repo.git("tag", "first")
    assert run(*f"env bert+{over}{product} --format slurm-job -o job.sh".split()).code == 0
    last = repo.commit({"unrelated": "[options]\nhccl_timeout = 7\n"})
    (match,) = identify(run, "job.sh")
    assert match["name"] == f"bert+{over}"
    assert match["work_tree"] is True
    assert match["commits"] == 2
    assert match["first"]["commit"] == first
    assert match["newest"]["commit"] == last
    repo.commit({"base": BASE.format(700)}, "raise it")
    (match,) = identify(run, "job.sh")
    assert match["commits"] == 2
    assert match["newest"]["commit"] == last
    assert match["work_tree"] is False
    assert [
        (change["key"], change["before"], change["after"]) for change in match["changes_since"]
    ] == [("hccl_timeout", 600, 700)]
    repo.commit({"over": OVER.replace("7", "8")}, "wait longer")
    assert [match["newest"]["commit"] for match in identify(run, "job.sh")] == [last]


def test_a_live_process_says_what_it_was_given(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    with subprocess.Popen([*NPUPROF, "run", "bert", "--", "sleep", "30"]) as process:
        wait_for(lambda: b"NPUPROF_DIGEST" in Path(f"/proc/{process.pid}/environ").read_bytes())
        assert [match["name"] for match in identify(run, "--pid", str(process.pid))] == ["bert"]
        assert [match["name"] for match in identify(run, f"/proc/{process.pid}/environ")] == [
            "bert"
        ]
        process.kill()
    assert run("whatran", "--pid", str(process.pid)).code == 2
    assert run("whatran", "--pid", str(os.getpid())).code == 2


def record(*flags: str) -> str:
    subprocess.run(
        [*NPUPROF, "run", "bert", "--record", "out", *flags, "--", "true"],
        check=True,
        capture_output=True,
    )
    return "out/bert.0.run.json"


def test_a_record_is_asked_for_again_with_what_was_laid_over_it(repo: Repo, run: Run) -> None:
    first = repo.commit(
        {"base": BASE.format(600), "bert": HEIR, "mix": "[options]\nenable_data_pre_proc = true\n"}
    )
    path = record("--set", "hccl_timeout=650", "--with", "mix")
    repo.commit({"base": BASE.format(700)})
    (match,) = identify(run, path)
    assert match["name"] == "bert"
    assert match["asked"] == ["--with mix", "--set hccl_timeout=650"]
    assert match["newest"]["commit"] == first
    assert {change["key"] for change in match["changes_since"]} == {
        "hccl_timeout",
        "enable_data_pre_proc",
    }


def test_what_was_laid_over_a_preset_is_told_where_only_the_preset_is_found(
    store: Store, run: Run
) -> None:
    store({"bert": BASE.format(600)})
    record("--set", "hccl_timeout=5")
    (match,) = identify(run, "out/bert.0.run.json")
    assert match["matched"] == "preset"
    assert match["asked"] == ["--set hccl_timeout=5"]
    assert match["work_tree"] is True
    assert "bert --set hccl_timeout=5" in run("whatran", "out/bert.0.run.json").out


def test_a_record_of_a_dirty_tree_is_found_once_it_is_committed(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "bert": HEIR})
    repo.write({"base": BASE.format(650)})
    path = record()
    repo.write({"base": BASE.format(600)})
    assert run("whatran", path).code == 1
    repo.git("branch", "kept")
    late = repo.commit({"base": BASE.format(650)})
    assert identify(run, path)[0]["newest"]["commit"] == late
    assert [match["name"] for match in identify(run, "out")] == ["bert"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to look at"),
        (("abcdef0", "--pid", "1"), "takes one thing to look at"),
        (("zzz",), "'zzz' is neither a file nor a digest"),
        (("short",), "contains no digest"),
        (("environ",), "no NPUPROF_DIGEST"),
    ],
)
def test_what_is_no_clue_is_an_error_of_usage(
    arguments: tuple[str, ...], message: str, repo: Repo, run: Run
) -> None:
    repo.commit({"base": BASE.format(600)})
    Path("short").write_text("NPUPROF_DIGEST=12\n")
    Path("environ").write_text("\0\0NPUPROF_X=1\0")
    done = run("whatran", *arguments)
    assert done.code == 2, done.err
    assert done.out == "", done.err
    assert message in done.err, done.err


# -- evidence -------------------------------------------------------------------------------------


def test_of_a_log_the_preset_is_told_that_it_proves_the_most_of_and_speaks_against_nowhere(
    repo: Repo, run: Run
) -> None:
    base = "[options]\nprecision_mode = {}\nhccl_timeout = {}\n"
    first = repo.commit(
        {
            "base": base.format('"force_fp32"', 1700),
            "bert": (
                '[profile]\nextends = ["base"]\n[options]\n'
                'stream_max_parallel_num = "DNN_V100:10"\n'
            ),
            "less": "[options]\nhccl_timeout = 1700\n",
            "other": base.format('"force_fp16"', 1700),
        }
    )
    repo.commit({"base": base.format('"force_fp32"', 1900)})
    write_log(
        Path("logs"),
        {
            "precision_mode": "force_fp32",
            "hccl_timeout": 1700,
            "stream_max_parallel_num": "DNN_V100:10",
        },
    )
    (match,) = identify(run, "logs")
    assert match["name"] == "bert"
    assert match["matched"] == "fits"
    assert match["in_force"] == 3
    assert match["newest"]["commit"] == first
    assert [change["key"] for change in match["changes_since"]] == ["hccl_timeout"]
    # The options stand in the debug log; the order in which a file system lists a folder is its
    # own.
    log = next(Path("logs/debug").rglob("plog-42_*"))
    result = run("whatran", str(log))
    assert result.code == 0
    assert "3 of 3 options in force" in result.out
    write_log(Path("strange"), {"precision_mode": "allow_fp32_to_fp16", "hccl_timeout": 5})
    assert run("whatran", "strange").code == 1
    shown = subprocess.run(
        ["bash", "-c", f"{' '.join(NPUPROF)} show <(cat {log})"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "precision_mode" in shown.stdout, shown.stderr


# -- the index ------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_pinned_parent_builds_on_what_its_own_parents_were_then(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(600), "mid": HEIR})
    repo.release("mid", "1.0.0")
    repo.commit(
        {
            "base": None,
            "mid": None,
            "root": BASE.format(700),
            "bert": HEIR.replace('"base"', '"mid@1.0.0"'),
        }
    )
    digest, preset = digests_of(run, "bert")
    repo.commit({"bert": "[options]\nhccl_timeout = 1\n"})
    assert [match["name"] for match in identify(run, digest)] == ["bert", "mid"]
    assert [match["name"] for match in identify(run, preset)] == ["bert"]


def test_a_version_that_is_tagged_or_fetched_later_makes_older_commits_known(
    repo: Repo, run: Run
) -> None:
    first = repo.commit({"base": BASE.format(600)})
    repo.commit(
        {
            "base": BASE.format(700),
            "bert": HEIR.replace('"base"', '"base@1.0.0"'),
            "mine": HEIR.replace('"base"', '"bert"'),
        }
    )
    repo.commit({"bert": None, "mine": None})
    assert not identify(run, "f" * 64)
    repo.release("base", "1.0.0", first)
    for name in ("bert", "mine"):
        digest, _ = digests_of(run, f"{name}@HEAD~1")
        assert name in [match["name"] for match in identify(run, digest)]


def test_of_a_partial_clone_it_is_told_that_presets_are_missing_and_looked_at_again(
    repo: Repo, run: Run, tmp_path: Path
) -> None:
    repo.commit({"bert": BASE.format(600)})
    digest, _ = digests_of(run, "bert")
    repo.commit({"bert": BASE.format(700)})
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git(
        "clone", "-q", "--filter=blob:none", f"file://{repo.folder}", str(tmp_path / "partial")
    )
    there = ("whatran", digest, "--store", str(tmp_path / "partial" / "profiles"))
    result = run(*there)
    assert result.code == 1, result
    assert "git fetch --refetch" in result.err, result
    repo.git("-C", str(tmp_path / "partial"), "fetch", "-q", "--refetch", "--no-filter")
    assert run(*there).code == 0


def test_in_a_bare_repository_now_is_the_last_commit(
    repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"bert": BASE.format(600)})
    digest, _ = digests_of(run, "bert")
    repo.commit({"bert": BASE.format(700)})
    repo.git("clone", "-q", "--bare", str(repo.folder), str(tmp_path / "bare"))
    monkeypatch.chdir(tmp_path / "bare")
    result = run("whatran", digest)
    assert result.code == 0, result
    assert "600 → 700" in result.out, result
