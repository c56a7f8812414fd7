"""Known answers of an independent implementation, through the Python interface."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement, SelectionStatement

VECTORS = Path(__file__).parents[2] / "vectors"


def load(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


SELECTION_FILES = ("selection", "selection_edge", "selection_noncanonical")
SELECTION = [case for file in SELECTION_FILES for case in load(file)["cases"]]
INDEX = [*load("index_v2")["cases"], *load("index_noncanonical")["cases"]]
MALFORMED = "canonical|not below the group order"


def test_generators() -> None:
    for entry in load("generators_and_transcript")["generators"]:
        assert core.generator(entry["list"], entry["index"]).hex() == entry["point"]


def test_transcript() -> None:
    first, *steps = load("generators_and_transcript")["transcript"]
    operations = [
        (step["op"], step["tag"], bytes.fromhex(step.get("message", "")), step.get("n", 0))
        for step in steps
    ]
    trace = core.transcript_trace(first["argument"], operations)
    assert [state.hex() for state, _ in trace] == [step["state"] for step in [first, *steps]]
    for (_, drawn), step in zip(trace[1:], steps, strict=True):
        if step["op"] == "scalar":
            assert drawn.hex() == step["value"]
        elif step["op"] == "bits":
            bits = np.unpackbits(np.frombuffer(drawn, np.uint8), bitorder="little")
            assert bits[: step["n"]].tolist() == step["value"]


def selection(case: dict[str, Any]) -> tuple[SelectionStatement, bytes]:
    statement = SelectionStatement(
        context=bytes.fromhex(case["context"]), rows=case["rows"],
        commitments=bytes.fromhex("".join(case["C"])), query=np.array(case["e"], dtype=np.int16),
        noise=np.array(case["z"], dtype=np.int64), top_k=case["K"],
        selection_commitment=bytes.fromhex(case["B_sel"]), allowed=case["allowed"],
        squared_norm=case["B2"],
    )  # fmt: skip
    return statement, bytes.fromhex(case["proof"])


def index(case: dict[str, Any]) -> tuple[IndexStatement, bytes]:
    statement = IndexStatement(
        context=bytes.fromhex(case["context"]),
        rows=case["N"],
        dimension=case["d"],
        commitments=bytes.fromhex("".join(case["C"])),
        squared_norm=case.get("B2", core.SQUARED_NORM),
    )
    return statement, bytes.fromhex(case["proof"])


@pytest.mark.parametrize("case", SELECTION, ids=lambda case: case["name"])
def test_selection(case: dict[str, Any]) -> None:
    if case["expect"] == "accept":
        core.verify_selection(*selection(case))
    else:
        with pytest.raises(core.ProofRejected):
            core.verify_selection(*selection(case))


def test_all_selection_vectors_in_one_batch() -> None:
    failed = [i for i, case in enumerate(SELECTION) if case["expect"] == "reject"]
    with pytest.raises(core.ProofRejected) as caught:
        core.verify_selections([selection(case) for case in SELECTION])
    assert caught.value.failed == failed
    core.verify_selections([selection(c) for i, c in enumerate(SELECTION) if i not in failed])


@pytest.mark.parametrize("case", INDEX, ids=lambda case: case["name"])
def test_index(case: dict[str, Any]) -> None:
    statement, proof = index(case)
    if case["expect"] == "accept":
        core.verify_index(statement, proof)
    else:
        with pytest.raises(core.ProofRejected):
            core.verify_index(statement, proof)
    # B² is the policy's, never the proof's.
    with pytest.raises(core.ProofRejected):
        core.verify_index(replace(statement, squared_norm=case["B2"] - 1), proof)


def test_index_proofs_over_other_spellings_are_malformed() -> None:
    """Their transcript ran over the bytes sent: nothing but the decoder refuses them."""
    for case in load("index_noncanonical")["cases"][1:]:
        with pytest.raises(core.ProofRejected, match=MALFORMED):
            core.verify_index(*index(case))


def test_the_first_index_argument_is_refused() -> None:
    for case in load("index_v1")["cases"]:
        with pytest.raises(core.ProofRejected, match="index/v2: "):
            core.verify_index(*index(case))
