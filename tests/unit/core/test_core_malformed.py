"""Inputs that break the contract are refused before anything is computed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ragaudit import core

ORDER = 2**252 + 27742317777372353535851937790883648493


def malformed(match: str) -> Any:
    return pytest.raises(core.MalformedInput, match=match)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"context": bytes(31)}, "context: 31 bytes, expected 32"),
        ({"context": bytearray(32)}, "context: bytearray, expected bytes"),
        ({"query": np.zeros(5, dtype=np.int32)}, "query: dtype int32, expected int16"),
        ({"query": np.zeros((5, 1), dtype=np.int16)}, "query: 2 dimensions, expected 1"),
        ({"query": [1, 2, 3, 4, 5]}, "query: list, expected a NumPy array"),
        ({"query": np.zeros(10, dtype=np.int16)[::2]}, "query: not C-contiguous"),
        ({"noise": np.zeros(7)}, "noise: dtype float64, expected int64"),
        ({"noise": np.zeros(7, dtype=np.uint64)}, "noise: dtype uint64, expected int64"),
        ({"top_k": -1}, "top_k: -1"),
        ({"top_k": 2.0}, "top_k: float, expected an integer"),
        ({"top_k": True}, "top_k: bool, expected an integer"),
        ({"allowed": [0, -1]}, "allowed: -1"),
        ({"allowed": 3}, "allowed: int, expected a sequence"),
        ({"allowed": b"\0\1"}, "allowed: bytes, expected a sequence"),
        ({"commitments": "00"}, "commitments: str, expected bytes"),
    ],
)
def test_both_sides_of_a_selection(
    change: dict[str, Any], match: str, record: Any, proof: bytes
) -> None:
    with malformed(match):
        record.verify(proof, **change)
    with malformed(match):
        record.prove(**change)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"selection_commitment": bytes(33)}, "selection_commitment: 33 bytes"),
        ({"rows": 2**64}, "rows: 18446744073709551616"),
        ({"rows": "7"}, "rows: str"),
        ({"squared_norm": -1}, "squared_norm: -1"),
        ({"proof": None}, "proof: NoneType"),
    ],
)
def test_verify_selection(change: dict[str, Any], match: str, record: Any, proof: bytes) -> None:
    with malformed(match):
        record.verify(
            change.get("proof", proof), **{k: v for k, v in change.items() if k != "proof"}
        )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"top_k": 0}, "K = 0"),
        ({"top_k": 2**32}, "K = 4294967296"),
        ({"rows": 0}, "N = 0"),
        ({"rows": 6}, "noise: 7 values, expected 6"),
        ({"noise": np.zeros(8, dtype=np.int64)}, "noise: 8 values, expected 7"),
        ({"query": np.full(5, 60, dtype=np.int16)}, "query: squared norm 18000 above 16129"),
        ({"query": np.full(5, -(2**15), dtype=np.int16)}, "query: squared norm"),
        ({"query": np.zeros(0, dtype=np.int16)}, "query: expected a dimension 1 <= d"),
        ({"query": np.zeros(2**16, dtype=np.int16)}, "query: expected a dimension 1 <= d"),
        ({"allowed": [1, 1, 2]}, "allowed: a position occurs twice"),
        ({"allowed": [1, 7, 2]}, "allowed: position not below N = 7"),
        ({"commitments": bytes(32 * 7 - 1)}, "commitments: 223 bytes"),
        ({"commitments": bytes(32 * 8)}, "commitments: 256 bytes"),
        ({"commitments": b"\xff" * 32 * 7}, "not a canonical ristretto255 encoding"),
        ({"selection_commitment": b"\xff" * 32}, "B_sel: not a canonical"),
        ({"squared_norm": 0}, "B² = 0"),
        ({"squared_norm": 2**24}, "B² = 16777216"),
        ({"squared_norm": 4095**2}, "proof: 2144 bytes, expected 2784"),
    ],
)
def test_statements_out_of_range_are_rejected(
    change: dict[str, Any], match: str, record: Any, proof: bytes
) -> None:
    with pytest.raises(core.ProofRejected, match=match):
        record.verify(proof, **change)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"top_k": 0}, "K = 0"),
        ({"query": np.full(5, 60, dtype=np.int16)}, "query: squared norm"),
        ({"noise": np.zeros(6, dtype=np.int64)}, "noise: 6 values, expected 7"),
        ({"query": np.zeros(4, dtype=np.int16)}, "rows in|entries in rows of 8"),
        ({"selected": [0, 0]}, "selected: a position occurs twice"),
        ({"selected": [2**32]}, "selected: position not below 2\\^32"),
        ({"selected": "ab"}, "selected: str"),
        ({"selection_blinding": ORDER.to_bytes(32, "little")}, "not below the group order"),
        ({"selection_blinding": bytes(31)}, "selection_blinding: 31 bytes"),
        ({"blindings": np.zeros((6, 32), dtype=np.uint8)}, r"blindings: shape \(6, 32\)"),
        ({"blindings": np.full((7, 32), 255, dtype=np.uint8)}, "not below the group order"),
        ({"rows": np.zeros((7, 9), dtype=np.int32)}, "rows: dtype int32, expected int8 or int16"),
        ({"rows": np.zeros(63, dtype=np.int8)}, "rows: 1 dimensions, expected 2"),
        ({"rows": np.zeros((9, 7), dtype=np.int8).T}, "rows: not C-contiguous"),
        ({"commitments": bytes(32)}, "commitments: 32 bytes"),
    ],
)
def test_prove_selection(change: dict[str, Any], match: str, record: Any) -> None:
    with malformed(match):
        record.prove(**change)


def test_index_arguments(index: Any, index_proof: bytes) -> None:
    rows, blindings, commitments = index.rows, index.blindings, index.commitments

    def prove(rows: Any, blindings: Any, **changes: Any) -> None:
        core.prove_index(index.statement(**changes), rows, blindings)

    def verify(**changes: Any) -> None:
        core.verify_index(index.statement(**changes), index_proof)

    with malformed("rows: dtype int32, expected int8 or int16 or int64"):
        prove(rows.astype(np.int32), blindings)
    with malformed(r"rows: shape \(7, 3\), expected \(7, 9\)"):
        prove(np.zeros((7, 3), dtype=np.int8), blindings)
    with malformed(r"blindings: shape \(6, 32\), expected \(7, 32\)"):
        prove(rows, blindings[:6])
    with malformed("blindings: dtype int8"):
        prove(rows, blindings.astype(np.int8))
    with malformed("blinding 3: scalar not below the group order"):
        wrong = blindings.copy()
        wrong[3] = 255
        prove(rows, wrong)
    with malformed("commitments: 192 bytes"):
        prove(rows, blindings, commitments=commitments[32:])
    with malformed("context: 33 bytes"):
        verify(context=bytes(33))
    with malformed("dimension: -5"):
        verify(dimension=-5)
    for count, dimension in [
        (0, 5),
        (6, 5),
        (8, 5),
        (2**32, 5),
        (7, 0),
        (7, 2**16),
        (7, 4),
        (7, 6),
    ]:
        with pytest.raises(core.ProofRejected):
            verify(rows=count, dimension=dimension)
    with malformed("squared_norm: -1"):
        verify(squared_norm=-1)
    for norm in (0, 2**24):
        with pytest.raises(core.ProofRejected, match=f"B² = {norm}, expected"):
            verify(squared_norm=norm)
    with pytest.raises(core.ProofRejected, match="C_6: not a canonical"):
        verify(commitments=commitments[:-32] + b"\xff" * 32)


def test_rows_and_commitments(make_index: Callable[..., Any]) -> None:
    with malformed("row 1: squared norm above 16129"):
        core.complete_rows(np.array([[127, 0], [127, 1]], dtype=np.int8))
    with malformed("dtype"):
        core.complete_rows(np.zeros((2, 2), dtype=np.uint8))
    with malformed("row 1: squared norm above 16769025"):
        core.complete_rows(np.array([[4095, 0], [4095, 1]], dtype=np.int16), 4095**2)
    with malformed("4095 does not fit 8 bits"):
        core.complete_rows(np.zeros((2, 2), dtype=np.int8), 4095**2)
    for norm in (0, 2**24):
        with malformed(f"B² = {norm}, expected"):
            core.complete_rows(np.zeros((2, 2), dtype=np.int16), norm)
    with malformed("entries are not rows of 0"):
        core.complete_rows(np.zeros((2, 0), dtype=np.int8))
    with malformed("blinding 0: scalar not below the group order"):
        core.commit_rows(
            np.zeros((1, 4), dtype=np.int8),
            np.frombuffer(ORDER.to_bytes(32, "little"), dtype=np.uint8).reshape(1, 32),
        )
    with malformed("blinding: 0 bytes"):
        core.commit_selection([1], b"")
    with malformed("no generators named"):
        core.generator("B", 0)
    with malformed("index: -1"):
        core.generator("A", -1)
    with malformed('operation: "rewind" is not known'):
        core.transcript_trace("test", [("rewind", "", b"", 0)])


def test_a_secret_is_in_no_message(record: Any) -> None:
    wrong = (ORDER + 12345678901234567890).to_bytes(32, "little")
    with malformed("selection_blinding") as caught:
        record.prove(selection_blinding=wrong)
    assert wrong.hex() not in str(caught.value)
    assert "1234567890" not in str(caught.value)


def test_errors_have_one_root() -> None:
    for error in (core.MalformedInput, core.ProofRejected, core.Cancelled):
        assert issubclass(error, core.CoreError)
        assert error.__module__ == "ragaudit.core"


def test_blinding_anew() -> None:
    rows = np.array([[1, 2, 3, 4, 5, 6]] * 3, dtype=np.int8)
    old, new = core.random_scalars(3), core.random_scalars(3)
    commitments = core.commit_rows(rows, old)
    assert core.reblind_rows(commitments, old, new) == core.commit_rows(rows, new)
    with malformed(r"old: shape \(2, 32\), expected \(3, 32\)"):
        core.reblind_rows(commitments, old[:2], new)
    with malformed("new: dtype int8, expected uint8"):
        core.reblind_rows(commitments, old, new.view(np.int8))
    with malformed("new blinding 1: scalar not below the group order"):
        core.reblind_rows(commitments, old, np.where([[0], [1], [0]], np.uint8(255), new))
    with malformed("C_2: not a canonical ristretto255 encoding"):
        core.reblind_rows(commitments[:64] + b"\xff" * 32, old, new)
    with malformed("commitments: list, expected bytes"):
        core.reblind_rows([], old, new)  # type: ignore[arg-type]
