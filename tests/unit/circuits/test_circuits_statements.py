"""Statements take every part of their context, and the rest as it is."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ragaudit.circuits import statements
from ragaudit.circuits.budgets import ChargeEntry, ChargeStatement
from ragaudit.circuits.statements import charge_bytes, read_charge
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import SQUARED_NORM

CONTEXT: dict[str, Any] = {
    "policy_digest": bytes([1]) * 32, "window": "w", "tenant": "t", "version": 1,
    "index_root": bytes([2]) * 32,
}  # fmt: skip
SELECTION: dict[str, Any] = CONTEXT | {
    "seed_root": bytes([3]) * 32,
    "activation_randomness": bytes([4]) * 32,
    "body": b"body",
}
RECORD = ("policy_digest", "window", "tenant", "version")
COMMITMENTS = bytes(range(96))
QUERY = np.arange(5, dtype=np.int16)
NOISE = np.arange(3, dtype=np.int64)


def index_statement(**context: Any) -> statements.IndexStatement:
    stated: dict[str, Any] = {"dimension": 5, "commitments": COMMITMENTS}
    return statements.IndexStatement.of(**(stated | context))


def selection_statement(
    selection_commitment: bytes | None = bytes(32), **context: Any
) -> statements.SelectionStatement:
    of_record = {name: context.pop(name) for name in RECORD}
    record: Any = SimpleNamespace(**of_record, top_k=2, selection_commitment=selection_commitment)
    return statements.SelectionStatement.of(
        record, **context, commitments=COMMITMENTS, query=QUERY, noise=NOISE
    )


def test_contexts_follow_the_registry() -> None:
    from hashlib import sha256

    from ragaudit.encoding.tagged import enc

    values = list(SELECTION.values())
    assert (
        selection_statement(**SELECTION).context
        == sha256(enc("ragaudit/v1/context/selection", *values)).digest()
    )
    assert (
        index_statement(**CONTEXT).context
        == sha256(enc("ragaudit/v1/context/index", *values[:5])).digest()
    )


@pytest.mark.parametrize("name", SELECTION)
def test_every_part_of_a_context_counts(name: str) -> None:
    other = {str: "x", int: 2, bytes: bytes(32)}[type(SELECTION[name])]
    changed = SELECTION | {name: other}
    assert selection_statement(**changed).context != selection_statement(**SELECTION).context
    if name in CONTEXT:
        again = index_statement(**(CONTEXT | {name: other}))
        assert again.context != index_statement(**CONTEXT).context
    if isinstance(SELECTION[name], bytes) and name != "body":
        with pytest.raises(MalformedError):
            selection_statement(**(SELECTION | {name: bytes(31)}))


def test_windows_without_noise_have_neither_seed_nor_randomness() -> None:
    """Absent is zero bytes (1.1), and binds: a statement with them is another one."""
    absent = SELECTION | {"seed_root": None, "activation_randomness": None}
    empty = SELECTION | {"seed_root": b"", "activation_randomness": b""}
    context = selection_statement(**absent).context
    assert context == selection_statement(**empty).context
    assert context != selection_statement(**SELECTION).context
    for name in ("seed_root", "activation_randomness"):
        assert context != selection_statement(**(absent | {name: SELECTION[name]})).context


def test_statements_take_what_the_policy_says() -> None:
    wide: dict[str, Any] = {"squared_norm": 4095**2}
    selection = selection_statement(**SELECTION, **wide, keeps_ties=True, allowed=(2, 0))
    assert (selection.squared_norm, selection.keeps_ties) == (4095**2, True)
    assert selection.allowed == (2, 0)
    assert index_statement(**CONTEXT, **wide).squared_norm == 4095**2


def test_statements_take_the_rest_as_it_is() -> None:
    index, selection = index_statement(**CONTEXT), selection_statement(**SELECTION)
    assert (index.rows, index.dimension, index.commitments) == (3, 5, COMMITMENTS)
    assert (selection.rows, selection.top_k, selection.allowed) == (3, 2, None)
    assert selection.query is QUERY and selection.noise is NOISE  # not copied
    assert selection.commitments is COMMITMENTS
    assert index.squared_norm == selection.squared_norm == SQUARED_NORM
    assert selection_statement(None, **SELECTION).selection_commitment == b""


def test_a_group_may_have_one_entry_more_than_a_field_holds() -> None:
    entry = ChargeEntry(bytes(32), QUERY, 7, (0, 2), bytes(32), bytes([9]) * 32)
    for count in (0, 1, 2**15, 2**16):
        statement = ChargeStatement(3, COMMITMENTS, (entry,) * count, SQUARED_NORM)
        found = read_charge(charge_bytes(statement), COMMITMENTS)
        assert (found.uses, len(found.entries), found.squared_norm) == (3, count, SQUARED_NORM)
        for each in found.entries[:1] + found.entries[-1:]:
            assert np.array_equal(each.query, entry.query)
            assert (each.context, each.threshold, each.charge) == (bytes(32), 7, entry.charge)
            assert list(each.allowed or ()) == [0, 2]
