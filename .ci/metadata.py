"""The addresses in the metadata of the package, and links of the README that work elsewhere.

Where a release is made, ``NPUPROF_HOME`` is the address of the repository and ``NPUPROF_REVISION``
the commit. Without them no address is made up: there is none, and what leads into the repository is
left out of the README, pictures as a whole, of links all but their words.
"""

from __future__ import annotations

import os
import re
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: What leads into the repository: the words, and the path.
_IMAGE = re.compile(r"!\[([^\]]*)\]\((?![a-z]+:|#|/)([^)\s]+)\)")
_PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
_SOURCE = re.compile(r'\b(src|srcset)="(?![a-z]+:|/)([^"]+)"')
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?![a-z]+:|#|/)([^)\s]+)\)")


class HomeHook(MetadataHookInterface):
    """Fills in the addresses, and the README with them."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme``, and ``urls`` where there is a home."""
        home = os.environ.get("NPUPROF_HOME", "").rstrip("/")
        with open(os.path.join(self.root, "README.md"), encoding="utf-8") as file:
            text = file.read()
        if home:
            metadata["urls"] = {
                "Homepage": home,
                "Changelog": f"{home}/blob/main/npuprof/docs/reference/changelog.md",
                "Documentation": f"{home}/tree/main/npuprof/docs",
                "Issues": f"{home}/issues",
            }
            revision = os.environ.get("NPUPROF_REVISION") or "main"
            text = _PICTURE.sub(
                lambda found: _SOURCE.sub(rf'\1="{home}/raw/{revision}/\2"', found[0]), text
            )
            text = _IMAGE.sub(rf"![\1]({home}/raw/{revision}/\2)", text)
            text = _LINK.sub(rf"[\1]({home}/blob/{revision}/\2)", text)
        else:
            text = _LINK.sub(
                r"\1", re.sub(r"\n{3,}", "\n\n", _IMAGE.sub("", _PICTURE.sub("", text)))
            )
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
