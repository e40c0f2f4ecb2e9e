"""Outputs of npuprof.toml, and files that ``render --check`` compares in their own context."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.catalog.targets import load_target_index
from npuprof.renderers import load_target
from npuprof.renderers.stamp import stamp_json
from npuprof.resolve.digests import compute_digest
from npuprof.store.spec import Workspace, build_context
from support.repositories import Repo
from support.running import Run, Store, expect
from support.services import describe_github_job

MODELS = [f"m{number:02d}" for number in range(1, 13)]
ROLES = ("prefill", "decode")
PRODUCTS = ("atlas-a2", "atlas-a3")

BASE = """\
[profile]
description = "serving"

[vllm]
max-num-seqs = 16
gpu-memory-utilization = 0.9

[[override]]
match = { role = "decode" }
vllm = { max-num-seqs = 64 }

[[override]]
match = { role = "decode", product = "atlas-a3" }
vllm = { max-num-seqs = 128 }

[[override]]
match = { product = "atlas-a3" }
vllm = { tensor-parallel-size = 8 }
"""
MODEL = '[profile]\nextends = ["base/serving"]\n\n[vllm]\nmodel = "team/{}"\n'
LONG = '[profile]\ndescription = "long prompts"\n\n[vllm]\nmax-model-len = 131072\n'


def list_paths(
    models: Iterable[str] = MODELS,
    roles: Iterable[str] = ROLES,
    products: Iterable[str] = PRODUCTS,
) -> set[str]:
    """Return the paths of outputs of the team."""
    return {f"deploy/{m}/{r}-{p}" for m in models for r in roles for p in products}


def describe_outputs(**others: str) -> str:
    """Return the npuprof.toml of the team; others are lines of single outputs, by path."""
    lines = ['[axes]\nrole = ["prefill", "decode"]\n']
    for path in sorted(list_paths()):
        _, model, name = path.split("/")
        role, product = name.split("-", 1)
        # the long prompts are mixed into half of the models
        spec = f"{model}+mixins/long" if model > "m06" else model
        lines.append(
            f'\n[[output]]\nspec = "{spec}"\nto = "vllm"\npath = "{path}"\n'
            f'role = "{role}"\nproduct = "{others.get(path, product)}"\n'
        )
    return "".join(lines)


@pytest.fixture
def fleet(repo: Repo, run: Run) -> Repo:
    """A repository with 12 models in 2 roles on 2 products, whose outputs are up to date."""
    repo.write({"base/serving": BASE, "mixins/long": LONG})
    repo.write({model: MODEL.format(model) for model in MODELS})
    Path("npuprof.toml").write_text(describe_outputs())
    written = [path for path in repo.folder.rglob("*.toml") if ".git" not in path.parts]
    assert len(written) <= 20
    assert run("render", "--all").code == 0
    repo.commit()
    return repo


def edit(path: str, old: str, new: str) -> None:
    """Replace a text in a file of the repository."""
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


EDITS: dict[str, tuple[Callable[[], object], set[str]]] = {
    "an override for decoding on one product": (
        lambda: edit("profiles/base/serving.toml", "128", "96"),
        list_paths(roles=["decode"], products=["atlas-a3"]),
    ),
    "a value of one model": (
        lambda: edit("profiles/m03.toml", "team/m03", "team/m03-chat"),
        list_paths(models=["m03"]),
    ),
    "a mix-in of half of the models": (
        lambda: edit("profiles/mixins/long.toml", "131072", "65536"),
        list_paths(models=MODELS[6:]),
    ),
    "a base value that decoding overrides": (
        lambda: edit("profiles/base/serving.toml", "= 16", "= 32"),
        list_paths(roles=["prefill"]),
    ),
    "an override for a product without outputs": (
        lambda: (
            edit(
                "profiles/base/serving.toml",
                "[vllm]\n",
                "[vllm]\n# a comment\n",
            )
            or Path("profiles/m01.toml").write_text(
                MODEL.format("m01") + '\n[[override]]\nmatch = { product = "atlas-inference" }\n'
                "vllm = { max-num-seqs = 4 }\n"
            )
        ),
        set(),
    ),
    "the product of one output": (
        lambda: Path("npuprof.toml").write_text(
            describe_outputs(**{"deploy/m05/decode-atlas-a2": "atlas-a3"})
        ),
        {"deploy/m05/decode-atlas-a2"},
    ),
}


@pytest.mark.parametrize(("change", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_shows_exactly_the_outputs_that_it_changes(
    change: Callable[[], object],
    expected: set[str],
    fleet: Repo,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = fleet.head
    change()
    stale = run("render", "--all", "--check")
    assert stale.code == int(bool(expected)), stale
    assert {*re.findall(r"(deploy/[^,\s]+)/config\.yaml", stale.out)} == expected
    found = [
        finding
        for finding in json.loads(run("check", "--format", "json").out)["findings"]
        if finding["code"] == "NP713"
    ]
    assert {*re.findall(r"(deploy/[^,\s]+)/config\.yaml", str(found))} == expected
    head = fleet.commit()
    compared = json.loads(run("diff", "--rev", f"{base}..{head}", "--format", "json").out)
    assert {name.partition(" ")[0] for name in compared.get("outputs", ())} == expected
    pull = {"number": 7, "base": {"sha": base}, "head": {"sha": head}}
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": pull}))

    class _NoService:
        url = "http://127.0.0.1:9"

    for name, value in describe_github_job(_NoService(), tmp_path).items():  # type: ignore[arg-type]
        monkeypatch.setenv(name, value)
    review = run("review")
    page = (tmp_path / "summary.md").read_text()
    assert {*re.findall(r"(deploy/[\w-]+/[\w-]+) \(", page)} == expected
    assert {*re.findall(r"(deploy/[^,\s]+)/config\.yaml", review.out)} == expected
    assert run("render", "--all").code == 0
    assert run("render", "--all", "--check").code == 0


# -- what is there --------------------------------------------------------------------------------

SERVING = '[vllm]\nmodel = "team/serving"\n\n[env]\nHCCL_BUFFSIZE = 1024\n'
TWO = """\
[[output]]
spec = "serving+decode"
to = "vllm"
path = "deploy/decode"
product = "atlas-a3"

[[output]]
spec = "serving"
to = "json"
path = "deploy/serving.json"
"""


@pytest.fixture
def two(repo: Repo, run: Run) -> Repo:
    """A repository with two outputs that are up to date."""
    repo.write({"serving": SERVING, "decode": "[vllm]\nmax-num-seqs = 64\n"})
    Path("npuprof.toml").write_text(TWO)
    assert run("render", "--all").code == 0
    repo.commit()
    return repo


def read_files() -> dict[Path, bytes]:
    """Return all files outside of git's folder."""
    return {
        path: path.read_bytes()
        for path in Path().rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


@pytest.mark.parametrize(
    ("change", "problem", "needs_force"),
    [
        (lambda path: path.unlink(), "missing", False),
        (lambda path: path.write_text("model: mine\n"), "not written by npuprof", True),
        (lambda path: path.write_text(path.read_text() + "# mine\n"), "edited by hand", True),
        (
            lambda _: edit("profiles/decode.toml", "64", "65"),
            "stale",
            False,
        ),
    ],
    ids=["missing", "foreign", "edited", "stale"],
)
@pytest.mark.usefixtures("two")
def test_a_file_that_is_not_current_is_named_and_renewed(
    change: Callable[[Path], object], problem: str, needs_force: bool, run: Run
) -> None:
    change(Path("deploy/decode/config.yaml"))
    force = " --force" if needs_force else ""
    expect(
        run("render", "--all", "--check"),
        1,
        f"serving+decode for atlas-a3: {problem}: deploy/decode/config.yaml",
        "1 of 2 outputs",
        f"npuprof render --all{force}",
    )
    expect(run("check"), 0, "NP713", f"{problem}: deploy/decode/config.yaml")
    before = read_files()
    result = run("render", "--all")
    if needs_force:
        expect(result, 2, "NP940", "deploy/decode/config.yaml")
        assert read_files() == before
        result = run("render", "--all", "--force")
    assert result.code == 0, result.err
    assert run("render", "--all", "--check").code == 0


ENGINE = '{{\n  "compile options": {{\n    "{}": {{\n      "{}": "{}"\n    }}\n  }}\n}}\n'
ENGINE_OPTION = "ge.exec.precision_mode_v2"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ENGINE.format("global", ENGINE_OPTION, "fp16"), "stale"),
        (ENGINE.format("global", ENGINE_OPTION, "fp16").replace("  ", " "), "edited by hand"),
        (ENGINE.format("global", "ge.exec.mine", "fp16"), "edited by hand"),
        ('{"compile options": []}\n', "not written by npuprof"),
        ("mine\n", "not written by npuprof"),
    ],
    ids=["older values", "another form", "unknown option", "another structure", "text"],
)
def test_a_file_without_a_header_is_renewed_if_it_has_the_form_of_npuprof(
    text: str, problem: str, repo: Repo, run: Run
) -> None:
    preset = '[profile]\nscenario = "offline-inference"\n[options]\nprecision_mode_v2 = "{}"\n'
    repo.write({"convert": preset.format("fp16")})
    output = '[[output]]\nspec = "convert"\nto = "ge"\npath = "deploy/ge.json"\n'
    Path("npuprof.toml").write_text(output)
    assert run("render", "--all").code == 0
    file = Path("deploy/ge.json")
    assert file.read_text() == ENGINE.format("global", ENGINE_OPTION, "fp16")
    repo.write({"convert": preset.format("origin")})
    file.write_text(text)
    force = "" if problem == "stale" else " --force"
    expect(run("render", "--all", "--check"), 1, problem, f"render --all{force}")
    if force:
        expect(run("render", "--all"), 2, "NP940", "deploy/ge.json", "--force")
        assert file.read_text() == text
    assert run("render", "--all", *force.split()).code == 0
    assert file.read_text() == ENGINE.format("global", ENGINE_OPTION, "origin")
    assert run("render", "--all", "--check").code == 0


@pytest.mark.usefixtures("two")
def test_all_outputs_are_written_or_none(run: Run) -> None:
    edit("profiles/serving.toml", "team/serving", "team/other")
    Path("deploy/serving.json").write_text("{}")
    before = read_files()
    expect(run("render", "--all"), 2, "NP940", "deploy/serving.json")
    assert read_files() == before


@pytest.mark.usefixtures("two")
def test_an_output_that_is_current_is_not_written(run: Run) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path("deploy").rglob("*")}
    edit("profiles/decode.toml", "[vllm]", "# only a comment\n[vllm]")
    with Path("profiles/serving.toml").open("a") as file:
        file.write('\n[[override]]\nmatch = { product = "atlas-a2" }\nvllm = { seed = 1 }\n')
    expect(run("render", "--all"), 0, "2 outputs unchanged")
    assert {path: path.stat().st_mtime_ns for path in Path("deploy").rglob("*")} == before


def test_files_of_a_moved_output_are_left_over_and_stay(two: Repo, run: Run) -> None:
    edit("npuprof.toml", "deploy/decode", "serve/a3")
    edit("npuprof.toml", "deploy/serving.json", "serve/all.json")
    assert run("render", "--all").code == 0
    expect(
        run("render", "--all", "--check"),
        1,
        "0 of 2 outputs",
        "rm deploy/decode/config.yaml deploy/decode/env.sh deploy/serving.json",
    )
    two.git("rm", "-qrf", "deploy")
    expect(run("render", "--all", "--check"), 0)


@pytest.mark.usefixtures("two")
def test_a_copy_of_an_output_is_not_left_over(run: Run) -> None:
    Path("copy").mkdir()
    Path("copy/config.yaml").write_text(Path("deploy/decode/config.yaml").read_text())
    assert run("render", "serving", "--to", "toml", "-o", "mine.toml").code == 0
    expect(run("render", "--all", "--check"), 0)


@pytest.mark.usefixtures("two")
def test_outputs_are_found_from_any_folder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("deploy/decode")
    expect(run("render", "--all", "--check"), 0)
    Path("env.sh").unlink()
    expect(run("render", "--all", "--check"), 1, "missing: ../../deploy/decode/env.sh")
    expect(run("render", "--all", "--check", "../serving.json"), 0, "not up to date: 0 of 1 output")
    expect(run("render", "--all"), 0, "wrote ../../deploy/decode/env.sh")


def test_a_staged_change_that_makes_an_output_stale_is_a_finding(two: Repo, run: Run) -> None:
    edit("profiles/decode.toml", "64", "65")
    two.git("add", "profiles")
    assert run("render", "--all").code == 0
    expect(run("check", "--staged"), 0, "NP713", "stale: deploy/decode/config.yaml")
    two.git("add", "deploy")
    assert "NP713" not in run("check", "--staged").out


def test_a_push_that_makes_an_output_stale_is_taken_with_a_warning(two: Repo, run: Run) -> None:
    old = two.head
    new = two.commit({"decode": "[vllm]\nmax-num-seqs = 65\n"})
    line = f"{old} {new} refs/heads/main\n".encode()
    expect(run("git", "receive", stdin=line), 0, "NP713", "deploy/decode")
    newer = two.commit({"mine": "[vllm]\nseed = 1\n"})
    assert run("git", "receive", stdin=f"{new} {newer} refs/heads/main\n".encode()).out == ""


# -- declarations ---------------------------------------------------------------------------------

ONE = {"spec": '"serving"', "to": '"vllm"', "path": '"deploy/x"'}
FAULTS = {
    "no path": ({"path": None}, "'path' is missing in [output]"),
    "unknown key": ({"paht": '"x"'}, "unknown key 'paht' in [output]"),
    "unknown target": ({"to": '"vlm"'}, "did you mean 'vllm'"),
    "unknown product": ({"product": '"atlas-a33"'}, "unknown product 'atlas-a33'"),
    "unknown release": ({"torch_npu": '"99x"'}, "unknown torch_npu release '99x'"),
    "standard input": ({"spec": '"-"'}, "it names no preset"),
    "out of the tree": ({"path": '"../x"'}, "not a folder below"),
    "absolute": ({"path": '"/tmp/x"'}, "not a folder below"),
    "the top": ({"path": '"."'}, "not a folder below"),
    "git's folder": ({"path": '"a/.GIT/x"'}, "git's own folder"),
    "the store": ({"path": '"Profiles/x"'}, "is in the store"),
    "the project": ({"path": '"NPUPROF.toml"'}, "npuprof reads that file itself"),
    "the lock": ({"path": '"npuprof.lock"'}, "npuprof reads that file itself"),
}


def write_outputs(*tables: Mapping[str, str | None]) -> None:
    """Write the outputs of npuprof.toml."""
    texts = [
        "".join(f"{name} = {text}\n" for name, text in {**ONE, **table}.items() if text is not None)
        for table in tables
    ]
    Path("npuprof.toml").write_text("".join(f"[[output]]\n{text}" for text in texts))


@pytest.mark.parametrize(("fields", "message"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("command", [("render", "--all"), ("check",)], ids=["render", "check"])
def test_a_faulty_output_is_an_error(
    fields: Mapping[str, str | None], message: str, command: tuple[str, ...], repo: Repo, run: Run
) -> None:
    repo.write({"serving": SERVING})
    write_outputs(fields)
    result = run(*command)
    assert result.code in (1, 2)
    assert "NP040" in result.out + result.err
    assert message in result.out + result.err
    assert not Path("deploy").exists()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"path": '"deploy/x"'}, {"path": '"Deploy/X"'}),
        ({"path": '"deploy"'}, {"to": '"json"', "path": '"deploy/a.json"'}),
        ({"to": '"json"', "path": '"a/env.sh"'}, {"path": '"a"'}),
        ({"path": '"a/"'}, {"path": '"a"'}),
    ],
    ids=["case", "in a folder", "sidecar", "slash"],
)
def test_two_outputs_with_one_path_are_an_error(
    first: Mapping[str, str], second: Mapping[str, str], repo: Repo, run: Run
) -> None:
    repo.write({"serving": SERVING})
    write_outputs(first, second)
    expect(run("render", "--all"), 2, "NP040", "overlaps")


@pytest.mark.parametrize("path", ["code/b.py", "code/OPS_info.json"], ids=["sidecar", "code"])
def test_a_sidecar_of_one_output_is_no_file_of_another(path: str, repo: Repo, run: Run) -> None:
    repo.write({"a": '[options.modify_mixlist]\nblack-list = { to-add = ["MatMul"] }\n'})
    write_outputs(
        {"spec": '"a"', "to": '"session"', "path": '"code/a.py"'},
        {"spec": '"a"', "to": '"session"', "path": f'"{path}"'},
    )
    expect(run("render", "--all", "--no-check"), 2, "NP040", "overlaps", "ops_info.json")
    assert not Path("code").exists()


def test_outputs_are_compared_without_trust(repo: Repo, run: Run) -> None:
    repo.write({"a": '[env]\nMY_OWN_FLAG = "1"\n'})
    write_outputs({"spec": '"a"'})
    expect(run("render", "--all"), 2, "NP930")
    expect(run("render", "--all", "--check"), 1, "missing: deploy/x/config.yaml")
    expect(run("check"), 0, "NP713", "missing: deploy/x/config.yaml")
    assert not Path("deploy").exists()


@pytest.mark.parametrize("leads_to", ["profiles", "../outside"])
def test_an_output_is_not_written_through_a_link(
    leads_to: str, repo: Repo, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    repo.write({"serving": SERVING})
    Path("deploy").symlink_to(leads_to)
    write_outputs({})
    before = read_files()
    expect(run("render", "--all"), 2, "NP941")
    assert read_files() == before
    assert not [*(tmp_path / "outside").iterdir()]


@pytest.mark.parametrize("spec", ["srving", "serving+decod", "serving@v9", "jobs/none.toml"])
def test_a_spec_that_does_not_resolve_is_a_finding(spec: str, repo: Repo, run: Run) -> None:
    repo.write({"serving": SERVING})
    write_outputs({"spec": f'"{spec}"'})
    repo.commit()
    result = run("check")
    assert result.code == 1, result
    assert "npuprof.toml:1" in result.out
    assert run("render", "--all").code == 2


def test_what_the_target_rejects_is_a_finding(repo: Repo, run: Run) -> None:
    repo.write({"a": "[options]\nhccl_timeout = 600\n"})
    write_outputs({"spec": '"a"', "to": '"global-options"', "path": '"a.py"'})
    expect(run("check"), 1, "NP901", "global-options")


@pytest.mark.parametrize("spec", ["profiles/serving.toml", "jobs/mine.toml", "serving@HEAD"])
def test_a_spec_may_be_a_path_or_a_revision(
    spec: str, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write({"serving": SERVING})
    Path("jobs").mkdir()
    Path("jobs/mine.toml").write_text('[profile]\nextends = ["serving"]\n')
    write_outputs({"spec": f'"{spec}"'})
    repo.commit()
    assert run("render", "--all").code == 0
    monkeypatch.chdir("jobs")
    expect(run("render", "--all", "--check"), 0)
    assert "NP713" not in run("check").out


def test_render_all_takes_no_other_parameters(two: Repo, run: Run) -> None:
    for more in (("serving",), ("--to", "json"), ("--product", "atlas-a2"), ("-o", "x")):
        expect(
            run("render", *more, "--all"),
            2,
            "takes presets, targets and contexts from npuprof.toml only",
        )
    expect(run("render"), 2, "there is no SPEC")
    expect(run("render", "serving", "--check"), 2, "there is no FILE")
    two.write({"decode": None})
    Path("npuprof.toml").unlink()
    expect(run("render", "--all"), 2, "declares no output")


@pytest.mark.usefixtures("two")
def test_a_composition_of_an_output_is_listed_and_compared(run: Run) -> None:
    assert "serving+decode" in run("list").out
    rows = json.loads(run("list", "--format", "json").out)["presets"]
    assert [row["name"] for row in rows] == ["decode", "serving", "serving+decode"]
    edit("profiles/decode.toml", "64", "65")
    expect(run("diff", "serving+decode"), 0, "vllm.max-num-seqs 64 → 65")
    expect(run("diff"), 0, "output deploy/decode (serving+decode for atlas-a3)")
    page = run("diff", "--format", "html").out
    assert "<p>outputs: deploy/decode (serving+decode for atlas-a3)</p>" in page
    assert "<p>outputs" not in run("diff", "--format", "html", "--rev", "HEAD..HEAD").out


@pytest.mark.usefixtures("committer")
def test_the_log_of_a_composition_has_the_commits_that_changed_it(two: Repo, run: Run) -> None:
    decode = "[vllm]\nmax-num-seqs = {}\n"
    two.commit({"decode": decode.format(65)}, "sixty-five")
    two.commit({"serving": SERVING.replace("[env]", "max-num-seqs = 1\n[env]")}, "hidden")
    two.commit({"other": "[vllm]\nseed = 1\n"}, "another preset")
    two.commit({"serving": SERVING.replace("1024", "2048")}, "buffers")
    log = json.loads(run("log", "serving+decode", "--format", "json").out)
    subjects = [commit["subject"] for commit in log["commits"]]
    assert subjects == ["buffers", "sixty-five", "change"]
    assert [commit["kind"] for commit in log["commits"]] == ["changed", "changed", "created"]
    keyed = json.loads(run("log", "serving+decode", "vllm.max-num-seqs", "--format", "json").out)
    assert [commit["subject"] for commit in keyed["commits"]] == ["sixty-five", "change"]
    expect(run("log", "serving+none"), 2, "none")


# -- releasing a composition ----------------------------------------------------------------------

DECODE = "[vllm]\nmax-num-seqs = {}\n"


def test_the_changed_presets_of_a_composition_are_released(two: Repo, run: Run) -> None:
    two.commit({"other": "[vllm]\nseed = 1\n"})
    expect(run("release", "serving+decode", "--dry-run"), 0, "serving@1.0.0+decode@1.0.0")
    assert two.git("tag") == ""
    first = run("release", "serving+decode", "--format", "json")
    assert json.loads(first.out)["spec"] == "serving@1.0.0+decode@1.0.0"
    two.commit({"decode": DECODE.format(65), "other": "[vllm]\nseed = 2\n"})
    second = run("release", "serving+decode")
    expect(second, 0, "decode@1.1.0", "1 tag at", "git push")
    assert second.out.splitlines()[-1] == "serving@1.0.0+decode@1.1.0"
    assert two.git("tag").split() == ["decode/v1.0.0", "decode/v1.1.0", "serving/v1.0.0"]
    two.commit({"decode": DECODE.format(66)})
    expect(run("show", "serving@1.0.0+decode@1.1.0"), 0, "max-num-seqs", "65", "team/serving")


def test_a_composition_without_changes_keeps_its_releases(two: Repo, run: Run) -> None:
    assert run("release", "serving+profiles/decode.toml").code == 0
    tags = two.git("for-each-ref", "refs/tags")
    unchanged = run("release", "serving+decode")
    expect(unchanged, 0, "nothing has changed")
    assert unchanged.out == "serving@1.0.0+decode@1.0.0\n"
    # a fixed revision stays, although the preset has changed
    two.commit({"decode": DECODE.format(65)})
    assert run("release", "serving+decode@1").out == "serving@1.0.0+decode@1\n"
    assert two.git("for-each-ref", "refs/tags") == tags


@pytest.mark.parametrize(
    ("spec", "product", "released"),
    [
        ("old+new", "atlas-a2", True),
        ("old+new", "atlas-a3", False),
        ("old@1.0.0+new@1", "atlas-a2", True),
        ("old@1.0.0+new@1", "atlas-a3", False),
        ("new+old", "atlas-a2", False),
    ],
    ids=["fits", "clash", "versions fit", "versions clash", "unnamed"],
)
def test_a_composition_is_judged_in_the_contexts_of_its_outputs(
    spec: str, product: str, released: bool, repo: Repo, run: Run
) -> None:
    Path("npuprof.toml").write_text(
        f'[[output]]\nspec = "{spec}"\nto = "json"\npath = "x.json"\nproduct = "{product}"\n'
    )
    old = '[profile]\nscenario = "training"\n[options]\nprecision_mode = "force_fp16"\n'
    new = COMMON.format('options = { precision_mode_v2 = "fp16" }')
    repo.commit({"old": old, "new": new})
    result = run("release", "old+new")
    if released:
        expect(result, 0, "old@1.0.0+new@1.0.0")
    else:
        expect(result, 2, "NP301", "old+new", "nothing is released")
    assert bool(repo.git("tag")) is released
    # each is valid alone
    repo.git("tag", "-d", *repo.git("tag").split(), check=False)
    assert run("release", "old").code == run("release", "new").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serving+none"], "none"),
        (["serving+"], "one side of a +"),
        (["serving+decode", "2.0.0"], "takes one preset"),
        (["serving+decode", "--yes"], "--yes"),
        (["serving+./outside.toml"], "outside.toml"),
        (["serving+decode"], "decode is not committed"),
    ],
    ids=["unknown", "empty", "number", "yes", "file", "uncommitted"],
)
def test_a_composition_is_not_released(
    arguments: list[str], message: str, two: Repo, run: Run
) -> None:
    assert run("release", "decode").code == 0
    Path("outside.toml").write_text(LONG)
    edit("profiles/decode.toml", "64", "65")
    tags = two.git("tag")
    expect(run("release", *arguments), 2, message)
    assert two.git("tag") == tags


# -- render --check -------------------------------------------------------------------------------

COMMON = '[[override]]\nmatch = {{ product = "atlas-a3" }}\n{}\n'
PRESETS = {
    "vllm": SERVING + COMMON.format("vllm = { seed = 3 }"),
    "torch-npu": "[torch_npu]\njit_compile = true\n"
    + COMMON.format("torch_npu = { jit_compile = false }"),
    "atc": '[profile]\nscenario = "offline-inference"\n[atc]\nframework = 3\n'
    + COMMON.format('options = { precision_mode_v2 = "fp16" }'),
    "ge": '[profile]\nscenario = "offline-inference"\n[options]\nprecision_mode_v2 = "fp16"\n',
}
OTHERS = (
    '[options]\nprecision_mode_v2 = "mixed_float16"\n[options.modify_mixlist]\nblack-list = {}\n'
)
OTHERS = OTHERS.replace("{}", '{ to-add = ["MatMul"] }') + COMMON.format(
    'options = { precision_mode_v2 = "mixed_bfloat16" }'
)
MORE = '\n[[override]]\nmatch = { product = "atlas-a2" }\nenv = { HCCL_BUFFSIZE = 5 }\n'
CONTEXT = ("--product", "atlas-a3", "--cann", "9.0.0", "--framework", "torch_npu=7.3")


def rewrite_digests(text: str, form: int) -> str:
    """Return a rendered text as another digest form, and other overrides, had written it."""
    config = Workspace(
        None, build_context("9.0.0", "atlas-a3", None, {"torch_npu": "7.3"})
    ).resolve_spec("p")
    digest = compute_digest(config.settings, form)
    if text.startswith("{"):
        fields = json.loads(text)
        del fields["text"]
        changed = {"digest": digest, "preset_digest": "0" * 64, "digest_form": form}
        return stamp_json({**fields, **changed})
    text = re.sub(r"# digest: \S+ \(form \d\)", f"# digest: sha256:{digest} (form {form})", text)
    text = re.sub(r"# preset digest: .*", f"# preset digest: sha256:{'0' * 64} (form {form})", text)
    return text.replace("Generated by npuprof ", "Generated by npuprof 0.1")


#: Targets whose files name them, in a header or by their form; config.json has no context.
NAMED = [name for name in load_target_index() if name not in ("args-file", "mindie")]


@pytest.mark.parametrize("target", NAMED)
def test_a_file_is_judged_in_the_context_of_its_header(target: str, store: Store, run: Run) -> None:
    text = PRESETS.get(target, OTHERS)
    store({"p": text})
    code = Path("out") / load_target(target).file
    command = ("render", "p", "--to", target, *CONTEXT, "-o", "out", "--no-check")
    assert run(*command).code == 0
    for path in (code, code.parent):
        assert run("render", "p", "--check", path, "--no-check").code == 0, target
    store({"p": text + MORE})
    expect(run("render", "p", "--check", code, "--no-check"), 0)
    if target != "ge":
        code.write_text(rewrite_digests(code.read_text(), 1))
        expect(run("render", "p", "--check", code, "--no-check"), 0)
    if target not in ("ge", "env-loader"):
        result = run("render", "p", "--check", code, "--product", "atlas-a2", "--no-check")
        expect(result, 1, "out of date")
        changed = {"3 }": "4 }", "= false": "= true", '"fp16"': '"origin"', "mixed_b": "must_keep_"}
        for old, new in changed.items():
            text = text.replace(old, new)
        store({"p": text.replace("must_keep_float16", "origin")})
        expect(run("render", "p", "--check", code, "--no-check"), 1, "out of date")


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "product": st.sampled_from([None, *PRODUCTS]),
        "cann": st.sampled_from(["8.5.0", "9.0.0"]),
        "torch_npu": st.sampled_from(["7.1", "7.3"]),
    },
)


@given(
    context=VALUES,
    target=st.sampled_from([name for name in NAMED if name not in ("atc", "ge")]),
    seqs=st.integers(1, 9),
    other=st.sampled_from(["atlas-300i-duo", "atlas-inference"]),
)
def test_what_was_rendered_is_current_until_its_values_change(
    context: dict[str, str | None],
    target: str,
    seqs: int,
    other: str,
    store: Store,
    run: Run,
    tmp_path: Path,
) -> None:
    text = f"[vllm]\nmax-num-seqs = {seqs}\n[options]\nhcom_parallel = true\n"
    text += "[torch_npu]\njit_compile = true\n" + COMMON.format("vllm = { max-num-seqs = 10 }")
    store({"p": text})
    code = tmp_path / "out" / load_target(target).file
    arguments = [
        argument
        for name, value in context.items()
        if value
        for argument in (
            ("--framework", f"{name}={value}") if name == "torch_npu" else (f"--{name}", value)
        )
    ]
    command = ("render", "p", "--to", target, *arguments, "-o", tmp_path / "out", "--force")
    assert run(*command, "--no-check").code == 0
    assert run("render", "p", "--check", code, "--no-check").code == 0
    store({"p": text + f'\n[[override]]\nmatch = {{ product = "{other}" }}\nvllm.seed = 1\n'})
    assert run("render", "p", "--check", code, "--no-check").code == 0
    if target != "env-loader":  # its text is the same for all presets
        store({"p": text.replace("hcom_parallel = true", "hcom_parallel = false")})
        assert run("render", "p", "--check", code, "--no-check").code == 1


def test_exported_digests_make_no_file_stale(store: Store, run: Run) -> None:
    store({"p": SERVING})
    assert run("render", "p", "--to", "vllm", "-o", "out").code == 0
    for path in (Path("out/env.sh"), Path("out/config.yaml")):
        text = path.read_text()
        assert path.name != "env.sh" or "NPUPROF_PRESET_DIGEST" in text
    store({"p": SERVING + MORE})
    expect(run("render", "p", "--check", "out"), 0)
    edit("out/env.sh", "1024", "2048")
    expect(run("render", "p", "--check", "out"), 1, "out/env.sh")
