"""``rule``: print the page of a finding code, or list the rules that read a key."""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import code_pages, written_condition
from npuprof.commands.framework import Verb, optional_argument
from npuprof.commands.framework.parameters import FORMAT, OUTPUT, STORE
from npuprof.document import keys
from npuprof.document.policy import Policy, TeamRule
from npuprof.model import NpuprofError, build_usage_error, did_you_mean
from npuprof.report import Answer
from npuprof.report.tables import Table
from npuprof.store import spec


class Rule(Verb):
    """Explain a finding code.

    Prints the reason, the fix and examples. For a key, lists the rules that read it, including team
    rules.
    """

    group = "reference"
    prose = True

    code = optional_argument(
        "CODE", "Finding code, such as NP301, or key [default: list all codes]", "code"
    )
    format = FORMAT
    store = STORE
    output = OUTPUT

    def run(self) -> Answer:
        """Return the page of a code, or the list of all codes.

        Raises NpuprofError for an unknown code.
        """
        known = {
            **code_pages.load_pages(),
            **{page.code: page for page in load_team_pages(self.store)},
        }
        reading = _list_rules_on(self.code, self.store) if self.code is not None else []
        if self.code is None or (reading and self.code not in known):
            pages = [known[code] for code in reading] if self.code is not None else known.values()
            rows = [
                {"code": page.code, "severity": page.severity, "title": page.title}
                for page in pages
            ]
            table = Table(
                [tuple(row.values()) for row in rows],
                header=("code", "severity", "what it is about"),
            )
            return Answer(
                {
                    "text": lambda: table,
                    "json": lambda: {"schema": "npuprof.rules/1", "rules": rows},
                }
            )
        page = known.get(self.code) or next(
            (known[code] for code in known if code.upper() == self.code.upper()), None
        )
        if page is None:
            hint = did_you_mean(self.code, known, "npuprof rule lists all codes")
            what = f"there is no code {self.code!r}, and no rule reads such a key"
            raise build_usage_error(what, hint)
        return Answer(
            {
                "text": lambda: _format_page(page),
                "json": lambda: {"schema": "npuprof.rule/1", **page._asdict()},
            }
        )


def load_team_pages(store: str | None = None) -> list[code_pages.Page]:
    """Return the pages of team rules.

    Without a ``store``, none if there is no store here or npuprof.toml is invalid.

    Raises NpuprofError.
    """
    return [_build_team_page(rule) for rule in load_team_policy(store).rules]


def load_team_policy(store: str | None = None) -> Policy:
    """Return the team policy of a store.

    Without a ``store``, an empty one if there is no store here or npuprof.toml is invalid.

    Raises NpuprofError.
    """
    try:
        return spec.Workspace(store).load_policy() or Policy()
    except NpuprofError:
        # without --store, the shipped rules are explained in any folder
        if store:
            raise
        return Policy()


def _list_rules_on(key: str, store: str | None) -> list[str]:
    """Return the codes of all rules that read a key."""
    parsed = keys.parse_key(key.removeprefix("profile."))
    if parsed is None:
        return []
    name = catalog.find_key_elsewhere(parsed[0]) or parsed[0]
    codes = [code for code, reads in catalog.list_rule_reads().items() if name in reads]
    return codes + [
        rule.code
        for rule in load_team_policy(store).rules
        if name in written_condition.list_team_reads(rule, with_facts=True)
    ]


def _build_team_page(rule: TeamRule) -> code_pages.Page:
    bound = f", for {', '.join(rule.presets)}" if rule.presets else ""
    condition = f"{f'where {rule.when[0]}, ' if rule.when else ''}{rule.require[0]} has to be true"
    why = f"{rule.origin} says so{bound}: {condition}. Unset and unknown values do not match."
    return code_pages.Page(
        rule.code,
        rule.title,
        rule.severity,
        why,
        f"Make it true: {rule.require[0]}",
        {},
        {},
        {},
        {},
    )


def _format_page(page: code_pages.Page) -> str:
    lines = [f"{page.code} ({page.severity}): {page.title}", ""]
    lines += [f"    Why: {page.why}", f"    Try: {page.fix}"]
    for label, files, context in (
        ("is flagged", page.bad, page.ask_bad),
        ("is fine", page.good, page.ask_good),
    ):
        asking = "".join(f" --{name} {value}" for name, value in context.items())
        for name, text in files.items():
            lines += ["", f"  {name}.toml {label}{f' with{asking}' if asking else ''}:"]
            lines += [f"    {line}".rstrip() for line in text.strip("\n").split("\n")]
    if page.source:
        lines += ["", f"    source: {'; '.join(page.source)}"]
    return "\n".join(lines) + "\n"


VERB = Rule
