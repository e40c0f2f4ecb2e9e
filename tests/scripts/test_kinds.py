"""Files other than Python and plain shell: what each kind sets, what is not carried over, where."""

from __future__ import annotations

import io
from pathlib import Path
from unittest import mock

import pytest
from dotenv import dotenv_values
from hypothesis import assume, example, given
from hypothesis import strategies as st

from npuprof.scripts.python import environ
from npuprof.scripts.reading import env_files
from npuprof.scripts.reading.file_kinds import (
    KINDS,
    detect_script_kind,
    is_script_candidate,
    may_hold_settings,
)
from support.importing import findings, imported, settings, write
from support.kinds import CONFIGS, KUBERNETES, READ
from support.running import Run


@pytest.mark.parametrize("case", READ)
def test_every_kind_of_file_says_what_it_sets(case: str) -> None:
    name, text, expected = READ[case]
    assert settings(text, name) == expected
    assert may_hold_settings(name, text.encode())


@pytest.mark.parametrize("case", KUBERNETES)
def test_containers_and_config_maps_say_what_they_set(case: str) -> None:
    text, expected = KUBERNETES[case]
    assert settings(text, "a.yaml") == expected
    other_names = [variable.name for variable in imported(text, "a.yaml").other_variables]
    assert all(map(str.isidentifier, other_names)), "a file name is no variable"


@pytest.mark.parametrize("case", CONFIGS)
def test_settings_in_a_config_are_told_of_where_that_is_certain_and_never_carried(
    case: str, run: Run, tmp_path: Path
) -> None:
    name, text, keys = CONFIGS[case]
    read = imported(text, name).settings
    assert [setting.key for setting in read] == keys
    assert {setting.surface for setting in read} <= {"config"}
    for setting in read:
        assert setting.reason.endswith("the script that reads it decides")
    assert [finding.severity for finding in findings(text, name)] == (["info"] if keys else [])
    write(tmp_path, {name: text})
    assert run("scan", str(tmp_path / name)).code == 0
    made = run("import", str(tmp_path / name))
    assert made.code == 2
    assert "nothing to make a preset of" in made.err


def test_settings_in_a_config_beside_a_script_are_in_the_report(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.sh": "export HCCL_ALGO=x\n", "a.yaml": "npu:\n  precision_mode: allow_mix_precision\n"},
    )
    made = run("import", str(tmp_path), "--name", "mine", "--format", "text")
    assert "a.sh: mine\n" in made.out  # a config makes no preset, so there is one to be named
    assert (
        "a.yaml:2: precision_mode: the file says "
        '"allow_mix_precision"; the script that reads it decides\n'
    ) in made.out


@example("HCCL-ALGO")
@given(
    st.lists(
        st.sampled_from(
            ("RANK_ID", "HCCL_X", "HCCL", "NPU", "-", "_", "a", "9", " ", "é", "$", "-e", "Ab")
        )
    ).map("".join)
)
def test_splitting_a_text_into_words_loses_no_name_of_a_variable(text: str) -> None:
    names = environ._CAPITALS.findall(text.encode())
    assert environ.mentions_variable(text.encode()) is any(
        name == b"RANK_ID" or environ._FAMILIES.match(name) for name in names
    )


def test_each_known_variable_is_found_in_a_text() -> None:
    names = [*filter(environ._CAPITALS.fullmatch, environ._list_encoded_names())]
    assert len(names) > 500
    assert all(environ.mentions_variable(b"export %b=1" % name) for name in names)


#: Kinds that npuprof does not read: a file, its text, and the flags of ``env`` that write such a
#: file.
UNREAD = {
    "a.fish": ("set -gx HCCL_ALGO ring\n", "--shell fish"),
    "fish-script": ("#!/usr/bin/env fish\nset -gx HCCL_ALGO ring\n", "--shell fish"),
    "a.csh": ("setenv HCCL_ALGO ring\n", "--shell tcsh"),
    "npu.service": ("[Service]\nEnvironment=HCCL_ALGO=ring\n", "--format systemd"),
}


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("verb", ["scan", "import"])
def test_a_file_of_a_kind_that_is_not_read_is_reported_if_named_and_skipped_below_a_folder(
    verb: str, name: str, run: Run, tmp_path: Path
) -> None:
    text, flags = UNREAD[name]
    write(tmp_path, {f"d/{name}": text, "d/x.sh": "export HCCL_BUFFSIZE=200\n"})
    done = run(verb, tmp_path / "d" / name)
    output = done.out + done.err
    assert done.code == 2
    assert "NP801" in output
    assert " are not read" in output
    assert f"npuprof env NAME {flags}" in output
    done = run(verb, tmp_path / "d")
    assert done.code == 0
    assert name not in done.out + done.err


#: A file, its text, and line and column of each name of a variable.
LOCATED = [
    ("Dockerfile", 'ENV A=1 \\\n  HCCL_ALGO="x"\n', [(2, 3)]),
    ("x.json", '{"env":\n  {"HCCL_ALGO": "x", "HCCL_IF_IP": "y"}}', [(2, 4), (2, 22)]),
    ("x.slurm", "#SBATCH --export=ALL,HCCL_ALGO=1\n", [(1, 22)]),
]


@pytest.mark.parametrize(("name", "text", "positions"), LOCATED, ids=["docker", "json", "slurm"])
def test_places_are_those_of_the_names(
    name: str, text: str, positions: list[tuple[int, int]]
) -> None:
    read = imported(text, name).settings
    assert [(setting.line, setting.column) for setting in read] == positions


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/Dockerfile", "docker"),
        ("x.dockerfile", "docker"),
        ("Containerfile", "docker"),
        # as vllm-ascend and others name theirs
        ("Dockerfile.a3.openEuler", "docker"),
        ("Dockerfile_dev", "docker"),
        ("Containerfile-npu", "docker"),
        ("a3.Dockerfile", "docker"),
        ("my.Dockerfile.txt", ""),
        (".env", "env"),
        ("x.env", "env"),
        ("x.dotenv", "env"),
        ("X.IPYNB", "notebook"),
        ("x.yml", "yaml"),
        ("x.slurm", "shell"),
        ("x.service", "unit"),
        ("x.txt", ""),
    ],
)
def test_a_name_tells_the_kind(name: str, kind: str) -> None:
    assert detect_script_kind(name, b"") == kind
    assert is_script_candidate(name) == (kind not in ("", "unit") or name == "environment")


#: Files whose name tells no kind, their texts, and a part of the output.
NAMELESS = {
    "an env file": ("npu.list", "HCCL_CONNECT_TIMEOUT=9000\nHCCL_IF_IP=1\n", "NP203"),
    "an export as JSON": (
        "npu.list",
        '{"schema": "npuprof.env/1", "env": {"HCCL_CONNECT_TIMEOUT": "9000"}}',
        "NP203",
    ),
    "an image": (
        "image.in",
        "# x\nARG B=u\nFROM $B\nRUN \\\n  export A=1\nENV HCCL_CONNECT_TIMEOUT=9000\n",
        "NP203",
    ),
    "a shebang": ("train.in", "#!/bin/bash\nHCCL_CONNECT_TIMEOUT=9000 python x.py\n", "NP203"),
    "Python": ("train", "# x\nimport os\nos.environ['HCCL_CONNECT_TIMEOUT'] = '9000'\n", "NP203"),
    "nothing": ("notes.txt", "", "the kind of the file is not known"),
}


@pytest.mark.parametrize("case", NAMELESS)
def test_a_file_that_is_named_is_known_by_its_text(case: str, run: Run, tmp_path: Path) -> None:
    name, text, output = NAMELESS[case]
    write(tmp_path, {f"d/{name}": text})
    done = run("scan", tmp_path / "d" / name)
    is_known = output == "NP203"
    assert done.code == (1 if is_known else 2)
    assert output in done.out
    assert ("NP801" in done.out) != is_known
    if "." in name:
        assert run("scan", tmp_path / "d").code == 0


@pytest.mark.parametrize("verb", ["import", "scan"])
def test_help_names_every_kind_of_file(verb: str, run: Run) -> None:
    text = " ".join(run(verb, "--help").out.split())
    assert [kind.shown for kind in KINDS.values() if kind.shown in text] == [
        kind.shown for kind in KINDS.values() if kind.read
    ]


LINES = st.lists(
    st.sampled_from(["'", '"', "a", " ", "#", "\\", "$", "{", "}", "\n", "é", "export "]),
    max_size=14,
).map("".join)


@given(LINES)
def test_what_is_told_of_a_file_of_variables_is_what_python_dotenv_reads(text: str) -> None:
    text = f"export HCCL_ALGO={text}\n"
    with mock.patch.object(
        env_files, "import_shell_script", wraps=env_files.import_shell_script
    ) as as_script:
        value = settings(text, "x.env").get("env.HCCL_ALGO", "<nothing>")
    assume(not str(value).startswith("<") and not as_script.called)
    assert dotenv_values(stream=io.StringIO(text)).get("HCCL_ALGO") == value


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("900", 'write "900"'),
        ("true", "write a whole number, 120 to 7200 s, in quotes"),
        ("1.5", "write a whole number, 120 to 7200 s, in quotes"),
    ],
)
def test_a_number_as_a_variable_of_a_container_is_an_error(value: str, hint: str) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    env:\n"
        f"    - name: HCCL_CONNECT_TIMEOUT\n      value: {value}\n"
    )
    (finding,) = findings(text, "a.yaml")
    assert finding.code == "NP814"
    assert finding.severity == "error"
    assert finding.hint == hint
    assert not findings(text.replace(value, '"900"'), "a.yaml")
    # values of a template, and an empty value
    assert not findings(text.replace("kind: Pod\n", ""), "a.yaml")
    assert not findings(text.replace(value, ""), "a.yaml")


def test_a_comment_behind_a_value_of_an_env_file_is_reported() -> None:
    text = "# a\nHCCL_BUFFSIZE=200 # MB\nHCCL_IF_IP=1.2.3.4\nOTHER=1 # x\n"
    (finding,) = findings(text, "prod.env")
    assert finding.code == "NP840"
    assert finding.line == 2
    assert "docker" in finding.why


def test_env_files_below_a_folder_are_read(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {".env": "HCCL_BUFFSIZE=a\n", "x/.env.local": "HCCL_BUFFSIZE=b\n"})
    write(tmp_path, {".hidden.sh": "export HCCL_BUFFSIZE=c\n", ".git2/.env": "HCCL_BUFFSIZE=d\n"})
    out = run("scan", str(tmp_path)).out
    assert out.count("NP202") == 2


def test_a_binary_file_that_only_begins_like_a_dockerfile_is_skipped_below_a_folder(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "Dockerfile.enc"
    path.write_bytes(b"\0GITCRYPT\0FROM HCCL_ALGO=x\n")
    assert "nothing was checked" in run("scan", tmp_path).err
    assert "NP801" in run("scan", path).out
