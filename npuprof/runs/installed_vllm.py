"""The installed vLLM: the arguments that its parser reads, by the source, which never runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from npuprof import catalog
from npuprof.catalog.installed_arguments import Parsers
from npuprof.model import Record, build_error
from npuprof.runs.adapter import UNREADABLE, read_versions
from npuprof.runs.adapter_files import Source, find_installed, open_source
from npuprof.system.files import LARGEST_FILE, describe_os_error, find_packages

PACKAGES = ("vllm",)
#: The files with the parser of the engine and that of the server.
_PARSERS = re.compile(r"((?:.*/)?vllm/)(?:engine/arg_utils|entrypoints/\w+/cli_args)\.py$")
#: The parts that turn an argument on or off.
_SWITCH = re.compile("^(?:no|enable|disable)-")


class Vllm(Record):
    """An installed vLLM: its folder, its release if known, and the arguments that it reads.

    ``arguments`` are without leading dashes and negations, with short names. They are None if the
    parser cannot be resolved, for which ``why`` is the reason.
    """

    path: str
    version: str
    arguments: frozenset[str] | None
    why: str

    def reads(self, name: str) -> bool | None:
        """Return whether the parser reads an argument of ``[vllm]``, by any of its names.

        None if unknown: releases differ in the switches for which they have a negation.
        """
        top = name.partition(".")[0].replace("_", "-")
        if self.arguments is None:
            return None
        record = catalog.find_record("vllm", top)
        if self.arguments.intersection((top, *getattr(record, "aliases", ()))):
            return True
        bare = _SWITCH.sub("", top)
        switches = (bare, f"enable-{bare}", f"disable-{bare}")
        return None if bare != top and self.arguments.intersection(switches) else False

    def list_uncatalogued(self) -> list[str]:
        """Return the arguments that the parser reads and the catalogue lacks, sorted."""
        known = {flag.lstrip("-") for flag in catalog.list_flags("vllm")}
        return sorted((self.arguments or frozenset()) - known)


def find_vllm(path: str | None) -> Vllm | None:
    """Return vLLM at a path (a folder or a wheel), else the installed one; None if there is none.

    That of the Python on PATH comes before that beside npuprof. Raises NpuprofError if there is
    none at the path.
    """
    if path is None:
        beside = (open_source(found, PACKAGES) for found in find_packages("vllm"))
        return read_vllm(find_installed(PACKAGES)) or read_vllm(beside)
    if found := read_vllm([open_source(path, PACKAGES)]):
        return found
    hint = "name the folder that contains vllm, or a wheel"
    raise build_error("NP963", f"{path} does not contain vLLM", "", hint)


def read_vllm(sources: Iterable[Source]) -> Vllm | None:
    """Return vLLM in the first source that has it, None if none has."""
    for source in sources:
        found = list(filter(None, map(_PARSERS.match, source.names)))
        names = [match[0] for match in found if match[1] == found[0][1]]
        if names:
            version = read_versions(source).get("vllm", "")
            path = os.path.join(source.shown, found[0][1].rstrip("/"))
            parsers = Parsers()
            try:
                for name in names:
                    with source.open(name) as file:
                        parsers.read(file.read(LARGEST_FILE))
                arguments = parsers.list_arguments()
            except UNREADABLE as error:
                return Vllm(path, version, None, describe_os_error(error))
            why = "" if arguments else "its parser has an unknown form"
            return Vllm(path, version, arguments, why)
    return None
