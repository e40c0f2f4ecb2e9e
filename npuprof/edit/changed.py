"""Presets as an edit will leave them: resolved alone, or as an overlay over their store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from npuprof import checks
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Context, Finding, NpuprofError, Origin
from npuprof.report.isolating import collect_errors, isolate_faults
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.store.folder import Folder

#: Texts of presets with the path to cite, by name.
Texts = Mapping[str, tuple[str, str]]


class ChangedStore(Folder):
    """A store with changed texts.

    Unchanged presets are read from the store below and cached for both.
    """

    def __init__(self, below: Folder, texts: Texts | None = None, without: str = "") -> None:
        super().__init__(below.root)
        # everything but the profiles is shared, such as the listing of the folder
        vars(self).update(vars(below) | {"_profiles": {}})
        self.below = below
        if without:
            self.hide_preset(without)
        for name, (source, text) in (texts or {}).items():
            self.set_text(name, source, text)

    def set_text(self, name: str, source: str, text: str) -> None:
        """Set the text of a preset. Raises NpuprofError if it is not TOML."""
        self.replace_preset(Profile(parse_document(name, source, text), home=self))

    def _read_profile(self, name: str, referrer: Origin | None) -> Profile:
        profile = self.below.profile(name, referrer)
        # with this store as its home, so that its parents are the changed ones
        return Profile(profile.document, profile.key, self)


def build_opener(home: Folder, texts: Texts | None = None) -> Callable[[Context], spec.Workspace]:
    """Return a function that opens a store with changed texts in a context.

    Unchanged presets are not read again.
    """
    changed = ChangedStore(home, texts) if texts else home
    return lambda context: spec.Workspace(None, context, opened=changed)


def resolve_apart(profile: Profile, context: Context | None = None) -> Config:
    """Return a preset resolved alone, bypassing the cache of an earlier text.

    Raises NpuprofError.
    """
    return spec.Workspace(None, context).resolver.resolve_profile(profile)


def find_faults(resolve: Callable[[], Config]) -> list[Finding]:
    """Return the findings of a preset, or why it cannot be resolved."""
    try:
        return checks.check_config(resolve())
    except NpuprofError as error:
        return list(error.findings)


def select_new_findings(known: Iterable[Finding], findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings whose faults are not among the known ones."""
    known_faults = set(map(checks.identify_finding, known))
    return [finding for finding in findings if checks.identify_finding(finding) not in known_faults]


def resolve_all(workspace: spec.Workspace, problems: list[Finding]) -> dict[str, Config]:
    """Return the resolved presets of a store, by name.

    The faults of the others are added to ``problems``, without duplicates.
    """
    home = workspace.store
    configs = {}
    findings: list[Finding] = []
    for name in home.names():
        cited = home.cite_file(f"{name}.toml")
        with collect_errors(findings), isolate_faults(cited, findings, name):
            configs[name] = workspace.resolver.resolve_profile(home.profile(name))
    problems += {
        (finding.code, finding.place, finding.message): finding for finding in findings
    }.values()
    return configs
