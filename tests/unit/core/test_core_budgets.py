"""The budget argument through the Python interface: what is malformed, what is refused."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from ragaudit import core


@dataclass(frozen=True)
class Statement:
    """Rows 0 and 2, then row 2 again, of three; M = 2."""

    context: Any = bytes(32)
    rows: Any = 3
    uses: Any = 2
    charges: Any = b""
    squared_norm: Any = 127**2


CHARGED = [[0, 2], [2]]
BLINDINGS = core.random_scalars(2)
POINTS = b"".join(
    core.commit_selection(rows, rho.tobytes()) for rows, rho in zip(CHARGED, BLINDINGS, strict=True)
)
STATEMENT = Statement(charges=POINTS)


def test_a_proof_is_accepted_and_made_anew_each_time() -> None:
    proof = core.prove_budget(STATEMENT, CHARGED, BLINDINGS)
    core.verify_budget(STATEMENT, proof)
    again: Any = [(2, 0), [np.int64(2)]]
    assert proof != core.prove_budget(STATEMENT, again, BLINDINGS)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"context": bytes(31)}, "context: 31 bytes"),
        ({"rows": -1}, "rows: -1"),
        ({"uses": True}, "uses: bool"),
        ({"uses": 2**64}, "uses: 18446744073709551616"),
        ({"charges": bytearray(64)}, "charges: bytearray"),
        ({"squared_norm": 2**32}, "squared_norm: 4294967296"),
    ],
)
def test_statements_of_wrong_types_are_malformed(changes: dict[str, Any], match: str) -> None:
    statement = replace(STATEMENT, **changes)
    with pytest.raises(core.MalformedInput, match=match):
        core.verify_budget(statement, b"")
    with pytest.raises(core.MalformedInput, match=match):
        core.prove_budget(statement, CHARGED, BLINDINGS)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"rows": 0}, "N = 0"),
        ({"rows": 2**32}, "N = 4294967296"),
        ({"uses": 0}, "M = 0"),
        ({"uses": 2**16 + 1}, "M = 65537"),
        ({"charges": b""}, "charges: 0 bytes"),
        ({"charges": POINTS[:63]}, "charges: 63 bytes"),
        ({"squared_norm": 2**24}, "B² = 16777216"),
    ],
)
def test_statements_out_of_range_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(core.ProofRejected, match=match):
        core.verify_budget(replace(STATEMENT, **changes), b"")


@pytest.mark.parametrize(
    ("charged", "match"),
    [
        ([[0, 2]], r"blindings: shape \(2, 32\), expected \(1, 32\)"),
        ([[0, 3], [2]], "position not below N = 3"),
        ([[0, 0], [2]], "a position occurs twice"),
        ([[0, -1], [2]], "charged: -1"),
        (["02", [2]], "charged: str"),
    ],
)
def test_charges_that_cannot_be_are_malformed(charged: Any, match: str) -> None:
    with pytest.raises(core.MalformedInput, match=match):
        core.prove_budget(STATEMENT, charged, BLINDINGS)


def test_an_overdrawn_budget_is_not_proven() -> None:
    with pytest.raises(core.MalformedInput, match="row 2 2 times, expected at most M = 1"):
        core.prove_budget(replace(STATEMENT, uses=1), CHARGED, BLINDINGS)


def test_other_charges_than_the_committed_ones_are_refused() -> None:
    proof = core.prove_budget(STATEMENT, [[0], [2]], BLINDINGS)
    with pytest.raises(core.ProofRejected, match="budget/v1: proof: the verification equation"):
        core.verify_budget(STATEMENT, proof)


def test_both_sides_report_progress_and_can_be_stopped() -> None:
    shares: list[float] = []
    proof = core.prove_budget(STATEMENT, CHARGED, BLINDINGS, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    with pytest.raises(core.Cancelled):
        core.prove_budget(STATEMENT, CHARGED, BLINDINGS, progress=lambda done: done < 0.5)
    with pytest.raises(core.Cancelled):
        core.verify_budget(STATEMENT, proof, progress=lambda _: False)
