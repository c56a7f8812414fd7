"""The JSON report's format."""

from collections.abc import Mapping
from typing import Any, Final

from ragaudit.lab.attacks.scope.judging import SEVERITY

__all__ = ["FORMAT", "SCHEMA"]

FORMAT: Final = "ragaudit/v1/scope-report"


def _object(**members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_TEXTS: Final = {"type": "array", "items": _TEXT}
SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": FORMAT,
    **_object(
        format={"const": FORMAT},
        result={"enum": ["LEAK", "INCOMPLETE", "CLEAN"]},
        store=_TEXT,
        url=_TEXT,
        seed=_COUNT,
        error={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        started=_COUNT,
        requests=_COUNT,
        tenants=_TEXTS,
        controlled=_TEXTS,
        findings={
            "type": "array",
            "items": _object(
                probe=_TEXT,
                family=_TEXT,
                kind={"enum": list(SEVERITY)},
                severity={"enum": list(dict.fromkeys(SEVERITY.values()))},
                title=_TEXT,
                idea=_TEXT,
                attacker=_TEXT,
                victim=_TEXT,
                evidence=_TEXT,
                times={"type": "integer", "minimum": 1},
                p_value={"type": ["number", "null"], "minimum": 0, "maximum": 1},
                request=_object(
                    method=_TEXT,
                    path=_TEXT,
                    headers={"type": "object", "additionalProperties": _TEXT},
                    body=_TEXT,
                ),
                answer=_object(status=_TEXT, text=_TEXT),
                reproduce=_TEXT,
            ),
        },
        tried={
            "type": "array",
            "items": _object(
                probe=_TEXT,
                family=_TEXT,
                idea=_TEXT,
                attacker=_TEXT,
                victim=_TEXT,
                result={"enum": ["FOUND", "NOTHING", "NOT JUDGED", "SKIPPED"]},
                why=_TEXT,
                statuses={"type": "object", "additionalProperties": _COUNT},
            ),
        },
        limits=_TEXTS,
        references=_TEXTS,
    ),
}
"""Of the JSON report, for CI."""
