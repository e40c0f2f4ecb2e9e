"""Texts of ``tables/schemas.toml`` in which an editor must underline faults, or nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_TEXTS: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "tables" / "schemas.toml").read_text()
)
UNDERLINED, LET_PASS = _TEXTS["underlined"], _TEXTS["let_pass"]
PROJECT_UNDERLINED, PROJECT_LET_PASS = _TEXTS["project_underlined"], _TEXTS["project_let_pass"]
RULES: str = _TEXTS["rules"]
