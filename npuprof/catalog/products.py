"""Product families and their lines: ``atlas-a2`` has ``atlas-a2-training`` and ``-inference``."""

from __future__ import annotations

import re
from functools import cache

from npuprof.catalog import load_built_part
from npuprof.model import SCENARIOS, Fix, TomlTable, suggest_name


@cache
def load_products() -> TomlTable:
    """Return the families by name, with the fields of ``products.toml``."""
    families: TomlTable = load_built_part("axes")["products"]
    return families


def product_names() -> tuple[str, ...]:
    """Return every family and line that a preset may name."""
    return tuple(
        name
        for family, record in load_products().items()
        for name in (family, *record.get("lines", ()))
    )


@cache
def find_product(name: str) -> str | None:
    """Return the family, line or chip (soc_version) with a name; None if there is none."""
    return name if name in product_names() or find_chip_family(name) is not None else None


@cache
def find_chip_family(name: str) -> str | None:
    """Return the family of a chip by its soc_version, None if the chip is unknown."""
    for family, record in load_products().items():
        if any(_is_chip(pattern, name) for pattern in record["chips"]):
            return family
    return None


def _is_chip(pattern: str, name: str) -> bool:
    if pattern.isalnum():
        return name == pattern
    # few patterns have the head of the name: others need not be compiled
    return name.startswith(_find_head(pattern)) and re.fullmatch(pattern, name) is not None


def _find_head(pattern: str) -> str:
    """Return the literal prefix of a chip pattern."""
    return pattern.partition("[")[0].partition(".")[0]


@cache
def list_scenarios(family: str) -> tuple[str, ...]:
    """Return the scenarios of a family; all if they are unknown."""
    return tuple(load_products().get(family, {}).get("scenarios", SCENARIOS))


def _read_chip(name: str) -> tuple[str, str]:
    """Return a name without ``Ascend``, and the chip that it may mean."""
    plain = re.sub(r"^ascend[-_ ]*", "", name.strip(), flags=re.IGNORECASE)
    return plain, "Ascend" + plain.upper().replace("-", "_")


def suggest_chip(name: str) -> tuple[str, Fix | None]:
    """Return the hint for an unknown chip name, and its fix if only one chip is possible."""
    _, chip = _read_chip(name)
    if chip != name and find_chip_family(chip):
        return f"did you mean {chip!r}?", Fix(chip)
    return "write Ascend and the name that npu-smi info shows, as Ascend910B2 or Ascend310P3", None


def suggest_product(name: str) -> tuple[str, Fix | None]:
    """Return the hint for an unknown product name, and its fix if only one product is possible."""
    plain, chip = _read_chip(name)
    family = find_chip_family(chip)
    families = _list_families_of_chips(chip)
    if families:  # 910B is a chip, but users mean Ascend910B1 to B4
        single = f", or {chip!r}, a chip of {family!r}" if family and family not in families else ""
        names = " or ".join(map(repr, families))
        return f"did you mean {names}, whose chips begin with {chip}{single}?", None
    if family:
        return f"did you mean {chip!r}, a chip of {family!r}?", Fix(chip)
    similar = [
        product
        for product, record in load_products().items()
        for title in record.get("also", ())
        if title.lower() in name.lower()
    ]
    if not similar:
        parts = set(re.findall(r"\w+", plain.lower()))
        similar = [
            product for product in product_names() if not parts.isdisjoint(product.split("-")[1:])
        ]
    if similar:
        fix = Fix(similar[0]) if len(similar) == 1 else None
        return f"did you mean {' or '.join(map(repr, similar[:4]))}?", fix
    known = (
        f"known are {', '.join(product_names())}; or a chip, as npu-smi calls it: Ascend910B2; "
        "npuprof help products says what each is"
    )
    hint, name_fix = suggest_name(name, product_names(), known)
    return hint, Fix(name_fix.name) if name_fix else None


def _list_families_of_chips(beginning: str) -> list[str]:
    """Return the families with chips whose names start with a prefix."""
    return [
        family
        for family, record in load_products().items()
        if any(
            _find_head(chip) != chip and _find_head(chip).startswith(beginning)
            for chip in record["chips"]
        )
    ]


@cache
def find_product_family(name: str) -> str:
    """Return the family of a family, a line or a chip."""
    for candidate, record in load_products().items():
        if name in record.get("lines", ()):
            return candidate
    return name if name in load_products() else find_chip_family(name) or name


@cache
def is_product_covered(pattern: str, name: str) -> bool:
    """Return whether ``pattern``, a family, a line or a chip, covers the product ``name``.

    A chip covers only itself.
    """
    return pattern in (name, find_product_family(name))


def may_contain(pattern: str, name: str) -> bool:
    """Return whether ``pattern`` covers a product, or is a line of a chip's family.

    It is undocumented which chips a line has.
    """
    if is_product_covered(pattern, name):
        return True
    chip_family = find_chip_family(name)
    return chip_family is not None and pattern in load_products()[chip_family].get("lines", ())
