"""A bug of npuprof in one file is a finding about that file; the others are read and written."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.model import Finding, NpuprofError
from npuprof.report.isolating import isolate_faults
from support.adopted import CALLS, HELPER, OTHER, PLAIN
from support.importing import write
from support.running import Run

Break = Callable[..., None]
SCRIPTS = {
    "src/bad.py": OTHER,
    "src/first.py": PLAIN,
    "src/last.py": PLAIN.replace("allow_mix_precision", "force_fp32"),
}
MESSAGE = "error NP831: KeyError: 'nested'"
WHY = "This is a bug in npuprof, not in your file. The other files were read."

#: What may fail in a script, by the verb that runs into it.
STEPS = {
    "scan": [
        "scripts.scanning.read_script",
        "scripts.scanning.check_script",
        "scripts.scanning.sift_script_findings",
    ],
    "scan --statistics": ["scripts.summary.setting_counts.build_drafts"],
    "import -o made": [
        "commands.import_.find_idle_configs",
        "commands.import_.build_drafts",
        "commands.import_.judge_draft",
        "commands.import_.format_draft",
    ],
    "adopt": [
        "scripts.blocks.find_blocks",
        "scripts.adopting.build_drafts",
        "scripts.adopting.plan_replacement",
    ],
    "inject --all": ["scripts.blocks.find_blocks"],
}
PRESETS = {
    "bad": '[options]\nprecision_mode = "force_fp16"\n',
    "first": '[options]\nprecision_mode = "allow_mix_precision"\n',
    "last": "[options]\nhccl_timeout = 1900\n",
}


def is_about_bad(value: Any) -> bool:
    """Return whether an argument of a step is ``bad.py`` or the preset ``bad``, or is of it."""
    if isinstance(value, (list, tuple)):
        return any(map(is_about_bad, value))
    names = [value, *(getattr(value, field, "") for field in ("path", "file", "name"))]
    return any(
        str(name) in ("bad", "src/bad.py", "bad.py")
        for name in names
        if isinstance(name, (str, Path))
    )


@pytest.fixture
def break_step(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Return a function that makes a step of npuprof raise for the bad file or preset."""

    def do(step: str, error: BaseException | None = None) -> None:
        path, _, name = f"npuprof.{step}".rpartition(".")
        owner: Any = pkgutil.resolve_name(path)
        working = getattr(owner, name)

        def broken(*values: Any, **named: Any) -> Any:
            if any(map(is_about_bad, (*values, *named.values()))):
                raise error if error is not None else KeyError("nested")
            return working(*values, **named)

        monkeypatch.setattr(owner, name, broken)

    return do


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    write(tmp_path, SCRIPTS)
    (tmp_path / "profiles").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("verb", "step"), [(verb, step) for verb, steps in STEPS.items() for step in steps]
)
def test_a_bug_in_one_script_is_a_finding_and_the_others_are_read(
    verb: str, step: str, scripts: Path, break_step: Break, run: Run
) -> None:
    if verb.startswith("inject"):
        assert run("adopt", "src").code == 0
    bad = (scripts / "src/bad.py").read_bytes()
    break_step(step)
    name, *flags = verb.split()
    done = run(name, "src", *flags)
    text = done.out + done.err
    assert done.code == 2, done
    assert "Traceback" not in text
    assert "NP831" in text
    if verb == "scan":
        assert done.out.count("NP831") == 1
    if "--statistics" not in verb:
        hint = "NPUPROF_DEBUG=1 shows where; please report it with the file that caused it"
        assert f"src/bad.py: {MESSAGE}" in text
        assert WHY in text
        assert hint in text
    assert (scripts / "src/bad.py").read_bytes() == bad
    if verb.startswith("import"):
        assert sorted(path.name for path in (scripts / "made").rglob("*.toml")) == [
            "first.toml",
            "last.toml",
        ]
    if verb == "adopt":
        assert all(
            "# >>> npuprof" in (scripts / f"src/{name}.py").read_text()
            for name in ("first", "last")
        )


def test_what_is_wrong_in_the_other_files_is_reported(
    scripts: Path, break_step: Break, run: Run
) -> None:
    wrong = PLAIN.replace("['use_off_line'].b", "['use_off_line'].i")
    write(scripts, {"src/last.py": wrong, "src/bad.py": wrong})
    break_step("scripts.scanning.check_script")
    assert run("scan", "src", "--ignore", "NP831").code == 2
    done = run("scan", "src")
    assert done.code == 2, done
    findings = re.findall(r"^(src/\w+\.py):.*?(error NP\d+)", done.out, re.MULTILINE)
    assert {*findings} == {("src/bad.py", "error NP831"), ("src/last.py", "error NP802")}


def test_json_and_sarif_contain_the_finding(scripts: Path, break_step: Break, run: Run) -> None:
    break_step("scripts.reading.python_scripts.mark_without_effect")
    scanned = json.loads(run("scan", "src", "--format", "json").out)["findings"]
    (finding,) = [finding for finding in scanned if finding["code"] == "NP831"]
    assert finding["path"] == "src/bad.py"
    assert finding["severity"] == "error"
    assert finding["message"] == "KeyError: 'nested'"
    assert finding["why"] == WHY
    results = json.loads(run("scan", "src", "--format", "sarif").out)["runs"][0]["results"]
    about_bad = [result for result in results if "bad.py" in json.dumps(result)]
    assert [result["ruleId"] for result in about_bad] == ["NP831"]
    made = json.loads(run("import", "src", "--format", "json").out)
    assert [problem["code"] for problem in made["problems"]] == ["NP831"]
    assert [preset["file"] for preset in made["presets"]] == ["src/first.py", "src/last.py"]


def test_no_block_goes_into_a_helper_of_a_script_that_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    helper = HELPER.replace(
        "    return", '    custom_op.parameter_map["use_off_line"].b = True\n    return'
    )
    write(tmp_path, {"src/train.py": CALLS, "src/npu_utils.py": helper})
    (tmp_path / "profiles").mkdir()
    assert "# >>> npuprof" in run("adopt", "src", "--dry-run").out

    def broken(*_: Any) -> Any:
        raise KeyError("nested")

    monkeypatch.setattr("npuprof.scripts.adopting.find_differences", broken)
    done = run("adopt", "src")
    assert done.code == 2, done
    assert f"src/train.py: {MESSAGE}" in done.err
    assert (tmp_path / "src/npu_utils.py").read_text() == helper


def test_the_traceback_is_shown_on_request(
    scripts: Path, break_step: Break, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPROF_DEBUG", "1")
    break_step("scripts.reading.python_scripts.mark_without_effect")
    done = run("scan", "src")
    assert done.code == 2
    assert "Traceback (most recent call last)" in done.err
    assert MESSAGE in done.out + done.err


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(
            RecursionError("deep"),
            "NP801: the file is not read: it is nested too deeply, or too large",
            id="too deep",
        ),
        pytest.param(
            PermissionError(13, "Permission denied"),
            "NP801: the file is not read: permission denied",
            id="no permission",
        ),
        pytest.param(
            AssertionError("\x1b[2J" + "x" * 9000),
            "NP831: AssertionError: \\x1b[2Jxx",
            id="a long message with control characters",
        ),
    ],
)
@pytest.mark.parametrize(
    ("step", "command"),
    [
        ("scripts.scanning.check_script", "scan src"),
        ("commands.import_.build_drafts", "import src -o made"),
        ("scripts.blocks.find_blocks", "adopt src"),
    ],
)
def test_limits_and_system_errors_are_not_called_bugs(
    step: str,
    command: str,
    error: Exception,
    message: str,
    scripts: Path,
    break_step: Break,
    run: Run,
) -> None:
    break_step(step, error)
    done = run(*command.split())
    text = done.out + done.err
    assert done.code == 2, done
    assert f"src/bad.py: error {message}" in text
    assert "\x1b" not in text
    assert len(text) < 5000


def test_what_ends_the_run_still_ends_it(scripts: Path, break_step: Break, run: Run) -> None:
    break_step("scripts.scanning.check_script", KeyboardInterrupt())
    assert run("scan", "src").code == 130


@pytest.mark.parametrize(
    "error",
    [BrokenPipeError(), SystemExit(3), NpuprofError([])],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_ends_the_run_is_not_isolated(error: BaseException) -> None:
    problems: list[Finding] = []
    with pytest.raises(type(error)) as raised, isolate_faults("x.py", problems):
        raise error
    assert raised.value is error
    assert not problems


@pytest.mark.parametrize(
    ("verb", "step"),
    [
        ("check", "checks.store.judge_config"),
        ("check", "store.folder.Folder.profile"),
        ("list", "resolve.Resolver.resolve_profile"),
        ("migrate --all --cann 9.0.0", "edit.migration.migrate_profile"),
        ("site public", "site.building.build_details"),
        ("site public", "checks.store.judge_config"),
    ],
)
def test_a_bug_in_one_preset_does_not_hide_the_others(
    verb: str, step: str, store: Callable[..., Path], break_step: Break, run: Run, tmp_path: Path
) -> None:
    store(PRESETS)
    before = {path.name: path.read_bytes() for path in (tmp_path / "profiles").iterdir()}
    break_step(step)
    done = run(*verb.split())
    text = done.out + done.err
    assert done.code == 2, done
    assert "Traceback" not in text
    assert f"profiles/bad.toml: {MESSAGE}" in text
    if verb == "list":
        assert [line.split()[0] for line in done.out.splitlines()] == ["first", "last"]
    if verb == "site public":
        assert "NP831" in (tmp_path / "public/presets/bad.html").read_text()
        assert "hccl_timeout" in (tmp_path / "public/presets/last.html").read_text()
    assert {path.name: path.read_bytes() for path in (tmp_path / "profiles").iterdir()} == before


def test_a_preset_is_not_migrated_where_another_may_extend_it(
    store: Callable[..., Path], break_step: Break, run: Run
) -> None:
    old = 'profile.cann = "5.1.RC1"\n[options]\nmstune_mode = "1"\n'
    path = store({**PRESETS, "first": old})
    assert run("migrate", "first", "--cann", "9.0.0", "--dry-run").out
    break_step("store.folder.Folder.profile")
    done = run("migrate", "first", "--cann", "9.0.0")
    assert done.code == 2, done
    assert f"profiles/bad.toml: {MESSAGE}" in done.err
    assert (path / "first.toml").read_text() == old
