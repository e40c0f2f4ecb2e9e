"""What users type to name a profile: ``NAME``, ``NAME@REV``, ``A+B``, a path ending in ``.toml``, ``-``."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from npuprof import catalog, store
from npuprof.catalog import products, releases, targets
from npuprof.document import command_line, keys, parse, read
from npuprof.document.profile import Profile
from npuprof.model import Context, Finding, NpuprofError, Origin, Step, did_you_mean
from npuprof.resolve import Resolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.resolve.config import Config
    from npuprof.store import Folder


#: One of the specs joined by ``+``; a revision in quotes may hold any.
_PART = r"""(?:(?<=@)"[^"]*"|(?<=@)'[^']*'|[^+])+|(?:^|(?<=\+))(?=\+|$)"""


class Workspace:
    """One store seen by one command: finds profiles by spec, resolves them, reads every file once."""

    def __init__(self, given: str | None = None, context: Context | None = None) -> None:
        self._given = given
        self._store: Folder | None = None
        self._names: dict[str, str] = {}
        self.resolver = Resolver(self.lookup, context)

    @property
    def store(self) -> Folder:
        """The store. Raises NpuprofError where there is none."""
        if self._store is None:
            self._store = store.find(self._given, os.environ)
        return self._store

    def lookup(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        """Return the profile that a reference in ``extends`` names. Raises NpuprofError."""
        asked = referrer.origin("profile", "extends", index) if referrer else None
        home = referrer.home if referrer is not None and referrer.home is not None else self.store
        if "@" in reference and not isinstance(home, _Parts):
            from npuprof.store import revisions

            return revisions.profile(home, reference, asked)[0]
        found: Profile = home.profile(reference, asked)
        return found

    def profile(self, spec: str) -> Profile:
        """Return the profile a spec names; several joined by ``+`` become one that extends them all.

        Raises NpuprofError.
        """
        if "+" in spec and not _is_path(spec):
            parts = self.parts(spec)
            if len(parts) > 1:
                return self.composed(spec, [self.profile(part) for part in parts])
        if spec == "-":
            try:
                raw = sys.stdin.buffer.read()
            except (OSError, AttributeError) as error:  # closed, or a folder
                what = f"cannot read standard input: {str(getattr(error, 'strerror', None) or 'it is closed').lower()}"
                raise NpuprofError(
                    [Finding("NP003", "error", what, "", "give the preset to it, as in npuprof show - < preset.toml")]
                ) from None
            return Profile(read("-", "<stdin>", raw), key="stdin:", home=self._home())
        if _is_path(spec):
            return self._file(spec)
        if "@" in spec:
            return self._revision(spec)
        return self.store.profile(spec)

    def parts(self, spec: str) -> list[str]:
        """Return the specs that are joined by ``+``.

        A revision may hold a ``+`` itself: in quotes, or where what follows is no preset and git knows the whole.
        """
        parts = re.findall(_PART, spec)
        place = 0
        while place + 1 < len(parts):
            _, at, revision = parts[place].partition("@")
            if at and parts[place + 1].partition("@")[0] not in self.store.names():
                from npuprof.store import revisions

                for end in range(len(parts), place + 1, -1):
                    if revisions.of(self.store).has("+".join([revision, *parts[place + 1 : end]])):
                        parts[place:end] = ["+".join(parts[place:end])]
                        break
            place += 1
        return parts

    def _revision(self, spec: str) -> Profile:
        """Return the profile that ``NAME@REV`` names, its parents at that revision too."""
        from npuprof.store import revisions

        name, _, revision = spec.partition("@")
        if not name:
            raise NpuprofError([store.bad_name(name)])
        if _is_path(name):
            name = self._inside(name) or name
        found, shown = revisions.profile(self.store, f"{name}@{revision}")
        self._names[found.key] = shown
        return found

    def composed(self, name: str, parts: Sequence[Profile]) -> Profile:
        """Return a profile without settings that lays the given ones over one another, in order."""
        joined = Profile(command_line(name, {}), key=f"composed:{'+'.join(part.key for part in parts)}")
        joined.stacked = True
        joined.home = _Parts({part.key: part for part in parts})
        joined.table = {"extends": [part.key for part in parts], "description": parts[-1].table.get("description", "")}
        return joined

    def config(self, spec: str, mixins: Sequence[str] = (), changes: Sequence[Step] = ()) -> Config:
        """Return a spec resolved, mix-ins after it, then changes from the command line. Raises NpuprofError."""
        profile = self.profile(spec)
        name = self._names.get(profile.key, profile.name)
        if mixins:
            profile = self.composed(name, [profile, *(self.profile(mixin) for mixin in mixins)])
        self._meant(profile, name, changes)
        return self.resolver.config(profile, name, changes)

    def _meant(self, profile: Profile, name: str, changes: Sequence[Step]) -> None:
        """Refuse to unset what no preset could hold and this one does not: a misspelt key would stay in force unseen."""
        strange = [step.key for step in changes if step.op == "unset" and not catalog.text(*keys.section_and_name(step.key))]
        if not strange:
            return
        settings = self.resolver.config(profile, name, [step for step in changes if step.op != "unset"]).settings
        problems = [
            Finding("NP924", "error", f"{name} does not set {key!r}, and the catalogue does not know it", "", did_you_mean(key, settings))
            for key in strange
            if key not in settings
        ]
        if problems:
            raise NpuprofError(problems)

    def keep(self, opened: Any) -> None:
        """Use a store that has been opened before (a folder, or one at a revision), with all it has read."""
        self._store = opened

    def _file(self, path: str) -> Profile:
        """Return the profile in a file: inside the store the one of that name, else one that stands alone."""
        home = self._home()
        name = self._inside(path)
        return home.profile(name) if home is not None and name else store.single(path, home)

    def _inside(self, path: str) -> str:
        """Return the name of the profile in a file inside the store, else an empty text."""
        home = self._home()
        if home is None:
            return ""
        root, full = os.path.abspath(home.root) + os.sep, os.path.abspath(path)
        name = full[len(root) : -5]
        return name if full.startswith(root) and store.is_name(name) else ""

    def _home(self) -> Folder | None:
        try:
            return self.store
        except NpuprofError:
            if self._given:
                raise
            return None


class _Parts:
    """The store of a composed profile: the profiles it was composed of."""

    def __init__(self, parts: dict[str, Profile]) -> None:
        self._parts = parts

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        return self._parts[name]


def _is_path(spec: str) -> bool:
    return spec.endswith(".toml")


def context(cann: str | None = None, product: str | None = None, target: str | None = None) -> Context:
    """Return a context from what a user wrote. Raises NpuprofError for an unknown release, product or target."""
    problems: list[Finding] = []
    release = releases.find(cann) if cann else None
    if cann and release is None:
        known = ", ".join(releases.releases()[-8:])
        hint = did_you_mean(cann, releases.releases(), f"the newest are {known}")
        problems.append(
            Finding("NP401", "error", f"unknown CANN release {cann!r}", "What an option does is known release by release.", hint)
        )
    family = products.find(product) if product else None
    if product and family is None:
        hint = did_you_mean(product, products.names(), f"known are {', '.join(products.names())}")
        problems.append(Finding("NP403", "error", f"unknown product {product!r}", "", hint))
    if target and target not in targets.NAMES:
        hint = did_you_mean(target, targets.NAMES, f"known are {', '.join(targets.NAMES)}")
        problems.append(Finding("NP902", "error", f"unknown target {target!r}", "", hint))
    if problems:
        raise NpuprofError(problems)
    return Context(release, family, target)


def assignments(set_: Sequence[str], unset: Sequence[str] = ()) -> list[Step]:
    """Return ``KEY=VALUE`` and ``KEY`` from the command line as steps. Raises NpuprofError."""
    steps: list[Step] = []
    problems: list[Finding] = []
    for text in set_:
        name, equals, raw = text.partition("=")
        parsed = keys.parse(name)
        if not equals or parsed is None:
            problems.append(Finding("NP009", "error", f"{text!r} is not KEY=VALUE", "", "write hccl_timeout=600, or env.HCCL_ALGO='...'"))
            continue
        key, tail = parsed
        value: Any = literal(key if not tail else "", raw.strip())
        for part in reversed(tail):
            value = {part: value}
        steps.append(Step("set", key, value, (key,)))
    for text in unset:
        parsed = keys.parse(text)
        if parsed is None:
            problems.append(Finding("NP009", "error", f"{text!r} is not a key", "", "write the option's name, or section.name"))
        else:
            steps.append(Step("unset", parsed[0], None, (parsed[0],), parsed[1]))
    if problems:
        raise NpuprofError(problems)
    return steps


def plain_steps(changes: dict[str, Any], unset: Sequence[str] = ()) -> list[Step]:
    """Return changes given as Python values as steps. Raises NpuprofError for what is no key, or no value of TOML."""
    steps = assignments([], unset)
    found: list[Step] = []
    for name, value in changes.items():
        parsed = keys.parse(name)
        if parsed is None:
            raise NpuprofError([Finding("NP009", "error", f"{name!r} is not a key", "", "write the option's name, or section.name")])
        value = _plain(name, value)
        for part in reversed(parsed[1]):
            value = {part: value}
        found.append(Step("set", parsed[0], value, (parsed[0],)))
    return found + steps


def _plain(name: str, value: Any) -> Any:
    """Return a value as TOML would hold it, tuples as lists. Raises NpuprofError where it cannot."""
    if isinstance(value, (str, int, float)) or hasattr(value, "isoformat"):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(name, one) for one in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(name, one) for key, one in value.items()}
    hint = "give text, a number, a truth value, a date, a list, or a table with texts as keys; to leave a key out name it in unset"
    raise NpuprofError(
        [Finding("NP202", "error", f"{name} cannot be of the type {type(value).__name__}", "No preset could hold it.", hint)]
    )


def literal(key: str, text: str) -> Any:
    """Return the value in ``KEY=VALUE``: TOML where it is TOML, text where it is not or the setting is text."""
    try:
        document = parse(f"value = {text}\n")
        value = document["value"] if len(document) == 1 else text
    except (ValueError, RecursionError):
        return text
    option = catalog.option(key) if key else None
    wants_text = option is not None and option.field == "s"
    section = keys.section_and_name(key)[0] if key else "options"
    if (wants_text or section == "env") and not isinstance(value, (str, dict, list)):
        return text
    return value
