"""Owners of presets: ``owner`` in ``[profile]``, and CODEOWNERS as GitHub and GitLab do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from npuprof.compare.survey import Survey
from npuprof.store.gitstore.repository import Repository
from npuprof.store.gitstore.revisions import Revision

#: Possible paths of the file; the first existing one counts.
PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
#: A line: a pattern with escaped blanks, and its owners.
_LINE = re.compile(r"((?:\\.|[^\s\\])+)\s*(.*)")


def find_owners(survey: Survey, at: Revision) -> dict[str, tuple[str, ...]]:
    """Return the owners of the presets that differ, by name, with CODEOWNERS at a revision.

    Raises NpuprofError.
    """
    rules = read_owner_rules(at.repository, at.commit)
    owners_of = {}
    for pair in survey.different_pairs:
        config = pair.after or pair.before
        declared = config.lineage[-1].table.get("owner") if config else None
        listed = match_owners(rules, at.source_path(pair.name))
        if owners := tuple(dict.fromkeys(filter(None, (declared, *listed)))):
            owners_of[pair.name] = owners
    return owners_of


def read_owner_rules(repository: Repository, commit: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the patterns and owners of the first existing file at a commit.

    Raises NpuprofError.
    """
    for file in repository.git.read_objects([f"{commit}:{place}" for place in PLACES]):
        if file is not None and file.type == "blob":
            return parse_owners(file.content.decode(errors="replace"))
    return []


def parse_owners(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the patterns and owners of a CODEOWNERS file, without sections and comments."""
    rules = []
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match and not line.lstrip().startswith(("#", "[", "^[")):
            rules.append((match[1].replace("\\ ", " "), tuple(match[2].partition(" #")[0].split())))
    return rules


def match_owners(rules: Sequence[tuple[str, tuple[str, ...]]], path: str) -> tuple[str, ...]:
    """Return the owners of a path: those of the last matching pattern."""
    return next(
        (
            owners
            for pattern, owners in reversed(rules)
            if _compile_pattern(pattern).fullmatch(path)
        ),
        (),
    )


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a .gitignore-style pattern as a regular expression for whole paths."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/")
    parts = re.split(r"(\*\*/|/\*\*|\*|\?)", body)
    words = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}
    expression = "".join(words.get(part) or re.escape(part) for part in parts)
    # (a folder includes everything below it; docs/* only its direct files)
    below = "/.*" if pattern.endswith("/") else "" if body.endswith("/*") else "(?:/.*)?"
    return re.compile(f"{'' if anchored else '(?:.*/)?'}{expression}{below}", re.DOTALL)
