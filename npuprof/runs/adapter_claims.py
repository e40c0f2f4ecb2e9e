"""What can be claimed of an option from the Python classes of an adapter alone, and of which nobody can tell."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from npuprof import catalog
from npuprof.catalog import Option, releases


def is_read_by_arguments(option: Option, arguments: AbstractSet[str] | None, written: AbstractSet[str]) -> bool | None:
    """Return whether an adapter of TF 1 reads an option, by what NPURunConfig takes and NPUEstimator writes; None where nobody can tell.

    In every release that is known the library reads what the classes hand on; and few options that they do not know.
    """
    if not set(option.states) & {"Y", "?"}:
        return False
    path, until = _find_argument(option)
    if option.name in written or (arguments is not None and path in arguments) or set(option.states) == {"Y"}:
        return True
    if arguments is None or not path or _lacks_group(path, arguments):
        return None
    place = releases.release_index(until) if until else len(option.states)
    with_argument = (option.surface_states.get("run_config") or option.states)[:place].ljust(len(option.states), ".")
    alone = any(read == "Y" and there != "Y" for read, there in zip(option.states, with_argument, strict=True))
    return None if alone else False


def _find_argument(option: Option) -> tuple[str, str]:
    """Return the path of an option's argument, and the release that took it away, empty texts where there is none."""
    if path := option.spelling.get("run_config"):
        return path, ""
    for record in catalog.load_config_classes().values():
        if option.name in record.formerly:
            return f"{record.argument}.{option.name}".lstrip("."), record.formerly[option.name]
    return "", ""


def is_read_by_attributes(option: Option, attributes: AbstractSet[str]) -> bool | None:
    """Return whether ``global_options()`` of TF 2 has an option, under whatever path; None where its group was not read."""
    path = option.spelling.get("global_options", option.name)
    if path in attributes or any(one.rpartition(".")[2] == option.name for one in attributes):
        return True
    return None if _lacks_group(path, attributes) else False


def _lacks_group(path: str, known: AbstractSet[str]) -> bool:
    """Return whether what holds a path is known, and nothing in it: the file of its class could not be read."""
    group = path.rpartition(".")[0]
    return group in known and not any(one.startswith(f"{group}.") for one in known)
