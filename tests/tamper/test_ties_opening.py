"""Every field of a ties statement that changes is refused, for its reason, by both verifiers."""

from dataclasses import replace
from typing import Any

import pytest
import ragaudit.core as core
import ragaudit.verifier.reference as reference
from for_each import for_each
from ragaudit.ledger.messages.ties import TiesStatement
from reference_vectors import cases, ties_arguments

CASES = {case["name"]: case for case in cases("ties")}
HONEST, PROOF = ties_arguments(CASES["a first row withdrawn"])
EQUATION = ("equation does not hold", "E1 of ties/v1")
ROW_0, ROW_3 = (0, 9), (3, 10)
C = HONEST.commitments

CHANGES: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "another body or index": ({"context": bytes(32)}, EQUATION),
    "another N": ({"rows": 8}, EQUATION),
    "N = 0": ({"rows": 0}, ("N = 0", "N must be")),
    "N = 2^32": ({"rows": 2**32}, ("N = 4294967296", "N must be")),
    "N below a position": ({"rows": 5}, ("not below N = 5", "positions are 0..N-1")),
    "another query": ({"query": (3, -2)}, EQUATION),
    "the other sign": ({"query": (-3, 1)}, EQUATION),
    "a longer query": ({"query": (3, -1, 0)}, ("proof: 288 bytes, expected 288|equation", "E1")),
    "no query": ({"query": ()}, ("a dimension", "a dimension")),
    "a query longer than B": ({"query": (127, 1)}, ("squared norm 16130", "longer than B")),
    "K = 0": ({"top_k": 0}, ("expected K = 0", "K must be")),
    "K = 1": ({"top_k": 1}, ("expected K = 1", "must be K")),
    "K = 3": ({"top_k": 3}, ("expected K = 3", "must be K")),
    "a served row less": ({"served": ()}, ("1 rows served or withdrawn", "must be K")),
    "a served row more": ({"served": (ROW_0, (6, 9))}, ("3 rows served", "must be K")),
    "another served row": ({"served": ((2, 9),)}, ("row 1 precedes", "precede the others")),
    "a served score above": ({"served": ((0, 10),)}, ("row 1 precedes", "precede the others")),
    "a served score below": ({"served": ((0, 8),)}, EQUATION),
    "a score beyond B²": ({"served": ((0, 16130),)}, ("one outside", "in -B²..B²")),
    "a withdrawn row less": ({"withdrawn": ()}, ("1 rows served or withdrawn", "must be K")),
    "another withdrawn row": ({"withdrawn": ((2, 10),)}, EQUATION),
    "another withdrawn score": ({"withdrawn": ((3, 11),)}, EQUATION),
    "served for withdrawn": (
        {"served": (ROW_0, ROW_3), "withdrawn": ()}, ("commitments: 128 bytes", "one C_i")),
    "withdrawn for served": (
        {"served": (), "withdrawn": (ROW_0, ROW_3)}, ("commitments: 128 bytes", "one C_i")),
    "both": ({"withdrawn": (ROW_0,)}, ("named twice", "named twice")),
    "no row behind": ({"others": (), "commitments": C[32:64]}, ("others: none", "more than K")),
    "a row behind less": ({"others": (1, 4)}, ("commitments: 128 bytes", "one C_i")),
    "another row behind": ({"others": (1, 4, 6)}, EQUATION),
    "a better row behind": ({"others": (2, 4, 5)}, EQUATION),
    "rows behind that do not rise": ({"others": (4, 1, 5)}, ("do not rise", "must rise")),
    "a row behind twice": ({"others": (1, 1, 5)}, ("do not rise", "must rise")),
    "a served row behind": ({"others": (0, 4, 5)}, ("named twice", "named twice")),
    "commitments exchanged": ({"commitments": C[32:64] + C[:32] + C[64:]}, EQUATION),
    "a commitment repeated": ({"commitments": C[:32] + C[:96]}, EQUATION),
    "a commitment less": ({"commitments": C[32:]}, ("commitments: 96 bytes", "one C_i")),
    "a commitment more": ({"commitments": C + C[:32]}, ("commitments: 160 bytes", "one C_i")),
    "no point": ({"commitments": b"\xff" * 32 + C[32:]}, ("C_1: not a canonical", "a point must")),
    "another B": ({"squared_norm": 4095**2}, EQUATION),
    "B = 0": ({"squared_norm": 0}, ("B² = 0", "4B²|longer than B")),
    "B² = 2^24": ({"squared_norm": 2**24}, ("B² = 16777216", "4B² must be")),
}  # fmt: skip


def refused(statement: TiesStatement, proof: bytes, reasons: tuple[str, str]) -> None:
    with pytest.raises(core.ProofRejected, match=reasons[0]):
        core.verify_ties(statement, proof)
    with pytest.raises(reference.ProofRejected, match=reasons[1]):
        reference.verify_ties(statement, proof)


@for_each("name", CHANGES)
def test_a_changed_statement_is_refused(name: str) -> None:
    changes, reasons = CHANGES[name]
    refused(replace(HONEST, **changes), PROOF, reasons)


def test_unchanged_it_is_accepted() -> None:
    core.verify_ties(HONEST, PROOF)
    reference.verify_ties(HONEST, PROOF)


@for_each("element", range(len(PROOF) // 32))
def test_a_changed_element_is_refused(element: int) -> None:
    other = ties_arguments(CASES["two of four tied rows"])[1]
    at = slice(32 * element, 32 * element + 32)
    assert other[at] != PROOF[at]
    refused(HONEST, PROOF[: at.start] + other[at] + PROOF[at.stop :], EQUATION)


@pytest.mark.parametrize(
    ("proof", "reasons"),
    [
        (b"", ("0 bytes", "ends in the middle")),
        (PROOF[:-1], ("287 bytes", "ends in the middle")),
        (PROOF + bytes(32), ("320 bytes", "left over")),
        (b"\xff" * len(PROOF), ("not a canonical", "a point must")),
        (PROOF[:-32] + b"\xff" * 32, ("not below the group order", "a scalar must")),
    ],
)
def test_other_bytes_are_refused(proof: bytes, reasons: tuple[str, str]) -> None:
    refused(HONEST, proof, reasons)


def test_a_proof_of_another_answer_is_refused() -> None:
    for name in ("two of four tied rows", "the tied row withdrawn", "K = 1"):
        refused(HONEST, ties_arguments(CASES[name])[1], EQUATION)
