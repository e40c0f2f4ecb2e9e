"""Stores from tables of text, configs from text, and random values of TOML."""

from __future__ import annotations

import os
import shutil
import string
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

import npuprof
from npuprof import checks
from npuprof.document import keys
from npuprof.model import Finding
from npuprof.resolve.config import Config

REPOSITORY = Path(__file__).resolve().parents[2]


def build_store(folder: Path, presets: Mapping[str, str | bytes]) -> Path:
    """Write presets below ``folder`` by name; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in presets.items():
        path = f"{folder}/{name}.toml"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
    return folder


def toml(document: Mapping[str, Any]) -> str:
    """Return a document as TOML text, tables as headers one level deep and inline below."""
    lines: list[str] = []
    for name, value in document.items():
        if name == "override":
            for block in value:
                lines += [
                    "[[override]]",
                    *(
                        f"{keys.format_key_segment(key)} = {keys.format_toml_value(item)}"
                        for key, item in block.items()
                    ),
                ]
        elif name == "append":
            for section, block in value.items():
                lines += [
                    f"[append.{section}]",
                    *(
                        f"{keys.format_key_segment(key)} = {keys.format_toml_value(item)}"
                        for key, item in block.items()
                    ),
                ]
        else:
            lines += [
                f"[{name}]",
                *(
                    f"{keys.format_key_segment(key)} = {keys.format_toml_value(item)}"
                    for key, item in value.items()
                ),
            ]
    return "\n".join([*lines, ""])


def resolve(folder: Path, presets: Mapping[str, str], spec: str, **context: Any) -> Config:
    """Return a spec of a store made of ``presets``, resolved through the library."""
    return npuprof.open_store(str(build_store(folder, presets))).resolve(spec, **context)


def config(text: str, **context: Any) -> Config:
    """Return one preset that stands alone, resolved."""
    return npuprof.loads(text, **context)


def options(**named: Any) -> Config:
    """Return a config that holds just these options."""
    return config(toml({"options": named}))


def render_unchecked(config: Config, target: str, inline: bool = False) -> str:
    """Return a config rendered for a target, without checks; a folder as one text."""
    rendered = npuprof.render(config, target, inline, check=False)
    return (
        rendered
        if isinstance(rendered, str)
        else "".join(f"# {name}\n{text}" for name, text in rendered.items())
    )


def apply_unchecked(config: Config, config_proto: Any, folder: str | None = None) -> Any:
    """Fill a ConfigProto with a config, whatever the checks say of it."""
    return npuprof.apply(config, config_proto, folder, check=False)


def findings(text: str, **context: Any) -> list[Finding]:
    """Return what the checks find in one preset that stands alone."""
    return checks.check_config(config(text, **context))


def codes(text: str, **context: Any) -> list[str]:
    """Return the codes the checks find in one preset that stands alone."""
    return sorted({finding.code for finding in findings(text, **context)})


class Checkout:
    """A copy of the package with its records, to be changed, and its command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "npuprof"
        self.catalogue = self.package / "catalog"
        shutil.copytree(
            REPOSITORY / "npuprof", self.package, ignore=shutil.ignore_patterns("_built")
        )

    def run(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        """Return what the copy's command prints, errors included."""
        done = self.start(*arguments, stdin=stdin)
        assert done.returncode == code, done.stdout
        return done.stdout

    def start(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the copy's command; errors go where the answer goes."""
        return subprocess.run(
            [sys.executable, "-m", "npuprof", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def examples(count: int) -> settings:
    """Return settings with so many examples in the gate, scaled for other lanes."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 60))


# -- hypothesis: what TOML can hold ---------------------------------------------------------------

#: Every character TOML strings can hold: no surrogates.
characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, max_size=20) | st.text(string.printable, max_size=20)
bare_names = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8)
names = (
    bare_names
    | st.text(characters, max_size=6)
    | st.sampled_from(["a.b", "", " ", "ʎǝʞ", '"', "'", "\\", "\n", "\t", "a b"])
)
scalars = (
    texts
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.dates()
    | st.times()
    | st.datetimes()
)
toml_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)
documents = st.dictionaries(names, toml_values, max_size=6)
