"""Changes as markdown for a pull-request comment: full where it fits, then folded, then counts."""

from __future__ import annotations

import re

from npuprof.compare.folds import cause, closing, folds, headline, mark, sentence, verdicts
from npuprof.report import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.compare.changes import Change
    from npuprof.compare.survey import Pair, Survey

#: GitHub takes 65,536 characters in a comment; some room is left for a heading above.
LIMIT = 60_000
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&-])")
_HEAD = "| | change | risk | cause |\n|---|---|---|---|\n"


def page(survey: Survey, limit: int = LIMIT) -> str:
    """Return a survey as markdown of at most ``limit`` characters."""
    for form in (_full, _folded, _counts):
        found = form(survey)
        if len(found) <= limit:
            return found
    found = f"### Presets: {survey.before} → {survey.after}\n\n{closing(survey)}\n"
    cut = "\n\n(more than a comment can hold: run `npuprof diff` to see it)\n"
    return found if len(found) <= limit else found[: max(0, limit - len(cut))] + cut


def plain(text: str) -> str:
    """Return text that markdown shows as it is, on one line, naming nobody."""
    return _SPECIAL.sub(r"\\\1", visible(text))


def code(text: str) -> str:
    """Return text as a code span that may stand in a table cell."""
    shown = visible(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}".replace("|", "\\|")


def _title(survey: Survey) -> str:
    return f"### Presets: {code(survey.before)} → {code(survey.after)}\n\n{plain(closing(survey))}\n"


def _row(change: Change) -> str:
    return f"| {code(change.sign)} | {code(sentence(change))} | {', '.join(change.risk)} | {plain(cause(change))} |\n"


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(code, names))


def _verdict_lines(pair: Pair) -> str:
    return "".join(f"- {plain(line)}\n" for line in verdicts(pair))


def _full(survey: Survey) -> str:
    """Every preset with all it has, folded changes named once with their presets."""
    return _body(survey, own=True)


def _folded(survey: Survey) -> str:
    """Folded changes with the number of their presets, verdicts, and no preset's new or removed settings."""
    return _body(survey, own=False)


def _body(survey: Survey, own: bool) -> str:
    touched = survey.touched
    every = folds(touched)
    wide = [fold for fold in every if len(fold.presets) > 1] if own else every
    out = [_title(survey)]
    if wide:
        out.append("\n" + _HEAD)
        out += [_row(fold.change).replace("| ", f"| **{len(fold.presets)} presets** ", 1) for fold in wide]
        if own:
            out.append("\n<details><summary>which presets</summary>\n\n")
            out += [f"- {code(sentence(fold.change))}: {_list(fold.presets)}\n" for fold in wide]
            out.append("\n</details>\n")
    shared = {mark(fold.change) for fold in wide}
    for pair in touched:
        left = [change for change in pair.changes if mark(change) not in shared] if own else []
        said = headline(pair)
        judged = _verdict_lines(pair)
        if not (left or said or judged):
            continue
        out.append(f"\n**{plain(pair.name)}**" + (f" ({plain(said)})" if said else "") + "\n")
        if left:
            out.append("\n" + _HEAD)
            out += map(_row, left)
        if judged:
            out.append("\n" + judged)
    return "".join(out)


def _counts(survey: Survey) -> str:
    """Return the number of presets for each key."""
    by_key: dict[str, set[str]] = {}
    for pair in survey.touched:
        for change in pair.changes if pair.status == "changed" else ():
            by_key.setdefault(change.setting or change.key, set()).add(pair.name)
    out = [_title(survey), "\n| key | presets |\n|---|--:|\n"]
    out += [f"| {code(key)} | {len(names)} |\n" for key, names in sorted(by_key.items(), key=lambda item: (-len(item[1]), item[0]))]
    return "".join(out)
