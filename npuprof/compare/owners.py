"""Owners of presets: ``owner`` in ``[profile]``, and CODEOWNERS as GitHub and GitLab do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from npuprof.compare.survey import Survey
from npuprof.model import Record
from npuprof.store.gitstore.repository import Repository
from npuprof.store.gitstore.revisions import Revision
from npuprof.system import decode_safely

#: Possible paths of the file; the first existing one counts.
OWNER_FILES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
#: A line: a pattern with escaped blanks, and its owners.
_LINE = re.compile(r"(?P<pattern>(?:\\.|[^\s\\])+)\s*(?P<owners>.*)")
#: Regular expressions of the wildcards of a pattern.
_WILDCARDS = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}


class OwnerRule(Record):
    """A line of CODEOWNERS: a ``.gitignore``-style pattern, and who owns the paths it matches."""

    pattern: str
    owners: tuple[str, ...]


def find_owners(survey: Survey, at: Revision) -> dict[str, tuple[str, ...]]:
    """Return the owners of the presets that differ, by name, with CODEOWNERS at a revision.

    Raises NpuprofError.
    """
    rules = read_owner_rules(at.repository, at.commit)
    owners_of = {}
    for pair in survey.different_pairs:
        config = pair.after or pair.before
        declared = config.profile.table.get("owner") if config else None
        listed = match_owners(rules, at.source_path(pair.name))
        owners = dict.fromkeys(filter(None, (declared, *listed)))
        if owners:
            owners_of[pair.name] = tuple(owners)
    return owners_of


def read_owner_rules(repository: Repository, commit: str) -> list[OwnerRule]:
    """Return the rules of the first existing file at a commit.

    Raises NpuprofError.
    """
    for file in repository.git.read_objects([f"{commit}:{path}" for path in OWNER_FILES]):
        if file and file.type == "blob":
            return parse_owners(decode_safely(file.content))
    return []


def parse_owners(text: str) -> list[OwnerRule]:
    """Return the rules of a CODEOWNERS file, without sections and comments."""
    rules = []
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        # GitLab groups owners in sections: [Name], or ^[Name] if their approval is optional
        if match and not line.lstrip().startswith(("#", "[", "^[")):
            owners, _, _ = match["owners"].partition(" #")
            rules.append(OwnerRule(match["pattern"].replace("\\ ", " "), tuple(owners.split())))
    return rules


def match_owners(rules: Sequence[OwnerRule], path: str) -> tuple[str, ...]:
    """Return the owners of a path: those of the last matching pattern."""
    # in CODEOWNERS, the last match wins
    for rule in reversed(rules):
        if _compile_pattern(rule.pattern).fullmatch(path):
            return rule.owners
    return ()


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a .gitignore-style pattern as a regular expression for whole paths."""
    # as in .gitignore: a slash before the end ties the pattern to the top
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/")
    parts = re.split(r"(\*\*/|/\*\*|\*|\?)", body)
    expression = "".join(_WILDCARDS.get(part) or re.escape(part) for part in parts)
    if pattern.endswith("/"):
        below = "/.*"
    elif body.endswith("/*"):
        below = ""  # ``docs/*`` matches the direct files of a folder only
    else:
        below = "(?:/.*)?"  # a folder includes everything below it
    above = "" if anchored else "(?:.*/)?"
    return re.compile(f"{above}{expression}{below}", re.DOTALL)
