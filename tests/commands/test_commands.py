"""The command line: exit codes, streams, formats and colours; the fast parser and Typer agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import npuprof
from npuprof.catalog import releases
from npuprof.commands import framework
from npuprof.commands.framework import GROUPS, Verb, application, list_verb_names, list_verbs
from support.building import examples
from support.running import Run, Store

PRESETS = {
    "base": '[profile]\ndescription = "for all"\nscenario = "training"\nabstract = true\n'
    '[options]\nhccl_timeout = 1800\ndump_step = [1, "3-5"]\n'
    'enable_dump = true\ndump_path = "/tmp/dump"\n',
    "leaf": '[profile]\nextends = ["base"]\n[options]\nprecision_mode_v2 = "mixed_float16"\n'
    '[append.options]\ndump_step = [9]\n[env]\nTMPDIR = "a-b"\n',
    "wrong": "[options]\nhcom_paralel = true\n",
    "worrying": "[options]\ngraph_memory_max_size = '16106127360'\n",
}


@pytest.fixture(autouse=True)
def presets(store: Store) -> None:
    store(PRESETS)


#: Words, exit code.
EXITS = [
    (["list"], 0),
    (["show", "leaf"], 0),
    (["options", "dump"], 0),
    (["option", "HCCL_EXEC_TIMEOUT"], 0),
    (["rule", "np201"], 0),
    (["check", "leaf"], 0),
    (["check", "worrying"], 0),
    (["check", "worrying", "--strict"], 1),
    (["check", "wrong"], 1),
    (["check", "gone"], 2),
    (["render", "wrong"], 2),
    (["render", "wrong", "--no-check"], 2),
    (["render", "base"], 2),
    (["render", "base", "--no-check"], 0),
    (["env", "leaf"], 0),
    (["env", "leaf", "--shell", "nothing"], 2),
    (["--help"], 0),
    (["--version"], 0),
    ([], 2),
    (["nothing"], 2),
    (["show", "leaf", "more"], 2),
    (["show", "leaf", "--bogus"], 2),
    (["show", "gone"], 2),
    (["explain", "leaf", "nothing"], 2),
    (["options", "no such words"], 2),
    (["rule", "NP000"], 2),
    (["show", "leaf", "--format", "yaml"], 2),
    (["check", "--severity", "loud"], 2),
    (["show", "leaf", "--color", "red"], 2),
    (["show", "leaf", "--cann", "1"], 2),
]


@pytest.mark.parametrize(("arguments", "code"), EXITS)
def test_exit_codes_and_streams(run: Run, arguments: list[str], code: int) -> None:
    result = run(*arguments)
    assert result.code == code, (result.out, result.err)
    assert run(*arguments) == result, "two runs are byte-identical"
    assert "\x1b" not in result.out + result.err
    if code == 0:
        assert result.out or arguments == ["check", "leaf"], "no answer"
    elif arguments[:1] != ["check"] and arguments:  # no words at all: the help
        assert result.out == "", "an answer in spite of the error"
        assert result.err
    assert "Traceback" not in result.err


JSON = [
    ["list"],
    ["show", "leaf", "--origin"],
    ["explain", "leaf", "dump_step"],
    ["options", "dump"],
    ["option", "RANK_ID"],
    ["rule"],
    ["rule", "NP301"],
    ["check"],
    ["check", "gone"],
]


@pytest.mark.parametrize("arguments", JSON)
def test_json_has_a_schema_and_no_surprises(run: Run, arguments: list[str]) -> None:
    answer = json.loads(
        run(*arguments, "--format", "json").out,
        parse_constant=lambda argument: pytest.fail(f"{argument} is no JSON"),
    )
    assert answer["schema"].startswith("npuprof.")
    assert answer["schema"].partition("/")[2].isdigit()


def test_check_speaks_sarif_and_github(run: Run) -> None:
    sarif = json.loads(run("check", "--format", "sarif").out)
    assert sarif["version"] == "2.1.0"
    (result,) = [result for result in sarif["runs"][0]["results"] if result["ruleId"] == "NP201"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "profiles/wrong.toml"
    assert place["region"] == {"startLine": 2, "startColumn": 1}
    assert sarif["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "NP201"
    lines = run("check", "--format", "github").out.splitlines()
    assert any(
        line.startswith("::error file=profiles/wrong.toml,line=2,col=1,title=npuprof NP201::")
        for line in lines
    )


def test_check_speaks_code_quality_and_a_finding_stays_the_same_when_lines_move(
    run: Run, store: Store
) -> None:
    def report() -> list[dict[str, Any]]:
        result = run("check", "--format", "gitlab")
        assert result.code == 1, result.err
        rows: list[dict[str, Any]] = json.loads(result.out)
        return rows

    before = report()
    (row,) = [row for row in before if row["check_name"] == "NP201"]
    assert row["location"] == {"path": "profiles/wrong.toml", "lines": {"begin": 2}}
    assert row["severity"] == "critical"
    assert {"description", "check_name", "fingerprint", "severity", "location"} == set(row)
    assert len({row["fingerprint"] for row in before}) == len(before)
    wrong = Path("profiles/wrong.toml")
    wrong.write_text("# one more line\n\n" + wrong.read_text())
    after = report()
    assert sorted(row["fingerprint"] for row in after) == sorted(
        row["fingerprint"] for row in before
    )
    assert [row["location"]["lines"] for row in after if row["check_name"] == "NP201"] == [
        {"begin": 4}
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["show", "leaf"],
        ["explain", "leaf", "hccl_timeout"],
        ["options"],
        ["option", "hccl_timeout"],
        ["rule"],
        ["check"],
        ["render", "leaf"],
        ["env", "leaf", "--format", "dotenv"],
        ["check", "--format", "sarif"],
    ],
)
def test_every_verb_writes_to_a_file_what_it_would_print(arguments: list[str], run: Run) -> None:
    printed = run(*arguments)
    written = run(*arguments, "-o", f"{arguments[0]}.txt")
    assert written.code == printed.code
    assert written.out == ""
    assert Path(f"{arguments[0]}.txt").read_bytes() == printed.out.encode()


def test_colour_is_for_terminals_and_for_who_asks(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[" in run("check", "--color", "always").out
    assert "\x1b[" in run("show", "leaf", "--origin", "--color", "always").out
    assert "\x1b[" not in run("check", "--color", "always", "--format", "json").out
    from npuprof.report.output import is_colour_wanted

    class Terminal:
        def isatty(self) -> bool:
            return True

    assert is_colour_wanted("auto", Terminal())
    assert not is_colour_wanted("never", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_colour_wanted("auto", Terminal())
    assert is_colour_wanted("always", Terminal())
    monkeypatch.setenv("NO_COLOR", "")
    assert is_colour_wanted("auto", Terminal()), "an empty NO_COLOR is none"
    monkeypatch.setenv("TERM", "dumb")
    assert not is_colour_wanted("auto", Terminal())


VERBS: dict[tuple[str, ...], type[Verb]] = dict(list_verbs())


@pytest.mark.parametrize(
    "names", [names for names, verb in VERBS.items() if not verb.hidden], ids=" ".join
)
def test_the_help_cuts_nothing_short_and_names_every_value(
    run: Run, names: tuple[str, ...]
) -> None:
    assert re.search(rf"\s{names[-1]}\s", run(*names[:-1], "--help").out)
    shown = run(*names, "--help").out.partition("\n\n")[2]
    assert shown
    assert not [line for line in shown.splitlines() if line.endswith("...")]
    assert "<str>" not in shown


@pytest.mark.parametrize(
    "names", [names for names, verb in VERBS.items() if verb.hidden], ids=" ".join
)
@pytest.mark.parametrize("argument", ["--help", "-h"])
def test_verbs_that_git_calls_have_a_help_for_who_asks_and_for_nobody_else(
    run: Run, names: tuple[str, ...], argument: str
) -> None:
    shown = run(*names, argument)
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: npuprof {' '.join(names)} ")
    assert f"\n  {names[-1]} " not in run(*names[:-1], "--help").out
    assert "Usage" not in run(*names, argument, argument).out, "that may be what git hands over"


@pytest.mark.parametrize("verb", ["show", "render"])
def test_a_misspelt_key_is_not_unset_in_silence(verb: str, run: Run) -> None:
    done = run(verb, "leaf", "--unset", "precison_mode_v2")
    assert done.code == 2
    assert done.out == ""
    assert "leaf does not set 'precison_mode_v2', and the catalogue does not know it" in done.err
    assert "did you mean 'precision_mode_v2'?" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--unset", "deterministic"],
        ["--unset", "env.TMPDIR"],
        ["--unset", "dump_path"],
        ["--set", "env.MINE=1", "--unset", "env.MINE"],
    ],
)
def test_a_key_that_is_known_or_set_can_be_unset(arguments: list[str], run: Run) -> None:
    assert run("show", "leaf", *arguments).code == 0


def test_an_option_is_shown_with_what_differs_by_product_and_release(run: Run) -> None:
    assert (
        "mixed_bfloat16: ascend-950, atlas-a3, atlas-a2 only"
        in run("option", "precision_mode_v2").out
    )
    assert "1 to 17340 on atlas-training" in run("option", "hccl_timeout").out
    assert "2 to 256 on ascend-950" in run("option", "dynamic_dims").out
    assert "0 from CANN 20.1 on; 2 from CANN 7.0.0 on" in run("option", "enable_exception_dump").out
    assert "3: gone in 6.0.1" in run("option", "aoe_mode").out


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param(
            "VLLM_ASCEND_ENABLE_FUSED_MC2",
            [
                "releases vllm_ascend 0.13.0rc1 to 0.26.0rc1",
                "deprecated vllm_ascend 0.20.2rc1 to 0.26.0rc1",
                "use instead vllm_ascend.enable_fused_mc2",
            ],
            id="a variable that is gone",
        ),
        pytest.param(
            "vllm_ascend.dump_config",
            ["releases vllm_ascend 0.12.0rc1, 0.20.2rc1 on"],
            id="a setting with a gap",
        ),
        pytest.param(
            "graph_memory_max_size",
            [
                "releases all",
                "releases global_options(): 5.0.2 on",
                "no effect 9.0.0 on",
                "deprecated 9.0.0 on",
            ],
            id="an option without effect",
        ),
    ],
)
def test_option_prints_the_releases_that_read_a_setting_as_a_set(
    name: str, lines: list[str], run: Run
) -> None:
    printed = [" ".join(line.split()) for line in run("option", name).out.splitlines()]
    about_time = ("releases ", "deprecated ", "no effect ", "use instead ")
    assert sorted(line for line in printed if line.startswith(about_time)) == sorted(lines)


def test_the_help_names_every_verb_on_one_screen(run: Run) -> None:
    lines = run("--help").out.splitlines()
    assert len(lines) <= 24
    assert all(len(line) <= 80 and not line.endswith("...") for line in lines[1:])
    listed = [line.split() for line in lines[lines.index("") :]][-len(GROUPS) :]
    assert [heading for heading, *_ in listed] == [*GROUPS.values()]
    names = sorted({names[0] for names, _ in list_verb_names()})
    assert sorted(name for _, *verbs in listed for name in verbs) == names
    page = run("help", "commands").out
    assert [name for name in names if f"`{name}" not in page] == []


def test_the_commands_of_a_first_day_are_verbs(run: Run) -> None:
    lines = re.findall(r"^    npuprof (\w+)", run("--help").out, re.MULTILINE)
    assert lines == ["scan", "import", "check"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["--cann", "9.0.0", "check"], "npuprof check --cann 9.0.0"),
        (["--store", "a b", "show", "leaf"], "npuprof show --store 'a b' leaf"),
        (["--format", "json", "source", "list"], "npuprof source list --format json"),
        (["--cann", "9.0.0", "rule"], ""),
    ],
)
def test_a_flag_before_its_verb_gets_the_line_to_type(
    typed: list[str], meant: str, run: Run
) -> None:
    result = run(*typed)
    assert result.code == 2
    after = result.err.partition("The flags of a verb come after it: ")[2]
    assert after.strip() == meant


# -- answers --------------------------------------------------------------------------------------


def test_show_can_be_read_back(run: Run, store: Store) -> None:
    shown = run("show", "leaf").out
    store({"copy": shown})
    digest = {
        row["name"]: row["digest"]
        for row in json.loads(run("list", "--format", "json").out)["presets"]
    }
    assert digest["copy"] == digest["leaf"]
    assert run("show", "-", stdin=shown.encode()).out == shown
    with_origins = run("show", "leaf", "--origin").out
    assert (
        json.loads(run("show", "-", "--format", "json", stdin=with_origins.encode()).out)["digest"]
        == digest["leaf"]
    )


def test_explain_names_winner_losers_default_and_rules(run: Run, store: Store) -> None:
    store(
        {
            "over": (
                '[profile]\nextends = ["leaf"]\nunset = ["dump_step"]\n'
                "[options]\nhccl_timeout = 600\n"
            )
        }
    )
    out = run("explain", "over", "hccl_timeout", "--set", "hccl_timeout=5").out
    assert out.startswith("over: hccl_timeout = 5\n")
    assert (
        out.index("set by")
        < out.index("600 of over (profiles/over.toml:5)")
        < out.index("1800 of base (profiles/base.toml:6)")
    )
    assert "NP378" in out
    typed = run(
        "explain", "over", "hccl_timeout", "--set", "hccl_timeout=5", "--format", "json"
    ).out
    (winner,) = json.loads(typed)["winners"]
    assert winner["line"] is None, "what is typed stands in no file"
    assert winner["column"] is None
    out = run("explain", "over", "dump_step").out
    assert out.startswith("over: dump_step is not set\n")
    assert "cleared by   over (profiles/over.toml:3, unset)" in out
    out = run("explain", "leaf", "dump_step").out
    assert "9 at [2]: leaf (profiles/leaf.toml:6, append)" in out
    assert "1 at [0]: base (profiles/base.toml:7)" in out


class ExplainCase(NamedTuple):
    scenario: str
    key: str
    product: str
    default: str


@pytest.mark.parametrize(
    ("scenario", "key", "product", "default"),
    [
        ExplainCase(
            scenario="training",
            key="enable_small_channel",
            product="atlas-a2",
            default="0",
        ),
        ExplainCase(
            scenario="online-inference",
            key="enable_small_channel",
            product="atlas-a2",
            default="1",
        ),
        ExplainCase(
            scenario="training",
            key="precision_mode",
            product="atlas-a2",
            default='"must_keep_origin_dtype"',
        ),
        ExplainCase(
            scenario="training",
            key="precision_mode",
            product="atlas-training",
            default='"allow_fp32_to_fp16"',
        ),
        ExplainCase(
            scenario="online-inference",
            key="precision_mode",
            product="atlas-training",
            default='"force_fp16"',
        ),
    ],
)
def test_explain_prints_the_default_of_the_scenario_and_the_product(
    scenario: str, key: str, product: str, default: str, run: Run, store: Store
) -> None:
    store({"a": f'[profile]\nscenario = "{scenario}"\n'})
    lines = run("explain", "a", key, "--product", product).out.splitlines()
    assert f"  default      {default}" in lines


def test_annotations_of_github_escape_what_ends_them(run: Run, store: Store) -> None:
    store({"a": "[options]\n'a%0A:,b' = 1\n"})
    Path("a,b:100%.sh").write_text("export HCCL_BUFSIZE=1\n")
    head = "::error file=profiles/a.toml,line=2,col=1,title=npuprof NP201"
    assert run("check", "a", "--format", "github").out.startswith(
        f"{head}::unknown option 'a%250A:,b'%0AWhy: "
    )
    assert run("scan", "a,b:100%.sh", "--format", "github").out.startswith(
        "::warning file=a%2Cb%3A100%25.sh,line=1,col=8,title=npuprof NP206::"
    )


def test_list_shows_parents_and_filters_on_resolved_values(run: Run) -> None:
    assert run("list").out.splitlines() == [
        "base      abstract  -  -     for all",
        "leaf      training  -  base  -",
        "worrying  -         -  -     -",
        "wrong     -         -  -     -",
    ]
    assert run("list", "--tree").out.splitlines() == ["base", "`-- leaf", "worrying", "wrong"]
    found = json.loads(
        run(
            "list",
            "--where",
            "hccl_timeout == 1800 and precision_mode_v2 is set",
            "--format",
            "json",
        ).out
    )
    assert [row["name"] for row in found["presets"]] == ["leaf"]
    assert run("list", "--where", "env.TMPDIR == 'a-b'").out.split()[0] == "leaf"
    assert run("list", "--where", "hccl_timeout == 5").out == ""


def test_a_misspelt_word_is_answered_with_its_nearest(run: Run) -> None:
    assert "did you mean 'leaf'?" in run("show", "laef").err
    assert "did you mean 'hccl_timeout'?" in run("list", "--where", "hccl_timeot == 1800").err
    assert run("list", "--where", "hcom_paralel is set").out.split()[0] == "wrong", (
        "a preset may hold a key that is none"
    )
    assert "did you mean 'hccl_timeout'" in run("option", "hccl_timout").err
    assert "did you mean 'session'?" in run("render", "leaf", "--to", "sesion").err
    assert "did you mean 'precision_mode_v2'" in run("explain", "leaf", "precison_mode_v2").err


def test_check_says_how_notes_are_shown_where_it_leaves_them_out(run: Run) -> None:
    text = [
        " (--severity info shows notes as well)" in run("check", "leaf", *arguments).err
        for arguments in ((), ("--severity", "info"))
    ]
    assert text == [True, False]


def test_render_check_tells_current_from_stale(run: Run) -> None:
    assert run("render", "leaf", "-o", "out.py").code == 0
    assert run("render", "leaf", "--check", "out.py").code == 0
    assert run("render", "leaf", "--check", "out.py", "--set", "hccl_timeout=5").code == 1
    with open("out.py", "a") as file:
        file.write("# mine\n")
    result = run("render", "leaf", "--check", "out.py")
    assert result.code == 1
    assert result.out == ""
    assert "hand" in result.err
    assert run("render", "leaf", "--check", "gone.py").code == 2


# -- the quick way and the framework --------------------------------------------------------------

#: Words that stand for anything, and some that no verb expects where they stand.
ANY = [
    "leaf",
    "-",
    "a+b",
    "x.toml",
    "",
    "a=1",
    "b=c=d",
    "7",
    "0",
    "-x",
    "--",
    "--bogus",
    "-h",
    "--help",
    "-ofile",
    "more",
    "--no-check=1",
]


@st.composite
def draw_arguments(draw: st.DrawFn) -> tuple[tuple[str, ...], list[str]]:
    """Draw a verb and arguments for it, mostly plausible ones: its own flags and valid values."""
    names = draw(st.sampled_from(sorted(VERBS)))
    groups: list[list[str]] = []
    for parameter in draw(
        st.lists(st.sampled_from([*VERBS[names].parameters.values()]), max_size=6)
    ):
        spelling = draw(st.sampled_from(parameter.flags)) if parameter.flags else ""
        value = draw(st.sampled_from([*parameter.list_choices(), *ANY[:9]]))
        if parameter.kind in ("argument", "arguments"):
            groups.append([value])
        elif parameter.kind == "flag":
            groups.append([spelling])
        else:
            groups.append(
                [f"{spelling}={value}"]
                if spelling.startswith("--") and draw(st.booleans())
                else [spelling, value]
            )
    if draw(st.integers(0, 4)) == 0:
        groups.append([draw(st.sampled_from(ANY))])
    return names, [argument for group in draw(st.permutations(groups)) for argument in group]


def fill_defaults(verb: type[Verb], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of all parameters: as given, or their defaults."""
    return {
        name: parameter.copy_default() if values.get(name) is None else values[name]
        for name, parameter in verb.parameters.items()
    }


@examples(200)
@given(draw_arguments())
def test_the_plain_form_means_what_the_framework_makes_of_it(
    line: tuple[tuple[str, ...], list[str]],
) -> None:
    names, arguments = line
    plain = framework.parse_plain_arguments(VERBS[names], arguments)
    assume(plain is not None)  # hypothesis fails where too few are
    assert plain is not None
    heard: list[tuple[type[Verb], dict[str, Any]]] = []

    def listen(verb: type[Verb], values: dict[str, Any]) -> int:
        heard.append((verb, values))
        return 0

    assert application.run_arguments([*names, *arguments], listen) == 0
    assert [(verb, fill_defaults(verb, values)) for verb, values in heard] == [
        (VERBS[names], fill_defaults(VERBS[names], plain))
    ]


@pytest.mark.parametrize(
    ("where", "what", "hint"),
    [
        ("hccl_timeout", "hccl_timeout is not a condition", "hccl_timeout is set"),
        (
            "hccl_timeout == 1 and enable_dump",
            "enable_dump is not a condition",
            "enable_dump == true",
        ),
        ("'a'", "has the same result for every preset", "compare an option"),
        ("jit_compile == true", "jit_compile is text", 'jit_compile == "true"'),
        (
            "hccl_timeout == 'a'",
            "hccl_timeout is a whole number, but is compared with 'a'",
            "hccl_timeout ==",
        ),
        (
            'env.HCCL_CONNECT_TIMEOUT == "600"',
            "env.HCCL_CONNECT_TIMEOUT is a whole number",
            "env.HCCL_CONNECT_TIMEOUT == 600",
        ),
        ("scenario == training", "training is not a setting", 'scenario == "training"'),
        (
            "precision_mode_v2 == fp16",
            "fp16 is not a setting; strings need quotes",
            'precision_mode_v2 == "fp16"',
        ),
        ("env.HCCL_ALGO > 'a'", "is text, but is compared with 'a'", "env.HCCL_ALGO =="),
        (
            "estimator.save_checkpoint_steps == 3",
            "estimator.save_checkpoint_steps",
            "did you mean 'save_checkpoints_steps'",
        ),
        ("not " * 5000 + "x", "is not a condition", "precision_mode_v2"),
        ("a.b.c", "a.b.c is not a condition", "a.b.c is set"),
        (
            "abstract",
            "abstract is not a condition in 'abstract', and not a setting",
            "compare an option, or scenario",
        ),
        ("hccl_timeot", "hccl_timeot is not a condition", "did you mean 'hccl_timeout'?"),
        (
            'precision_mode_v2 in ["fp16", "origin"]',
            "is not a condition",
            """write 'precision_mode_v2 in ("fp16", "origin")'""",
        ),
    ],
)
def test_what_is_no_question_is_said_with_what_to_write(
    run: Run, where: str, what: str, hint: str
) -> None:
    done = run("list", "--where", where)
    assert done.code == 2
    assert done.out == ""
    assert what in done.err
    assert hint in done.err.partition("try:")[2]


@pytest.mark.parametrize(
    ("requested", "value"),
    [
        ("leaf+./my/x.toml", "7"),
        ("./my/x.toml+leaf", "5"),
        ("my/a+b.toml", "8"),
        ("leaf+-", "9"),
        ("-+leaf", "5"),
        ("leaf+my/none.toml", "there is no file 'my/none.toml'"),
        ("./none+x.toml", "there is no file './none+x.toml'"),
    ],
)
def test_a_preset_can_be_composed_of_files(
    requested: str, value: str, store: Store, run: Run, tmp_path: Path
) -> None:
    store({"leaf": "options.hccl_timeout = 5\n"})
    (tmp_path / "my").mkdir()
    (tmp_path / "my/x.toml").write_text("options.hccl_timeout = 7\n")
    (tmp_path / "my/a+b.toml").write_text("options.hccl_timeout = 8\n")
    for arguments in (["show", "--", requested], ["render", "--to", "toml", "--", requested]):
        result = run(*arguments, stdin=b"options.hccl_timeout = 9\n")
        if value.isdigit():
            assert f"hccl_timeout = {value}\n" in result.out, result.err
        else:
            assert result.code == 2, result.err
            assert value in result.err, result.err


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("env.HCCL_CONNECT_TIMEOUT > 500", ["number", "text"]),
        ("env.HCCL_CONNECT_TIMEOUT in (600, 700)", ["number", "text"]),
        ("env.TMPDIR == '5'", ["number", "text"]),
        ("env.TMPDIR != 5", []),
        ("scenario in ('training', 'offline')", ["number"]),
    ],
)
def test_a_variable_is_one_however_its_number_is_written(
    where: str, found: list[str], tmp_path: Path, run: Run
) -> None:
    store = tmp_path / "other"
    store.mkdir()
    (store / "number.toml").write_text(
        '[profile]\nscenario = "training"\n[env]\nHCCL_CONNECT_TIMEOUT = 600\nTMPDIR = 5\n'
    )
    (store / "text.toml").write_text('[env]\nHCCL_CONNECT_TIMEOUT = "600"\nTMPDIR = "5"\n')
    done = run("list", "--where", where, "--store", str(store), "--format", "json")
    assert [preset["name"] for preset in json.loads(done.out)["presets"]] == found


def test_the_version_names_the_newest_known_release_of_each_axis(run: Run) -> None:
    lines = run("--version").out.splitlines()
    assert lines[0] == f"npuprof {npuprof.__version__}"
    named = {line.split()[0]: line.split()[1] for line in lines[2:]}
    axes = {"CANN": releases.CANN} | {name: name for name in releases.list_frameworks()}
    assert named == {title: releases.load_releases(axis)[-1] for title, axis in axes.items()}
    dates = [line for line in lines if re.search(r" \(20\d\d-\d\d-\d\d\)$", line)]
    assert len(dates) >= len(axes) - 1
