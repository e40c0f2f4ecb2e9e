"""Changes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from npuprof.compare.changes import Change
from npuprof.compare.folds import fold_changes
from npuprof.compare.preset_states import Pair
from npuprof.compare.survey import Survey
from npuprof.model import Fields, Origin
from npuprof.report.findings import build_finding_dict
from npuprof.report.json_text import format_json_answer
from npuprof.resolve import origins


def format_survey_json(
    survey: Survey,
    everything: bool = False,
    single: bool = False,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return a survey as JSON: every preset's changes, and merged ones with their presets.

    ``more`` are further fields.
    """
    touched = list(survey.pairs) if everything else survey.touched_pairs
    fields: Fields = {
        "schema": "npuprof.diff/1",
        "before": survey.before,
        "after": survey.after,
    }
    if single:
        fields |= build_pair_dict(survey.pairs[0])
        del fields["preset"], fields["renamed_from"]
    else:
        fields["presets"] = [build_pair_dict(pair) for pair in touched]
        fields["changes"] = [
            {**build_change_dict(fold.change), "presets": list(fold.presets)}
            for fold in fold_changes(touched)
        ]
        fields["untouched"] = (
            len(survey.pairs) - len(survey.different_pairs) - len(survey.unknown_pairs)
        )
    if survey.outputs:
        fields["outputs"] = list(survey.outputs)
    return format_json_answer({**fields, **more})


def build_pair_dict(pair: Pair) -> Fields:
    """Return one preset of a survey as the fields of the JSON form."""
    return {
        "preset": pair.name,
        "renamed_from": pair.was or None,
        "status": pair.status,
        "valid": {"before": pair.valid[0], "after": pair.valid[1]},
        "digest": {
            side: config.digest if config else None
            for side, config in (("before", pair.before), ("after", pair.after))
        },
        "changes": [build_change_dict(change) for change in pair.changes],
        "newly_broken": [build_finding_dict(finding) for finding in pair.broken],
        "newly_valid": [build_finding_dict(finding) for finding in pair.fixed],
        "newly_accepted": [
            {
                **build_finding_dict(accepted.finding),
                "reason": accepted.ignore.reason,
                "accepted_by": build_origin_dict(accepted.ignore.origin),
            }
            for accepted in pair.accepted
        ],
    }


def build_change_dict(change: Change) -> Fields:
    """Return a change as the fields of the JSON form."""
    fields = {
        "key": change.key,
        "kind": change.kind,
        "sign": change.sign,
        "before": change.before,
        "after": change.after,
        "element": change.element,
        "scope": change.scope or None,
        "unit": change.unit or None,
        "risk": list(change.risk),
        "origins": {
            "before": build_origin_dict(change.origins[0]),
            "after": build_origin_dict(change.origins[1]),
        },
    }
    if inner := change.compare_elements():
        fields["inside"] = [
            {
                "kind": element.kind,
                "place": element.index,
                "before": element.before,
                "after": element.after,
            }
            for element in inner
        ]
    return fields


def build_origin_dict(origin: Origin | None) -> Fields | None:
    """Return an origin as the fields of the JSON form, with its citation."""
    return {**origins.build_origin_dict(origin), "text": str(origin)} if origin else None
