"""Changes as text for a terminal or a pipe."""

from __future__ import annotations

from npuprof.compare.folds import cause, closing, folds, headline, mark, sentence, verdicts
from npuprof.document import keys
from npuprof.report import paint, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.compare.changes import Change
    from npuprof.compare.survey import Pair, Survey

_COLOURS = {"+": "32", "-": "31", "~": "33"}
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def text(survey: Survey, everything: bool = False, coloured: bool = False) -> str:
    """Return a survey as text: folded changes first, then each preset's own, then the count of the rest."""
    touched = survey.touched
    wide = [fold for fold in folds(touched) if len(fold.presets) > 1]
    out: list[str] = []
    for fold in wide:
        out += lines(fold.change, "", coloured, len(fold.presets))
        out.append(f"    in {', '.join(fold.presets)}")
    shared = {mark(fold.change) for fold in wide}
    for pair in touched:
        if pair.status == "changed":
            own: Sequence[Change] = [change for change in pair.changes if mark(change) not in shared]
        else:
            own = pair.changes if everything else ()
        said, judged = headline(pair), verdicts(pair)
        if own or said or judged:
            out.append(("\n" if out else "") + paint(visible(pair.name), "1", coloured) + (f" ({visible(said)})" if said else ""))
            for change in own:
                out += lines(change, "  ", coloured)
            out += judgements(pair, "  ", coloured)
    if everything:
        out += [f"{visible(pair.name)}: unchanged" for pair in survey.pairs if not pair.touched]
    out.append(("\n" if out else "") + closing(survey))
    return "".join(f"{line}\n" for line in out)


def single(pair: Pair, everything: bool = False, coloured: bool = False) -> str:
    """Return what differs between two presets as text; with ``everything`` what they share as well."""
    out: list[str] = []
    for change in pair.changes:
        out += lines(change, "", coloured)
    out += judgements(pair, "", coloured)
    if everything and pair.before and pair.after:
        different = {change.setting for change in pair.changes}
        out += [f"  {visible(key)} = {visible(keys.toml(held))}" for key, held in pair.after.ordered().items() if key not in different]
    return "".join(f"{line}\n" for line in out)


def stat(survey: Survey) -> str:
    """Return the number of changes of each preset that differs, and the sum."""
    touched = survey.touched
    width = max((len(visible(pair.name)) for pair in touched), default=0)
    out = []
    for pair in touched:
        counts = [f"{sum(change.sign == sign for change in pair.changes)}{sign}" for sign in "+-~"]
        said = headline(pair)
        out.append(f"{visible(pair.name):<{width}} | {' '.join(counts)}" + (f"  {visible(said)}" if said else ""))
    return "".join(f"{line}\n" for line in (*out, closing(survey)))


def judgements(pair: Pair, indent: str, coloured: bool) -> list[str]:
    """Return the lines for the errors that came and went."""
    return [f"{indent}{paint('! ' + visible(line), '31' if line.startswith('breaks') else '32', coloured)}" for line in verdicts(pair)]


def lines(change: Change, indent: str, coloured: bool = False, presets: int = 0) -> list[str]:
    """Return a change as lines of text: sign, key, old and new, risk, cause; then what changed inside a list."""
    reach = f"{presets} presets: " if presets else ""
    risk = f"  [{', '.join(change.risk)}]" if change.risk else ""
    by = cause(change)
    head = paint(f"{change.sign} {reach}{visible(sentence(change))}", _COLOURS[change.sign], coloured)
    found = [f"{indent}{head}{risk}" + (f"  {paint(visible(by), '2', coloured)}" if by else "")]
    if isinstance(change.before, list) and isinstance(change.after, list) and len(keys.toml(change.after)) > 60:
        for kind, place, old, new in change.inner():
            shown = keys.toml(old if kind == "removed" else new) if kind != "changed" else f"{keys.toml(old)} → {keys.toml(new)}"
            found.append(f"{indent}    {_SIGNS[kind]} {visible(place)} {visible(shown)}")
    return found
