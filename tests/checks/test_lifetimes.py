"""Faults of time: which releases read a setting, with a release named and without one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import npuprof
from npuprof import catalog
from npuprof.catalog import releases
from npuprof.checks.lifetimes import Lifetime, build_lifetime, find_lifetime_faults
from npuprof.checks.view import Fault
from npuprof.model import Finding
from support.building import findings
from support.importing import find_release_faults, write
from support.importing import findings as scan_text
from support.running import Run

#: An axis with releases before, between and after those of its two newest stable lines.
AXIS = "vllm_ascend"
KNOWN = releases.load_releases(AXIS)
NEWEST, LINES = releases.find_stable_lines(AXIS)
OLDER = LINES[0]
LATER = KNOWN[KNOWN.index(NEWEST) + 1]
#: A release that nobody has made yet, of each axis.
NEXT = "0.31.0" if releases.is_newer("0.31.0", AXIS) else "9.1.0"
NEXT_CANN = "11.0.0"


def build_letters(reads: str) -> str:
    return releases.load_axis(AXIS).parse_reads(reads) if reads else ""


def judge(
    covered: tuple[str, ...], reads: str, deprecated: str = "", successor: str = ""
) -> list[Fault]:
    """Return the faults of a made-up setting x; a successor y has a set of releases, too."""
    lifetime = Lifetime(
        "x",
        AXIS,
        build_letters(reads),
        build_letters(deprecated),
        replaced_by="y" if successor else "",
        successor_states=build_letters(successor),
    )
    return list(find_lifetime_faults(lifetime, covered))


class UnnamedCase(NamedTuple):
    reads: str
    deprecated: str
    fault: str
    severity: str
    contained: str


@pytest.mark.parametrize(
    UnnamedCase._fields,
    [
        pytest.param(
            *UnnamedCase(reads="..", deprecated="", fault="", severity="", contained=""),
            id="read by all releases",
        ),
        pytest.param(
            *UnnamedCase(
                reads="..",
                deprecated=f"{LATER}..",
                fault="",
                severity="",
                contained="",
            ),
            id="deprecated after the newest stable release",
        ),
        pytest.param(
            *UnnamedCase(
                reads="..",
                deprecated=f"{OLDER}..",
                fault="NP501",
                severity="info",
                contained=f"x is deprecated since {AXIS} {OLDER}",
            ),
            id="deprecated in the newest stable release",
        ),
        pytest.param(
            *UnnamedCase(
                reads=f"..{OLDER}",
                deprecated="",
                fault="NP502",
                severity="info",
                contained=f"{AXIS} {OLDER} is the last release that reads it.",
            ),
            id="read by the older of the two newest lines",
        ),
        pytest.param(
            *UnnamedCase(
                reads=f"{LATER}..",
                deprecated="",
                fault="NP502",
                severity="info",
                contained=f"x is read from {AXIS} {LATER} on",
            ),
            id="read by later releases only",
        ),
        pytest.param(
            *UnnamedCase(
                reads=f"..{OLDER}, {LATER}..",
                deprecated="",
                fault="NP502",
                severity="info",
                contained=f"x is read from {AXIS} {LATER} on",
            ),
            id="a gap at the newest stable release",
        ),
        pytest.param(
            *UnnamedCase(
                reads=f"{LATER}",
                deprecated="",
                fault="NP502",
                severity="info",
                contained=f"x is read by {AXIS} {LATER} only",
            ),
            id="read by one later release and dropped again",
        ),
        pytest.param(
            *UnnamedCase(
                reads=f"{KNOWN[0]}..{KNOWN[2]}",
                deprecated="..",
                fault="NP502",
                severity="warning",
                contained=f"The last release of {AXIS} that reads it is {KNOWN[2]}.",
            ),
            id="read by neither line",
        ),
        pytest.param(
            *UnnamedCase(
                reads="never",
                deprecated="",
                fault="NP502",
                severity="warning",
                contained=f"No release of {AXIS} reads it.",
            ),
            id="read by no release",
        ),
    ],
)
def test_without_a_release_the_newest_stable_one_decides(
    reads: str, deprecated: str, fault: str, severity: str, contained: str
) -> None:
    found = judge((), reads, deprecated)
    assert [(one.code, one.severity) for one in found] == ([(fault, severity)] if fault else [])
    assert contained in "".join(f"{one.message}. {one.why}" for one in found)


class NamedCase(NamedTuple):
    covered: tuple[str, ...]
    reads: str
    successor: str
    faults: list[tuple[str, str]]
    hint: str


@pytest.mark.parametrize(
    NamedCase._fields,
    [
        pytest.param(
            *NamedCase(
                covered=("0.13.0",),
                reads="..0.11.0, 0.20.2rc1..",
                successor="0.12.0rc1..",
                faults=[("NP404", "error")],
                hint="use y",
            ),
            id="not read in a gap that the successor fills",
        ),
        pytest.param(
            *NamedCase(
                covered=("0.13.0",),
                reads="..0.11.0",
                successor="0.18.0..",
                faults=[("NP404", "error")],
                hint=f"unset it there, or narrow {AXIS}; from {AXIS} 0.18.0: use y",
            ),
            id="not read, and the successor not yet",
        ),
        pytest.param(
            *NamedCase(
                covered=("0.13.0",),
                reads="..0.11.0",
                successor="..0.11.0",
                faults=[("NP404", "error")],
                hint=f"unset it there, or narrow {AXIS}",
            ),
            id="neither is read any more",
        ),
        pytest.param(
            *NamedCase(
                covered=("0.13.0", "0.18.0"),
                reads="0.18.0..",
                successor="..0.13.0, 0.23.0..",
                faults=[("NP404", "error")],
                hint=f"unset it there, or narrow {AXIS}; from {AXIS} 0.23.0: use y",
            ),
            id="a gap of the successor in the range",
        ),
        pytest.param(
            *NamedCase(
                covered=("0.13.0",),
                reads="..",
                successor="0.18.0..",
                faults=[("NP501", "info")],
                hint=f"from {AXIS} 0.18.0: use y",
            ),
            id="deprecated before there is a successor",
        ),
        pytest.param(
            *NamedCase(
                covered=("0.18.0",),
                reads="..",
                successor="0.18.0..",
                faults=[("NP501", "warning")],
                hint="use y",
            ),
            id="deprecated with a successor",
        ),
        pytest.param(
            *NamedCase(
                covered=("0.13.0", "0.18.0"),
                reads="..",
                successor="0.18.0..",
                faults=[("NP501", "warning")],
                hint=f"from {AXIS} 0.18.0: use y",
            ),
            id="deprecated with a successor in a part of the range",
        ),
    ],
)
def test_a_named_release_is_judged_and_its_hint_names_what_it_reads(
    covered: tuple[str, ...],
    reads: str,
    successor: str,
    faults: list[tuple[str, str]],
    hint: str,
) -> None:
    found = judge(covered, reads, "0.13.0..", successor)
    assert [(fault.code, fault.severity) for fault in found] == faults
    assert [fault.hint for fault in found] == [hint]


def test_the_reason_names_the_releases_that_read_a_setting() -> None:
    (fault,) = judge(("0.13.0", "0.18.0"), "..0.11.0, 0.20.2rc1..")
    assert fault.message == f"x is not read in {AXIS} 0.13.0, 0.18.0"
    assert fault.why.startswith(f"It is read by {AXIS} {KNOWN[0]} to 0.11.0, 0.20.2rc1 on; ")


def test_a_release_whose_sources_are_unknown_gets_a_warning() -> None:
    lifetime = Lifetime("x", AXIS, releases.load_axis(AXIS).parse_reads("0.18.0..", outside="?"))
    (fault,) = find_lifetime_faults(lifetime, ("0.13.0",))
    assert fault.code == "NP405"
    assert fault.severity == "warning"
    assert list(find_lifetime_faults(lifetime, ("0.18.0",))) == []


def test_of_releases_before_the_first_record_of_a_program_nothing_is_said() -> None:
    """kthena pins vLLM 0.13.0; its arguments are recorded from 0.18.0 on."""
    reads = releases.load_axis("vllm").parse_reads("..0.17.1?, 0.18.0..0.19.1, 0.20.2..")
    lifetime = Lifetime("x", "vllm", reads)
    assert list(find_lifetime_faults(lifetime, ("0.13.0",))) == []
    assert [fault.code for fault in find_lifetime_faults(lifetime, ("0.20.0",))] == ["NP404"]


def list_replaced() -> list[Lifetime]:
    """Return the lifetimes of all catalogue records with a successor."""
    found = []
    for section in catalog.load_sections():
        for name in catalog.record_names(section):
            record = catalog.find_record(section, name)
            if record is None or isinstance(record, catalog.Argument) or not record.replaced_by:
                continue
            key = name if section == "options" else f"{section}.{name}"
            found.append(build_lifetime(key, record))
    return found


def test_no_hint_of_the_catalogue_names_what_the_judged_release_does_not_read() -> None:
    judged = 0
    for lifetime in list_replaced():
        known = releases.load_releases(lifetime.axis)
        for index, release in enumerate(known):
            for fault in find_lifetime_faults(lifetime, (release,)):
                if fault.code == "NP405" or not fault.hint.startswith("use "):
                    continue
                successor = lifetime.successor_states or "Y" * len(known)
                # a successor that is deprecated itself is passed over for its own one
                is_direct = fault.hint.endswith(lifetime.replaced_by)
                assert successor[index] == "Y" or not is_direct, (lifetime.subject, release)
                judged += 1
    assert judged > 500


SCHEDULING = (
    "enable_sleep_mode_extra_cleanup = true\nrecompute_scheduler_enable = true\n"
    "profiling_chunk_config = { enabled = true }\nenable_balance_scheduling = true\n"
)
RENAMED = (
    "rl_config.sleep_mode_extra_cleanup = true\n"
    "scheduler_config.recompute_scheduler_enable = true\n"
)


class HistoryCase(NamedTuple):
    section: str
    lines: str
    release: str
    faults: list[str]
    hint: str


@pytest.mark.parametrize(
    HistoryCase._fields,
    [
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines="dump_config = { task = 'tensor' }",
                release="0.13.0",
                faults=["error NP404"],
                hint="use vllm_ascend.dump_config_path",
            ),
            id="dump_config in its gap",
        ),
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines="dump_config = { task = 'tensor' }",
                release="0.20.2rc1",
                faults=[],
                hint="",
            ),
            id="dump_config after its gap",
        ),
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines="dump_config_path = '/d.json'",
                release="0.18.0",
                faults=[],
                hint="",
            ),
            id="dump_config_path while it is the only name",
        ),
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines="dump_config_path = '/d.json'",
                release="0.23.0",
                faults=["warning NP501"],
                hint="use vllm_ascend.dump_config",
            ),
            id="dump_config_path beside dump_config",
        ),
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines="mix_placement = true",
                release="0.16.0rc1",
                faults=["error NP404"],
                hint="unset it there",
            ),
            id="mix_placement in its gap",
        ),
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines="draft_window_size = 3",
                release="0.24.0rc1",
                faults=[],
                hint="",
            ),
            id="draft_window_size at its first release",
        ),
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines="recompute_scheduler_enable = true",
                release="0.10.0rc1",
                faults=["error NP404"],
                hint="from vllm_ascend 0.25.1rc1: use",
            ),
            id="recompute_scheduler_enable before its first release",
        ),
        pytest.param(
            *HistoryCase(
                section="env",
                lines="VLLM_ASCEND_ENABLE_FUSED_MC2 = 1",
                release="0.18.0",
                faults=[],
                hint="",
            ),
            id="a variable before its deprecation",
        ),
        pytest.param(
            *HistoryCase(
                section="env",
                lines="VLLM_ASCEND_ENABLE_FUSED_MC2 = 1",
                release="0.20.2rc1",
                faults=["warning NP501"],
                hint="use vllm_ascend.enable_fused_mc2",
            ),
            id="a variable at its deprecation",
        ),
        pytest.param(
            *HistoryCase(
                section="env",
                lines="VLLM_ASCEND_ENABLE_FUSED_MC2 = 1",
                release="0.27.1rc1",
                faults=["error NP404"],
                hint="use vllm_ascend.enable_fused_mc2",
            ),
            id="a variable after its removal",
        ),
        pytest.param(
            *HistoryCase(
                section="env",
                lines="VLLM_ASCEND_BALANCE_SCHEDULING = 1",
                release="0.23.0",
                faults=["info NP501"],
                hint="from vllm_ascend 0.25.1rc1: use vllm_ascend.scheduler_config.enable_balance",
            ),
            id="a variable whose successor is not read yet",
        ),
        pytest.param(
            *HistoryCase(
                section="env",
                lines="VLLM_ASCEND_ENABLE_FLASHCOMM = 1\nVLLM_ASCEND_ENABLE_FLASHCOMM1 = 1",
                release="0.18.0",
                faults=[],
                hint="",
            ),
            id="an old name that is still read",
        ),
        pytest.param(
            *HistoryCase(
                section="vllm_ascend",
                lines=RENAMED,
                release="0.23.0",
                faults=["error NP404", "error NP404"],
                hint="unset it there",
            ),
            id="names that are not read yet",
        ),
    ],
)
def test_a_setting_is_judged_by_the_sources_of_the_named_release(
    section: str, lines: str, release: str, faults: list[str], hint: str
) -> None:
    found = judge_preset(f'[profile.versions]\nvllm_ascend = "=={release}"\n[{section}]\n{lines}\n')
    assert [f"{finding.severity} {finding.code}" for finding in found] == faults
    assert all(hint in finding.hint for finding in found)


def judge_preset(text: str) -> list[Finding]:
    """Return the findings about time in a preset."""
    return [finding for finding in findings(text) if finding.code in TIME]


TIME = ("NP404", "NP405", "NP501", "NP502")


def test_names_whose_successors_are_not_read_yet_are_notes_at_most() -> None:
    found = judge_preset(f'[profile.versions]\nvllm_ascend = "0.23.0"\n[vllm_ascend]\n{SCHEDULING}')
    assert {finding.severity for finding in found} <= {"info"}
    assert not any(finding.hint.startswith("use ") for finding in found)


def test_variables_that_a_stable_line_reads_are_notes_in_a_script_without_a_release() -> None:
    script = "export VLLM_ASCEND_ENABLE_FLASHCOMM1=1\nexport VLLM_ASCEND_ENABLE_FLASHCOMM=1\n"
    found = scan_text(script, "serve.sh")
    assert {finding.severity for finding in found} <= {"info"}
    named = find_release_faults(script, "vllm_ascend", "0.18.0", "serve.sh")
    assert [finding for finding in named if finding.severity != "info"] == []


#: A setting that no release has, and a variable that the newest one does not read any more.
UNKNOWN = "[vllm_ascend]\nenable_mlpo = true\n[env]\nVLLM_ASCEND_ENABLE_FUSED_MC2 = 1\n"
SERVE = "vllm serve m --additional-config '{\"enable_mlpo\": true}'\n"
GONE = "export VLLM_ASCEND_ENABLE_FUSED_MC2=1\n"


class NextCase(NamedTuple):
    files: dict[str, str]
    command: str


@pytest.mark.parametrize(
    NextCase._fields,
    [
        pytest.param(
            *NextCase(
                files={"profiles/a.toml": UNKNOWN},
                command=f"check --framework vllm_ascend={NEXT}",
            ),
            id="option of check",
        ),
        pytest.param(
            *NextCase(
                files={
                    "profiles/a.toml": f'[profile.versions]\nvllm_ascend = ">={NEXT}"\n{UNKNOWN}'
                },
                command="check",
            ),
            id="range of a preset",
        ),
        pytest.param(
            *NextCase(
                files={"a.sh": f"{GONE}{SERVE}"},
                command=f"scan . --framework vllm_ascend={NEXT}",
            ),
            id="option of scan",
        ),
        pytest.param(
            *NextCase(
                files={"a.sh": f"pip install vllm-ascend=={NEXT}\n{GONE}{SERVE}"}, command="scan ."
            ),
            id="pin in a script",
        ),
        pytest.param(
            *NextCase(
                files={"a.sh": f"{GONE}{SERVE}", "requirements.txt": f"vllm-ascend=={NEXT}\n"},
                command="scan .",
            ),
            id="pin of a folder",
        ),
    ],
)
def test_a_release_newer_than_all_known_ones_makes_no_error_about_names(
    files: dict[str, str], command: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, dict(files))
    monkeypatch.chdir(tmp_path)
    done = run(*command.split(), "--severity", "info")
    assert done.code == 0, done
    # only findings of scripts are likely
    mark = "likely: " * command.startswith("scan")
    assert f"warning NP212: {mark}vllm_ascend has no setting 'enable_mlpo'" in done.out
    assert f"not read in vllm_ascend {KNOWN[-1]}" in done.out
    assert "warning NP404: " in done.out
    assert " error " not in done.out


@pytest.mark.parametrize("specs", ["", "a"])
@pytest.mark.parametrize(
    ("option", "named"),
    [
        (f"--framework vllm_ascend={NEXT}", f"vllm_ascend {NEXT}"),
        (f"--cann {NEXT_CANN}", f"cann {NEXT_CANN}"),
    ],
)
def test_one_note_names_the_release_that_is_newer_than_all_known_ones(
    option: str,
    named: str,
    specs: str,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clean = "[options]\nhcom_parallel = true\n"
    write(tmp_path, {"profiles/a.toml": clean, "profiles/b.toml": clean})
    monkeypatch.chdir(tmp_path)
    done = run("check", *specs.split(), *option.split(), "--severity", "info")
    assert done.code == 0, done
    assert done.out.count("NP402") == 1
    assert f"info NP402: {named} is newer than all known releases" in done.out


def test_a_misspelt_option_is_a_warning_for_a_cann_release_newer_than_all_known_ones(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"profiles/a.toml": "[options]\nhccl_timeot = 3\n"})
    monkeypatch.chdir(tmp_path)
    assert "warning NP201" in run("check", "--cann", NEXT_CANN).out
    other = run("check", "--framework", f"vllm_ascend={NEXT}")
    assert "error NP201" in other.out  # the option is one of CANN


@pytest.mark.parametrize(
    ("claimed", "requested", "codes"),
    [
        pytest.param(">=9.0,<=9.2.0", NEXT_CANN, ["NP406"], id="a range that ends before it"),
        pytest.param(">=9.0", NEXT_CANN, [], id="an open range"),
        pytest.param(f">={NEXT_CANN}", NEXT_CANN, [], id="a range from it on"),
        pytest.param(f">={NEXT_CANN}", "9.0.0", ["NP406"], id="a range after the named release"),
    ],
)
def test_a_range_of_a_preset_is_compared_with_the_release_as_written(
    claimed: str, requested: str, codes: list[str]
) -> None:
    text = f'[profile]\ncann = "{claimed}"\n'
    found = npuprof.check(npuprof.loads(text, cann=requested))
    outside = [finding for finding in found if finding.code == "NP406"]
    assert [finding.code for finding in outside] == codes
    assert all(finding.message.endswith(f"not for {requested}") for finding in outside)


@pytest.mark.parametrize("spec", [f">{releases.load_releases()[-1]}", f">={NEXT_CANN},<99"])
def test_a_range_after_the_newest_release_is_judged_as_that(spec: str) -> None:
    assert releases.find_judged_releases(spec) == releases.load_releases()[-1:]


def test_a_range_of_packages_may_end_before_a_version_without_packages() -> None:
    inside = releases.find_releases_in_range(">=2.9,<3", "torch_npu")
    assert inside
    assert inside == releases.find_releases_in_range(">=2.9,<2.99", "torch_npu")
    assert releases.find_releases_in_range(">=3", "torch_npu") is None


def test_a_name_of_another_section_stays_an_error_beyond_the_newest_release() -> None:
    text = f'[profile]\ncann = ">={NEXT_CANN}"\n[options]\nunheard_of = 1\n'
    text += "TASK_QUEUE_ENABLE = 1\n"
    found = {finding.key: finding.severity for finding in findings(text) if finding.code == "NP201"}
    assert found == {"unheard_of": "warning", "TASK_QUEUE_ENABLE": "error"}


def test_a_reversed_range_of_a_row_is_rejected() -> None:
    with pytest.raises(ValueError, match="reversed range"):
        build_letters("0.13.0..0.11.0")
