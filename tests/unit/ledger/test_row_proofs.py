"""What an index says of one document in one version: proven, or rejected (spec 5.16)."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from owner_scene import OTHER, TENANT, VECTOR, Held, OwnedWindow, policy, stand_in
from ragaudit.circuits.quantise import quantise
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RagauditError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import CommitmentRejected, NoteRejected, ProofRejected
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.messages.documents import RowProof, RowProofs
from ragaudit.ledger.messages.policy import Policy

HONEST = OwnedWindow(
    [Held("a-1", "one"), Held("a-2", "two"), Held("a-3", "three")],
    [Held("a-1", "one"), Held("a-2", None), Held("a-3", "three"), Held("a-4", "four")],
)
POLICY = HONEST.policy
FIRST, GONE, LATER = HONEST.row_proof(1, 0), HONEST.row_proof(2, 1), HONEST.row_proof(2, 3)


@pytest.mark.parametrize("name", VECTOR["rows"])
def test_a_proof_is_the_one_of_the_specification_and_holds(name: str) -> None:
    text = VECTOR["rows"][name]
    proof = RowProof.parse(text.encode())
    assert proof.encode().decode() == text
    proof.verify(policy(), lambda _rows, _blindings: [proof.row.commitment])
    assert (proof.row.content is None) == (name == "text gone from the store")
    assert (proof.row.null, proof.row.marked) == 2 * (name == "gone",)


def test_proofs_that_are_shown_together_are_those_of_the_specification() -> None:
    text = VECTOR["row_proofs"]
    proofs = RowProofs.parse(text.encode())
    assert proofs.encode().decode() == text
    known = [row.commitment for row in proofs.rows if row is not None]
    assert proofs.verify(policy(), lambda _rows, _blindings: known).rows == 4
    first, nobody, last = proofs.proofs
    assert nobody is None and first is not None and last is not None
    assert (first.row.id, last.row.id) == ("a-3", "a-1")
    first.verify(policy(), lambda _rows, _blindings: known[:1])


@pytest.mark.parametrize("proof", [FIRST, GONE, LATER, HONEST.row_proof(2, 0)])
def test_an_honest_row_is_proven(proof: RowProof) -> None:
    RowProof.parse(proof.encode()).verify(POLICY, stand_in)


def test_what_the_owner_gave_is_compared_with_it() -> None:
    assert FIRST.row.holds("one", '{"page":1}')
    for other in (("one", ""), ("on", '{"page":1}'), ("", "")):
        assert not FIRST.row.holds(*other)


def test_a_short_document_is_no_null_row_and_a_null_row_under_noise_is_one() -> None:
    noised = OwnedWindow(
        [Held("a-1", "one"), Held("a-2", "two")], [Held("a-1", "one"), Held("a-2", None)],
        terms=policy(noised=True, norm_bound=127),
    )  # fmt: skip
    for position, null in ((0, False), (1, True)):
        proof = noised.row_proof(2, position)
        proof.verify(noised.policy, stand_in)
        assert (proof.row.null, proof.row.marked) == (null, False)


# --- what a provider might show instead


def row(**changes: Any) -> RowProof:
    return replace(FIRST, row=replace(FIRST.row, **changes))


def index(proof: RowProof = FIRST, **changes: Any) -> RowProof:
    return replace(proof, index=replace(proof.index, **changes))


def only(held: Held) -> RowProof:
    """The proof of a row of another index than the honest one."""
    return OwnedWindow([held, Held("a-2", "two")]).row_proof(1, 0)


def marked() -> RowProof:
    """A living document behind the mark of a deleted one: no search finds it."""
    rows = [Held("a-1", "one"), Held("a-2", "two")]
    return OwnedWindow(rows, [replace(rows[0], marked=True), rows[1]]).row_proof(2, 0)


def elsewhere() -> RowProof:
    """Of an index of the same rows that the log has not."""
    other = OwnedWindow([Held("a-1", "one"), Held("a-2", "changed"), Held("a-3", "three")])
    return replace(FIRST, row=other.row(1, 0))


def unsigned() -> RowProof:
    opening = HONEST.proven(0, signed=False)
    return index(opening=opening)


def of_another_tenant() -> RowProof:
    return index(tenant=OTHER)


LIES: dict[str, tuple[Callable[[], RowProof], type[RagauditError], str]] = {
    "of another log": (lambda: index(origin="rag.example.com/x"), ProofRejected, "another log"),
    "nobody cosigned": (unsigned, NoteRejected, "cosign"),
    "an opening that is another entry": (
        lambda: index(opening=replace(FIRST.index.opening, proof=HONEST.proven(1).proof)),
        ProofRejected, "another root",
    ),
    "the opening of another policy": (
        lambda: index(opening=OwnedWindow(
            [Held("a-1", "one")], terms=policy(dimension=4)).index(1).opening),
        ProofRejected, "opening of this policy",
    ),
    "another tenant's index": (of_another_tenant, RagauditError, "hashes"),
    "the entry of another version": (
        lambda: index(LATER, version=3), ProofRejected, "entry of another version",
    ),
    "a version that the log has not": (
        lambda: index(LATER, announced=replace(HONEST.proven(1), proof=HONEST.proven(2).proof)),
        ProofRejected, "another root",
    ),
    "another document secret": (
        lambda: index(document_secret=bytes(32)), CommitmentRejected, "document secret",
    ),
    "a row on no shelf": (elsewhere, CommitmentRejected, "not the committed value"),
    "another position": (lambda: row(position=1), CommitmentRejected, "not the committed value"),
    "another id": (lambda: row(id="a-2"), CommitmentRejected, "not the committed value"),
    "listed under another id": (
        lambda: only(Held("a-1", "one", listed_as="decoy")),
        CommitmentRejected, "not the committed value",
    ),
    "another salt": (lambda: row(salt=bytes(32)), CommitmentRejected, "not the committed value"),
    "other columns": (
        lambda: row(columns='{"year":1}'), CommitmentRejected, "not the committed value",
    ),
    "another vector": (
        lambda: row(vector=(0, 4095, 0)), CommitmentRejected, "vector is not the committed one",
    ),
    "another blinding": (
        lambda: row(blinding=bytes(32)), CommitmentRejected, "vector is not the committed one",
    ),
    "another norm": (lambda: row(squares=(1, 0, 0, 0)), CommitmentRejected, "another norm"),
    "entries more than the policy says": (
        lambda: only(Held("a-1", "one", vector=(4095, 0, 0, 0))), CommitmentRejected, "4 entries",
    ),
    "another text": (lambda: row(content="two"), CommitmentRejected, "not the committed content"),
    "other attributes": (
        lambda: row(attributes=""), CommitmentRejected, "not the committed content",
    ),
    "a living row that is marked": (marked, ProofRejected, "marked as deleted, and it holds"),
}  # fmt: skip


@for_each("lie", LIES)
def test_a_false_proof_is_rejected(lie: str) -> None:
    made, kind, words = LIES[lie]
    proof = RowProof.parse(made().encode())
    with pytest.raises(kind, match=words):
        proof.verify(POLICY, stand_in)


COSINE = policy(metric="cosine", largest_norm=None)


@pytest.mark.parametrize("share", [0.1, 0.0])
def test_a_row_at_a_tenth_of_its_length_is_rejected(share: float) -> None:
    """Its norm is made up by the squares, which no score has."""
    vector = (int(4095 * share), 0, 0)
    short = OwnedWindow([Held("a-1", "one", vector=vector)], terms=COSINE)
    with pytest.raises(ProofRejected, match=rf"committed at {share:.2f}0? of its length"):
        short.row_proof(1, 0).verify(COSINE, stand_in)
    # With inner products a document may be short: its own vector alone tells.
    lawful = OwnedWindow([Held("a-1", "one", vector=vector)])
    lawful.row_proof(1, 0).verify(lawful.policy, stand_in)


@given(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3).filter(any), st.booleans())
def test_no_quantised_vector_is_too_short(values: list[float], noised: bool) -> None:
    terms = policy(noised=noised, norm_bound=127 if noised else 4095, metric="cosine",
                   largest_norm=None)  # fmt: skip
    vector = tuple(map(int, quantise(np.array(values), terms.norm_bound)))
    window = OwnedWindow([Held("a-1", "one", vector=vector)], terms=terms)
    window.row_proof(1, 0).verify(terms, stand_in)


def test_all_keys_are_the_policys() -> None:
    """A provider and its cosigner in one could sign any log; the proof names no key of theirs."""
    value = canonical_json.loads(POLICY.canonical)
    for role in ("log", "cosigner"):
        name = value["keys"][role].split("+")[0]
        kind = ED25519 if role == "log" else COSIGNATURE_V1
        key = SigningKey(name, kind, PrivateKey.from_seed(b"y" * 32)).verifier_key
        keys = {**value["keys"], role: str(key)}
        with pytest.raises(NoteRejected):
            FIRST.verify(Policy.from_json({**value, "keys": keys}), stand_in)


def test_a_window_without_owners_proves_none() -> None:
    value = canonical_json.loads(POLICY.canonical)
    del value["owners"]
    value["tenants"] = [{"id": each["id"], "owner_key": None} for each in value["tenants"]]
    with pytest.raises(UnsupportedError, match="no owners"):
        FIRST.verify(Policy.from_json(value), stand_in)


@for_each(
    "change",
    [
        {"announced": json.loads(VECTOR["rows"]["gone"])["announced"]},
        {"version": 2},
        *(
            {"row": {**json.loads(VECTOR["rows"]["there"])["row"], **changed}}
            for changed in ({"content": None}, {"attributes": None})
        ),
    ],
)  # fmt: skip
def test_another_form_is_malformed(change: dict[str, Any]) -> None:
    value = {**json.loads(VECTOR["rows"]["there"]), **change}
    with pytest.raises(MalformedError):
        RowProof.parse(canonical_json.dumps(value))


def test_secrets_are_in_no_repr() -> None:
    assert FIRST.index.tenant == TENANT
    for secret in (FIRST.index.document_secret, FIRST.row.blinding, FIRST.row.salt):
        assert repr(secret) not in repr(FIRST) and secret.hex() not in repr(FIRST)
