"""Exact counts and absence: the account index, and proofs of what it says (spec 5.14)."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, NotFound, RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import key_members, policy_document, seeded
from ragaudit.ledger.errors import MalformedRecord, NoteRejected, ProofRejected
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.accounts import AccountIndex, AccountProof, ListedRecord, account_key
from ragaudit.ledger.messages.entries import Accounts, parse_body
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import OpenedEntry
from ragaudit.ledger.messages.sorted_rows import FIRST, LAST
from vector_scripts import VECTORS

VECTOR: dict[str, Any] = json.loads((VECTORS / "accounts.json").read_bytes())
PROOFS = {name: AccountProof.parse(text.encode()) for name, text in VECTOR["proofs"].items()}
ANN, DORA, EVE = PROOFS["ann"], PROOFS["dora"], PROOFS["eve"]
WINDOW, ORIGIN = VECTOR["window"], ANN.origin


def secret(name: str) -> PrivateKey:
    return PrivateKey.from_seed(bytes.fromhex(VECTOR[name]))


LOG = SigningKey(ORIGIN, ED25519, secret("log_seed"))
COSIGNER = SigningKey("regulator.example/cosigner", COSIGNATURE_V1, secret("cosigner_seed"))


def policy(window: str = WINDOW, log: SigningKey = LOG) -> Policy:
    keys = key_members(
        log=log, provider=seeded("p"), cosigner=COSIGNER, verifier=seeded("v"), verdict=seeded("w")
    )
    return Policy.from_json(
        policy_document(keys, {"provider": "rag.example.com", "window": window})
    )


POLICY = policy()


def index() -> AccountIndex:
    registered = map(bytes.fromhex, VECTOR["registered"])
    records = (
        ListedRecord(each["index"], bytes.fromhex(each["salt"]), bytes.fromhex(each["pseudonym"]))
        for each in VECTOR["records"]
    )
    return AccountIndex.build(WINDOW, registered, records)


def test_the_index_is_the_one_of_the_specification() -> None:
    assert index().entry.encode().hex() == VECTOR["body"]
    assert index().accounts == 4
    assert parse_body("accounts", index().entry.encode()) == index().entry


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_is_the_one_of_the_specification_and_holds(name: str) -> None:
    proof = PROOFS[name]
    assert proof.encode().decode() == VECTOR["proofs"][name]
    made = AccountProof.of(
        ORIGIN, proof.pseudonym, index(), proof.entry, TlogProof.parse(proof.proof.encode())
    )
    assert made == proof
    proof.verify(POLICY)


def test_what_proofs_say() -> None:
    assert ANN.records == (3, 6, 8)
    assert DORA.records == ()
    assert EVE.records is None


def test_the_order_of_registrations_changes_nothing() -> None:
    again = AccountIndex.build(WINDOW, [], [])
    assert again.accounts == 0 and again.rows == (FIRST, LAST)
    turned = AccountIndex.build(
        WINDOW,
        [bytes.fromhex(each) for each in reversed(VECTOR["registered"])] * 2,
        [ListedRecord(e["index"], bytes.fromhex(e["salt"]), bytes.fromhex(e["pseudonym"]))
         for e in VECTOR["records"]],
    )  # fmt: skip
    assert turned.root == index().root


def test_an_account_with_records_alone_has_a_row() -> None:
    """Whoever was not registered is check 9's to find; the index leaves no record out."""
    made = AccountIndex.build("w", [], [ListedRecord(3, bytes(32), b"p" * 32)])
    opening = made.opening(b"p" * 32)
    assert made.accounts == 1 and opening is not None and opening.records == (3,)


def test_another_salt_of_one_record_changes_every_row() -> None:
    """So nobody without all salts can try counts against the digest of a neighbor's row."""
    first = [ListedRecord(3, bytes(32), b"p" * 32), ListedRecord(4, bytes(32), b"q" * 32)]
    second = [first[0], first[1]._replace(salt=b"s" * 32)]
    made = [AccountIndex.build("w", [b"r" * 32], records) for records in (first, second)]
    pairs = list(zip(made[0].rows[1:-1], made[1].rows[1:-1], strict=True))
    assert len(pairs) == 3
    assert all(a.key == b.key and a.digest != b.digest for a, b in pairs)


def test_a_row_out_of_its_place_is_not_proven() -> None:
    honest = index()
    rows = [FIRST, *reversed(honest.rows[1:-1]), LAST]
    openings = {p: honest.opening(p) for p in map(bytes.fromhex, VECTOR["registered"])}
    turned = AccountIndex(WINDOW, rows, {p: o for p, o in openings.items() if o is not None})
    with pytest.raises(NotFound):
        for pseudonym in openings:
            turned.prove(pseudonym)


@given(
    st.lists(st.binary(min_size=32, max_size=32), max_size=12),
    st.lists(st.binary(min_size=32, max_size=32), max_size=6),
)
def test_every_account_is_proven_present_or_absent(
    registered: list[bytes], others: list[bytes]
) -> None:
    records = [ListedRecord(i + 1, bytes(32), p) for i, p in enumerate([*registered, *registered])]
    made = AccountIndex.build(WINDOW, registered, records)
    logged = Logged(made)
    for pseudonym in {*registered, *others}:
        proof = logged.proof(pseudonym)
        proof.verify(POLICY)
        expected = tuple(r.position for r in records if r.pseudonym == pseudonym)
        assert proof.records == (expected if pseudonym in registered else None)


class Logged:
    """An account index in a log that the vector's keys sign."""

    def __init__(
        self, made: AccountIndex, kind: str = "accounts", after: int = 1, body: bytes | None = None
    ) -> None:
        self.index = made
        self.entry = OpenedEntry(bytes(32), made.entry.encode() if body is None else body)
        self.tree = MemoryTree(i.to_bytes(8, "big") for i in range(40))
        self.at = self.tree.append_hash(self.entry.leaf(kind))
        for i in range(after):
            self.tree.append(b"after %d" % i)

    def tlog_proof(self, log: SigningKey = LOG, by: SigningKey | None = COSIGNER) -> TlogProof:
        note = parse_note(sign_checkpoint(Checkpoint(log.name, self.tree.head()), log).encode())
        if by is not None:
            note = note.with_signatures([cosign(note.text, by, 1_800_000_000)])
        return TlogProof(self.at, self.tree.inclusion_proof(self.at), note.encode())

    def proof(self, pseudonym: bytes, **signers: Any) -> AccountProof:
        return AccountProof.of(
            ORIGIN, pseudonym, self.index, self.entry, self.tlog_proof(**signers)
        )


def opened(**changes: Any) -> AccountProof:
    assert ANN.opening is not None
    return replace(ANN, opening=replace(ANN.opening, **changes))


def gap() -> AccountProof:
    """An absent account's proof with a row between the two that are shown."""
    made = index()
    at = EVE.rows[0].position
    wide = (
        made._sorted.proven(at - 1 if at else at),
        made._sorted.proven(at + 1 if at else at + 2),
    )
    return replace(EVE, rows=wide)


def unsigned() -> AccountProof:
    return Logged(index()).proof(ANN.pseudonym, by=None)


LIES: dict[str, tuple[Callable[[], AccountProof], type[RagauditError], str]] = {
    "a record less": (lambda: opened(records=(3, 6)), ProofRejected, "other records"),
    "a record more": (lambda: opened(records=(3, 6, 7, 8)), ProofRejected, "other records"),
    "no record": (lambda: opened(records=()), ProofRejected, "other records"),
    "another record": (lambda: opened(records=(3, 6, 9)), ProofRejected, "other records"),
    "another salt": (lambda: opened(salt=bytes(32)), ProofRejected, "other records"),
    "a record behind the index": (lambda: opened(records=(3, 10)), ProofRejected, "behind"),
    "another account's row": (
        lambda: replace(ANN, rows=PROOFS["bob"].rows), ProofRejected, "of another key",
    ),
    "another account": (
        lambda: replace(ANN, pseudonym=EVE.pseudonym), ProofRejected, "of another key",
    ),
    "a row that is not in the index": (
        lambda: replace(ANN, rows=(replace(ANN.rows[0], digest=bytes(32)),)),
        ProofRejected, "another root",
    ),
    "a row in another place": (
        lambda: replace(ANN, rows=(replace(ANN.rows[0], position=ANN.rows[0].position ^ 1),)),
        RagauditError, "hashes|another root",
    ),
    "an account that is there, denied": (
        lambda: replace(EVE, pseudonym=ANN.pseudonym), ProofRejected, "does not belong",
    ),
    "neighbors with a row between them": (gap, ProofRejected, "no neighbours"),
    "neighbors in the wrong order": (
        lambda: replace(EVE, rows=EVE.rows[::-1]), ProofRejected, "no neighbours",
    ),
    "one neighbor twice": (
        lambda: replace(EVE, rows=(EVE.rows[0], EVE.rows[0])), ProofRejected, "no neighbours",
    ),
    "of another log": (
        lambda: replace(ANN, origin="rag.example.com/ragaudit/w2"), ProofRejected, "another log",
    ),
    "not under the final checkpoint": (
        lambda: Logged(index(), after=2).proof(ANN.pseudonym), ProofRejected, "before the last",
    ),
    "an index that ends the log": (
        lambda: Logged(index(), after=0).proof(ANN.pseudonym), ProofRejected, "before the last",
    ),
    "an entry of another kind": (
        lambda: Logged(index(), kind="record").proof(ANN.pseudonym), ProofRejected, "another root",
    ),
    "the index of another window": (
        lambda: Logged(index(), body=Accounts("w2", 4, index().root).encode()).proof(ANN.pseudonym),
        ProofRejected, "of another window",
    ),
    "a body that is none": (
        lambda: Logged(index(), body=b"any").proof(ANN.pseudonym), MalformedRecord, "accounts",
    ),
    "a checkpoint that nobody cosigned": (unsigned, NoteRejected, "cosign"),
    "a checkpoint of another log's key": (
        lambda: Logged(index()).proof(
            ANN.pseudonym, log=SigningKey(ORIGIN, ED25519, seeded("x"))
        ),
        NoteRejected, "signature",
    ),
}  # fmt: skip


@for_each("lie", LIES)
def test_a_false_proof_is_rejected(lie: str) -> None:
    made, kind, words = LIES[lie]
    proof = AccountProof.parse(made().encode())
    with pytest.raises(kind, match=words):
        proof.verify(POLICY)


def test_the_window_is_the_policys() -> None:
    other = SigningKey("rag.example.com/ragaudit/w2", ED25519, secret("log_seed"))
    with pytest.raises(ProofRejected, match="another log"):
        ANN.verify(policy("w2", other))


@for_each(
    "change",
    [
        {"rows": json.loads(VECTOR["proofs"]["eve"])["rows"]},
        {"opening": None},
        {"opening": {"salt": "00" * 32, "records": [6, 3]}},
        {"opening": {"salt": "00" * 32, "records": [3, 3]}},
    ],
)
def test_another_form_is_malformed(change: dict[str, Any]) -> None:
    value = {**json.loads(VECTOR["proofs"]["ann"]), **change}
    with pytest.raises(MalformedError):
        AccountProof.parse(canonical_json.dumps(value))


@pytest.mark.parametrize(
    "changes", [{"window": "W"}, {"accounts": -1}, {"accounts": 1_000_001}, {"index_root": b"r"}]
)
def test_an_entry_out_of_range_is_malformed(changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedRecord):
        replace(index().entry, **changes)


def test_the_key_of_an_account_is_of_its_window() -> None:
    assert account_key("w1", bytes(32)) != account_key("w2", bytes(32))
