"""The shared vectors of the arguments, and one way to run a case against a verifier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragaudit.ledger.messages.ties import TiesStatement

FOLDER = Path(__file__).parents[1] / "vectors"


def read(name: str) -> Any:
    """tests/vectors/<name>.json."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of tests/vectors/<name>.json."""
    loaded = read(name)
    named = {"argument": loaded["argument"]} if "argument" in loaded else {}
    return [named | case for case in loaded["cases"]]


def selection_arguments(case: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments of the reference's verify_selection."""
    return (
        bytes.fromhex(case["context"]),
        case["rows"] if "rows" in case else case["N"],
        bytes.fromhex("".join(case["C"])),
        case["e"],
        case["z"],
        case["K"],
        bytes.fromhex(case["B_sel"]),
        bytes.fromhex(case["proof"]),
        case["allowed"],
    )


def selection_options(case: dict[str, Any]) -> dict[str, Any]:
    """Its keyword arguments: what a policy fixes, by the case's `B2` and argument."""
    ties = case.get("argument") == "selection-ties/v1"
    return {"squared_norm": case["B2"], "ties": ties}


def index_arguments(case: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments of the reference's verify_index."""
    commitments = bytes.fromhex("".join(case["C"]))
    context, proof = bytes.fromhex(case["context"]), bytes.fromhex(case["proof"])
    return context, case["N"], case["d"], commitments, proof, case.get("B2", 127**2)


def ties_arguments(case: dict[str, Any]) -> tuple[TiesStatement, bytes]:
    """Positional arguments of verify_ties, the core's and the reference's."""
    statement = TiesStatement(
        context=bytes.fromhex(case["context"]),
        rows=case["N"],
        query=tuple(case["e"]),
        top_k=case["K"],
        served=tuple((position, score) for position, score in case["served"]),
        withdrawn=tuple((position, score) for position, score in case["withdrawn"]),
        others=tuple(case["others"]),
        commitments=bytes.fromhex("".join(case["C"])),
        squared_norm=case["B2"],
    )
    return statement, bytes.fromhex(case["proof"])


def index_forgeries() -> list[dict[str, Any]]:
    """Index proofs over rows with entries of 10^19, each good for a verifier with a fault."""
    offset, junk = read("index_offset_forgery"), read("index_v2_row_junk_forgery")["case"]
    return [{"name": "offset-of-v1", **offset}, junk, *cases("index_forgeries")]


def decision(package: Any, kind: str, case: dict[str, Any]) -> str:
    """``accept`` or ``reject``, as the package's verifier decides the case."""
    try:
        if kind == "index":
            package.verify_index(*index_arguments(case))
        elif kind == "ties":
            package.verify_ties(*ties_arguments(case))
        else:
            package.verify_selection(*selection_arguments(case), **selection_options(case))
    except package.ProofRejected:
        return "reject"
    return "accept"
