"""Variables that affect execution are exported only after the user has trusted their value."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import npuprof
from npuprof import catalog
from npuprof.catalog import load_built_part
from npuprof.catalog.execution import find_execution, find_value_execution, is_known_variable
from npuprof.renderers import trusting
from npuprof.renderers.trusting import find_need
from npuprof.store.trust_state import Trusted, find_trust_file, store_trusted
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
    return (done.code, done.out, "error NP930: " in done.err) == (2, "", True)


AFFECTING = [
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "PS4",
    "BASH_FUNC_ls",
    "GIT_SSH_COMMAND",
    "GCONV_PATH",
    "NCCL_NET_PLUGIN",
    "HF_ENDPOINT",
    "ASCEND_CUSTOM_OPP_PATH",
    "ASCEND_HOME_PATH",
]
TUNING = [
    "HCCL_ALGO",
    "OMP_NUM_THREADS",
    "PYTHONUNBUFFERED",
    "JOB_ID",
    "TMPDIR",
    "OMPI_MCA_btl",
    "TASK_QUEUE_ENABLE",
    "HTTPS_PROXY",
    "LC_ALL",
]
UNKNOWN_TO_ALL = [
    "MY_PATH",
    "PATHS",
    "LDAP",
    "RUST_LOG",
    "HCCL_NO_SUCH_THING",
    "VIMIN",
    "LC_X",
    "LC_",
]


def test_the_catalogue_knows_what_affects_what_is_executed_and_what_only_tunes() -> None:
    assert [
        name for name in (*AFFECTING, *TUNING, *UNKNOWN_TO_ALL) if find_execution(name)
    ] == AFFECTING
    assert [
        name for name in (*AFFECTING, *TUNING, *UNKNOWN_TO_ALL) if not is_known_variable(name)
    ] == UNKNOWN_TO_ALL


def test_every_variable_says_whether_it_executes_and_from_where_that_is_known() -> None:
    rows = {}
    for file in CATALOG.glob("frameworks/*/variables.toml"):
        framework = tomllib.loads(file.with_name("framework.toml").read_text())
        common = framework.get("generated", {}).get("env", {})
        grouped = {}
        if (groups := file.with_name("groups.toml")).is_file():
            for group in tomllib.loads(groups.read_text())["env"]:
                grouped |= dict.fromkeys(group["names"], group)
        found = {**grouped, **tomllib.loads(file.read_text())}
        rows |= {name: common | grouped.get(name, {}) | row for name, row in found.items()}
    assert len(rows) > 600
    for name, row in rows.items():
        assert row["executes"] is False or len(row["executes"]) > 10, name
        assert row["source"], name
    others = tomllib.loads((CATALOG / "variables.toml").read_text())["variables"]
    for row in (*rows.values(), *others):
        assert ("kept_by" in row) <= ("protects" in row), row
        assert len(row.get("protects", "........")) > 7, row
        assert all(text == text.lower() for text in row.get("kept_by", ())), row
    names = [name for row in others for name in row["names"]]
    assert len(names) > 700
    assert sorted(names) == sorted(set(names)), "no name is in two rows"
    assert not set(names) & set(rows)
    assert others
    for row in others:
        assert row["executes"] is False or len(row["executes"]) > 10, row
        assert row["source"], row
    beginnings = [
        name[:-1]
        for row in others
        if row["executes"]
        for name in row["names"]
        if name.endswith("*")
    ]
    harmless = [name for row in others if not row["executes"] for name in row["names"]]
    assert [name for name in harmless if name.startswith(tuple(beginnings))] == []
    assert [name for name in harmless if name.endswith("*")] == [], (
        "a prefix makes no unknown name known"
    )


@pytest.mark.parametrize("line", EXPORTS)
def test_an_export_is_refused_until_the_store_is_trusted(
    store: Store, run: Run, tmp_path: Path, line: str
) -> None:
    store({"a": DANGEROUS})

    def start() -> Result:
        if not line.startswith("run "):
            return run(*line.split())
        done = subprocess.run(
            [sys.executable, "-m", "npuprof", *line.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    refused = start()
    assert refused.code == 2
    assert refused.out == ""
    assert "profiles/a.toml:2:1: error NP930: env.LD_PRELOAD" in refused.err
    assert f"npuprof trust {tmp_path}/profiles" in refused.err
    assert line.startswith("run ") or run(*line.split(), "--trust").code == 0, (
        "it can be trusted for once"
    )
    assert not os.path.exists(find_trust_file())
    assert run("trust", "profiles").code == 0
    assert start().code == 0
    (tmp_path / "profiles/a.toml").write_text(DANGEROUS.replace("/x.so", "/y.so"))
    assert is_refused(start())
    assert run("trust", "profiles").code == 0
    (tmp_path / "profiles/a.toml").write_text(DANGEROUS)
    assert is_refused(start()), "the value before is no longer trusted"


@pytest.mark.parametrize(
    "line", ["show a", "check a", "render a", "diff a b", "list", "explain a env.LD_PRELOAD"]
)
def test_what_the_command_line_sets_needs_no_trust_and_what_is_only_compared_neither(
    line: str, store: Store, run: Run
) -> None:
    store({"a": DANGEROUS, "b": "[env]\nHCCL_CONNECT_TIMEOUT = 600\n"})
    assert run("env", "b", "--set", "env.LD_PRELOAD=/z.so").code == 0
    assert run("env", "a", "--set", "env.LD_PRELOAD=/z.so").code == 0
    assert run("env", "a", "--diff").code == 0
    assert run(*line.split()).code == 0, line


@pytest.mark.parametrize(
    "presets",
    [
        {"base": DANGEROUS, "a": '[profile]\nextends = ["base"]\n'},
        {
            "a": (
                '[env]\nJOB_ID = "1"\n[[override]]\nmatch = { target = "env" }\n'
                'env = { LD_PRELOAD = "/x.so" }\n'
            )
        },
        {"a": "[env]\nLD_PRELOAD = true\n"},
        {"a": '[env]\nLD_PRELOAD = { launcher = "rank" }\n'},
        {"a": '[env]\nPYTHONSAFEPATH = { launcher = "rank" }\n'},
    ],
)
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


def test_trust_shows_each_pair_with_its_places_and_keeps_nothing_where_it_is_only_asked(
    store: Store, run: Run
) -> None:
    store(
        {
            "a": DANGEROUS,
            "b": f'{DANGEROUS}PATH = "/bin"\n',
            "c": '[env]\nJOB_ID = "1"\nMY_SWITCH = "1"\n',
        }
    )
    shown = run("trust", "--dry-run", "--format", "json")
    assert json.loads(shown.out)["pairs"] == [
        {"variable": name, "value": value, "executes": find_execution(name), "places": places}
        for name, value, places in (
            ("LD_PRELOAD", "/x.so", ["profiles/a.toml:2", "profiles/b.toml:2"]),
            ("PATH", "/bin", ["profiles/b.toml:4"]),
        )
    ]
    assert json.loads(shown.out)["names"] == [
        {"variable": "MY_SWITCH", "places": ["profiles/c.toml:3"]}
    ]
    assert not os.path.exists(find_trust_file())
    assert '  PATH = "/bin"  (profiles/b.toml:4)' in run("trust").out.splitlines()
    assert run("trust", "builtin:").err == "npuprof: the presets that npuprof ships need no trust\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        '{"schema": "other/1"}',
        '{"schema": "npuprof.trust/1", "stores": {"x": [["a"]]}}',
        "\xff",
        "[" * 9999,
    ],
)
@pytest.mark.parametrize("arguments", [["env", "a"], ["trust"]])
def test_a_damaged_file_trusts_nothing_and_is_named(
    arguments: list[str], store: Store, run: Run, text: str
) -> None:
    store({"a": DANGEROUS})
    path = Path(find_trust_file())
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="latin-1")
    done = run(*arguments)
    assert done.code == 2
    assert "NP931" in done.err
    assert str(path) in done.err
    assert path.read_text(encoding="latin-1") == text


def test_a_store_with_a_preset_that_cannot_be_read_is_not_trusted_in_part(
    store: Store, run: Run
) -> None:
    store({"a": DANGEROUS, "b": "not toml"})
    assert run("trust").code == 2
    assert not os.path.exists(find_trust_file())


# -- values that a shell does not take as one word ------------------------------------------------

#: What scripts of public repositories do with a variable: `torchrun --master_addr $MASTER_ADDR`
#: (unquoted), `$((OMP_NUM_THREADS / 2))`.
ACTIVE_TEXTS = [
    "x[$(touch x)]",
    "x[`touch x`]",
    "x[${LC_X@P}]",
    "x[${ touch x; }]",
    "${(e)X}",
    "127.0.0.1 --no-python /x/evil.sh",
    "a\tb",
    "a\nb",
    "--no-python",
    "-x",
    "a;b",
    "a|b",
    "a&b",
    "a<b",
    "a>b",
    "a(b)",
    "{a,b}",
    "a*",
    "a?",
    "a~b",
    "a#b",
    'a"b',
    "a'b",
    "a\\b",
    "a\x7fb",
    "a\u00a0b",
    "~/a b",
    "~x",
]
PLAIN_TEXTS = [
    "",
    "1",
    "a,b:c=d%e/f-g",
    "^lo,docker0",
    "http://host:8080/x@y",
    "~/models/x",
    "+all",
    "名字",
]
NAMES = [
    "MASTER_ADDR",
    "WANDB_NAME",
    "MS_ROLE_NAME",
    "ASCEND_PROCESS_LOG_PATH",
    "MY_SWITCH",
    "LC_X",
    "HCCL_SOCKET_IFNAME",
    "RAY_LOG_TO_STDERR",
]


def test_a_value_on_which_a_shell_acts_needs_trust_and_a_plain_one_does_not() -> None:
    free = [
        (name, text)
        for name in NAMES
        for text in ACTIVE_TEXTS
        if not find_value_execution(name, text)
    ]
    assert free == []
    assert [
        (name, text) for name in NAMES for text in PLAIN_TEXTS if find_value_execution(name, text)
    ] == []


#: Documented values with such characters, and texts that only look like them.
FORMS = [
    ("HCCL_ALGO", "level0:NA;level1:ring", "level0:NA;level1:ring -x"),
    ("MINDIE_LOG_ROTATE", "-fs 20 -r 10", "-fs 20 -c x"),
    ("OMP_PLACES", "{0:4}:8:4", "{0:4}:x[$(touch x)]"),
    ("OMP_PLACES", "threads(8)", "threads(x)"),
    ("GOMP_CPU_AFFINITY", "0 3 1-2 4-15:2", "0 -x"),
    ("TORCH_CUDA_ARCH_LIST", "6.0 6.1 7.0+PTX", "6.0 --x"),
    ("VLLM_CPU_OMP_THREADS_BIND", "0-31|32-63", "0-31|sh"),
    ("CUDA_VISIBLE_DEVICES", "-1", "-x"),
    ("CPU_AFFINITY_CONF", "1,npu0:0-1,force:1", "npu[$(touch x)]:0"),
    ("CPU_AFFINITY_CONF", "force:1, npu_affine:1", "force:1,npu -x /x.sh:1"),
    ("CPU_AFFINITY_CONF", "1", "1\n"),
    ("MKL_NUM_THREADS", "8", "NPUPROF_SOC_CONFIG"),
    ("JOB_ID", "10087", "NPUPROF_SOC_CONFIG"),
    ("NPROC_PER_NODE", "auto", "auto x.py"),
    ("SLURM_NTASKS_PER_NODE", "8(x2)", "8(x2) -x"),
    ("OMP_STACKSIZE", "2000500 B", "1 -x"),
    (
        "KMP_AFFINITY",
        "granularity=fine,proclist=[0,1,2,3],explicit",
        "proclist=[x[$(id)]],explicit",
    ),
    ("TZ", "<+08>-8", "<+08>$(id)"),
    ("MASTER_ADDR", "[::1]", "[$(id)]"),
    ("MS_ENABLE_TFT", "{TTP:1,UCE:1}", "{TTP:1,UCE:$(id)}"),
    ("VLOG_v", "(1,20)", "(id)"),
    (
        "PYTORCH_CUDA_ALLOC_CONF",
        "roundup_power2_divisions:[256:1,512:2]",
        "roundup_power2_divisions:[x[`id`]]",
    ),
    ("DUMP_GRAPH_LEVEL", "PreRunBegin|AfterInfershape", "PreRunBegin|a b"),
    ("DUMP_GRAPH_FORMAT", "ge_proto|onnx", "ge_proto|sh"),
    ("TORCH_NPU_LOGS", "-all", "-c"),
    (
        "PYTORCH_NPU_ALLOC_CONF",
        "roundup_power2_divisions:[256:1,512:2]",
        "roundup_power2_divisions:[256:x[`id`]]",
    ),
    (
        "MS_DEV_GRAPH_KERNEL_FLAGS",
        "--opt_level=1 --enable_expand_ops=A,B",
        "--opt_level=1 --no-python /x/evil.sh",
    ),
    (
        "AUTOFUSE_FLAGS",
        "--enable_autofuse=true;--autofuse_enable_pass=a",
        "--enable_autofuse=true;touch x",
    ),
    (
        "PROFILING_OPTIONS",
        '{"output": "/tmp/p", "training_trace": "on"}',
        '{"output": "/tmp/p --x y", "training_trace": "on"}',
    ),
    (
        "PROFILING_OPTIONS",
        '{"output":"/p","training_trace":"on"}',
        '{"output":"a --x b","output":"/p","training_trace":"on"}',
    ),
    (
        "TF_CONFIG",
        '{"cluster": {"worker": ["host:1"]}}',
        '{"cluster": {"worker": ["x[$(touch x)]"]}}',
    ),
    ("TF_CPP_MIN_LOG_LEVEL", "-1", "-c"),
]


@pytest.mark.parametrize(("name", "documented", "other"), FORMS)
def test_a_documented_form_is_free_and_leaves_no_room_for_other_text(
    name: str, documented: str, other: str
) -> None:
    assert find_value_execution(name, documented) == ""
    assert find_value_execution(name, other)


def test_no_form_of_the_catalogue_accepts_an_active_text() -> None:
    names = [*catalog.record_names("env"), *load_built_part("variables")["forms"]]
    assert len(names) > 600
    records = {name: catalog.find_variable(name) for name in names}
    assert {record.structure for record in records.values() if record} == {
        "",
        "json",
        "profiling",
    }, "JSON, by its strings"
    free = [
        (name, text)
        for name in names
        for text in ACTIVE_TEXTS
        if not find_value_execution(name, text)
    ]
    assert free == [("DUMP_GRAPH_LEVEL", "a|b")], "names of stages"


def test_no_shipped_preset_needs_trust(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    store = npuprof.open_store("builtin:")
    values = [
        (name, value) for preset in store for name, value in store.resolve(preset).env.items()
    ]
    assert len(values) > 60
    assert [(name, value) for name, value in values if find_need(name, value, None)] == []
    monkeypatch.setattr(trusting, "is_unknown_variable", lambda name: True)
    preset = next(preset for preset in store if store.resolve(preset).env)
    assert run("env", f"builtin:{preset}", "--no-check").code == 0, "whatever it sets"


@pytest.mark.parametrize(
    ("name", "harmless", "text"),
    [
        ("OMP_NUM_THREADS", "8", "a[`touch x`]"),
        ("MASTER_PORT", "6000", "6000 /clone/evil.py"),
        ("WANDB_RUN_GROUP", "a", "$(touch x)"),
        ("MASTER_ADDR", "127.0.0.1", "127.0.0.1 --no-python /x/evil.sh"),
        ("MY_SWITCH", "1", "1 2"),
    ],
)
def test_a_value_on_which_a_shell_acts_is_rejected_until_it_is_trusted(
    name: str, harmless: str, text: str, store: Store, run: Run
) -> None:
    store(
        {
            "a": f'[env]\n{name} = "{harmless}"\n',
            "b": f"[env]\n{name} = '{text}'\n",
            "c": f"[env]\n{name} = '{text} '\n",
        }
    )
    assert run("trust", "profiles", name).code == 0, "an unknown name is trusted by its name"
    assert run("env", "a", "--no-check").code == 0
    assert run("trust", "profiles", "--revoke").code == 0
    if name == "MY_SWITCH":
        store_trusted(os.path.realpath("profiles"), Trusted(frozenset([name])), adding=False)
    refused = run("env", "b", "--no-check")
    assert refused.code == 2, refused.err
    assert "NP930" in refused.err, refused.err
    assert "info NP608" in run("check", "b", "--severity", "info").out
    assert run("trust", "profiles", f"{name}={text}").code == 0
    assert run("env", "b", "--no-check").code == 0
    assert run("env", "c", "--no-check").code == 2, "trusted with exactly this value"


def test_trusted_variables_are_listed_in_the_order_of_their_reasons_names_and_values(
    store: Store, run: Run
) -> None:
    store(
        {
            "a": '[env]\nZED = "1"\nABLE = "2"\nLD_PRELOAD = "b.so"\nPYTHONPATH = "x y"\n',
            "b": '[env]\nMID = "1"\nABLE = "3"\nLD_PRELOAD = "a.so"\nZED = "1"\n',
        }
    )
    assert run("trust").out == (
        "trusted by name: not in the catalogue\n"
        "  ABLE  (profiles/a.toml:3, profiles/b.toml:3)\n"
        "  MID  (profiles/b.toml:2)\n"
        "  ZED  (profiles/a.toml:2, profiles/b.toml:5)\n"
        "trusted with this value: Python takes code from it\n"
        '  PYTHONPATH = "x y"  (profiles/a.toml:5)\n'
        "trusted with this value: the dynamic linker or the C library loads or obeys it in every "
        "program\n"
        '  LD_PRELOAD = "a.so"  (profiles/b.toml:4)\n'
        '  LD_PRELOAD = "b.so"  (profiles/a.toml:4)\n'
    )
    answer = json.loads(run("trust", "--dry-run", "--format", "json").out)
    pairs = [("LD_PRELOAD", "a.so"), ("LD_PRELOAD", "b.so"), ("PYTHONPATH", "x y")]
    assert [row["variable"] for row in answer["names"]] == ["ABLE", "MID", "ZED"]
    assert [(row["variable"], row["value"]) for row in answer["pairs"]] == pairs
    (kept,) = json.loads(Path(find_trust_file()).read_text())["stores"].values()
    assert kept == {"names": ["ABLE", "MID", "ZED"], "pairs": [list(pair) for pair in pairs]}
    (Path("list.json")).write_text(json.dumps({**answer, "names": [], "pairs": []}))
    assert "does not list ABLE, LD_PRELOAD, MID, PYTHONPATH, ZED," in (
        run("trust", "--from", "list.json").err
    )


def test_a_fact_of_a_launcher_is_no_text_on_which_a_shell_acts(store: Store, run: Run) -> None:
    store(
        {
            "a": (
                '[env]\nOMP_NUM_THREADS = { launcher = "rank" }\n'
                'MASTER_PORT = { launcher = "rank" }\n'
            ),
            "weaker": '[env]\nHF_HUB_OFFLINE = { launcher = "rank" }\n',
        }
    )
    done = run("check", "a", "--severity", "info")
    assert done.code == 0
    assert "NP608" not in done.out
    exported = run("env", "a", "--no-check")
    assert exported.code == 0, exported.err
    assert "NP930" not in exported.err
    assert is_refused(run("env", "weaker", "--no-check")), "it may weaken a protection"


def test_a_table_of_pairs_is_judged_by_the_text_that_it_becomes(store: Store, run: Run) -> None:
    store(
        {
            "a": "[env.PYTORCH_NPU_ALLOC_CONF]\nmax_split_size_mb = 256\n",
            "b": '[env.MS_ALLOC_CONF]\nmemory_tracker_path = "/x --y"\n',
        }
    )
    assert run("env", "a").code == 0
    assert is_refused(run("env", "b"))
    assert run("trust", "profiles").code == 0
    assert run("env", "b").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "a", "--set", "env.PYTORCH_NPU_ALLOC_CONF.expandable_segments=True", "--", "true"),
        ("env", "a+./b.toml"),
        ("env", "a", "--with", "./b.toml"),
    ],
)
def test_a_table_needs_the_trust_of_each_author_of_a_part(
    arguments: tuple[str, ...], store: Store, run: Run, tmp_path: Path
) -> None:
    store({"a": '[env.PYTORCH_NPU_ALLOC_CONF]\nroundup_power2_divisions = "[x$(id)]"\n'})
    (tmp_path / "b.toml").write_text("[env.PYTORCH_NPU_ALLOC_CONF]\nexpandable_segments = true\n")
    assert is_refused(run(*arguments))


@pytest.mark.parametrize(
    "option",
    [
        'profiling_mode = true\nprofiling_options = { output = "/tmp/a b", training_trace = "on" }',
        (
            'profiling_mode = true\nprofiling_options = { output = "/tmp/a", training_trace = '
            '"on", fp_point = "$(id)" }'
        ),
    ],
)
def test_an_option_on_whose_variable_a_shell_acts_is_rejected_until_it_is_trusted(
    option: str, store: Store, run: Run
) -> None:
    store({"a": f"[options]\n{option}\nhccl_timeout = 100\n"})
    assert is_refused(run("env", "a", "--no-check"))
    assert is_refused(
        run("sweep", "a", "--no-check", "--vary", "hccl_timeout=100,200", "--", "true")
    )
    assert run("env", "a", "--no-check", "--trust").code == 0


# -- variables that protect the user --------------------------------------------------------------

PROTECTING = [
    ("PYTHONSAFEPATH", "1"),
    ("PYTHONNOUSERSITE", "1"),
    ("HF_HUB_OFFLINE", "1"),
    ("TRANSFORMERS_OFFLINE", "ON"),
    ("RAY_AUTH_MODE", "token"),
]
REDIRECTING = [
    "https_proxy",
    "HTTPS_PROXY",
    "GRPC_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
]


@pytest.mark.parametrize(("name", "stored"), [*PROTECTING, *((name, "") for name in REDIRECTING)])
def test_a_protection_is_weakened_only_if_that_is_trusted(
    name: str, stored: str, store: Store, run: Run
) -> None:
    weaker = ["", "0", "false"] if stored else ["", "/x", "host:1"]
    presets = {f"p{number}": f'[env]\n{name} = "{text}"\n' for number, text in enumerate(weaker)}
    store(
        {
            **presets,
            "none": f'[profile]\nunset = ["env.{name}"]\n',
            "child": '[profile]\nextends = ["none"]\n',
        }
    )
    for preset in (*presets, "none", "child"):
        assert "warning NP605" in run("check", preset).out, preset
        assert is_refused(run("env", preset)), preset
        assert is_refused(run("run", preset, "--", "true")), preset
        assert run("env", preset, "--trust").code == 0, preset
    assert run("trust", "profiles", f"{name}=").code == 0
    assert f"unset {name}\n" in run("env", "child").out, (
        "trusted with an empty value, it may be unset too"
    )
    assert is_refused(run("env", "p1"))
    if stored:
        store({"stored": f'[env]\n{name} = "{stored}"\n'})
        assert run("env", "stored").code == 0
        assert "NP60" not in run("check", "stored", "--severity", "info").out


#: Switches that are safe only with some values, each with a safe and another value.
SWITCHES = [
    ("VLLM_SERVER_DEV_MODE", "0", "1"),
    ("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "false", "True"),
    ("RAY_AUTH_MODE", "token", "disabled"),
    ("PYTHONWARNINGS", "ignore", "ignore::evil.Warning"),
    ("RAY_USE_TLS", "1", "0"),
    ("MINDIE_CHECK_INPUTFILES_PERMISSION", "1", "0"),
    ("WANDB_MODE", "offline", "online"),
    ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1", "0"),
    ("NODE_TLS_REJECT_UNAUTHORIZED", "1", "0"),
    ("OTEL_EXPORTER_OTLP_INSECURE", "false", "true"),
]
#: Variables that open a port, load code, or select the origin of models: any value needs trust.
OPENING = [
    "LMCACHE_RUN_SCRIPT_API_ENABLED",
    "VLLM_LOGGING_CONFIG_PATH",
    "RAY_START_HOOK",
    "MODELSCOPE_ENDPOINT",
    "GRADIO_SHARE",
    "MS_CACHE_HOST",
    "TRITON_CACHE_MANAGER",
    "PYTHON_EXEC",
    "HF_ENDPOINT",
    "VLLM_ALLOW_INSECURE_SERIALIZATION",
    "VLLM_API_KEY",
    "AWS_ENDPOINT_URL_S3",
]


def test_switches_of_the_security_pages_need_trust_unless_they_have_a_safe_value() -> None:
    assert [
        row
        for row in SWITCHES
        if find_value_execution(row[0], row[1]) or not find_value_execution(row[0], row[2])
    ] == []
    assert [name for name in OPENING if not find_value_execution(name, "1")] == []
    assert find_value_execution("VLLM_USE_MODELSCOPE", "True") == "", "it selects a fixed host"


def test_a_protection_that_is_unset_and_set_again_is_kept(store: Store, run: Run) -> None:
    store(
        {
            "base": '[profile]\nunset = ["env.HF_HUB_OFFLINE"]\n',
            "a": '[profile]\nextends = ["base"]\n[env]\nHF_HUB_OFFLINE = "1"\n',
            "b": (
                '[[override]]\nmatch = { product = "atlas-a3" }\nunset = ["env.PYTHONSAFEPATH"]\n'
                "[options]\ndeterministic = 1\n"
            ),
        }
    )
    assert run("env", "a").code == 0
    assert run("env", "b").code == 0
    assert is_refused(run("env", "b", "--product", "atlas-a3"))
    assert "NP605" in run("check", "b").out


def test_an_unset_of_a_host_variable_has_a_note_of_its_own(store: Store, run: Run) -> None:
    names = ["OMP_NUM_THREADS", "ASCEND_GLOBAL_LOG_LEVEL", "MY_TOOL"]
    store(
        {
            "a": f"[profile]\nunset = {[f'env.{name}' for name in names]}\n",
            "b": '[profile]\nunset = ["env.HCCL_ALGOO"]\n',
            "c": '[profile]\nunset = ["dump_path"]\n',
        }
    )
    shown = run("check", "a", "--severity", "info").out
    assert [
        f"info NP609: unset env.{name} removes a variable of the host" in shown for name in names
    ] == [True] * 3
    assert "NP702" not in shown
    assert all("NP702" in run("check", name).out for name in ("b", "c"))


# -- variables that the catalogue does not know ---------------------------------------------------

UNKNOWN = '[env]\nMY_SWITCH = "1"\nLD_PRELOAD = "/x.so"\nHCCL_CONNECT_TIMEOUT = 600\n'


@pytest.mark.parametrize("line", EXPORTS[::3])
def test_an_unknown_variable_is_exported_once_its_name_is_trusted_whatever_its_value(
    store: Store, run: Run, tmp_path: Path, line: str
) -> None:
    store({"a": '[env]\nMY_SWITCH = "1"\n'})
    arguments = line.split()
    refused = run(*arguments)
    assert refused.code == 2
    assert "NP930: env.MY_SWITCH is not trusted: the catalogue does not know it" in refused.err
    assert run("trust", "profiles").code == 0
    (tmp_path / "profiles/a.toml").write_text('[env]\nMY_SWITCH = "2"\n')
    assert run(*arguments).code == 0


@pytest.mark.parametrize(("name", "left"), [("a", "b"), ("b", "")])
def test_a_refusal_ends_in_the_one_command_that_allows_exactly_this(
    name: str, left: str, store: Store, run: Run
) -> None:
    store({"a": UNKNOWN, "b": '[env]\nOTHER_SWITCH = "1"\nBASH_ENV = "it\'s"\n'})
    refused = run("env", name)
    (typed,) = {
        line.partition("then npuprof ")[2].rpartition(", or --trust")[0]
        for line in refused.err.splitlines()
        if "try:" in line
    }
    assert run(*shlex.split(typed)).code == 0
    assert run("env", name).code == 0
    assert not left or is_refused(run("env", left))


def test_check_notes_an_unknown_variable_and_a_team_accepts_it_without_granting_trust(
    store: Store, run: Run, tmp_path: Path
) -> None:
    store({"a": UNKNOWN})
    assert (
        "info NP606: env.MY_SWITCH is not in the catalogue"
        in run("check", "--severity", "info").out
    )
    assert run("check", "--strict").code == 1
    codes = [f'{{ code = "{code}", reason = "our own tools" }}' for code in ("NP605", "NP606")]
    (tmp_path / "profiles/a.toml").write_text(f"profile.ignore = [{', '.join(codes)}]\n{UNKNOWN}")
    assert run("check", "--strict").code == 0
    assert is_refused(run("env", "a"))


@pytest.mark.parametrize(
    "name", ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "NPUPROF_X"]
)
def test_no_preset_and_no_command_line_sets_a_variable_of_npuprof_itself(
    name: str, store: Store, run: Run
) -> None:
    store({"a": f'[env]\n{name} = "/x"\n', "b": "[env]\n"})
    assert "error NP607" in run("check", "a").out
    for arguments in (
        ["env", "a"],
        ["env", "a", "--no-check", "--trust"],
        ["env", "b", "--no-check", "--trust", "--set", f"env.{name}=/x"],
    ):
        refused = run(*arguments)
        assert refused.code == 2, arguments
        assert refused.out == "", arguments
        assert "NP607" in refused.err, arguments
    assert run("trust").code == 0
    assert "NP607" in run("env", "a", "--no-check").err


def test_what_the_user_types_is_trusted_from_then_on_with_its_value_if_it_executes(
    store: Store, run: Run, tmp_path: Path
) -> None:
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
    assert run("set", "a", "env.LD_PRELOAD=/z.so").code == 0
    assert run("env", "a").code == 0


MINDIE = """\
[mindie.ServerConfig]
port = 1025
httpsEnabled = false
tlsCrlFiles = ["old.pem"]
[[mindie.BackendConfig.ModelDeployConfig.ModelConfig]]
trustRemoteCode = true
"""
MINDIE_KEYS = (
    "mindie.ServerConfig.httpsEnabled",
    "mindie.ServerConfig.tlsCrlFiles[0]",
    "mindie.BackendConfig.ModelDeployConfig.ModelConfig[0].trustRemoteCode",
)


def test_keys_of_mindie_that_open_the_server_are_rendered_only_if_they_are_trusted(
    store: Store, run: Run
) -> None:
    store({"a": MINDIE, "b": "profile.extends = ['a']"})
    assert run("check", "a").out.count("warning NP605") == len(MINDIE_KEYS)
    refused = run("render", "b", "--to", "mindie")
    assert refused.code == 2
    assert re.findall(r"NP930: (\S+)", refused.out + refused.err) == [*MINDIE_KEYS]
    assert "port" in run("render", "b", "--to", "mindie", "--trust").out
    assert run("trust", "profiles", f"{MINDIE_KEYS[0]}=false", *MINDIE_KEYS[1:]).code == 0
    assert run("render", "b", "--to", "mindie").code == 0
    assert run("set", "a", "mindie.ServerConfig.allowAllZeroIpListening=true").code == 0
    assert run("render", "b", "--to", "mindie").code == 0, "the user has typed it"
    preset = Path("profiles/a.toml")
    preset.write_text(preset.read_text().replace("old.pem", "none.pem"))
    refused = run("render", "b", "--to", "mindie")
    assert re.findall(r"NP930: (\S+)", refused.out + refused.err) == [MINDIE_KEYS[1]]


def test_what_the_installed_file_has_needs_no_trust(store: Store, run: Run) -> None:
    text = """\
[mindie.ServerConfig]
httpsEnabled = true
allowAllZeroIpListening = false
tlsCaPath = "security/ca/"
tlsCaFile = ["ca.pem"]
tlsPk = "security/keys/server.key.pem"
"""
    store({"a": text})
    assert run("check", "a").out.count("NP605") == 0
    assert run("render", "a", "--to", "mindie").code == 0


def write_script(path: Path, *exports: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "#!/bin/bash\n" + "".join(f"export {text}\n" for text in exports) + "python train.py\n"
    )
    return path.read_text()


def test_an_import_and_an_adoption_trust_nothing_that_executes_and_list_it(
    store: Store, run: Run, tmp_path: Path
) -> None:
    store({"own": "[options]\nhccl_timeout = 600\n"})
    write_script(
        tmp_path / "run.sh",
        "HCCL_CONNECT_TIMEOUT=600",
        "ASCEND_CUSTOM_OPP_PATH=/x",
        "GLOO_SOCKET_IFNAME='eth0 eth1'",
    )
    done = run("import", "run.sh", "-o", "profiles/made.toml")
    assert (
        "not trusted, because it can affect what is executed: "
        "ASCEND_CUSTOM_OPP_PATH, GLOO_SOCKET_IFNAME"
    ) in done.err
    assert "env.ASCEND_CUSTOM_OPP_PATH = " in run("env", "made").err
    write_script(tmp_path / "src/go.sh", "HCCL_CONNECT_TIMEOUT=700")
    assert run("adopt", "src").code == 0
    assert "# >>> npuprof" in (tmp_path / "src/go.sh").read_text()
    text = write_script(
        tmp_path / "bad/bad.sh", "ASCEND_CUSTOM_OPP_PATH=/y", "HCCL_CONNECT_TIMEOUT=900"
    )
    done = run("adopt", "bad")
    assert "bad.sh keeps its lines: env.ASCEND_CUSTOM_OPP_PATH" in done.err.replace("\n  ", " "), (
        done.err
    )
    assert (tmp_path / "bad/bad.sh").read_text() == text
    assert not os.path.exists(find_trust_file())


@pytest.mark.parametrize(
    "arguments",
    [
        "--from other.json",
        "--from gone.json",
        "--from trusted.json MY_SWITCH",
        "NO_SUCH",
        "MY_SWITCH --revoke",
    ],
)
def test_in_ci_a_reviewed_file_says_what_is_trusted(
    arguments: str, store: Store, run: Run, tmp_path: Path
) -> None:
    store({"a": UNKNOWN})
    assert run("trust", "profiles", "--dry-run", "--format", "json", "-o", "trusted.json").code == 0
    store({"b": '[env]\nLATER_SWITCH = "1"\n'})
    done = run("trust", "profiles", "--from", "trusted.json")
    assert done.code == 0, done.err
    assert "does not list LATER_SWITCH, which stay untrusted" in done.err, done.err
    assert run("env", "a").code == 0
    assert is_refused(run("env", "b"))
    (tmp_path / "profiles/a.toml").write_text(UNKNOWN.replace("/x.so", "/y.so"))
    assert run("trust", "profiles", "--from", "trusted.json").code == 0
    assert is_refused(run("env", "a"))
    (tmp_path / "other.json").write_text("[]")
    refused = run("trust", "profiles", *arguments.split())
    assert refused.code == 2, arguments
    assert refused.out == "", arguments
    assert "error NP" in refused.err, arguments


# -- where the state is ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["builtin:", "source:https://example.org/presets.git profiles"])
def test_a_store_is_identified_by_its_place_and_by_nothing_that_it_is_called(
    name: str, run: Run, tmp_path: Path
) -> None:
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
    state = {
        "schema": "npuprof.trust/1",
        "stores": {str(tmp_path / "profiles"): [["LD_PRELOAD", "/x.so"]]},
    }
    for folder in ("~/.local/state/npuprof", ".local/state/npuprof", "state/npuprof"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "trust.json").write_text(json.dumps(state))

    def find_nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", find_nobody)
    for home, state_home in ((None, None), ("~", "state"), ("relative", "./state")):
        for name, value in (
            ("HOME", home),
            ("XDG_STATE_HOME", state_home),
            ("XDG_CONFIG_HOME", None),
            ("XDG_CACHE_HOME", None),
        ):
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(
                name, value
            )
        assert is_refused(run("env", "a")), (home, state_home)
        assert run("env", "a", "--trust").code == 0
        assert run("trust").code == 2
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("env", "a").code == 0, (
        "an absolute HOME is one, and what was trusted there by an older npuprof stays"
    )
