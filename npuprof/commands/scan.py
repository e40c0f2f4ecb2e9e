"""``scan``: lint scripts in place, file by file; one broken file never stops the run."""

from __future__ import annotations

import sys
import time

from npuprof import report
from npuprof.commands.flags import Form
from npuprof.model import Context, Finding
from npuprof.report import output
from npuprof.scripts.files import find_script_files
from npuprof.scripts.lint import check_script
from npuprof.scripts.reading import import_script, may_hold_settings
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def scan_paths(
    paths: Sequence[str],
    store: str | None,
    cann: str | None,
    product: str | None,
    format_: str,
    severity: str | None,
    strict: bool,
    path: str | None,
    color: str,
) -> int:
    """Lint scripts and shell files.

    Exit 2 where a file named on the command line could not be read, 1 where there are errors, 0 otherwise.
    """
    form = Form(format_, severity, strict, path, color).known()
    context = spec.build_context(cann, product)
    named = set(paths)
    findings: list[Finding] = []
    unread = 0
    count = 0
    from npuprof.scripts.blocks import build_block_checker

    blocks: Callable[[str, bytes], list[Finding]] = build_block_checker(store)
    for file, data in _files(list(paths) or ["."], findings):
        count += 1
        if isinstance(data, Finding):
            findings.append(data)
            unread += file in named
        elif file in named or may_hold_settings(file, data):
            found = [*_linted(file, data, context), *blocks(file, data)]
            findings += found
            unread += file in named and any(one.code == "NP801" and one.severity == "warning" for one in found)
    told = form.told(findings)
    hidden = len(findings) - len(told)
    more = f" ({hidden} more with --severity info)" if hidden else ""
    form.hand_out(told, f"{report.format_count(count, 'file')} scanned: {report.format_severity_counts(told) or 'nothing found'}{more}")
    return 2 if unread else form.code(findings)


def _linted(file: str, data: bytes, context: Context) -> list[Finding]:
    return check_script(import_script(file, data), context)


def _files(paths: list[str], problems: list[Finding]) -> Iterator[tuple[str, bytes | Finding]]:
    """Yield each file with its bytes, or with the reason why it cannot be read; say how far it is on a terminal."""
    started = told = time.monotonic()
    for count, file in enumerate(find_script_files(paths, problems)):
        if sys.stderr.isatty() and time.monotonic() - told > 1 and time.monotonic() - started > 2:
            told = time.monotonic()
            output.write_to_stderr(f"npuprof: {count} files looked at, now {file}")
        try:
            with open(file, "rb") as opened:
                yield file, opened.read()
        except OSError as error:
            why = "The other files were looked at all the same."
            yield (
                file,
                Finding("NP801", "warning", f"cannot read the file: {str(error.strerror).lower()}", why, "", where=(file, 0, 0)),
            )
