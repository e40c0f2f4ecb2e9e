"""A report on many scripts as the answer of a verb, in each of its forms."""

from __future__ import annotations

from collections.abc import Mapping

from npuprof.catalog.releases import release_index
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.scripts.summary.gathering import Survey
    from npuprof.scripts.summary.parts import Report

#: What ``--format`` may say for a report.
REPORT_FORMATS = ("text", "json", "html")


def find_earlier_release(given: str | None, release: str | None) -> str:
    """Return the release that a user comes from, empty where he does not say.

    Raises NpuprofError where it is not known, later than the one to move to, or there is none to move to.
    """
    if given is None:
        return ""
    since = str(spec.build_context(given).cann)
    if release is None:
        raise NpuprofError([Finding("NP902", "--from needs to know which release to move to", "", "say --cann RELEASE as well")])
    if release_index(since) > release_index(release):
        what = f"--from {since} is later than --cann {release}"
        raise NpuprofError([Finding("NP902", what, "A move goes to a later release.", "say it the other way round")])
    return since


def refuse_without_report(word: str, given: Mapping[str, object]) -> None:
    """Raise NpuprofError where something is asked for that only the report has, which ``word`` asks for."""
    wrong = [name for name, value in given.items() if value]
    if wrong:
        what = f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} for {word}"
        raise NpuprofError([Finding("NP902", what, "", f"add {word}, or leave {'it' if len(wrong) == 1 else 'them'} out")])


def refuse_with_report(word: str, given: Mapping[str, object]) -> None:
    """Raise NpuprofError where something is asked for that a report has no place for."""
    wrong = [name for name, value in given.items() if value]
    if wrong:
        what = f"{word} tells of all scripts together, and has no place for {' and '.join(wrong)}"
        raise NpuprofError([Finding("NP902", what, "", f"leave out {word}, or {' and '.join(wrong)}")])


def answer_report(report: Report, survey: Survey, coloured: bool, code: int) -> Answer:
    """Return a report as an answer."""
    from npuprof.scripts.summary import data, page, plain

    asked = {"cann": survey.context.cann, "from": survey.since or None}

    def write_text() -> str:
        return plain.format_report(report, coloured)

    forms = {
        "text": write_text,
        "json": lambda: data.build_report_fields(report, asked), "html": lambda: page.format_report_page(report),
    }  # fmt: skip
    return Answer(forms, report.remarks, code)
