"""``list``: list all presets, or those whose resolved values satisfy a condition."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from npuprof.commands.framework import flag, many
from npuprof.commands.framework.parameters import STORE, PrintingVerb, formats
from npuprof.document.profile import Profile
from npuprof.model import TYPE_CHECKING, Fields, Finding, NpuprofError, failed_reads
from npuprof.report import Answer
from npuprof.report.isolating import collect_errors, isolate_faults
from npuprof.report.tables import Table, format_code_span
from npuprof.report.text import Code, Markup
from npuprof.resolve.config import Config
from npuprof.store import is_profile_name, is_source_reference, spec
from npuprof.store.base import CachedStore
from npuprof.store.enclosing_repository import has_release_tags
from npuprof.store.folder import Folder
from npuprof.store.outputs import Outputs
from npuprof.store.problems import lacks_source
from npuprof.system import find_folder, group_pairs

if TYPE_CHECKING:
    from npuprof.edit.conditions import Conditions
    from npuprof.report import Forms
    from npuprof.store.gitstore.repository import Repository

_COLUMNS = ("preset", "for", "version", "extends", "description")


class List(PrintingVerb):
    """List presets."""

    usage_hint = (
        "npuprof show NAME shows one preset; --where CONDITION "
        "chooses among them, and --store FOLDER another store."
    )
    group = "presets"

    store = STORE
    tree = flag("--tree", text="Show the inheritance as a tree")
    where = many(
        "--where",
        metavar="COND",
        text=(
            "List only presets whose resolved values meet COND, such as 'hccl_timeout > 1800'; if "
            "repeated, all conditions apply"
        ),
        complete="condition",
    )
    versions = flag(
        "--versions", text="List released versions instead of presets; in Markdown, as a changelog"
    )
    format = formats("text", "markdown", "json")

    def run(self) -> Answer:
        """Return the presets, or their released versions.

        Unreadable presets are reported and make the exit code 2.
        """
        return _list_versions(self.store) if self.versions else self._list_presets()

    def _list_presets(self) -> Answer:
        workspace = spec.Workspace(self.store)
        conditions: Conditions | None = None
        if self.where:
            from npuprof.edit.conditions import Conditions

            conditions = Conditions(self.where, workspace.declared_axes)
        presets = []
        problems: dict[tuple[str, ...], Finding] = {}
        store = workspace.listed_store
        composed: list[str] = []
        with suppress(NpuprofError):  # an invalid npuprof.toml, which check reports
            outputs = Outputs(workspace, store).declared
            composed += dict.fromkeys(output.spec for output in outputs if "+" in output.spec)
        for name in (*store.names(), *composed):
            profile = config = None
            faults: list[Finding] = []
            cited = store.cite_file(f"{name}.toml")
            with collect_errors(faults), isolate_faults(cited, faults, name):
                profile = workspace.profile(name)
                config = workspace.resolver.resolve_profile(profile)
            problems |= {(fault.code, fault.place, fault.message): fault for fault in faults}
            # a preset whose source is missing exists, but cannot meet a condition
            is_listed = (
                conditions is None and lacks_source(faults)
                if config is None
                else conditions is None or conditions.accept(config)
            )
            if profile is not None and is_listed:
                presets.append((profile, config))
        if conditions is not None:
            conditions.require_known_names()
        forms = {
            "text": lambda: (
                _format_tree([profile for profile, _ in presets])
                if self.tree
                else _build_table(_build_rows(presets, store))
            ),
            "markdown": lambda: _build_table(
                _build_rows(presets, store),
                "",
                lambda names: Markup(", ".join(map(format_code_span, names))),
            ).format_markdown()[0],
            "json": lambda: {
                "schema": "npuprof.list/1",
                "presets": _build_rows(presets, store, True),
            },
        }
        notes = () if presets or problems else (_explain_nothing(store, bool(self.where)),)
        return Answer(forms, notes, 2 if problems else 0, problems=tuple(problems.values()))


def _explain_nothing(store: CachedStore, filtered: bool) -> str:
    if filtered and store.names():
        return "no preset meets the condition"
    return (
        f"there is no preset in {store.label}: npuprof init "
        "creates a store with samples, npuprof new NAME a preset"
    )


def _build_rows(
    presets: list[tuple[Profile, Config | None]], store: CachedStore, has_digests: bool = False
) -> list[Fields]:
    """Return a row per preset.

    If its source is missing on this machine, from its own file and without digests.
    """
    newest = _find_newest_versions(store) if presets else {}
    return [
        {
            "name": profile.name,
            "extends": list(profile.extends),
            "scenario": config.scenario if config else profile.table.get("scenario"),
            "version": newest.get(profile.name),
            "abstract": profile.abstract,
            "description": config.description if config else profile.table.get("description"),
            "digest": config.digest if config and has_digests else None,
            "preset_digest": config.preset_digest if config and has_digests else None,
        }
        for profile, config in presets
    ]


def _find_newest_versions(store: CachedStore) -> dict[str, str]:
    """Return the newest version of each preset that is an ancestor of the last commit.

    Pre-releases are omitted.

    Empty without a repository or a commit, and if git fails, which is reported.
    """
    if (
        not isinstance(store, Folder)
        or store.label == "builtin:"
        or not has_release_tags(store.root)
    ):
        return {}

    try:
        repository = store.repository
        refs = repository.list_annotated_refs("HEAD")
        # the newest version comes last
        return {ref.name: str(ref.text) for ref in refs if not ref.text.pre}
    except NpuprofError as error:
        failed_reads.update(
            {finding.message: finding for finding in error.findings if finding.code != "NP011"}
        )  # no commit
        return {}


def _build_table(
    rows: list[Fields],
    absent: str = "-",
    join_parents: Callable[[list[str]], str] = ", ".join,
) -> Table:
    """Return rows as a table, those of a folder together.

    ``absent`` is the cell of a missing value.
    """
    cells = [
        (
            Code(row["name"]),
            "abstract" if row["abstract"] else row["scenario"] or absent,
            row["version"] or absent,
            join_parents(row["extends"]) or absent,
            Code(row["description"] or absent),
        )
        for row in sorted(rows, key=lambda row: find_folder(row["name"]))
    ]
    return Table(cells, header=_COLUMNS, below=True)


def _name_parent(heir: Profile, reference: str) -> str:
    """Return the local name of a parent.

    References of a source's preset are relative to that source.
    """
    if not is_source_reference(heir.name):
        return reference
    source = heir.name.partition(":")[0]
    return f"{source}/{reference}" if is_source_reference(reference) else f"{source}:{reference}"


def _find_foreign_parents(profiles: list[Profile]) -> dict[str, Profile | None]:
    """Return the parents outside the store, by local name.

    They are presets of sources with their ancestors, and pinned versions of own presets.

    By local name; None for a preset that is unavailable or pinned, whose parents at that version
    are not listed.
    """
    workspace = spec.Workspace()
    own = {profile.name for profile in profiles}
    parents: dict[str, Profile | None] = {}
    waiting = list(profiles)
    while waiting:
        heir = waiting.pop()
        for reference in heir.extends:
            name = _name_parent(heir, reference)
            if not (is_source_reference(name) or "@" in name) or name in own or name in parents:
                continue
            parents[name] = None
            if heir.home is not None and "@" not in reference:
                with suppress(NpuprofError):  # reported when the preset is resolved
                    parents[name] = parent = workspace.find_parent(reference, heir, 0)
                    waiting.append(parent)
    return parents


def _format_tree(profiles: list[Profile]) -> str:
    """Return the inheritance as a tree; the children of each preset are printed once."""
    foreign = _find_foreign_parents(profiles)
    members = filter(None, [*(foreign[name] for name in sorted(foreign)), *profiles])
    children = group_pairs(
        (_name_parent(member, parent), member.name)
        for member in members
        for parent in member.extends
    )
    names = [*sorted(foreign), *(profile.name for profile in profiles)]
    below_others = {child for parent in names for child in children.get(parent, ())}
    # a stack: the last one comes first
    waiting = [(name, "", "") for name in reversed(names) if name not in below_others]
    lines = []
    printed = set()
    while waiting:
        name, lead, below = waiting.pop()
        # a preset with several parents would repeat its whole branch below each
        if name in printed and name in children:
            lines.append(f"{lead}{name} (as above)\n")
            continue
        printed.add(name)
        version = getattr(getattr(foreign.get(name), "home", None), "shown", "")
        lines.append(f"{lead}{name}{f' ({version})' if version else ''}\n")
        branches = [("|-- ", "|   ")] * (len(children.get(name, ())) - 1) + [("`-- ", "    ")]
        rows = [
            (child, below + branch, below + indent)
            for child, (branch, indent) in zip(children.get(name, ()), branches, strict=False)
        ]
        waiting += reversed(rows)
    return "".join(lines)


def _list_versions(store: str | None) -> Answer:
    from npuprof.history import notes

    workspace = spec.Workspace(store)
    repository = workspace.store.repository
    versions = [version for version in repository.load_versions() if is_profile_name(version.name)]
    versions += repository.load_store_versions()
    yanks = {version.tag_name: repository.find_yank(version.tag_name) for version in versions}
    header = ("preset", "version", "commit", "released", "digest", "yanked")
    forms: Forms = {
        "text": lambda: Table(
            [
                (
                    version.name or "@",  # the whole store
                    version.number_text,
                    version.commit[:7],
                    version.date[:10],
                    version.digest[:12] or "-",
                    f"yanked: {yanked}" if (yanked := yanks[version.tag_name]) else "",
                )
                for version in versions
            ],
            header=header,
        ),
        "markdown": lambda: notes.format_changelog(versions, yanks, *_find_names_now(repository)),
        "json": lambda: {
            "schema": "npuprof.versions/1",
            "versions": [
                {
                    "name": version.name or None,
                    "version": version.number_text,
                    "tag": version.tag_name,
                    "commit": version.commit,
                    "date": version.date,
                    "digest": version.digest or None,
                    "yanked": yanks[version.tag_name] or None,
                }
                for version in versions
            ],
        },
    }
    note = f"nothing in {workspace.store.label} has been released yet"
    return Answer(forms, notes=() if versions else (note,))


def _find_names_now(repository: Repository) -> tuple[dict[str, str], set[str]]:
    """Return the current names of renamed presets in tags, and all names at the last commit."""
    names = set(repository.list_profile_files("HEAD"))
    renamed = {
        version.tag_name: name
        for name, formers in repository.find_former_names("HEAD", names).items()
        for former in formers
        for version in repository.load_reachable_versions(former.name, former.commit)
    }
    return renamed, names


VERB = List
