"""The receipt file of a generated answer as the specification has it, byte for byte."""

import json
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.ledger.messages.disputes import Dispute
from ragaudit.ledger.messages.receipts import GeneratedFile
from vector_scripts import VECTORS

WORDS: dict[str, Any] = json.loads((VECTORS / "words.json").read_bytes())


def test_the_file_opens_its_entries_and_is_signed_whole() -> None:
    text = WORDS["file"].encode()
    file = GeneratedFile.parse(text)
    assert file.encode() == text
    file.public.verify(PublicKey.from_raw(bytes.fromhex(WORDS["provider_key"])))
    file.verify_answer_digest()
    file.verify_openings()
    assert file.public.identity.hex() == WORDS["identity"]


def test_a_dispute_about_it() -> None:
    value = canonical_json.loads(WORDS["file"].encode())
    pseudonym = GeneratedFile.from_json(value).public.pseudonym
    made = Dispute.issue(
        PrivateKey.from_seed(bytes.fromhex(WORDS["dispute_seed"])),
        pseudonym=pseudonym,
        receipt_file=value,
    )
    assert made.encode() == WORDS["dispute"].encode()
