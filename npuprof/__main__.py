"""The ``npuprof`` command: runs a verb and prints its answer or error."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # import nothing else before ``script`` has deferred garbage collection
    from collections.abc import Sequence
    from typing import Any

    from npuprof.commands.framework import Verb

#: The number of new objects before the first garbage collection: more than reading a store once
#: creates.
_NEW_OBJECTS = 100_000


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 1 findings or differences, 2 usage or
    input error, 70 a bug in npuprof.
    """
    import os

    from npuprof.model import NpuprofError, failed_reads, renew_hints, shorten_values

    renew_hints()
    failed_reads.clear()
    arguments = list(sys.argv[1:] if words is None else words)
    try:
        return _dispatch_words(arguments)
    except NpuprofError as error:
        _print_error(error)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the reader has closed the pipe: avoid an error message at exit
        return 141
    except Exception as error:
        if os.environ.get("NPUPROF_DEBUG") == "1":
            raise
        if isinstance(error, (RecursionError, MemoryError)):
            what = (
                "files or folders are nested too deeply"
                if isinstance(error, RecursionError)
                else "not enough memory"
            )
            sys.stderr.write(
                f"npuprof: cannot continue: {what}\n"
                "  try: name fewer files; NPUPROF_DEBUG=1 shows where\n"
            )
            return 2
        if isinstance(error, OSError):
            _tell_system_error(error)
            return 2
        from npuprof.report.text import escape_controls

        message = escape_controls(shorten_values(f"{type(error).__name__}: {error}"))
        sys.stderr.write(
            f"npuprof: a bug in npuprof, not in your files: {message}\n"
            "  try: NPUPROF_DEBUG=1 shows where; please report "
            "it with the preset that brought it about\n"
        )
        return 70


def _dispatch_words(words: list[str]) -> int:
    """Run the verb named by the arguments, with the fast parser if the arguments are plain, else
    with Typer.
    """
    import os

    if (instruction := os.environ.get("_NPUPROF_COMPLETE", "")).startswith("complete_"):
        from npuprof.commands.completion import answer_shell

        return answer_shell(instruction, os.environ)
    from npuprof.commands.framework import load_verb

    loaded = load_verb(words) if words else None
    if loaded is not None:
        from npuprof.commands.framework import parse_plain_words

        parameters = parse_plain_words(loaded[1], loaded[2])
        if parameters is not None:
            return run_verb(loaded[1], parameters)
    from npuprof.commands.framework import application

    return application.run_words(words, run_verb)


def run_verb(verb: type[Verb], parameters: dict[str, Any]) -> int:
    """Run a verb with its parameters, print its answer, and return the exit code.

    Raises NpuprofError.
    """
    from npuprof.model import failed_reads
    from npuprof.report import output

    command = verb(parameters)
    answer = command.run()
    for note in answer.early_notes:
        output.print_note(note)
    text = answer.write_form(command.format)
    if text is not None:
        pieces = output.encode_pieces(
            text, command.output, command.coloured, command.prose and command.format in ("", "text")
        )
        if command.output is None and not command.hidden and sys.stdout.isatty():
            from npuprof.report.terminal import page_answer

            page_answer(pieces, output.write_answer)
        elif command.output in (None, "-"):
            output.write_answer(pieces)
        else:
            from npuprof.system.writing import write_files_atomically

            write_files_atomically({command.output: b"".join(pieces)})
            output.print_note(f"wrote {command.output}")
    if answer.aside:
        output.write_to_stderr(answer.aside.rstrip("\n"))
    for note in answer.notes:
        output.print_note(note)
    unread = [
        finding._replace(severity="warning")
        for finding in failed_reads.values()
        if finding not in answer.problems
    ]
    if problems := (*answer.problems, *unread):
        from npuprof.report.findings import format_findings

        output.write_to_stderr(
            format_findings(problems, output.is_colour_wanted("auto", sys.stderr)).rstrip("\n")
        )
    return answer.code


def _print_error(error: Exception) -> None:
    from contextlib import suppress

    from npuprof.report.findings import format_findings
    from npuprof.report.output import fit_to_stderr, is_colour_wanted

    text = format_findings(getattr(error, "findings", ()), is_colour_wanted("auto", sys.stderr))
    with suppress(OSError):  # the error itself may be that stderr is closed
        sys.stdout.flush()
    sys.stderr.write(fit_to_stderr(text))


def _tell_system_error(error: OSError) -> None:
    """Print an operating system error: a full or closed stream, or a file that vanished."""
    from npuprof.model import shorten_values
    from npuprof.report.text import escape_controls
    from npuprof.system.files import describe_os_error

    path = error.filename2 or error.filename
    name = path if isinstance(path, str) else repr(path)
    what = (
        f"cannot use {name}: {describe_os_error(error, name)}"
        if path is not None
        else f"cannot write: {describe_os_error(error)}"
    )
    sys.stderr.write(f"npuprof: {escape_controls(shorten_values(what))}\n")


def script() -> None:
    """Run as the installed command.

    A short command collects no garbage and frees nothing at exit. A long-running command must
    collect garbage, because stores and their presets refer to each other.
    """
    import gc
    import os

    gc.set_threshold(_NEW_OBJECTS, 50, 50)
    for name, way in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if (
            getattr(sys, name) is None
        ):  # the caller closed it: reads and writes fail, messages are dropped
            setattr(sys, name, os.fdopen(os.open(os.devnull, way), "r" if name == "stdin" else "w"))
    code = 0
    try:
        code = main()
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = 141
    except OSError:
        code = code or 2
    os._exit(code)


if __name__ == "__main__":
    script()
