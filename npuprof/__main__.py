"""The ``npuprof`` command: runs a verb and prints its answer or error."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # import nothing else before ``script`` has deferred garbage collection
    from collections.abc import Sequence

    from npuprof.commands.framework import Verb
    from npuprof.model import Fields

#: The number of new objects before the first garbage collection: more than reading a store once
#: creates.
_NEW_OBJECTS = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 is success, 1 findings or differences, 2 a usage or input error, 70 a bug in npuprof.
    """
    import os

    from npuprof.model import NpuprofError, failed_reads, renew_hints, shorten_values

    renew_hints()
    failed_reads.clear()
    try:
        return _dispatch_command(list(sys.argv[1:] if arguments is None else arguments))
    except NpuprofError as error:
        _print_error(error)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader has closed the pipe: avoid an error message at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if os.environ.get("NPUPROF_DEBUG") == "1":
            raise
        if isinstance(error, (RecursionError, MemoryError)):
            what = "not enough memory"
            if isinstance(error, RecursionError):
                what = "files or folders are nested too deeply"
            sys.stderr.write(
                f"npuprof: cannot continue: {what}\n"
                "  try: name fewer files; NPUPROF_DEBUG=1 shows where\n"
            )
            return 2
        if isinstance(error, OSError):
            _print_system_error(error)
            return 2
        from npuprof.report.text import escape_controls

        message = escape_controls(shorten_values(f"{type(error).__name__}: {error}"))
        sys.stderr.write(
            f"npuprof: a bug in npuprof, not in your files: {message}\n"
            "  try: NPUPROF_DEBUG=1 shows where; please report "
            "it with the preset that brought it about\n"
        )
        return 70


def _dispatch_command(arguments: list[str]) -> int:
    """Run the verb that the arguments name, or complete a command line.

    Plain arguments are parsed without Typer, which takes longer to import than most verbs to run.
    """
    import os

    instruction = os.environ.get("_NPUPROF_COMPLETE", "")
    if instruction.startswith("complete_"):
        from npuprof.commands.completion import answer_shell

        return answer_shell(instruction, os.environ)
    from npuprof.commands.framework import imply_values, load_verb, parse_plain_arguments

    loaded = load_verb(arguments)
    if loaded is not None:
        plain = imply_values(loaded.verb, loaded.arguments)
        arguments = [*loaded.names, *plain]
        parameters = parse_plain_arguments(loaded.verb, plain)
        if parameters is not None:
            return run_verb(loaded.verb, parameters)
    from npuprof.commands.framework import application

    return application.run_arguments(arguments, run_verb)


def run_verb(verb: type[Verb], parameters: Fields) -> int:
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
    output.print_findings((*answer.problems, *unread))
    return answer.code


def _print_error(error: Exception) -> None:
    from contextlib import suppress

    from npuprof.report.findings import format_findings
    from npuprof.report.output import fit_to_stderr, is_colour_wanted

    text = format_findings(getattr(error, "findings", ()), is_colour_wanted("auto", sys.stderr))
    with suppress(OSError):  # the error itself may be that stderr is closed
        sys.stdout.flush()
    sys.stderr.write(fit_to_stderr(text))


def _print_system_error(error: OSError) -> None:
    """Print an operating system error: a full or closed stream, or a file that vanished."""
    from npuprof.model import shorten_values
    from npuprof.report.text import escape_controls
    from npuprof.system.files import describe_os_error

    path = error.filename2 or error.filename
    if path is None:
        what = f"cannot write: {describe_os_error(error)}"
    else:
        name = path if isinstance(path, str) else repr(path)
        what = f"cannot use {name}: {describe_os_error(error, name)}"
    sys.stderr.write(f"npuprof: {escape_controls(shorten_values(what))}\n")


def script() -> None:
    """Run as the installed command.

    A short command collects no garbage and frees nothing at exit. A long-running command must
    collect garbage, because stores and their presets refer to each other.
    """
    import gc
    import os

    gc.set_threshold(_NEW_OBJECTS, 50, 50)
    # For streams that the caller closed: reads and writes fail, messages are dropped.
    for name, access in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode))
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
