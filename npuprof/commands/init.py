"""``init``: a store laid out with samples, editor schema, attributes and CI."""

from __future__ import annotations

import os

from npuprof import store
from npuprof.commands.parameters import DRY_RUN
from npuprof.commands.verb import Verb, argument, option
from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.report.answer import Answer
from npuprof.report.json_text import format_json_answer
from npuprof.report.text import format_count

#: The shipped preset that a new store starts with, together with all it extends.
_SAMPLE = "bert-training"
_ATTRIBUTES = (
    "# npuprof git install: presets are compared and merged by key",
    "profiles/**/*.toml diff=npuprof merge=npuprof",
    "/npuprof.toml merge=npuprof",
    "/npuprof.lock merge=npuprof",
)
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
#: What stands in a template where pip is told what to install.
_PLACE = "@REQUIREMENT@"
_UNKNOWN = "this npuprof was installed from where nobody else can install it (a folder, an index)"


class Init(Verb):
    """Lay out a store: presets, editor schema, git attributes, CI."""

    group = "edit"

    folder: str = argument("FOLDER", "Where to lay it out.", default=".")
    ci: str | None = option(
        "--ci", metavar="NAME", text="The CI sample: {choices}; alone it joins a store that is there.", choices=tuple(_CI)
    )
    install: str | None = option(
        "--install",
        metavar="URL",
        text="Where CI installs npuprof from, pinned: git+https://HOST/npuprof@COMMIT; as this one was if left out.",
    )
    dry_run: bool = DRY_RUN

    def run(self) -> Answer:
        """Write all files, or none where one of them is there already; return their names. Raises NpuprofError."""
        ci, requirement = self._choose_ci()
        if self.ci is not None and _has_store(self.folder):
            return self._add_ci(_fill_templates(ci, requirement))
        files = _collect_files() | _fill_templates(ci, requirement)
        _refuse_existing(self.folder, files)
        remarks: list[str] = []
        if ci != (self.ci or _DEFAULT_CI):
            remarks.append(
                f"no CI is among them: {_UNKNOWN}; it is added by npuprof init --ci github --install git+https://HOST/npuprof@COMMIT"
            )
        old = _add_attributes(self.folder, files)
        if not os.path.lexists(os.path.join(self.folder, ".taplo.toml")):
            files[".taplo.toml"] = _read_template("taplo.toml")
        else:
            remarks.append(".taplo.toml is there already; let it name profiles/.schema.json for profiles/**/*.toml")
        if not self.dry_run:
            _write_files(self.folder, files, old)
        done = "would be written" if self.dry_run else "written"
        remarks.append(f"{format_count(len(files), 'file')} {done}; next: npuprof list, npuprof show {_SAMPLE}, npuprof git install")
        if not self.dry_run and store.find_repository_top(os.path.realpath(self.folder)):
            remarks.append(f"commit them all, as npuprof commit takes presets only: git add {' '.join(_list_tops(files))}")
        return Answer("".join(f"{name}\n" for name in sorted(files)), tuple(remarks))

    def _choose_ci(self) -> tuple[str, str]:
        """Return which CI is written, and what it installs. Raises NpuprofError where one was asked for, and that is not known."""
        from npuprof.hosting import installed

        if self.ci == "none":
            if self.install is not None:
                raise NpuprofError([Finding("NP902", "--install is for CI, and --ci none writes none", "", "leave one of them out")])
            return "none", ""
        requirement = installed.check_address(self.install) if self.install is not None else installed.find_requirement()
        if not requirement and self.ci is not None:
            hint = "say where from: --install git+https://HOST/npuprof@COMMIT"
            why = "CI has to install this very npuprof; by its name alone it would be whatever has that name there."
            raise NpuprofError([Finding("NP063", _UNKNOWN, why, hint)])
        return (self.ci or _DEFAULT_CI, requirement) if requirement else ("none", "")

    def _add_ci(self, files: dict[str, str]) -> Answer:
        """Write the CI sample for a store that is there. Raises NpuprofError where one of its files is."""
        if there := [name for name in files if os.path.lexists(os.path.join(self.folder, name))]:
            what = f"{', '.join(there)} {'exists' if len(there) == 1 else 'exist'} already in {self.folder}"
            raise NpuprofError([Finding("NP923", what, "A sample never overwrites a file.", "move the file away, and run this again")])
        if not self.dry_run:
            _write_files(self.folder, files, None)
        done = "would be written" if self.dry_run else "written"
        return Answer(
            "".join(f"{name}\n" for name in sorted(files)), (f"{format_count(len(files), 'file')} {done}; the store is as it was",)
        )


def _has_store(folder: str) -> bool:
    return os.path.isdir(os.path.join(folder, "profiles")) and bool(os.listdir(os.path.join(folder, "profiles")))


def _list_tops(files: dict[str, str]) -> list[str]:
    """Return what to hand to git: the folders and files at the top."""
    return sorted({name.split("/")[0] for name in files})


def _write_files(folder: str, files: dict[str, str], old: bytes | None) -> None:
    """Write all files of a store, or none; ``old`` is what its attributes were. Raises NpuprofError."""
    from npuprof.report import writing
    from npuprof.report.writing import Wanted

    made = output.make_folder(folder)
    try:
        for name in files:
            made[:0] = writing.make_folder_below(os.path.dirname(os.path.join(folder, name)) or ".", folder)
        writing.write_wanted_files([
            Wanted(os.path.join(folder, name), text.encode(errors="surrogateescape"), old if name == _ATTRIBUTES_FILE else None, folder)
            for name, text in files.items()
        ])  # fmt: skip
    except BaseException:
        output.remove_folders(made)
        raise


def _refuse_existing(folder: str, files: dict[str, str]) -> None:
    there = [name for name in files if os.path.lexists(os.path.join(folder, name))]
    if _has_store(folder):
        there.insert(0, "profiles/")
    if there:
        what = f"{', '.join(there)} {'exists' if len(there) == 1 else 'exist'} already in {folder}"
        hint = "use another folder, or add what is missing: npuprof new, npuprof schema, npuprof git install, npuprof init --ci NAME"
        raise NpuprofError([Finding("NP923", what, "A new store never overwrites a file.", hint)])


def _fill_templates(ci: str, requirement: str) -> dict[str, str]:
    """Return the files of a CI by their paths, with what they install."""
    return {name: _read_template(template).replace(_PLACE, f"'{requirement}'") for name, template in _CI[ci].items()}


def _collect_files() -> dict[str, str]:
    """Return what a new store is made of, by path below its folder."""
    from npuprof.catalog.schema import build_profile_schema

    files = {f"profiles/{name}.toml": text for name, text in _collect_samples(_SAMPLE).items()}
    files["profiles/.schema.json"] = format_json_answer(build_profile_schema())
    return files


def _collect_samples(name: str) -> dict[str, str]:
    """Return a shipped preset and all it extends, each as its text."""
    home = store.open_builtin_store()
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        profile = home.profile(waiting.pop())
        if profile.name not in found:
            found[profile.name] = profile.document.text
            waiting += profile.extends
    return found


def _add_attributes(folder: str, files: dict[str, str]) -> bytes | None:
    """Add the attributes to those that are there; return what they were, None where there is no file. Raises NpuprofError."""
    from npuprof.report import writing

    raw = writing.read_known_file(os.path.join(folder, _ATTRIBUTES_FILE))
    old = (raw or b"").decode(errors="surrogateescape")
    if _ATTRIBUTES[1] not in old.splitlines():
        gap = "" if not old or old.endswith("\n") else "\n"
        files[_ATTRIBUTES_FILE] = f"{old}{gap}" + "".join(f"{line}\n" for line in _ATTRIBUTES)
    return raw


def _read_template(name: str) -> str:
    with open(os.path.join(os.path.dirname(os.path.dirname(__file__)), "templates", name), encoding="utf-8") as file:
        return file.read()


VERB = Init
