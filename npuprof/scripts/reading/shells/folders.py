"""Where a shell script lies, in the ways that scripts write it: its own folder, and folders that are named from there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from npuprof.scripts.reading.found import HERE

_SELF = r'"?(?:\$0|\$\{0\}|\$BASH_SOURCE|\$\{BASH_SOURCE(?:\[0\])?\})"?'
_DIRNAME = rf'\$\(dirname (?:-- )?(?:{_SELF}|"\$\((?:readlink -f|realpath) {_SELF}\)"|\$\((?:readlink -f|realpath) {_SELF}\))\)'
_FOLDER = rf"(?:{_DIRNAME}|`dirname {_SELF}`|\$\{{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}})"
_SOURCED = r'"?(?:\$BASH_SOURCE|\$\{BASH_SOURCE(?:\[0\])?\})"?'
_OWN_FOLDER = re.compile(_FOLDER.replace(_SELF, _SOURCED).replace("0|BASH_SOURCE", "BASH_SOURCE"))
_IS_FOLDER = re.compile(_FOLDER)
_CHANGED = re.compile(
    rf'(?:\$\(|`)[ ]?cd (?:-P )?(?:-- )?"?(?:(?P<folder>{_FOLDER})|\$(?:\{{(?P<long>\w+)\}}|(?P<short>\w+)))(?P<rest>(?:/[\w.-]+)*)/?"?'
    r"[ ]*(?:&?>[ ]*/dev/null(?:[ ]2>&1)?[ ]*)?(?:&&|;)[ ]*pwd(?:[ ]-P)?[ ]?(?:\)|`)"
)


def read_folder(part: str, known: Mapping[str, str]) -> str:
    """Return what an expansion gives that tells a folder by where the script lies, empty for any other; ``known`` are its variables."""
    if _IS_FOLDER.fullmatch(part):
        return f"{HERE}."
    match = _CHANGED.fullmatch(part)
    if not match:
        return ""
    begin = f"{HERE}." if match["folder"] else known.get(match["long"] or match["short"], "")
    return f"{begin}{match['rest']}" if begin.startswith(HERE) else ""


def move_folders(text: str, beside: str) -> str:
    """Return the text of a file that a script takes in, with its folder as the script would write that: ``beside`` its own."""
    folder = "${0%/*}" if beside == "." else f"${{0%/*}}/{beside}"
    return _OWN_FOLDER.sub(lambda match: folder, text)
