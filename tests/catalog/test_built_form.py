"""The built forms: current in a checkout, complete in a wheel without their sources."""

from __future__ import annotations

import marshal
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof import renderers, system
from npuprof.catalog.records import Axis, parse_release_version
from npuprof.commands.framework import GROUPS, list_groups, list_verb_names, load_verb
from npuprof.system.checkout import build_parts, write_parts
from support.building import REPOSITORY, Checkout

#: The packages with a built form.
PACKAGES = sorted(path.parent.name for path in (REPOSITORY / "npuprof").glob("*/build.py"))
COMMANDS, RENDERERS = REPOSITORY / "npuprof/commands", REPOSITORY / "npuprof/renderers"
RECORD = '[a_new_option]\nfield = "i"\nkind = "int"\nsummary = "For a test."\nsource = ["a test"]\n'


def leave_alone(catalogue: Path) -> None:
    """Change nothing."""


def cut_kept_files(catalogue: Path) -> None:
    """Leave files that a process has not written to the end."""
    for path in (catalogue / "_built").iterdir():
        path.write_bytes(path.read_bytes()[:-10])


def refuse_writing(catalogue: Path) -> None:
    """Leave no place where anything could be kept."""
    shutil.rmtree(catalogue / "_built")
    (catalogue / "_built").write_text("")


@pytest.mark.parametrize("leave", [leave_alone, cut_kept_files, refuse_writing])
def test_a_checkout_shows_its_records_as_they_are_now(
    checkout: Checkout, leave: Callable[[Path], None]
) -> None:
    assert "a_new_option" not in checkout.run("options")
    leave(checkout.catalogue)
    page = checkout.catalogue / "options/basic.toml"
    text = page.read_text()
    page.write_text(f"{text}\n{RECORD}")
    assert "a_new_option" in checkout.run("options")
    page.write_text(text)
    assert "a_new_option" not in checkout.run("options")


def test_a_checkout_reads_its_records_once_for_many_commands(checkout: Checkout) -> None:
    checkout.run("options")
    kept = checkout.catalogue / "_built"
    assert {path.stem for path in kept.iterdir()} == set(build_parts("catalog"))
    before = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    checkout.run("options")
    assert {path: path.stat().st_mtime_ns for path in kept.iterdir()} == before


def test_an_installed_package_needs_no_records(checkout: Checkout) -> None:
    for path in [
        *checkout.catalogue.rglob("*.toml"),
        *checkout.package.glob("*/build.py"),
        checkout.package / "system/checkout.py",
    ]:
        path.unlink()
    assert "_built" in checkout.run("options", code=2)
    for package in PACKAGES:
        write_parts(package, str(checkout.package / package / "_built"))
    assert "hccl_timeout" in checkout.run("options")
    assert "check presets" in checkout.run("--help")
    assert "hccl_timeout" in checkout.run(
        "render", "-", "--to", "json", stdin="[options]\nhccl_timeout = 600\n"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_wheel_carries_says_what_the_records_say(package: str, tmp_path: Path) -> None:
    write_parts(package, str(tmp_path))
    parts = build_parts(package)
    written = {path.stem: marshal.loads(path.read_bytes()) for path in tmp_path.glob("*.marshal")}
    assert parts
    assert written == parts
    assert {name: system.load_built_part(package, name) for name in parts} == parts


def test_the_index_of_targets_has_the_fields_of_the_imported_targets() -> None:
    index = renderers.load_target_index()
    targets = {name: renderers.load_target(name) for name in index}
    assert [*targets] == sorted(targets, key=lambda name: targets[name].place)
    assert index
    for name, row in index.items():
        assert row.surface == targets[name].surface, name
        assert row.sections == targets[name].sections, name
    modules = [
        __import__(f"npuprof.renderers.{path.stem}", fromlist=["TARGETS"])
        for path in RENDERERS.glob("[!_]*.py")
    ]
    assert {name for module in modules for name in getattr(module, "TARGETS", ())} == index.keys()


def test_the_index_of_verbs_has_the_texts_of_the_imported_verbs() -> None:
    purposes, groups = dict(list_verb_names()), list_groups()
    assert len(purposes) > 40
    cases = [*COMMANDS.rglob("*.py")]
    assert cases
    for path in cases:
        texts = [
            part.rstrip("_").replace("_", "-")
            for part in path.relative_to(COMMANDS).with_suffix("").parts
        ]
        found = load_verb(texts)
        if found is not None and list(found.names) == texts:
            names, verb = found.names, found.verb
            assert purposes.pop(names, None) == (
                None if verb.hidden else str(verb.__doc__).split("\n")[0]
            ), names
            assert texts[0] in groups.get(GROUPS.get(verb.group, ""), texts), names
    assert not purposes


def test_a_target_takes_fields_by_name_only() -> None:
    target = renderers.load_target("atc")
    with pytest.raises(TypeError, match="Target takes place, summary"):
        renderers.Target(*target._asdict().values())  # type: ignore[call-arg]
    assert renderers.Target(**target._asdict()) == target


SHORT_AXIS = Axis(
    parse_release_version,
    {
        name: parse_release_version(name) or (0, 0, 0, 0, 0, 0)
        for name in ("6.0.0", "7.0.0", "8.0.0", "9.0.0", "9.1.0")
    },
)


@pytest.mark.parametrize(
    ("reads", "states"),
    [
        ("7.0.0..", ".YYYY"),
        ("8.0.0.., 7.0.0?", ".?YYY"),
        ("..7.0.0?, 9.0.0..", "??.YY"),
        ("7.0.0..8.0.0, 9.1.0..", ".YY.Y"),
        ("6.0.0..7.0.0, 8.0.0..?", "YY???"),
        ("6.0.0", "Y...."),
        ("..", "YYYYY"),
        ("never", "....."),
    ],
)
def test_the_letters_of_a_setting_say_which_release_reads_it(reads: str, states: str) -> None:
    assert SHORT_AXIS.parse_reads(reads) == states


@pytest.mark.parametrize("reads", ["9.0.0..6.0.0", "6.5.0..", "..x", "6.0.0 to 7.0.0", ""])
def test_a_set_of_releases_that_names_no_known_range_is_refused(reads: str) -> None:
    with pytest.raises(ValueError, match=r"^(unknown release in|reversed range)"):
        SHORT_AXIS.parse_reads(reads)
