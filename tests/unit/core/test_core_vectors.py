"""Known answers of an independent implementation, through the Python interface."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit import core

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


def instance(case: dict[str, Any]) -> core.SelectionInstance:
    return core.SelectionInstance(
        context=bytes.fromhex(case["context"]),
        rows=case["rows"],
        commitments=bytes.fromhex("".join(case["C"])),
        query=np.array(case["e"], dtype=np.int16),
        noise=np.array(case["z"], dtype=np.int64),
        top_k=case["K"],
        selection_commitment=bytes.fromhex(case["B_sel"]),
        proof=bytes.fromhex(case["proof"]),
        allowed=case["allowed"],
        squared_norm=case["B2"],
    )


@pytest.mark.parametrize("case", SELECTION, ids=lambda case: case["name"])
def test_selection(case: dict[str, Any]) -> None:
    arguments: list[Any]
    *arguments, allowed, squared_norm = instance(case)

    def verify() -> None:
        core.verify_selection(*arguments, allowed=allowed, squared_norm=squared_norm)

    if case["expect"] == "accept":
        verify()
    else:
        with pytest.raises(core.ProofRejected):
            verify()


def test_all_selection_vectors_in_one_batch() -> None:
    failed = [i for i, case in enumerate(SELECTION) if case["expect"] == "reject"]
    with pytest.raises(core.ProofRejected) as caught:
        core.verify_selections([instance(case) for case in SELECTION])
    assert caught.value.failed == failed
    core.verify_selections([instance(c) for i, c in enumerate(SELECTION) if i not in failed])


@pytest.mark.parametrize("case", INDEX, ids=lambda case: case["name"])
def test_index(case: dict[str, Any]) -> None:
    arguments = (
        bytes.fromhex(case["context"]),
        case["N"],
        case["d"],
        bytes.fromhex("".join(case["C"])),
        bytes.fromhex(case["proof"]),
    )
    if case["expect"] == "accept":
        core.verify_index(*arguments, squared_norm=case["B2"])
    else:
        with pytest.raises(core.ProofRejected):
            core.verify_index(*arguments, squared_norm=case["B2"])
    # B² is the policy's, never the proof's.
    with pytest.raises(core.ProofRejected):
        core.verify_index(*arguments, squared_norm=case["B2"] - 1)


def test_index_proofs_over_other_spellings_are_malformed() -> None:
    """Their transcript ran over the bytes sent: nothing but the decoder refuses them."""
    for case in load("index_noncanonical")["cases"][1:]:
        commitments, proof = bytes.fromhex("".join(case["C"])), bytes.fromhex(case["proof"])
        context = bytes.fromhex(case["context"])
        with pytest.raises(core.ProofRejected, match=MALFORMED):
            core.verify_index(context, case["N"], case["d"], commitments, proof)


def test_the_first_index_argument_is_refused() -> None:
    for case in load("index_v1")["cases"]:
        context, proof = bytes.fromhex(case["context"]), bytes.fromhex(case["proof"])
        commitments = bytes.fromhex("".join(case["C"]))
        with pytest.raises(core.ProofRejected, match="index/v2: "):
            core.verify_index(context, case["N"], case["d"], commitments, proof)
