"""What a closed log says of one document: never there, there, gone (spec 5.16)."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from owner_scene import VECTOR, Held, OwnedWindow, policy, stand_in
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RagauditError, UnsupportedError
from ragaudit.ledger.errors import CommitmentRejected, NoteRejected, ProofRejected
from ragaudit.ledger.messages.documents import DocumentProof, ListedDocument
from ragaudit.ledger.messages.policy import Policy

ONE, TWO, THREE = Held("a-1", "one"), Held("a-2", "two"), Held("a-3", "three")
HONEST = OwnedWindow(
    [ONE, TWO, THREE], [ONE, Held("a-2", None), THREE], [ONE, TWO, Held("a-3", None)]
)
NOISED = OwnedWindow(
    [ONE, TWO], [ONE, Held("a-2", None)], terms=policy(noised=True, norm_bound=127)
)
POLICY = HONEST.policy
THERE, BACK, GONE, NEVER = (HONEST.document_proof(name) for name in ("a-1", "a-2", "a-3", "x"))


@pytest.mark.parametrize("name", VECTOR["documents"])
def test_a_proof_is_the_one_of_the_specification_and_holds(name: str) -> None:
    text = VECTOR["documents"][name]
    proof = DocumentProof.parse(text.encode())
    assert proof.encode().decode() == text
    place = proof.verify(policy(), stand_in)
    assert proof.gone_since == (2 if name == "a-2" else None)
    assert (None if place is None else place.index) == (1 if name == "a-2" else None)
    assert (proof.listed is None) == (name == "a-5")


def test_what_proofs_say() -> None:
    for proof, lives, since in (
        (THERE, ((1, 3),), None), (BACK, ((1, 1), (3, 3)), None), (GONE, ((1, 2),), 3),
    ):  # fmt: skip
        proof.verify(POLICY, stand_in)
        assert proof.listed is not None and proof.listed.lives == lives
        assert proof.gone_since == since
    NEVER.verify(POLICY, stand_in)
    assert NEVER.listed is None and NEVER.gone_since is None


def test_under_noise_the_last_row_says_whether_it_is_gone() -> None:
    for name, since in (("a-1", None), ("a-2", 2)):
        proof = NOISED.document_proof(name)
        DocumentProof.parse(proof.encode()).verify(NOISED.policy, stand_in)
        assert proof.gone is None and proof.gone_since == since


LIVES = st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=4)


@settings(max_examples=25)
@given(LIVES)
def test_every_document_is_where_its_versions_have_it(gone: list[set[int]]) -> None:
    versions = [
        [Held(f"a-{i}", None if v and i in each else "text") for i in range(4)]
        for v, each in enumerate(gone)
    ]
    window = OwnedWindow(*versions)
    for i in range(5):
        proof = window.document_proof(f"a-{i}")
        proof.verify(window.policy, stand_in)
        there = [v for v, rows in enumerate(versions, 1) if i < 4 and rows[i].text is not None]
        shown = () if proof.listed is None else proof.listed.lives
        assert [v for a, b in shown for v in range(a, b + 1)] == there
        assert proof.gone_since == (there[-1] + 1 if i < 4 and there[-1] < len(gone) else None)


# --- what a provider might show instead


def listed(**changes: Any) -> DocumentProof:
    assert THERE.listed is not None
    return replace(THERE, listed=replace(THERE.listed, **changes))


def hidden() -> DocumentProof:
    """A document whose row stands in the index under another id: for its owner it never was."""
    window = OwnedWindow([replace(ONE, listed_as="decoy"), TWO])
    proof = window.document_proof("a-1")
    proof.verify(window.policy, stand_in)
    return replace(NEVER, id="a-1")


def early() -> DocumentProof:
    """The list of an open window, behind which documents may still go."""
    window = OwnedWindow([ONE, TWO])
    window.entries += [window.entries[-1]]
    return replace(window.document_proof("a-1"))


def of_other() -> DocumentProof:
    return replace(THERE, documents=HONEST.proven(4))


LIES: dict[str, tuple[Callable[[], DocumentProof], type[RagauditError], str]] = {
    "of another log": (
        lambda: replace(THERE, origin="rag.example/x"), ProofRejected, "another log",
    ),
    "nobody cosigned": (
        lambda: replace(THERE, documents=HONEST.proven(3, signed=False)), NoteRejected, "cosign",
    ),
    "the list of another tenant": (of_other, ProofRejected, "another window or tenant"),
    "an entry of another kind": (
        lambda: replace(THERE, documents=HONEST.proven(1)), ProofRejected, "another root",
    ),
    "entries behind the close": (early, ProofRejected, "not where a closed log has it"),
    "a log that is not closed": (
        lambda: replace(THERE, documents=HONEST.proven(3, size=5)),
        ProofRejected, "not where a closed log has it",
    ),
    "another document secret": (
        lambda: replace(THERE, document_secret=bytes(32)), CommitmentRejected, "document secret",
    ),
    "another document's row": (lambda: replace(THERE, id="a-2"), ProofRejected, "another key"),
    "there, and denied": (hidden, ProofRejected, "does not belong"),
    "another position": (lambda: listed(position=1), ProofRejected, "another position or life"),
    "a life less": (lambda: listed(lives=((1, 2),)), ProofRejected, "another position or life"),
    "another row": (
        lambda: listed(row_digest=bytes(32)), ProofRejected, "another position or life",
    ),
    "a life behind the last version": (
        lambda: listed(lives=((1, 4),)), ProofRejected, "behind the last version",
    ),
    "a position behind the last row": (
        lambda: listed(position=3), ProofRejected, "behind the last version",
    ),
    "gone, and it is there": (
        lambda: replace(THERE, gone=GONE.gone), ProofRejected, "a version entry, or none",
    ),
    "gone, and nothing says since when": (
        lambda: replace(GONE, gone=None), ProofRejected, "a version entry, or none",
    ),
    "gone since an earlier version": (
        lambda: replace(GONE, gone=HONEST.proven(1)), ProofRejected, "entry of another version",
    ),
    "a row where none is due": (
        lambda: replace(THERE, last_row=HONEST.row_proof(3, 0)), ProofRejected, "a row, or none",
    ),
}  # fmt: skip


@for_each("lie", LIES)
def test_a_false_proof_is_rejected(lie: str) -> None:
    made, kind, words = LIES[lie]
    proof = DocumentProof.parse(made().encode())
    with pytest.raises(kind, match=words):
        proof.verify(POLICY, stand_in)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"last_row": None}, "a row, or none"),
        ({"last_row": NOISED.row_proof(1, 1)}, "of another row"),
        ({"last_row": NOISED.row_proof(2, 0)}, "of another row"),
        ({"last_row": replace(NOISED.row_proof(2, 1), row=replace(
            NOISED.row_proof(2, 1).row, salt=bytes(32)))}, "not the committed value"),
    ],
)  # fmt: skip
def test_under_noise_a_false_last_row_is_rejected(change: dict[str, Any], words: str) -> None:
    with pytest.raises(RagauditError, match=words):
        replace(NOISED.document_proof("a-2"), **change).verify(NOISED.policy, stand_in)


def test_the_accounts_of_a_window_stand_behind_the_documents() -> None:
    """An account index is one more entry before the close; the same log without it is another."""
    counted = OwnedWindow([ONE], terms=policy(account_index=True))
    with pytest.raises(ProofRejected, match="not where a closed log has it"):
        counted.document_proof("a-1").verify(counted.policy, stand_in)
    counted.entries.insert(-1, ("accounts", b"any"))
    counted.document_proof("a-1").verify(counted.policy, stand_in)


def test_a_window_without_owners_proves_none() -> None:
    value = canonical_json.loads(POLICY.canonical)
    del value["owners"]
    value["tenants"] = [{"id": each["id"], "owner_key": None} for each in value["tenants"]]
    with pytest.raises(UnsupportedError, match="no owners"):
        THERE.verify(Policy.from_json(value), stand_in)


SHOWN = json.loads(VECTOR["documents"]["a-1"])


@for_each(
    "change",
    [
        {"rows": []},
        {"rows": 2 * SHOWN["rows"]},
        {"listed": None},
        {"listed": None, "rows": 2 * SHOWN["rows"], "gone": SHOWN["documents"]},
        *(
            {"listed": {**SHOWN["listed"], "lives": lives}}
            for lives in ([[2, 1]], [[1, 1], [2, 3]], [[3, 3], [1, 1]])
        ),
    ],
)  # fmt: skip
def test_another_form_is_malformed(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        DocumentProof.parse(canonical_json.dumps({**SHOWN, **change}))


def test_what_is_listed_says_when_it_ended() -> None:
    assert ListedDocument(0, (), bytes(32)).ended is None
