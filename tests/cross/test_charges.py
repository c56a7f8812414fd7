"""The core and the reference code decide charge arguments alike (docs/spec 4.11)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import ragaudit.core as core
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.circuits.budgets import ChargeEntry, ChargeStatement
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.verifier.engines import ArgumentRejected, engine
from reference_vectors import cases

CONTEXT: dict[str, Any] = {
    "policy_digest": bytes(32), "window": "w", "tenant": "t", "version": 1,
    "index_root": bytes(32), "seed_root": bytes([1]) * 32,
    "activation_randomness": bytes([2]) * 32, "body": b"body", "log_index": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Charged:
    """A group of charge entries, and what its prover knows."""

    statement: ChargeStatement
    rows: IntegerRows
    blindings: npt.NDArray[np.uint8]
    charged: list[list[int]]
    charge_blindings: npt.NDArray[np.uint8]
    numbers: list[int]

    def prove(self, charged: Sequence[Sequence[int]] | None = None) -> bytes:
        return core.prove_charges(
            self.statement, self.rows, self.blindings, charged or self.charged,
            self.charge_blindings, self.numbers,
        )  # fmt: skip


def due(
    scores: npt.NDArray[np.int64], tau: int, allowed: list[int] | None, used: list[int], uses: int
) -> list[int]:
    """The definition: allowed, relevant, charged less than M times; counts them."""
    passes = range(len(scores)) if allowed is None else allowed
    found = [i for i in passes if scores[i] > tau and used[i] < uses]
    for i in found:
        used[i] += 1
    return found


@st.composite
def groups(draw: st.DrawFn) -> Charged:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, uses, entries = (draw(st.integers(1, most)) for most in (6, 2, 3))
    bound = draw(st.sampled_from([127, 4095]))
    kind: Any = np.int8 if bound == 127 else np.int16
    reach = bound // 2
    rows = core.complete_rows(
        rng.integers(-reach, reach, (count, 2), endpoint=True).astype(kind), bound**2
    )
    queries = rng.integers(-reach, reach, (entries, 2), endpoint=True).astype(np.int16)
    blindings, charge_blindings = core.random_scalars(count), core.random_scalars(entries)
    used, charged, filters, taus = [0] * count, [], [], []
    for query in queries:
        filters.append(draw(st.none() | st.sets(st.sampled_from(range(count))).map(sorted)))
        taus.append(draw(st.sampled_from([0, reach * reach // 4, bound**2])))
        scores = rows[:, :2].astype(np.int64) @ query.astype(np.int64)
        charged.append(due(scores, taus[-1], filters[-1], used, uses))
    points = [
        core.commit_selection(each, rho.tobytes())
        for each, rho in zip(charged, charge_blindings, strict=True)
    ]
    numbers = sorted(draw(st.sets(st.sampled_from(range(entries)), min_size=1)))
    before = core.running_sums(b"".join(points), numbers)
    stated = tuple(
        ChargeEntry.of(
            **(CONTEXT | {"log_index": n}), query=queries[n], threshold=taus[n],
            allowed=filters[n], charged_before=S, charge=points[n],
        )
        for n, S in zip(numbers, before, strict=True)
    )  # fmt: skip
    statement = ChargeStatement(uses, core.commit_rows(rows, blindings), stated, bound**2)
    return Charged(statement, rows, blindings, charged, charge_blindings, numbers)


def decisions(statement: ChargeStatement, proof: bytes) -> tuple[bool, bool]:
    """(core accepts, reference accepts)."""
    found = []
    for name in ("core", "reference"):
        try:
            engine(name).verify_charges([(statement, proof)])
            found.append(True)
        except ArgumentRejected:
            found.append(False)
    return found[0], found[1]


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("charge"), ids=lambda case: case["name"])
def test_the_vectors_are_decided_as_known(case: dict[str, Any]) -> None:
    entries = tuple(
        ChargeEntry(
            bytes.fromhex(entry["context"]),
            np.array(entry["e"], dtype=np.int16),
            entry["tau"],
            entry["allowed"],
            bytes.fromhex(entry["S"]),
            bytes.fromhex(entry["B"]),
        )
        for entry in case["entries"]
    )
    rows = bytes.fromhex("".join(case["C"]))
    statement = ChargeStatement(case["M"], rows, entries, case["B2"])
    expected = case["expect"] == "accept"
    assert decisions(statement, bytes.fromhex(case["proof"])) == (expected, expected)


@given(groups())
@settings(max_examples=8, deadline=None)
def test_honest_charges_are_accepted_by_both(group: Charged) -> None:
    assert decisions(group.statement, group.prove()) == (True, True)


@pytest.mark.slow
@given(groups(), st.data())
@settings(max_examples=20, deadline=None)
def test_one_change_is_decided_alike(group: Charged, data: st.DataObject) -> None:
    """Of an element of the proof to another of its kind, or of the statement."""
    proof, statement = group.prove(), group.statement
    first, *rest = statement.entries
    kind = data.draw(st.sampled_from(["copy", "zero", "flip", "uses", "tau", "swap", "context"]))
    if kind in ("copy", "zero", "flip"):
        elements = [proof[at : at + 32] for at in range(0, len(proof), 32)]
        place = data.draw(st.integers(0, len(elements) - 1))
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
        "tau": replace(statement, entries=(replace(first, threshold=first.threshold ^ 1), *rest)),
        "swap": replace(statement, entries=(replace(first, charge=first.charged_before), *rest)),
        "context": replace(statement, entries=(replace(first, context=bytes(32)), *rest)),
    }[kind]
    same = kind == "swap" and first.charge == first.charged_before
    assert decisions(lie, proof) == (same, same)


@pytest.mark.slow
@given(groups(), st.data())
@settings(max_examples=12, deadline=None)
def test_a_proof_made_for_other_charges_is_refused_by_both(
    group: Charged, data: st.DataObject
) -> None:
    n = data.draw(st.sampled_from(group.numbers))
    row = data.draw(st.integers(0, len(group.rows) - 1))
    other = [sorted({*rows} ^ ({row} if m == n else set())) for m, rows in enumerate(group.charged)]
    assert decisions(group.statement, group.prove(other)) == (False, False)


def test_every_part_of_a_context_counts() -> None:
    rest: dict[str, Any] = {
        "query": np.zeros(1, dtype=np.int16), "threshold": 0, "allowed": None,
        "charged_before": bytes(32), "charge": bytes(32),
    }  # fmt: skip
    contexts = {ChargeEntry.of(**CONTEXT, **rest).context}
    for name, value in CONTEXT.items():
        other = {str: "x", int: 2, bytes: bytes(32)}[type(value)]
        other = bytes([9]) * 32 if other == value else other
        contexts.add(ChargeEntry.of(**(CONTEXT | {name: other}), **rest).context)
    assert len(contexts) == 1 + len(CONTEXT)
    empty = ChargeEntry.of(**(CONTEXT | {"seed_root": None, "activation_randomness": None}), **rest)
    assert empty.context not in contexts


@for_each(
    ("changes", "match"),
    [
        ({"uses": -1}, "uses: -1"),
        ({"commitments": bytearray(32)}, "commitments: bytearray"),
        ({"squared_norm": 2**32}, "squared_norm: 4294967296"),
        ({"context": bytes(31)}, "context: 31 bytes"),
        ({"query": np.zeros(1, dtype=np.int8)}, "query: dtype int8, expected int16"),
        ({"threshold": 2**63}, "threshold: an integer of more than 64 bits"),
        ({"allowed": [-1]}, "allowed: -1"),
        ({"charged_before": b""}, "charged_before: 0 bytes"),
        ({"charge": bytes(33)}, "charge: 33 bytes"),
    ],
)
def test_statements_of_wrong_types_are_malformed(changes: dict[str, Any], match: str) -> None:
    whole = {name: value for name, value in changes.items() if hasattr(ChargeStatement, name)}
    part = {name: value for name, value in changes.items() if name not in whole}
    query = np.zeros(1, dtype=np.int16)
    entry = replace(ChargeEntry(bytes(32), query, 0, None, bytes(32), bytes(32)), **part)
    statement = replace(ChargeStatement(1, bytes(32), (entry,)), **whole)
    with pytest.raises(core.MalformedInput, match=match):
        core.verify_charges(statement, b"")
    with pytest.raises(core.MalformedInput, match=match):
        rows = np.zeros((1, 5), dtype=np.int8)
        scalars = core.random_scalars(1)
        core.prove_charges(statement, rows, scalars, [[]], scalars, [0])


def test_sums_before_places_of_a_log() -> None:
    points = [core.commit_selection([i], bytes(32)) for i in range(3)]
    sums = core.running_sums(b"".join(points), [0, 2])
    assert sums == [bytes(32), core.commit_selection([0, 1], bytes(32))]
    for numbers in ([3], [1, 0]):
        with pytest.raises(core.MalformedInput, match="rising places"):
            core.running_sums(b"".join(points), numbers)
    with pytest.raises(core.MalformedInput, match="B_0: not a canonical"):
        core.running_sums(b"\xff" * 64, [1])


def test_a_prover_reports_progress_and_can_be_stopped() -> None:
    rows = core.complete_rows(np.array([[2]], dtype=np.int8))
    scalars = core.random_scalars(1)
    entry = ChargeEntry(
        bytes(32), np.array([10], dtype=np.int16), 5, None, bytes(32),
        core.commit_selection([0], scalars[0].tobytes()),
    )  # fmt: skip
    statement = ChargeStatement(1, core.commit_rows(rows, scalars), (entry,))
    shares: list[float] = []
    proof = core.prove_charges(
        statement, rows, scalars, [[0]], scalars, [0], progress=shares.append
    )
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    core.verify_charges(statement, proof)
    with pytest.raises(core.Cancelled):
        core.prove_charges(
            statement, rows, scalars, [[0]], scalars, [0], progress=lambda done: done < 0.5
        )
    with pytest.raises(core.Cancelled):
        core.verify_charges(statement, proof, progress=lambda _: False)
