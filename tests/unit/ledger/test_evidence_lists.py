"""Lists in the evidence: one encoding, and who is hurt by a member that is none."""

import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.challenge import Activation
from ragaudit.ledger.messages.disputes import Dispute, RegistrationStatement
from ragaudit.ledger.messages.evidence import (
    Activations,
    Checkpoints,
    Claims,
    Disputes,
    Entries,
    EvidenceList,
    KeptDispute,
    Receipts,
    Refusals,
    Statements,
)
from ragaudit.ledger.messages.handover import Entry

KEY = PrivateKey.from_seed(b"k" * 32)
ORIGIN = "provider.example/acme/w1"
ACTIVATION = Activation(
    window="w1", a=1, preimage=b"n" * 32, covered_size=7, time=1_700_000_000_000
).signed(KEY)
STATEMENT = RegistrationStatement(origin=ORIGIN, pseudonym=b"p" * 32, anchor=b"a" * 32).signed(KEY)
DISPUTE = Dispute(ORIGIN, b"p" * 32, 3, b"d" * 32, b"f" * 32, signature=b"s" * 64)
ENTRY = Entry(0, "opening", b"s" * 32, b"body")


@for_each(
    "listed",
    [
        Activations((ACTIVATION,)),
        Checkpoints((b"note\n", "na\u00efve\n".encode())),
        Entries((ENTRY, Entry(5, "close", b"t" * 32, b""))),
        Statements((STATEMENT,)),
        Disputes((KeptDispute(DISPUTE), KeptDispute(DISPUTE, 6, {"format": "x"}))),
        Receipts(()),
    ],
)
def test_what_is_parsed_is_what_was_encoded(listed: EvidenceList[object]) -> None:
    data = listed.encode()
    assert type(listed).parse(data) == listed
    assert data == canonical_json.dumps(canonical_json.loads(data))


@for_each("kind", [Activations, Checkpoints, Claims, Disputes, Entries, Receipts])
@for_each("data", [b"", b"{}", b"[ ]", b'"text"', b"[]\n"])
def test_anything_but_a_canonical_list_is_refused(
    kind: type[EvidenceList[object]], data: bytes
) -> None:
    with pytest.raises(MalformedError):
        kind.parse(data)


@pytest.mark.parametrize("kind", [Activations, Checkpoints, Disputes, Entries])
def test_rubbish_in_a_list_of_the_verifier_spoils_the_list(
    kind: type[EvidenceList[object]],
) -> None:
    with pytest.raises(MalformedError):
        kind.parse(b"[7]")


@pytest.mark.parametrize("kind", [Claims, Receipts, Refusals, Statements])
def test_rubbish_that_anybody_handed_in_is_passed_over(
    kind: type[EvidenceList[object]],
) -> None:
    assert kind.parse(b'[7,null,{"format":"x"}]').messages == ()


def test_a_statement_beside_rubbish_is_read() -> None:
    data = canonical_json.dumps([7, STATEMENT.to_json(), {}])
    assert Statements.parse(data) == Statements((STATEMENT,))


@pytest.mark.parametrize("indices", [(1, 0), (2, 2)])
def test_entries_out_of_order(indices: tuple[int, ...]) -> None:
    listed = Entries(tuple(Entry(i, "close", b"s" * 32, b"") for i in indices))
    with pytest.raises(MalformedError, match="rising indices"):
        Entries.parse(listed.encode())
