"""The core and the reference code decide budget arguments alike (docs/spec 4.10)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import ragaudit.core as core
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.circuits.budgets import BudgetStatement
from ragaudit.encoding.errors import MalformedError
from ragaudit.verifier.engines import ArgumentRejected, engine
from reference_vectors import cases


@dataclass(frozen=True)
class Charged:
    """Charge entries, and what their prover knows."""

    statement: BudgetStatement
    charged: tuple[tuple[int, ...], ...]
    blindings: npt.NDArray[np.uint8]

    def prove(self) -> bytes:
        return core.prove_budget(self.statement, self.charged, self.blindings)


def charge_points(charged: tuple[tuple[int, ...], ...], blindings: npt.NDArray[np.uint8]) -> bytes:
    pairs = zip(charged, blindings, strict=True)
    return b"".join(core.commit_selection(rows, rho.tobytes()) for rows, rho in pairs)


def budget(rows: int, uses: int, charged: tuple[tuple[int, ...], ...]) -> Charged:
    blindings = core.random_scalars(len(charged))
    statement = BudgetStatement.of(
        policy_digest=bytes(32), window="w", tenant="t", version=1, index_root=bytes(32),
        log_root=bytes(32), rows=rows, uses=uses, charges=charge_points(charged, blindings),
    )  # fmt: skip
    return Charged(statement, charged, blindings)


@st.composite
def budgets(draw: st.DrawFn) -> Charged:
    rows, uses = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    left = [uses] * rows
    charged = []
    for _ in range(draw(st.integers(1, 6))):
        live = [i for i in range(rows) if left[i]]
        chosen = draw(st.sets(st.sampled_from(live))) if live else set()
        for row in chosen:
            left[row] -= 1
        charged.append(tuple(sorted(chosen)))
    return budget(rows, uses, tuple(charged))


def decisions(statement: BudgetStatement, proof: bytes) -> tuple[bool, bool]:
    """(core accepts, reference accepts)."""
    found = []
    for name in ("core", "reference"):
        try:
            engine(name).verify_budget(statement, proof)
            found.append(True)
        except ArgumentRejected:
            found.append(False)
    return found[0], found[1]


@for_each("case", cases("budget"))
def test_the_vectors_are_decided_as_known(case: dict[str, Any]) -> None:
    charges = bytes.fromhex("".join(case["B"]))
    statement = BudgetStatement(
        bytes.fromhex(case["context"]), case["N"], case["M"], charges, case["B2"]
    )
    expected = case["expect"] == "accept"
    assert decisions(statement, bytes.fromhex(case["proof"])) == (expected, expected)


@given(budgets())
@settings(max_examples=12, deadline=None)
def test_honest_budgets_are_accepted_by_both(charged: Charged) -> None:
    assert decisions(charged.statement, charged.prove()) == (True, True)


@given(budgets(), st.data())
@settings(max_examples=25, deadline=None)
def test_one_change_is_decided_alike(charged: Charged, data: st.DataObject) -> None:
    """Of an element of the proof to another of its kind, or of the statement: both refuse."""
    proof, statement = charged.prove(), charged.statement
    elements = [proof[at : at + 32] for at in range(0, len(proof), 32)]
    place = data.draw(st.integers(0, len(elements) - 1))
    kind = data.draw(st.sampled_from(["copy", "zero", "flip", "uses", "rows", "entry", "cut"]))
    if kind in ("copy", "zero", "flip"):
        other = {
            "copy": elements[place - 1],
            "zero": bytes(32),
            "flip": bytes([elements[place][0] ^ 1]) + elements[place][1:],
        }[kind]
        changed = b"".join([*elements[:place], other, *elements[place + 1 :]])
        assert decisions(statement, changed) == (changed == proof,) * 2
        return
    lie = {
        "uses": replace(statement, uses=statement.uses + 1),
        "rows": replace(statement, rows=statement.rows + 1),
        "entry": replace(statement, charges=statement.charges + statement.charges[-32:]),
        "cut": replace(statement, charges=statement.charges[:-32]),
    }[kind]
    assert decisions(lie, proof) == (False, False)


def test_a_charge_of_another_window_or_tenant_has_another_context() -> None:
    named: dict[str, Any] = {
        "policy_digest": bytes(32), "window": "w", "tenant": "t", "version": 1,
        "index_root": bytes(32), "log_root": bytes(32),
    }  # fmt: skip
    rest: dict[str, Any] = {"rows": 2, "uses": 1, "charges": bytes(32)}
    contexts = {BudgetStatement.of(**named, **rest).context}
    for name, value in named.items():
        other = {str: "x", int: 2, bytes: bytes([1]) * 32}[type(value)]
        contexts.add(BudgetStatement.of(**(named | {name: other}), **rest).context)
    assert len(contexts) == 1 + len(named)
    with pytest.raises(MalformedError):
        BudgetStatement.of(**(named | {"log_root": bytes(31)}), **rest)


def test_the_log_root_binds_a_proof() -> None:
    charged = budget(4, 2, ((0, 1), (1, 3)))
    other = replace(charged.statement, context=bytes(32))
    assert decisions(charged.statement, charged.prove()) == (True, True)
    assert decisions(other, charged.prove()) == (False, False)
