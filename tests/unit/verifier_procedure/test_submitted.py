"""Submitted messages are read again from their item, and take next to no memory meanwhile."""

import io

from memory_taken import held
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.evidence import Receipts
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.verifier.procedure.context import SubmittedReceipts
from receipt_scene import scene

KEY = PrivateKey.from_seed(b"k" * 32)
BODY = scene().record.encode()
COUNT = 800


def a_receipt(index: int) -> PublicReceipt:
    return PublicReceipt(
        origin="provider.example/ragaudit/w",
        index=index,
        salt=bytes([index % 256]) * 32,
        body=BODY,
        issued=index,
        answer_digest=b"a" * 32,
    ).signed(KEY)


def test_what_counts_is_read_again_in_its_order() -> None:
    # Of any order; what is no receipt lies between them.
    receipts = [a_receipt(index) for index in (3, 300, 7, 3)]
    listed = [receipts[0].to_json(), {}, None, *(each.to_json() for each in receipts[1:])]
    data = canonical_json.dumps(listed)
    counted = SubmittedReceipts(Receipts, io.BytesIO(data))
    for receipt, start, end in Receipts.located(io.BytesIO(data)):
        if receipt.index != 7:
            counted.add(receipt, start, end)
    expected = [receipts[0], receipts[1], receipts[3]]
    assert len(counted) == 3 and list(counted) == list(counted) == expected
    assert list(counted.indices) == [3, 300, 3]
    assert list(counted.identities) == [(each.index, each.identity) for each in expected]


def counted(count: int) -> int:
    """Bytes that the receipts of a list of so many take."""
    data = canonical_json.dumps([a_receipt(index).to_json() for index in range(count)])

    def read() -> object:
        made = SubmittedReceipts(Receipts, io.BytesIO(b""))
        for receipt, start, end in Receipts.located(io.BytesIO(data)):
            made.add(receipt, start, end)
        return made

    return held(read)


def test_a_receipt_takes_some_sixty_bytes() -> None:
    """Its two offsets, its index and its identity; the message itself has a kilobyte."""
    assert counted(COUNT) - counted(COUNT // 4) < 100 * (COUNT - COUNT // 4)
