"""What decides what is executed is exported only once the user has trusted the store with that very value."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import npuprof
from npuprof.catalog.execution import find_execution, is_known_variable
from npuprof.store.trust import find_trust_file
from support.running import Result, Run, Store

CATALOG = Path(npuprof.__file__).parent / "catalog"
DANGEROUS = '[env]\nLD_PRELOAD = "/x.so"\nHCCL_CONNECT_TIMEOUT = 600\n'
EXPORTS = [
    "env a",
    "env a --unset",
    "run a -- true",
    "env a --shell tcsh",
    *(f"env a --format {form}" for form in ("docker", "k8s-env", "json")),
]


def is_refused(done: Result) -> bool:
    """Return whether nothing was exported, for want of trust."""
    return (done.code, done.out, "NP930" in done.err) == (2, "", True)


AFFECTING = [
    "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "PS4", "BASH_FUNC_ls",
    "GIT_SSH_COMMAND", "GCONV_PATH", "NCCL_NET_PLUGIN", "HF_ENDPOINT", "ASCEND_CUSTOM_OPP_PATH", "ASCEND_HOME_PATH",
]  # fmt: skip
TUNING = [
    "HCCL_ALGO", "OMP_NUM_THREADS", "PYTHONUNBUFFERED", "JOB_ID", "TMPDIR", "OMPI_MCA_btl", "TASK_QUEUE_ENABLE", "HTTPS_PROXY", "LC_ALL",
]  # fmt: skip
UNKNOWN_TO_ALL = ["MY_PATH", "PATHS", "LDAP", "RUST_LOG", "HCCL_NO_SUCH_THING", "VIMIN"]


def test_the_catalogue_knows_what_affects_what_is_executed_and_what_only_tunes() -> None:
    assert [name for name in (*AFFECTING, *TUNING, *UNKNOWN_TO_ALL) if find_execution(name)] == AFFECTING
    assert [name for name in (*AFFECTING, *TUNING, *UNKNOWN_TO_ALL) if not is_known_variable(name)] == UNKNOWN_TO_ALL


def test_every_variable_says_whether_it_executes_and_from_where_that_is_known() -> None:
    rows = {name: row for file in (CATALOG / "env").iterdir() for name, row in tomllib.loads(file.read_text()).items()}
    assert len(rows) > 600
    for name, row in rows.items():
        assert row["executes"] is False or len(row["executes"]) > 10, name
        assert row["source"], name
    others = tomllib.loads((CATALOG / "variables.toml").read_text())["variables"]
    names = [name for row in others for name in row["names"]]
    assert len(names) > 700
    assert sorted(names) == sorted(set(names)), "no name is in two rows"
    assert not set(names) & set(rows)
    for row in others:
        assert row["executes"] is False or len(row["executes"]) > 10, row
        assert row["source"], row
    beginnings = [name[:-1] for row in others if row["executes"] for name in row["names"] if name.endswith("*")]
    harmless = [name for row in others if not row["executes"] for name in row["names"]]
    assert [name for name in harmless if name.startswith(tuple(beginnings))] == []


@pytest.mark.parametrize("line", EXPORTS)
def test_an_export_is_refused_until_the_store_is_trusted(store: Store, run: Run, tmp_path: Path, line: str) -> None:
    store({"a": DANGEROUS})

    def start() -> Result:
        if not line.startswith("run "):
            return run(*line.split())
        done = subprocess.run([sys.executable, "-m", "npuprof", *line.split()], capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    refused = start()
    assert (refused.code, refused.out) == (2, "")
    assert "profiles/a.toml:2:1: error NP930: env.LD_PRELOAD" in refused.err
    assert f"npuprof trust {tmp_path}/profiles" in refused.err
    assert line.startswith("run ") or run(*line.split(), "--trust").code == 0, "it can be trusted for once"
    assert not os.path.exists(find_trust_file())
    assert run("trust", "profiles").code == 0
    assert start().code == 0
    (tmp_path / "profiles/a.toml").write_text(DANGEROUS.replace("/x.so", "/y.so"))
    assert is_refused(start())
    assert run("trust", "profiles").code == 0
    (tmp_path / "profiles/a.toml").write_text(DANGEROUS)
    assert is_refused(start()), "the value before is no longer trusted"


def test_what_the_command_line_sets_needs_no_trust_and_what_is_only_compared_neither(store: Store, run: Run) -> None:
    store({"a": DANGEROUS, "b": "[env]\nHCCL_CONNECT_TIMEOUT = 600\n"})
    assert run("env", "b", "--set", "env.LD_PRELOAD=/z.so").code == 0
    assert run("env", "a", "--set", "env.LD_PRELOAD=/z.so").code == 0
    assert run("env", "a", "--diff").code == 0
    for line in ("show a", "check a", "render a", "diff a b", "list", "explain a env.LD_PRELOAD"):
        assert run(*line.split()).code == 0, line


@pytest.mark.parametrize("presets", [
    {"base": DANGEROUS, "a": '[profile]\nextends = ["base"]\n'},
    {"a": '[env]\nJOB_ID = "1"\n[[override]]\nmatch = { target = "env" }\nenv = { LD_PRELOAD = "/x.so" }\n'},
    {"a": "[env]\nLD_PRELOAD = true\n"}, {"a": '[env]\nLD_PRELOAD = { launcher = "rank" }\n'},
])  # fmt: skip
def test_every_way_to_set_it_is_seen_and_every_value_that_is_written_can_be_trusted(
    store: Store, run: Run, presets: dict[str, str]
) -> None:
    store(presets)
    assert is_refused(run("env", "a", "--no-check"))
    assert run("trust").code == 0
    assert run("env", "a", "--no-check").code == 0


def test_what_is_trusted_is_this_store_only(store: Store, run: Run, tmp_path: Path) -> None:
    store({"a": DANGEROUS})
    run("trust", "profiles")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.toml").write_text(DANGEROUS)
    (tmp_path / "alone.toml").write_text(DANGEROUS)
    assert is_refused(run("env", "a", "--store", "other"))
    assert is_refused(run("env", "alone.toml"))
    assert is_refused(run("env", "-", stdin=DANGEROUS.encode()))
    assert is_refused(run("env", "a+alone.toml"))
    assert run("env", "profiles/a.toml").code == 0
    assert run("env", "a").code == 0
    assert run("trust", "--revoke").code == 0
    assert is_refused(run("env", "a"))


def test_a_block_in_a_script_is_an_export_too(store: Store, run: Run, tmp_path: Path) -> None:
    store({"a": DANGEROUS})
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/bash\npython train.py\n")
    assert run("inject", "train.sh", "a").code == 2
    assert script.read_text() == "#!/bin/bash\npython train.py\n"
    assert run("inject", "train.sh", "a", "--trust").code == 0
    assert "LD_PRELOAD" in script.read_text()
    assert run("inject", "train.sh", "a", "--check").code == 0
    assert run("scan", "train.sh").code == 0


def test_trust_shows_each_pair_with_its_places_and_keeps_nothing_where_it_is_only_asked(store: Store, run: Run) -> None:
    store({"a": DANGEROUS, "b": f'{DANGEROUS}PATH = "/bin"\n', "c": '[env]\nJOB_ID = "1"\nMY_SWITCH = "1"\n'})
    shown = run("trust", "--dry-run", "--format", "json")
    assert json.loads(shown.out)["pairs"] == [
        {"variable": name, "value": value, "executes": find_execution(name), "places": places}
        for name, value, places in (
            ("LD_PRELOAD", "/x.so", ["profiles/a.toml:2", "profiles/b.toml:2"]), ("PATH", "/bin", ["profiles/b.toml:4"]),
        )
    ]  # fmt: skip
    assert json.loads(shown.out)["names"] == [{"variable": "MY_SWITCH", "places": ["profiles/c.toml:3"]}]
    assert not os.path.exists(find_trust_file())
    assert '  PATH = "/bin"  (profiles/b.toml:4)' in run("trust").out.splitlines()
    assert run("trust", "builtin:").err == "npuprof: the presets that npuprof ships need no trust\n"


@pytest.mark.parametrize(
    "text", ["", "null", '{"schema": "other/1"}', '{"schema": "npuprof.trust/1", "stores": {"x": [["a"]]}}', "\xff", "[" * 9999]
)
def test_a_damaged_file_trusts_nothing_and_is_named(store: Store, run: Run, text: str) -> None:
    store({"a": DANGEROUS})
    path = Path(find_trust_file())
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="latin-1")
    for line in ("env a", "trust"):
        done = run(*line.split())
        assert (done.code, "NP931" in done.err, str(path) in done.err) == (2, True, True), line
    assert path.read_text(encoding="latin-1") == text


def test_a_store_with_a_preset_that_cannot_be_read_is_not_trusted_in_part(store: Store, run: Run) -> None:
    store({"a": DANGEROUS, "b": "not toml"})
    assert run("trust").code == 2
    assert not os.path.exists(find_trust_file())


@pytest.mark.parametrize(("name", "harmless", "text"), [
    ("OMP_NUM_THREADS", "8", "a[`touch x`]"), ("MASTER_PORT", "6000", "6000 /clone/evil.py"), ("WANDB_MODE", "offline", "$(touch x)"),
])  # fmt: skip
def test_a_harmless_variable_is_rejected_with_a_text_that_scripts_would_run(
    name: str, harmless: str, text: str, store: Store, run: Run
) -> None:
    store({"a": f'[env]\n{name} = "{harmless}"\n', "b": f"[env]\n{name} = '{text}'\n"})
    assert run("env", "a", "--no-check").code == 0
    refused = run("env", "b", "--no-check")
    assert (refused.code, "NP930" in refused.err) == (2, True), refused.err
    assert "NP605" in run("check", "b").out
    assert run("trust", "profiles", f"{name}={text}").code == 0
    assert run("env", "b", "--no-check").code == 0


# -- variables that the catalogue does not know --------------------------------------------------------------------

UNKNOWN = '[env]\nMY_SWITCH = "1"\nLD_PRELOAD = "/x.so"\nHCCL_CONNECT_TIMEOUT = 600\n'


@pytest.mark.parametrize("line", EXPORTS[::3])
def test_an_unknown_variable_is_exported_once_its_name_is_trusted_whatever_its_value(
    store: Store, run: Run, tmp_path: Path, line: str
) -> None:
    store({"a": '[env]\nMY_SWITCH = "1"\n'})
    words = line.split()
    refused = run(*words)
    assert (refused.code, "NP930: env.MY_SWITCH is not trusted: the catalogue does not know it" in refused.err) == (2, True)
    assert run("trust", "profiles").code == 0
    (tmp_path / "profiles/a.toml").write_text('[env]\nMY_SWITCH = "2"\n')
    assert run(*words).code == 0


def test_a_refusal_ends_in_the_one_command_that_allows_exactly_this(store: Store, run: Run) -> None:
    store({"a": UNKNOWN, "b": '[env]\nOTHER_SWITCH = "1"\nBASH_ENV = "it\'s"\n'})
    for name, left in (("a", "b"), ("b", "")):
        refused = run("env", name)
        (typed,) = {line.partition("then npuprof ")[2].rpartition(", or --trust")[0] for line in refused.err.splitlines() if "try:" in line}
        assert run(*shlex.split(typed)).code == 0
        assert run("env", name).code == 0
        assert not left or is_refused(run("env", left))


def test_check_notes_an_unknown_variable_and_a_team_accepts_it_and_what_executes_without_granting_trust(
    store: Store, run: Run, tmp_path: Path
) -> None:
    store({"a": UNKNOWN})
    assert "info NP606: env.MY_SWITCH is not in the catalogue" in run("check", "--severity", "info").out
    assert run("check", "--strict").code == 1
    codes = [f'{{ code = "{code}", reason = "our own tools" }}' for code in ("NP605", "NP606")]
    (tmp_path / "profiles/a.toml").write_text(f"profile.ignore = [{', '.join(codes)}]\n{UNKNOWN}")
    assert run("check", "--strict").code == 0
    assert is_refused(run("env", "a"))


@pytest.mark.parametrize("name", ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "NPUPROF_X"])
def test_no_preset_and_no_command_line_sets_a_variable_of_npuprof_itself(name: str, store: Store, run: Run) -> None:
    store({"a": f'[env]\n{name} = "/x"\n', "b": "[env]\n"})
    assert "error NP607" in run("check", "a").out
    for words in (["env", "a"], ["env", "a", "--no-check", "--trust"], ["env", "b", "--no-check", "--trust", "--set", f"env.{name}=/x"]):
        refused = run(*words)
        assert (refused.code, refused.out, "NP607" in refused.err) == (2, "", True), words
    assert run("trust").code == 0
    assert "NP607" in run("env", "a", "--no-check").err


def test_what_the_user_types_is_trusted_from_then_on_with_its_value_if_it_executes(store: Store, run: Run, tmp_path: Path) -> None:
    store({"a": "[options]\nhccl_timeout = 600\n"})
    assert run("set", "a", "env.MY_SWITCH=1", "env.LD_PRELOAD=/x.so", "--dry-run").code == 0
    assert not os.path.exists(find_trust_file())
    assert run("set", "a", "env.MY_SWITCH=1", "env.LD_PRELOAD=/x.so").code == 0
    assert run("env", "a").code == 0
    assert run("new", "b", "--set", "env.YOUR_SWITCH=1").code == 0
    assert run("env", "b").code == 0
    assert run("set", "--where", "hccl_timeout == 600", "env.THEIR_SWITCH=1", "--yes").code == 0
    assert run("env", "a").code == 0
    preset = tmp_path / "profiles/a.toml"
    preset.write_text(preset.read_text().replace("/x.so", "/y.so"))
    assert "LD_PRELOAD" in run("env", "a").err


def write_script(path: Path, *exports: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/bash\n" + "".join(f"export {text}\n" for text in exports) + "python train.py\n")
    return path.read_text()


def test_an_import_and_an_adoption_trust_nothing_that_executes_and_list_it(store: Store, run: Run, tmp_path: Path) -> None:
    store({"own": "[options]\nhccl_timeout = 600\n"})
    write_script(tmp_path / "run.sh", "HCCL_CONNECT_TIMEOUT=600", "ASCEND_CUSTOM_OPP_PATH=/x")
    done = run("import", "run.sh", "-o", "profiles/made.toml")
    assert "not trusted, as it affects code execution: ASCEND_CUSTOM_OPP_PATH" in done.err
    assert "env.ASCEND_CUSTOM_OPP_PATH = " in run("env", "made").err
    write_script(tmp_path / "src/go.sh", "HCCL_CONNECT_TIMEOUT=700")
    assert run("adopt", "src").code == 0
    assert "# >>> npuprof" in (tmp_path / "src/go.sh").read_text()
    text = write_script(tmp_path / "bad/bad.sh", "ASCEND_CUSTOM_OPP_PATH=/y", "HCCL_CONNECT_TIMEOUT=900")
    done = run("adopt", "bad")
    assert "bad.sh keeps its lines: env.ASCEND_CUSTOM_OPP_PATH" in done.err.replace("\n  ", " "), done.err
    assert (tmp_path / "bad/bad.sh").read_text() == text
    assert not os.path.exists(find_trust_file())


def test_in_ci_a_reviewed_file_says_what_is_trusted(store: Store, run: Run, tmp_path: Path) -> None:
    store({"a": UNKNOWN})
    assert run("trust", "profiles", "--dry-run", "--format", "json", "-o", "trusted.json").code == 0
    store({"b": '[env]\nLATER_SWITCH = "1"\n'})
    done = run("trust", "profiles", "--from", "trusted.json")
    assert (done.code, "does not list LATER_SWITCH, which stay untrusted" in done.err) == (0, True), done.err
    assert run("env", "a").code == 0
    assert is_refused(run("env", "b"))
    (tmp_path / "profiles/a.toml").write_text(UNKNOWN.replace("/x.so", "/y.so"))
    assert run("trust", "profiles", "--from", "trusted.json").code == 0
    assert is_refused(run("env", "a"))
    (tmp_path / "other.json").write_text("[]")
    for words in ("--from other.json", "--from gone.json", "--from trusted.json MY_SWITCH", "NO_SUCH", "MY_SWITCH --revoke"):
        refused = run("trust", "profiles", *words.split())
        assert (refused.code, refused.out, "error NP" in refused.err) == (2, "", True), words


# -- where the state is ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["builtin:", "source:https://example.org/presets.git profiles"])
def test_a_store_is_identified_by_its_place_and_by_nothing_that_it_is_called(name: str, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    (folder / "a.toml").write_text(DANGEROUS)
    state = {"schema": "npuprof.trust/1", "stores": {name: [["LD_PRELOAD", "/x.so"]]}}
    Path(find_trust_file()).parent.mkdir(parents=True)
    Path(find_trust_file()).write_text(json.dumps(state))
    for store in (f"./{name}", str(folder)):
        assert is_refused(run("env", "a", "--store", f"{store}/")), store
    assert is_refused(run("env", f"./{name}/a.toml"))
    assert run("trust", f"./{name}/").code == 0
    assert run("env", "a", "--store", f"{folder}/").code == 0


def test_without_a_home_nothing_of_a_clone_is_taken_for_one(
    store: Store, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"a": DANGEROUS})
    state = {"schema": "npuprof.trust/1", "stores": {str(tmp_path / "profiles"): [["LD_PRELOAD", "/x.so"]]}}
    for folder in ("~/.local/state/npuprof", ".local/state/npuprof", "state/npuprof"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "trust.json").write_text(json.dumps(state))

    def find_nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", find_nobody)
    for home, state_home in ((None, None), ("~", "state"), ("relative", "./state")):
        for name, value in (("HOME", home), ("XDG_STATE_HOME", state_home), ("XDG_CONFIG_HOME", None), ("XDG_CACHE_HOME", None)):
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        assert is_refused(run("env", "a")), (home, state_home)
        assert run("env", "a", "--trust").code == 0
        assert run("trust").code == 2
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("env", "a").code == 0, "an absolute HOME is one, and what was trusted there by an older npuprof stays"
