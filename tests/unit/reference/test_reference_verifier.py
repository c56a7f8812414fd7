"""The two verifications of the reference: shared vectors, honest proofs, every refusal."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
import ragaudit.verifier.reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.lab.attacks.forging import selection_prover as prover
from ragaudit.verifier.reference import field, ristretto
from ragaudit.verifier.reference.field import ORDER
from ragaudit.verifier.reference.statement import Statement
from ragaudit.verifier.reference.transcript import Transcript
from reference_vectors import (
    cases,
    decision,
    index_arguments,
    index_forgeries,
    selection_arguments,
    selection_options,
)

SELECTION = [
    case
    for name in (
        "selection",
        "selection_edge",
        "selection_noncanonical",
        "selection_b4095",
        "selection_ties",
    )
    for case in cases(name)
]
INDEX = [*cases("index_v2"), *cases("index_noncanonical")]
HONEST_INDEX = next(case for case in INDEX if case["name"] == "B127 honest-N4-d7")
POINT_OF_ORDER_ONE = bytes(32)


@pytest.mark.parametrize("case", SELECTION, ids=lambda c: c["name"])
def test_selection_vector(case: dict[str, Any]) -> None:
    assert decision(reference, "selection", case) == case["expect"]


@pytest.mark.parametrize("case", INDEX, ids=lambda c: c["name"])
def test_index_vector(case: dict[str, Any]) -> None:
    assert decision(reference, "index", case) == case["expect"]


@pytest.mark.parametrize("case", cases("index_v1"), ids=lambda c: c["name"])
def test_a_proof_of_the_first_index_argument_is_refused(case: dict[str, Any]) -> None:
    assert decision(reference, "index", case) == "reject"


@pytest.mark.parametrize("case", index_forgeries(), ids=lambda c: c["name"])
def test_a_forged_index_proof_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(reference.ProofRejected, match="equation E1 of index/v2"):
        reference.verify_index(*index_arguments(case))


@pytest.mark.parametrize("case", [c for c in SELECTION if "U" in c], ids=lambda c: c["name"])
def test_derived_public_values(case: dict[str, Any]) -> None:
    context, rows, commitments, query, noise, top_k, selection, _, allowed = selection_arguments(
        case
    )
    positions = range(rows) if allowed is None else allowed
    stated = (context, rows, commitments, query, noise, top_k, selection, positions)
    statement = Statement(*stated, **selection_options(case))
    assert statement.zeta == case["zeta"]
    assert [*statement.F] == case["F"]
    assert [*statement.U] == case["U"]


def first(name: str) -> dict[str, Any]:
    return next(case for case in SELECTION if case["name"] == name)


FIRST = first("honest-4")

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "short context": ({"context": "00" * 31}, "context"),
    "long context": ({"context": "00" * 33}, "context"),
    "B zero": ({"B2": 0}, "4B² must be"),
    "B too large": ({"B2": 2**24}, "4B² must be"),
    "no rows": ({"rows": 0}, "N must be"),
    "negative rows": ({"rows": -1}, "N must be"),
    "too many rows": ({"rows": 2**32}, "N must be"),
    "K zero": ({"K": 0}, "K must be"),
    "K too large": ({"K": 2**32}, "K must be"),
    "a commitment missing": ({"C": []}, "N commitments"),
    "a commitment too many": ({"C": [*FIRST["C"], "00" * 32]}, "N commitments"),
    "noise missing": ({"z": [0]}, "N noise"),
    "noise too much": ({"z": [*FIRST["z"], 0]}, "N noise"),
    "empty query": ({"e": []}, "dimension"),
    "long query": ({"e": [127, 1, 0, 0, 0, 0]}, "longer than B"),
    "allowed twice": ({"allowed": [0, 1, 1]}, "twice"),
    "allowed outside": ({"allowed": [0, 12]}, "0..N-1"),
    "allowed negative": ({"allowed": [-1, 0]}, "0..N-1"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_statement_out_of_range_is_refused(name: str) -> None:
    change, message = CHANGES[name]
    changed = {**first("honest-4"), **change}
    with pytest.raises(reference.InvalidStatement, match=message):
        reference.verify_selection(*selection_arguments(changed), **selection_options(changed))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_noise_beyond_64_bits_is_refused(value: int) -> None:
    case = first("honest-4")
    with pytest.raises(reference.InvalidStatement, match="64 bits"):
        reference.verify_selection(*selection_arguments({**case, "z": [value, *case["z"][1:]]}))


def test_another_dimension_is_refused() -> None:
    case = first("honest-4")
    with pytest.raises(reference.ProofRejected):
        reference.verify_selection(*selection_arguments({**case, "e": [*case["e"], 0]}))


@pytest.mark.parametrize("change", ["C", "e", "z", "B_sel", "K", "context", "allowed"])
def test_a_proof_holds_for_its_own_statement_only(change: str) -> None:
    case = dict(first("honest-4"))
    changed: dict[str, Any] = {
        "C": [case["C"][1], case["C"][0], *case["C"][2:]],
        "e": [case["e"][0] - 1, *case["e"][1:]],
        "z": [case["z"][0] + 1, *case["z"][1:]],
        "B_sel": POINT_OF_ORDER_ONE.hex(),
        "K": case["K"] + 1,
        "context": "11" * 32,
        "allowed": list(range(case["rows"] - 1)),
    }
    if change in {"C", "z"}:  # only rows of U are bound here; the index argument binds all
        i = case["U"][0]
        rows = [*case["C"]]
        rows[i] = rows[i - 1]
        noise = [*case["z"]]
        noise[i] += 1
        changed |= {"C": rows, "z": noise}
    with pytest.raises(reference.ProofRejected):
        reference.verify_selection(*selection_arguments({**case, change: changed[change]}))


def test_every_element_of_a_selection_proof_matters() -> None:
    arguments = list(selection_arguments(first("honest-4")))
    proof = arguments[7]
    for at in range(0, len(proof), 32):  # zero is a scalar and, as the identity, a point
        arguments[7] = proof[:at] + bytes(32) + proof[at + 32 :]
        with pytest.raises(reference.ProofRejected):
            reference.verify_selection(*arguments)


@pytest.mark.parametrize("cut", [0, 1, 31, 32, 64, 700, 1000])
def test_a_shortened_proof_is_malformed(cut: int) -> None:
    arguments = list(selection_arguments(first("honest-4")))
    arguments[7] = arguments[7][:cut]
    with pytest.raises(reference.MalformedProof):
        reference.verify_selection(*arguments)


@pytest.mark.parametrize("extra", [b"\0", bytes(32), bytes(64)])
@pytest.mark.parametrize("name", ["honest-4", "selection-all-fewer-1"])
def test_a_lengthened_proof_is_malformed(name: str, extra: bytes) -> None:
    arguments = list(selection_arguments(first(name)))
    arguments[7] += extra
    with pytest.raises(reference.MalformedProof, match="left over"):
        reference.verify_selection(*arguments)


def test_every_part_of_the_index_statement_is_bound() -> None:
    context, rows, dimension, commitments, proof, _ = index_arguments(HONEST_INDEX)
    swapped = commitments[32:] + commitments[:32]
    for arguments in (
        (bytes(32), rows, dimension, commitments, proof),
        (context, rows, dimension + 1, commitments, proof),
        (context, rows - 1, dimension, commitments[32:], proof),
        (context, rows, dimension, swapped, proof),
    ):
        with pytest.raises(reference.ProofRejected):
            reference.verify_index(*arguments)


@pytest.mark.parametrize("tag", ["fold", "rho"])
@pytest.mark.parametrize("kind", ["selection", "index"])
def test_a_challenge_of_zero_is_refused(
    kind: str, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has probability 1/l, so the transcript is made to draw it."""
    draw = Transcript.scalar
    monkeypatch.setattr(Transcript, "scalar", lambda self, t: 0 if t == tag else draw(self, t))
    name = {"fold": "c_k", "rho": "rho"}[tag]
    with pytest.raises(reference.ProofRejected, match=f"challenge {name} is 0"):
        if kind == "index":
            reference.verify_index(*index_arguments(HONEST_INDEX))
        else:
            reference.verify_selection(*selection_arguments(FIRST))


@pytest.mark.parametrize("kind", ["selection", "index"])
def test_malformed_elements_are_refused_before_they_are_absorbed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    absorbed: list[bytes] = []
    absorb = Transcript.absorb

    def listen(self: Transcript, tag: str, message: bytes) -> None:
        absorbed.append(message)
        absorb(self, tag, message)

    monkeypatch.setattr(Transcript, "absorb", listen)
    refused = [case for case in cases(f"{kind}_noncanonical") if case["expect"] == "reject"]
    assert len(refused) == {"selection": 27, "index": 21}[kind]
    for case in refused:
        absorbed.clear()
        with pytest.raises(reference.MalformedProof):
            if kind == "index":
                reference.verify_index(*index_arguments(case))
            else:
                reference.verify_selection(*selection_arguments(case))
        elements = [*case["C"], *([case["B_sel"]] if kind == "selection" else [])]
        elements += [case["proof"][i : i + 64] for i in range(0, len(case["proof"]), 64)]
        for element in map(bytes.fromhex, elements):
            if element in absorbed:
                assert canonical(element), case["name"]


def canonical(element: bytes) -> bool:
    """Whether 32 bytes are a point or a scalar."""
    for decode in (ristretto.decode, field.decode_scalar):
        try:
            decode(element)
        except reference.MalformedProof:
            continue
        return True
    return False


def test_an_index_statement_out_of_range_is_refused() -> None:
    context, rows, dimension, commitments, proof, _ = index_arguments(HONEST_INDEX)
    for arguments in (
        (context[1:], rows, dimension, commitments, proof),
        (context, 0, dimension, b"", proof),
        (context, 2**32, dimension, commitments, proof),
        (context, rows, 0, commitments, proof),
        (context, rows, dimension, commitments[1:], proof),
        (context, rows, dimension, commitments + bytes(32), proof),
        (context, rows, dimension, commitments, proof, 0),
        (context, rows, dimension, commitments, proof, 2**24),
    ):
        with pytest.raises(reference.InvalidStatement):
            reference.verify_index(*arguments)


def test_a_malformed_index_proof_or_commitment_is_refused() -> None:
    context, rows, dimension, commitments, proof, _ = index_arguments(HONEST_INDEX)
    bad = bytes([1]) + bytes(31)
    for arguments in (
        (context, rows, dimension, commitments, proof[:-1]),
        (context, rows, dimension, commitments, proof + b"\0"),
        (context, rows, dimension, commitments, b""),
        (context, rows, dimension, bad + commitments[32:], proof),
    ):
        with pytest.raises(reference.MalformedProof):
            reference.verify_index(*arguments)


@dataclass
class Record:
    """One record with its secrets."""

    statement: Statement
    index: prover.Index
    scores: list[int]
    blinding: int

    def prove(self) -> bytes:
        if self.statement.everything:
            return prover.prove_everything(reference, self.statement, self.blinding)
        honest = prover.honest_assignment(self.statement, self.scores)
        return prover.prove_boundary(reference, self.statement, self.index, honest, self.blinding)


def record(seed: int, rows: int, dimension: int, spread: int, top_k: int, allowed: int) -> Record:
    """A random record: ``spread`` is the size of the noise, ``allowed`` the rows that pass."""
    rng = random.Random(seed)
    reach = int((127**2 / dimension) ** 0.5)
    vectors = [[rng.randint(-reach, reach) for _ in range(dimension)] for _ in range(rows)]
    query = rng.choice([[0] * dimension, [rng.randint(-reach, reach) for _ in range(dimension)]])
    noise = [rng.randint(-spread, spread) for _ in range(rows)]
    index = prover.commit_rows(reference, vectors)
    positions = sorted(rng.sample(range(rows), allowed))
    y = prover.scores(index, query, noise)
    blinding = rng.randrange(ORDER)
    selected = prover.select(y, top_k, positions)
    statement = Statement(
        context=rng.randbytes(32), rows=rows, commitments=index.commitments, query=tuple(query),
        noise=tuple(noise), top_k=top_k,
        selection=prover.commit_selection(reference, selected, blinding), allowed=positions,
    )  # fmt: skip
    return Record(statement, index, y, blinding)


def verify(statement: Statement, proof: bytes) -> None:
    reference.verify_selection(
        statement.context, statement.rows, statement.commitments, statement.query, statement.noise,
        statement.top_k, statement.selection, proof, list(statement.allowed),
    )  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> Record:
    rows = draw(st.integers(1, 9))
    return record(
        seed=draw(st.integers(0, 2**32)),
        rows=rows,
        dimension=draw(st.integers(1, 6)),
        spread=draw(st.sampled_from([0, 1, 20_000, 60_000, 2**62])),
        top_k=draw(st.integers(1, 9)),
        allowed=draw(st.integers(0, rows)),
    )


@settings(max_examples=12, deadline=None)
@given(records())
def test_honest_records_are_accepted(given_record: Record) -> None:
    verify(given_record.statement, given_record.prove())


@settings(max_examples=6, deadline=None)
@given(records(), st.data())
def test_another_selection_is_rejected(given_record: Record, data: st.DataObject) -> None:
    statement = given_record.statement
    right = prover.select(given_record.scores, statement.top_k, list(statement.allowed))
    wrong = data.draw(
        st.lists(st.integers(0, statement.rows - 1), max_size=4).filter(
            lambda positions: sorted(positions) != right
        )
    )
    claim = replace(
        statement, selection=prover.commit_selection(reference, wrong, given_record.blinding)
    )
    with pytest.raises(reference.ProofRejected):
        verify(claim, replace(given_record, statement=claim).prove())


def test_many_rows_tied_at_the_boundary() -> None:
    tied = record(seed=1, rows=9, dimension=2, spread=0, top_k=4, allowed=9)
    tied = replace(tied, statement=replace(tied.statement, query=(0, 0)), scores=[0] * 9)
    nothing = prover.commit_selection(reference, [], tied.blinding)
    tied = replace(tied, statement=replace(tied.statement, selection=nothing))
    verify(tied.statement, tied.prove())


def test_positions_may_be_given_in_any_order() -> None:
    case = next(c for c in SELECTION if c["name"] == "selection-all-equal-1")
    reference.verify_selection(*selection_arguments({**case, "allowed": case["allowed"][::-1]}))


def test_eq_polynomials_sum_to_one_and_select_corners() -> None:
    rng = random.Random(3)
    point = [rng.randrange(ORDER) for _ in range(4)]
    assert sum(field.eq_table(point)) % ORDER == 1
    for i in range(16):
        corner = [i >> (3 - k) & 1 for k in range(4)]  # bit 1 is the most significant
        assert field.eq_table(corner) == [int(i == j) for j in range(16)]
        expected = 1
        for bit, r in zip(corner, point, strict=True):
            expected = expected * (r if bit else 1 - r) % ORDER
        assert field.eq_table(point)[i] == expected


@pytest.mark.parametrize(("count", "expected"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (928, 10)])
def test_variables_of_a_table(count: int, expected: int) -> None:
    assert field.variables_for(count) == expected


@pytest.mark.parametrize("data", [bytes(31), bytes(33), field.le(ORDER, 32), b"\xff" * 32])
def test_scalars_are_canonical(data: bytes) -> None:
    with pytest.raises(reference.MalformedProof):
        field.decode_scalar(data)
    assert field.decode_scalar(field.le(ORDER - 1, 32)) == ORDER - 1
