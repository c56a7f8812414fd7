"""The ties opening through the Python interface: what is malformed, what is refused."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from ragaudit import core


@dataclass(frozen=True)
class Statement:
    """Scores 20, 30, 20, 20, 10 with K = 2: rows 2 and 3 stay behind."""

    context: Any = bytes(32)
    rows: Any = 5
    query: Any = (10,)
    top_k: Any = 2
    served: Any = ((0, 20),)
    withdrawn: Any = ((1, 30),)
    others: Any = (2, 3)
    commitments: Any = b""
    squared_norm: Any = 127**2


ROWS = core.complete_rows(np.array([[2], [3], [2], [2], [1]], dtype=np.int8))
BLINDINGS = core.random_scalars(5)
STATEMENT = Statement(commitments=core.commit_rows(ROWS, BLINDINGS)[32:128])


def test_an_opening_of_narrow_and_of_wide_rows() -> None:
    for rows in (ROWS, ROWS.astype(np.int16)):
        proof = core.prove_ties(STATEMENT, rows, BLINDINGS)
        core.verify_ties(STATEMENT, proof)
        assert proof != core.prove_ties(STATEMENT, rows, BLINDINGS)


def test_rows_that_are_not_opened_are_not_read() -> None:
    rows, blindings = ROWS.copy(), BLINDINGS.copy()
    rows[[0, 4]], blindings[[0, 4]] = 5, 255
    core.verify_ties(STATEMENT, core.prove_ties(STATEMENT, rows, blindings))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"context": bytes(31)}, "context: 31 bytes"),
        ({"rows": -1}, "rows: -1"),
        ({"query": (2**15,)}, "query: an integer of more than 16 bits"),
        ({"query": (1.0,)}, "query: float"),
        ({"top_k": True}, "top_k: bool"),
        ({"served": b"ab"}, "served: bytes"),
        ({"served": ((0, 2**63),)}, "served: an integer of more than 64 bits"),
        ({"withdrawn": ((-1, 30),)}, "withdrawn: -1"),
        ({"others": "23"}, "others: str"),
        ({"others": (2, 2**64)}, "others: 18446744073709551616"),
        ({"commitments": bytearray(96)}, "commitments: bytearray"),
        ({"squared_norm": 2**32}, "squared_norm: 4294967296"),
    ],
)
def test_malformed_statements(changes: dict[str, Any], match: str) -> None:
    statement = replace(STATEMENT, **changes)
    with pytest.raises(core.MalformedInput, match=match):
        core.verify_ties(statement, b"")
    with pytest.raises(core.MalformedInput, match=match):
        core.prove_ties(statement, ROWS, BLINDINGS)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"others": (0, 3)}, "named twice"),
        ({"others": (4, 3)}, "do not rise"),
        ({"served": ((4, 20),), "others": (2, 3)}, "row 2 precedes"),
        ({"top_k": 3}, "expected K = 3"),
        ({"commitments": bytes(64)}, "64 bytes, expected 32 for each of 3"),
    ],
)
def test_statements_that_nothing_proves(changes: dict[str, Any], match: str) -> None:
    """The prover calls them malformed, the verifier refuses them."""
    statement = replace(STATEMENT, **changes)
    with pytest.raises(core.MalformedInput, match=match):
        core.prove_ties(statement, ROWS, BLINDINGS)
    with pytest.raises(core.ProofRejected, match=match):
        core.verify_ties(statement, core.prove_ties(STATEMENT, ROWS, BLINDINGS))


def test_malformed_secrets() -> None:
    secrets: list[tuple[Any, Any, str]] = [
        (ROWS.astype(np.int32), BLINDINGS, "rows: dtype int32, expected int8 or int16"),
        (ROWS[0], BLINDINGS, "rows: 1 dimensions"),
        (ROWS[:, :4], BLINDINGS, "not C-contiguous"),
        (ROWS, BLINDINGS[:4], r"blindings: shape \(4, 32\)"),
        (ROWS[:3], BLINDINGS[:3], "rows: 3, expected one at position 3"),
        (np.zeros((5, 6), np.int8), BLINDINGS, "18 entries"),
        (ROWS, np.full((5, 32), 255, np.uint8), "blinding 0: scalar not below the group order"),
    ]
    for rows, blindings, match in secrets:
        with pytest.raises(core.MalformedInput, match=match):
            core.prove_ties(STATEMENT, rows, blindings)
    with pytest.raises(core.MalformedInput, match="proof: bytearray"):
        core.verify_ties(STATEMENT, bytearray(288))  # type: ignore[arg-type]


def test_a_prover_can_be_stopped() -> None:
    with pytest.raises(core.Cancelled):
        core.prove_ties(STATEMENT, ROWS, BLINDINGS, progress=lambda _: False)
