"""``source add``: add a source, fetch it and lock its commit."""

from __future__ import annotations

import os

from npuprof.commands.framework import argument, flag, option, option_with_default
from npuprof.commands.framework.parameters import StoreVerb
from npuprof.model import NpuprofError, build_error
from npuprof.report import Answer
from npuprof.store import FILE, project, spec
from npuprof.store.sources import fetching
from npuprof.store.sources.locked_commits import lock_sources
from npuprof.store.sources.locking import list_unreadable, suggest_range


class Add(StoreVerb):
    """Add a source of presets.

    npuprof source add team ssh://git@host/presets.git

    Fetches the repository, then writes its address to npuprof.toml and its commit to npuprof.lock.
    """

    usage_hint = 'npuprof source add team https://git.example.org/presets.git --rev "^2.1"'
    group = "team"

    name = argument("NAME", "Name of the source, as in team:base/training")
    url = argument("GIT-URL", "Address of the repository: ssh, https or file")
    path = option_with_default(
        "--path",
        metavar="FOLDER",
        text="Read the store in FOLDER, relative to the top of the repository",
        default="profiles",
    )
    rev = option(
        "--rev",
        metavar="REV",
        text=(
            "Use a version range such as ^2.1, or a revision "
            "[default: compatible with the newest version, else HEAD]"
        ),
        complete="revision",
    )
    rules = flag(
        "--rules", text="Apply the source's team rules to the presets of this repository too"
    )
    moved = flag("--moved", text="Accept tags that moved upstream")

    def run(self) -> Answer:
        """Fetch the source and write npuprof.toml and npuprof.lock. Raises NpuprofError."""
        files = spec.open_project_files(self.store)
        files.reject_shipped()
        url = (
            os.path.abspath(self.url)
            # a relative path would mean another place in each clone
            if self.url.startswith((".", "~")) and os.path.isdir(os.path.expanduser(self.url))
            else self.url
        )
        if not project.is_source_name(self.name):
            what = f"{self.name!r} cannot be the name of a source"
            hint = project.SOURCE_NAME_ADVICE
            raise build_error("NP040", what, project.SOURCE_NAME_RULE, hint)
        if taken := next(
            (known for known in files.project.sources if known.lower() == self.name.lower()), None
        ):
            hint = f"edit {files.cite(FILE)}, or remove it first: npuprof source remove {taken}"
            raise build_error("NP040", f"there is a source {taken!r} already", "", hint)
        rev = self.rev or suggest_range(fetching.fetch_source(url, self.moved, self.name))
        entry = {
            "url": url,
            "path": self.path,
            "rev": rev,
            **({"rules": True} if self.rules else {}),
        }
        import tomlkit

        # checked as npuprof.toml would be, so that both have the same rules
        text = tomlkit.dumps({"sources": {self.name: entry}})
        try:
            source = project.parse_project(f"source add {self.name}", text.encode()).sources[
                self.name
            ]
        except NpuprofError as error:  # an error in the arguments, not in a file
            raise NpuprofError(
                [finding._replace(origin=None, key="") for finding in error.findings]
            ) from None
        locked = lock_sources(files, [source], self.moved).sources
        written = files.write({self.name: entry}, {**files.lock.sources, **locked})
        there = locked[self.name]
        here = (
            f"{self.name} is at {url}, a path of this "
            "machine: elsewhere sync has to find it there too"
        )
        note = (
            f"added {self.name} at {there.tag or there.commit[:7]} "
            f"(rev = {rev!r}): its presets are {self.name}:NAME"
        )
        return Answer(
            None,
            (
                note,
                *list_unreadable(there),
                f"wrote {', '.join(written)}",
                *([here] if url != self.url else []),
            ),
        )


VERB = Add
