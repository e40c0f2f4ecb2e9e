"""A page of more changes than fit lists broken and removed presets first, and counts the rest."""

from __future__ import annotations

import re

import pytest

from npuprof.compare.markdown_changes import format_survey_markdown
from npuprof.compare.preset_states import Pair
from npuprof.compare.spans import Faults, Page
from npuprof.compare.survey import Survey
from npuprof.model import Finding, Place


def build_broken(name: str, fault: str, code: str = "NP203") -> Pair:
    finding = Finding(
        code, fault, hint="write another", where=Place(f"profiles/{name}.toml", 3), severity="error"
    )
    return Pair(name, "unchanged", broken=(finding,), valid=(True, False))


def find_line(page: str, start: str) -> str:
    (line,) = [line for line in page.splitlines() if line.startswith(start)]
    return line


def count_listed(line: str) -> int:
    """Return how many names a list prints, and how many it counts."""
    more = re.search(r" and (\d+) more$", line.rstrip())
    return len(re.findall(r"`[^`]*/[^`]*`", line.partition("): ")[2] or line)) + (
        int(more[1]) if more else 0
    )


@pytest.mark.parametrize("alike", [True, False])
def test_broken_and_removed_presets_are_named_or_counted_however_many_there_are(
    alike: bool,
) -> None:
    broken = [f"team-{n % 9}/some-longer-directory-name/preset-number-{n:04}" for n in range(1800)]
    gone = [f"team-{n % 9}/another-long-directory-name/preset-gone-{n:04}" for n in range(600)]
    pairs = [
        build_broken(name, "x is none of 0, 1" if alike else f"x = {place} is none of 0, 1")
        for place, name in enumerate(broken)
    ]
    survey = Survey(
        "a", "b", (*pairs, *(Pair(name, "removed", valid=(True, None)) for name in gone))
    )
    page = format_survey_markdown(survey)
    assert len(page) <= 60_000
    assert "1800 broken, 600 removed" in page.splitlines()[0]
    assert count_listed(find_line(page, "**Removed**: ")) == 600
    faults = [line for line in page.splitlines() if line.startswith("- NP203 `x ")]
    if alike:
        assert len(faults) == 1
        assert count_listed(faults[0]) == 1800
    else:
        assert len(faults) > 100, "half of the page is for faults"
        assert f"- and {1800 - len(faults)} other faults\n" in page


def test_what_has_no_room_is_counted_with_the_command_that_prints_it() -> None:
    from npuprof.compare.changes import Change

    change = Change("dump_path", "changed", "a", "b" * 250)
    broken = [f"jobs/{n:04}" for n in range(900)]
    pairs = [
        build_broken(name, "x")._replace(
            status="changed", changes=(change._replace(after=f"{n}{'b' * 250}"),)
        )
        for n, name in enumerate(broken)
    ]
    page = format_survey_markdown(
        Survey("a", "b", tuple(pairs)), Page(command="npuprof diff --rev a...b")
    )
    assert len(page) <= 60_000
    shown = page.count("<details>")
    assert shown > 50
    assert page.endswith(
        f"\nLeft out: {900 - shown} changes in {900 - shown} "
        "parts (`npuprof diff --rev a...b` shows them).\n"
    )


def test_owners_and_what_is_new_are_printed_or_counted_besides_a_crowd() -> None:
    names = [f"team/{'long' * 9}/{n:04}" for n in range(2000)]
    survey = Survey(
        "a",
        "b",
        (
            *(build_broken(name, "x") for name in names),
            *(Pair(f"new/{n}", "added") for n in range(3000)),
        ),
    )
    page = format_survey_markdown(
        survey, Page(owners={name: (f"@owner-{place % 700}",) for place, name in enumerate(names)})
    )
    assert len(page) <= 60_000
    for title, number in (("**New**", 3000), ("Owners of affected presets", 700)):
        line = find_line(page, f"{title}: ")
        assert line.count("`") // 2 + int(re.findall(r"and (\d+) more", line)[0]) == number


def test_findings_from_elsewhere_have_room_of_their_own() -> None:
    names = [f"team/{'long' * 9}/{n:04}" for n in range(3000)]
    merged = [
        Finding(
            "NP105", f"option {n} is locked", profiles=(f"jobs/{n}",), where=Place(f"j{n}.toml", 8)
        )
        for n in range(300)
    ]
    faults = (Faults("Broken by the merge with `main`", "300 broken by the merge", merged),)
    page = format_survey_markdown(
        Survey("a", "b", tuple(build_broken(name, "x") for name in names)), Page(faults=faults)
    )
    assert len(page) <= 60_000
    assert "3000 broken, 300 broken by the merge" in page.splitlines()[0]
    shown = page.count("- NP105 ")
    assert shown > 100
    assert f"- and {300 - shown} other faults\n" in page


def test_a_fault_is_told_with_what_to_try_where_that_has_room() -> None:
    page = format_survey_markdown(Survey("a", "b", (build_broken("one", "x `y`"),)))
    assert "- NP203 `` x `y` `` (`profiles/one.toml:3`): `one`  \n  try: `write another`\n" in page
