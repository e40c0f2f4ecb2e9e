"""``init``: create a store with sample presets, editor schemas, git attributes and CI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from shlex import quote

from npuprof.commands.framework import Verb, argument, option
from npuprof.commands.framework.parameters import DRY_RUN
from npuprof.commands.schema import build_editor_schemas
from npuprof.edit.schemaline import format_schema_line
from npuprof.hosting import installed
from npuprof.hosting.git_drivers import MERGE, USE, add_attributes
from npuprof.model import build_error, build_usage_error
from npuprof.report import Answer
from npuprof.report.asking import choose_on_terminal
from npuprof.report.html import read_template
from npuprof.report.text import format_count
from npuprof.store import BUILTIN, spec
from npuprof.store.folder import Folder
from npuprof.store.project import Project
from npuprof.system import find_repository_top, writing
from npuprof.system.files import make_folder, remove_folders
from npuprof.system.writing import PlannedWrite

#: The shipped preset in a new store, with its ancestors, by framework.
_SAMPLES = {
    "tensorflow": "bert-training",
    "torch": "torch-pretraining",
    "vllm": "vllm-serving",
}
_ATTRIBUTES = [f"profiles/**/*.toml {USE}", f"/npuprof.toml {MERGE}", f"/npuprof.lock {MERGE}"]
_ATTRIBUTES_FILE = ".gitattributes"
_CI = {
    "github": {
        ".github/actions/presets/action.yml": "github-action.yml",
        ".github/workflows/presets.yml": "github-workflow.yml",
    },
    "gitlab": {".gitlab/presets.yml": "gitlab-ci.yml"},
    "none": {},
}
_DEFAULT_CI = "github"
#: The placeholder in templates for the requirement that pip installs.
_PLACE = "@REQUIREMENT@"
_UNKNOWN = (
    "this npuprof was installed from a place that is not available to others (a folder, an index)"
)


class Init(Verb):
    """Create a store of presets.

    Writes sample presets, editor schemas, .gitattributes and a CI sample. If npuprof does not know
    where CI can install it from, it omits the CI sample: use --install. If the folder already has a
    store, --ci adds only the CI sample.
    """

    group = "presets"

    folder = argument("FOLDER", "Folder to create the store in", default=".")
    sample = option(
        "--sample",
        metavar="NAME",
        text="Write sample presets for a framework: {choices} [default: ask, else tensorflow]",
        choices=tuple(_SAMPLES),
    )
    ci = option(
        "--ci",
        metavar="NAME",
        text="Write a CI sample: {choices} [default: github]",
        choices=tuple(_CI),
    )
    install = option(
        "--install",
        metavar="URL",
        text=(
            "Install npuprof in CI from git+https://HOST/npuprof@COMMIT [default: where this "
            "npuprof was installed from]"
        ),
        complete="nothing",
    )
    dry_run = DRY_RUN

    def run(self) -> Answer:
        """Write all files, or none if one exists; return their names. Raises NpuprofError."""
        ci, requirement = self._choose_ci()
        _refuse_nested(self.folder)
        if self.ci is not None and _has_store(self.folder):
            return self._add_ci(_fill_templates(ci, requirement))
        sample = self.sample or choose_on_terminal("sample presets", tuple(_SAMPLES))
        files = _collect_files(_SAMPLES[sample]) | _fill_templates(ci, requirement)
        _refuse_existing(self.folder, files)
        notes = []
        # only an implied CI may be omitted; a requested one has failed above
        if ci != (self.ci or _DEFAULT_CI):
            notes.append(
                f"no CI is among them: {_UNKNOWN}; it is added by npuprof init --ci github "
                "--install git+https://HOST/npuprof@COMMIT"
            )
        old = _add_attributes(self.folder, files)
        if not os.path.lexists(os.path.join(self.folder, ".taplo.toml")):
            files[".taplo.toml"] = read_template("taplo.toml")
        else:
            named = (
                "profiles/.schema.json for profiles/**/*.toml, and "
                "profiles/.project.schema.json for npuprof.toml"
            )
            notes.append(f".taplo.toml is there already; let it name {named}")
        if not self.dry_run:
            _write_files(self.folder, files, old)
        notes += self._list_next_steps(files, _SAMPLES[sample])
        return Answer(self._format_files(files), tuple(notes))

    def _list_next_steps(self, files: dict[str, str], sample: str) -> Iterator[str]:
        """Yield the next steps as commands for the current folder."""
        folder = ""
        if os.path.realpath(self.folder) != os.path.realpath("."):
            folder = quote(self.folder)
        where = f", in {folder}:" if folder else ":"
        yield (
            f"{self._count_files(files)}; next{where} npuprof "
            f"list, npuprof show {sample}, npuprof git install"
        )
        if not self.dry_run and find_repository_top(self.folder):
            git = f"git -C {folder} add" if folder else "git add"
            tops = sorted({name.split("/")[0] for name in files})
            yield f"to commit these files: {git} {' '.join(tops)}"

    def _format_files(self, files: dict[str, str]) -> str:
        """Return the file names, one per line, relative to the current folder."""
        return "".join(
            f"{os.path.normpath(os.path.join(self.folder, name))}\n" for name in sorted(files)
        )

    def _choose_ci(self) -> tuple[str, str]:
        """Return the CI system and the requirement it installs.

        Raises NpuprofError if CI was requested and the requirement is unknown.
        """
        if self.ci == "none":
            if self.install is not None:
                raise build_usage_error(
                    "--install is for CI, and --ci none writes none", "omit one of them"
                )
            return "none", ""
        requirement = (
            installed.check_address(self.install)
            if self.install is not None
            else installed.find_requirement()
        )
        if not requirement and self.ci is not None:
            hint = "say where from: --install git+https://HOST/npuprof@COMMIT"
            why = "CI must install exactly this npuprof; a bare name could install another package."
            raise build_error("NP063", _UNKNOWN, why, hint)
        return (self.ci or _DEFAULT_CI, requirement) if requirement else ("none", "")

    def _add_ci(self, files: dict[str, str]) -> Answer:
        """Write the CI sample for an existing store.

        Raises NpuprofError if one of its files exists.
        """
        _refuse_existing(self.folder, files, is_new=False)
        if not self.dry_run:
            _write_files(self.folder, files, None)
        return Answer(
            self._format_files(files), (f"{self._count_files(files)}; the store is unchanged",)
        )

    def _count_files(self, files: dict[str, str]) -> str:
        return (
            f"{format_count(len(files), 'file')} "
            f"{'would be written' if self.dry_run else 'written'}"
        )


def _has_store(folder: str) -> bool:
    return os.path.isdir(os.path.join(folder, "profiles")) and bool(
        os.listdir(os.path.join(folder, "profiles"))
    )


def _refuse_nested(folder: str) -> None:
    """Raise NpuprofError for a folder in, around or equal to a store."""
    root = _find_store_around(os.path.realpath(folder))
    if not root:
        return
    what = (
        f"{folder} is the folder of a store of presets, or lies in it: "
        f"{os.path.relpath(root, os.path.realpath('.'))}"
    )
    why = (
        "npuprof init FOLDER puts the store into FOLDER/profiles; "
        "a store within a store would be presets of both."
    )
    hint = (
        "npuprof list shows its presets; a new store: npuprof init "
        f"{os.path.relpath(os.path.dirname(root), os.path.realpath('.'))}"
    )
    raise build_error("NP923", what, why, hint)


def _find_store_around(folder: str) -> str:
    """Return the folder of a store that equals or contains a folder.

    An empty string if there is none.

    A parent folder counts as a store only if it contains presets and is in the same repository: its
    name is common.
    """
    if os.path.basename(folder) == "profiles":
        return folder
    named = os.environ.get("NPUPROF_STORE", "")
    if (
        named
        and named != "builtin:"
        and os.path.isdir(named)
        and f"{folder}/".startswith(f"{os.path.realpath(named)}/")
    ):
        return os.path.realpath(named)
    top = find_repository_top(folder)
    above = os.path.dirname(folder)
    while above != os.path.dirname(above) and f"{above}/".startswith(f"{top}/"):
        if os.path.basename(above) == "profiles" and os.path.isdir(above) and Folder(above).names():
            return above
        above = os.path.dirname(above)
    return ""


def _write_files(folder: str, files: dict[str, str], old: bytes | None) -> None:
    """Write all files of a store, or none; ``old`` is the previous content of .gitattributes.

    Raises NpuprofError.
    """
    folders = make_folder(folder)
    try:
        for name in files:
            folders[:0] = writing.make_folder_below(
                os.path.dirname(os.path.join(folder, name)) or ".", folder
            )
        writing.write_planned_files(
            [
                PlannedWrite(
                    os.path.join(folder, name),
                    text.encode(errors="surrogateescape"),
                    # every other file must be new
                    old if name == _ATTRIBUTES_FILE else None,
                    folder,
                )
                for name, text in files.items()
            ]
        )
    except BaseException:
        remove_folders(folders)
        raise


def _refuse_existing(folder: str, files: dict[str, str], is_new: bool = True) -> None:
    there = [name for name in files if os.path.lexists(os.path.join(folder, name))]
    if is_new and _has_store(folder):
        there.insert(0, "profiles/")
    if there:
        what = f"{', '.join(there)} {'exists' if len(there) == 1 else 'exist'} already in {folder}"
        hint = (
            "use another folder, or add the missing parts: npuprof new, npuprof schema, npuprof "
            "git install, npuprof init --ci NAME"
        )
        raise build_error("NP923", what, "init never overwrites a file.", hint)


def _fill_templates(ci: str, requirement: str) -> dict[str, str]:
    """Return the files of a CI system by path, with the requirement filled in."""
    return {
        name: read_template(template).replace(_PLACE, f"'{requirement}'")
        for name, template in _CI[ci].items()
    }


def _collect_files(sample: str) -> dict[str, str]:
    """Return the files of a new store with a shipped preset, by relative path."""
    workspace = spec.Workspace(BUILTIN)
    lineage = workspace.resolver.lineages.find_lineage(workspace.store.profile(sample))
    samples = {f"profiles/{member.name}.toml": member.document.text for member in reversed(lineage)}
    files = {path: format_schema_line(path, "profiles") + text for path, text in samples.items()}
    return files | {
        f"profiles/{name}": text for name, text in build_editor_schemas(Project()).items()
    }


def _add_attributes(folder: str, files: dict[str, str]) -> bytes | None:
    """Append the attributes to existing ones; return the previous content, None without a file.

    Raises NpuprofError.
    """
    raw = writing.read_known_file(os.path.join(folder, _ATTRIBUTES_FILE))
    old = (raw or b"").decode(errors="surrogateescape")
    if (text := add_attributes(old, _ATTRIBUTES)) != old:
        files[_ATTRIBUTES_FILE] = text
    return raw


VERB = Init
