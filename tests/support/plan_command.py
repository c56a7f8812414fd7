"""`ragaudit plan`, run in this process, and the schema of its JSON."""

from typing import Any

from ragaudit.cli.plan.collection import QuestionSource
from ragaudit.cli.plan.command import app
from ragaudit.privacy.guarantees import Strength
from ragaudit.privacy.planning.budget import Targets
from ragaudit.privacy.planning.retrieval import Service
from typer.testing import CliRunner, Result

RUNNER = CliRunner()
TARGETS = Targets("8", "0.000001", 50, 2, "0.00001")
ARGUMENTS = {
    "--epsilon": "8", "--delta": "1e-6", "--queries": "50", "--coalition": "2",
    "--delta-policy": "1e-5",
}  # fmt: skip


def run(*more: str, **changes: str | None) -> Result:
    """Run the command with ARGUMENTS; changes name options without dashes, None leaves one out."""
    named: dict[str, str | None] = {**ARGUMENTS}
    named |= {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    flat = [part for name, value in named.items() if value is not None for part in (name, value)]
    return RUNNER.invoke(app, [*flat, *more])


DECIMAL = {"type": "string", "pattern": r"^(0|[1-9][0-9]*)(\.[0-9]{1,12})?$"}
MAYBE_DECIMAL = {"anyOf": [DECIMAL, {"type": "null"}]}
COUNT = {"type": "integer", "minimum": 1}
NUMBER = {"type": "number", "minimum": 0}


def members(**of: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": of, "required": list(of), "additionalProperties": False
    }  # fmt: skip


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def several(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def reasoned(name: str, **of: Any) -> dict[str, Any]:
    """Members of which `name` is null if and only if there is a reason."""
    missing = {"properties": {name: {"type": "null"}, "reason": {"type": "string"}}}
    given = {"properties": {name: {"type": ["string", "integer"]}, "reason": {"type": "null"}}}
    whole = members(**of, reason={"type": ["string", "null"]})
    return {**whole, "anyOf": [missing, given]}


RELATION = {"enum": ["replace", "null-replace"]}
PRICE = {
    "queries": COUNT, "epsilon": MAYBE_DECIMAL, "ideal_epsilon": DECIMAL, "delta": DECIMAL,
    "relation": RELATION, "advantage": DECIMAL,
}  # fmt: skip
PRICED = reasoned("epsilon", **PRICE)
ROW = reasoned(
    "epsilon",
    accounts=COUNT,
    windows=COUNT,
    **PRICE,
    closed_form=reasoned(
        "epsilon", epsilon=MAYBE_DECIMAL, delta=DECIMAL, relation=RELATION, sigma=MAYBE_DECIMAL,
    ),
)  # fmt: skip
INTERVAL = members(mean=NUMBER, low=NUMBER, high=NUMBER)
CEILED = reasoned(
    "epsilon", **PRICE, recall_ceiling={"type": ["number", "null"], "minimum": 0, "maximum": 1}
)
COST = or_null(members(sigma=DECIMAL, account=CEILED, coalition=CEILED))
RETRIEVAL = members(
    indexes=several(
        members(
            name={"type": "string"}, rows=COUNT, dimension=COUNT, questions=COUNT,
            question_source={"enum": [each.value for each in QuestionSource]},
        )
    ),
    left_out=several(members(name={"type": "string"}, rows=COUNT)),
    top_k=COUNT,
    questions=COUNT,
    trials=COUNT,
    seed={"type": "string"},
    confidence={"const": 0.95},
    random=members(recall=NUMBER, rank_loss=NUMBER),
    quantised_recall=INTERVAL,
    points=several(
        members(
            sigma=DECIMAL, planned={"type": "boolean"}, recall=INTERVAL,
            recall_by_index={"type": "object", "additionalProperties": INTERVAL},
            rank_loss=or_null(INTERVAL), returned=NUMBER, account=CEILED, coalition=CEILED,
        )
    ),
    recall_costs=several(
        members(recall=NUMBER, best=COST, sure=COST, hopeful=COST, beyond={"type": "boolean"})
    ),
)  # fmt: skip
SCHEMA = members(
    format={"const": "ragaudit/v1/plan"},
    targets=members(
        epsilon=MAYBE_DECIMAL, delta=DECIMAL, queries=COUNT, coalition=COUNT,
        delta_policy=DECIMAL, relation=RELATION, rows_per_document=COUNT, slots=COUNT,
        windows=COUNT,
    ),
    protected_unit={"enum": ["row", "document"]},
    sigma=DECIMAL,
    calibrated={"type": "boolean"},
    account=reasoned("epsilon", **PRICE, kept={"type": ["boolean", "null"]}),
    coalitions=several(ROW),
    tenant=ROW,
    over_windows=several(ROW),
    paper=reasoned(
        "sigma", sigma=MAYBE_DECIMAL, ratio=MAYBE_DECIMAL, account=or_null(PRICED)
    ),
    affords=reasoned(
        "queries", queries={"type": ["integer", "null"]}, accounts={"type": ["integer", "null"]}
    ),
    coalition_noise=reasoned(
        "sigma", accounts=COUNT, queries=COUNT, epsilon=MAYBE_DECIMAL, delta=DECIMAL,
        relation=RELATION, sigma=MAYBE_DECIMAL,
    ),
    retrieval=or_null(RETRIEVAL),
    verdict=members(
        service={"enum": [each.value for each in Service]},
        promise={"enum": [each.value for each in Strength]},
        sentence={"type": "string"},
        weak_advantage={"const": 0.1},
        empty_advantage={"const": 0.5},
        useless_gain={"const": 0.5},
        good_gain={"const": 0.9},
    ),
    plots=or_null(
        members(
            files=several({"type": "string"}),
            left_out={"type": "object", "additionalProperties": {"type": "string"}},
        )
    ),
)  # fmt: skip
