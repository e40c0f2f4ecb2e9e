"""A config as environment variables: its own, the equivalents of options, and options by name."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.execution import (
    find_execution,
    find_text_effect,
    find_weakening,
    is_own_variable,
    is_unknown_variable,
)
from npuprof.catalog.launchers import FACTS
from npuprof.document import keys
from npuprof.model import (
    LONGEST_WORD,
    Any,
    Finding,
    NpuprofError,
    is_utf8,
    is_variable_name,
    raise_any,
)
from npuprof.renderers import (
    build_setting_finding,
    build_unfit_finding,
    place_sidecars,
)
from npuprof.renderers.trusting import reject_untrusted
from npuprof.resolve import is_override_active
from npuprof.resolve.config import Config

#: The variables that identify the exported preset.
MARKS = ("NPUPROF_PROFILE", "NPUPROF_DIGEST", "NPUPROF_PRESET_DIGEST", "NPUPROF_CONTEXT")


def collect_env_variables(
    config: Config,
    find_fact: Callable[[str], str | None] | None,
    folder: str,
    trusting: bool = False,
    asked_later: Container[str] = (),
    allowing_unknown: bool = False,
    with_options: bool = True,
) -> tuple[dict[str, str], list[str]]:
    """Return names and values in output order, and notes.

    ``find_fact`` returns the launcher facts of this process; None is for files that many read.
    ``asked_later`` are the facts that such a file queries itself. ``folder`` contains the sidecar
    files. Raises NpuprofError for values that cannot be environment variables, and, unless
    ``trusting``, for variables that need trust; ``allowing_unknown`` accepts variables unknown to
    the catalogue. Without options, only ``[env]`` and the preset's identity are exported.
    """
    variables = {}
    notes = []
    later = {}
    reject_untrusted(config, trusting, allowing_unknown)
    for name, value in config.env.items():
        text = values.format_exported_text(name, value)
        fact = ""
        if text is None:
            fact = str(value.get("launcher"))
            text = find_fact(fact) if find_fact and fact in FACTS else None
        if text is not None:
            variables[name] = text
        elif fact in asked_later:
            later[name] = ""
        elif find_fact:
            notes.append(f"{name} is omitted: no launcher has set its {fact} here")
        else:
            notes.append(
                f"{name} is omitted: it differs from process to process; npuprof run sets it"
            )
    if with_options:
        _add_option_variables(config, folder, variables, notes)
        if not trusting:
            _reject_active_options(config, variables)
    identity = (config.name, config.digest, config.preset_digest, config.context.describe())
    variables |= dict(zip(MARKS, identity, strict=True))
    _require_exportable(config, variables | later)
    return variables, notes


def _add_option_variables(
    config: Config, folder: str, variables: dict[str, str], notes: list[str]
) -> None:
    """Add the variables of options that [env] does not set, and notes on those that it does."""
    paths = place_sidecars(config, folder)
    for name, value in config.options.items():
        encoded = paths.get(name) or values.encode_field_value(name, value)
        if isinstance(encoded, (dict, list)):
            raise NpuprofError(build_unfit_finding(config, name, "env"))
        text = format_variable_text(encoded)
        for variable in catalog.load_equivalent_variables().get(name, ()):
            if variable not in variables:
                variables[variable] = format_equivalent_text(variable, value, text)
                continue
            order = catalog.find_record_texts("env", variable).get("precedence")
            reason = f" ({order})" if order else ""
            notes.append(
                f"{variable} keeps the value of [env]; the option "
                f"{name} wins where the script sets it{reason}"
            )
        variables[f"NPUPROF_{name.upper()}"] = text


def list_unset_variables(
    config: Config, trusting: bool = False, exported: Container[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the variables that ``unset`` removes, and those whose removal needs trust.

    npuprof's own variables and ``exported`` ones, which an option may set, are in neither list.
    Arguments of the user (``--unset``) need no trust.
    """
    steps = [step for profile in config.lineage for step in profile.steps]
    for profile in config.lineage:
        for override in profile.overrides:
            if is_override_active(override, config.context, config.scenario):
                steps += override.steps
    typed = {step.key for step in config.changes if step.op == "unset"}
    removed = []
    untrusted = []
    for key in dict.fromkeys((*(step.key for step in steps if step.op == "unset"), *typed)):
        section, name = keys.split_section_and_name(key)
        if section != "env" or key in config.settings or is_own_variable(name):
            continue
        # a shell gets names without quotes
        if not is_variable_name(name) or name in exported:
            continue
        if trusting or key in typed or not _needs_trust_to_unset(name):
            removed.append(name)
        else:
            untrusted.append(name)
    return removed, untrusted


def _needs_trust_to_unset(name: str) -> bool:
    """Return whether only a trusted preset removes a variable from the environment."""
    if find_weakening(name):
        return False  # an export without that trust is rejected as a whole
    return bool(find_execution(name)) or is_unknown_variable(name)


def describe_kept_variables(names: Iterable[str], environ: Container[str]) -> list[str]:
    """Return a note for each variable that ``unset`` does not remove because that needs trust."""
    return [
        f"{name} keeps the value it has here: removing it needs --trust"
        for name in names
        if name in environ
    ]


def format_variable_text(value: Any) -> str:
    """Return an option's value as the text of a variable: 1 and 0 for a bool."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def format_equivalent_text(variable: str, value: Any, text: str) -> str:
    """Return the value of an option's equivalent variable; ``text`` is the option's own text."""
    record = catalog.find_variable(variable)
    assert record is not None
    spelled = str(value).lower() if isinstance(value, bool) else text
    return record.twin_values.get(spelled, spelled)


def _reject_active_options(config: Config, variables: Mapping[str, str]) -> None:
    """Raise NpuprofError (NP930) for options on whose equivalent variables a shell would act."""
    problems = []
    for name in config.options:
        origin = config.origin(name)
        if origin is None or not origin.document.text:
            continue  # an argument of the user
        for variable in catalog.load_equivalent_variables().get(name, ()):
            effect = variable not in config.env and find_text_effect(variable, variables[variable])
            if effect:
                what = f"{name} is not trusted: {effect}"
                hint = "write it without such characters, or pass --trust for this once"
                problems.append(build_setting_finding(config, "NP930", name, what, "", hint))
                break
    raise_any(problems)


def _require_exportable(config: Config, variables: dict[str, str]) -> None:
    problems = []
    for name, text in variables.items():
        reason = "is not a variable name: use letters, digits and '_'"
        if is_variable_name(name):
            reason = explain_unfit_word(f"{name}=", text)
        if reason:
            key = find_variable_key(config, name)
            what = f"{ascii(name)[1:-1]} {reason}"
            hint = "store long and binary values in a file and pass its path"
            problems.append(build_unstartable_finding(config, key, what, hint))
    raise_any(problems)


def explain_unfit_word(head: str, text: str) -> str:
    """Return why no program takes a text after a head in one word, an empty string if one does."""
    if "\0" in text or not is_utf8(text):
        return f"contains a NUL character or invalid UTF-8: {ascii(text[:80])[1:-1]}"
    is_longer = len(f"{head}{text}".encode()) > LONGEST_WORD
    return f"is longer than {LONGEST_WORD} bytes" if is_longer else ""


def build_unstartable_finding(config: Config, key: str, what: str, hint: str) -> Finding:
    """Return the finding for a setting with which no program can be started."""
    return build_setting_finding(
        config, "NP903", key, what, "No program could be started with it.", hint
    )


def find_variable_key(config: Config, name: str) -> str:
    """Return the setting that a variable comes from."""
    key = keys.format_full_key("env", name)
    if key in config.settings:
        return key
    for option in config.options:
        if name in (
            f"NPUPROF_{option.upper()}",
            *catalog.load_equivalent_variables().get(option, ()),
        ):
            return option
    return name


def build_export_finding(config: Config, name: str, reason: str) -> Finding:
    """Return the finding for a variable that a shell or format cannot express."""
    what = f"{name} cannot be exported: {reason}"
    why = "A value comes back byte for byte or not at all."
    hint = "use another shell or format, or write the value without it"
    return build_setting_finding(config, "NP903", find_variable_key(config, name), what, why, hint)
