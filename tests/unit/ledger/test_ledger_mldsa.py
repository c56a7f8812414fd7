"""Cosignatures of ML-DSA-44, beside those of Ed25519."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.errors import MalformedNote, NoteRejected
from ragaudit.ledger.log import notes
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import (
    CosignerPolicy,
    cosign,
    subtree_message,
    verify_cosignature,
    verify_cosigned,
)
from ragaudit.ledger.log.notes import (
    COSIGNATURE_V1,
    ED25519,
    MLDSA_COSIGNATURE,
    MlDsaPrivateKey,
    MlDsaPublicKey,
    NoteSignature,
    SigningKey,
    VerifierKey,
    parse_signature_lines,
    sign_note,
)
from ragaudit.ledger.log.tlog_proof import TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import MemoryTree, leaf_hash

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text("utf-8"))
DEMO, FOREIGN = VECTORS["log"], VECTORS["mldsa"]
ORIGIN = "audit.example/ledger/demo"
LOG = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(bytes.fromhex(DEMO["log_seed"])))
KEY = SigningKey(
    "witness.example/w2",
    MLDSA_COSIGNATURE,
    MlDsaPrivateKey.from_seed(bytes.fromhex(FOREIGN["seed"])),
)
ED_KEY = SigningKey("witness.example/w1", COSIGNATURE_V1, PrivateKey.from_seed(b"\x05" * 32))
TREE = MemoryTree(entry.encode() for entry in DEMO["entries"])
CHECKPOINT = Checkpoint(ORIGIN, TREE.head())
TEXT = CHECKPOINT.text
(FOREIGN_LINE,) = parse_signature_lines(FOREIGN["line"])


def test_a_cosignature_made_by_other_peoples_code_verifies() -> None:
    assert str(KEY.verifier_key) == FOREIGN["vkey"]
    assert VerifierKey.parse(FOREIGN["vkey"]) == KEY.verifier_key
    assert verify_cosignature(TEXT, FOREIGN_LINE, KEY.verifier_key).timestamp > 1_700_000_000


def test_the_cosigned_message() -> None:
    expected = (
        b"subtree/v1\n\0"
        + b"\x12witness.example/w2"
        + (17).to_bytes(8, "big")
        + b"\x19audit.example/ledger/demo"
        + bytes(8)
        + (7).to_bytes(8, "big")
        + TREE.head().root_hash
    )
    assert subtree_message(TEXT, 17, "witness.example/w2") == expected


def test_both_kinds_of_cosigners_make_a_quorum_of_an_offline_proof() -> None:
    lines = [cosign(TEXT, KEY, 200), cosign(TEXT, ED_KEY, 100)]
    note = sign_checkpoint(CHECKPOINT, LOG).note.with_signatures(lines).encode()
    proof = TlogProof.parse(TlogProof(2, TREE.inclusion_proof(2), note).encode())
    both = CosignerPolicy((KEY.verifier_key, ED_KEY.verifier_key), 2)
    checked = verify_tlog_proof(
        proof, leaf=leaf_hash(b"record-2"), log_key=LOG.verifier_key, cosigners=both
    )
    assert checked.quorum_time == 200


def test_a_reader_who_does_not_know_the_key_ignores_its_line() -> None:
    lines = [cosign(TEXT, ED_KEY, 100), _broken(FOREIGN_LINE, 100)]
    note = sign_checkpoint(CHECKPOINT, LOG).note.with_signatures(lines).encode()
    verify_cosigned(note, LOG.verifier_key, CosignerPolicy((ED_KEY.verifier_key,), 1))
    known = CosignerPolicy((ED_KEY.verifier_key, KEY.verifier_key), 1)
    with pytest.raises(NoteRejected, match="does not verify"):
        verify_cosigned(note, LOG.verifier_key, known)


def _broken(line: NoteSignature, place: int) -> NoteSignature:
    blob = bytearray(line.blob)
    blob[place] ^= 1
    return NoteSignature(line.name, line.key_id, bytes(blob))


@pytest.mark.parametrize("place", [7, 8, 1000, 2427])
def test_a_changed_time_or_signature_is_rejected(place: int) -> None:
    with pytest.raises(NoteRejected, match="does not verify"):
        verify_cosignature(TEXT, _broken(FOREIGN_LINE, place), KEY.verifier_key)


def test_another_checkpoint_origin_size_or_root_is_rejected() -> None:
    for other in (
        Checkpoint("audit.example/ledger/other", TREE.head()),
        Checkpoint(ORIGIN, TREE.head(6)),
        Checkpoint(ORIGIN, MemoryTree(str(i).encode() for i in range(7)).head()),
    ):
        with pytest.raises(NoteRejected, match="does not verify"):
            verify_cosignature(other.text, FOREIGN_LINE, KEY.verifier_key)


def test_the_cosigners_name_is_signed() -> None:
    renamed = SigningKey("witness.example/w3", MLDSA_COSIGNATURE, KEY.private).verifier_key
    line = NoteSignature(renamed.name, renamed.key_id, FOREIGN_LINE.blob)
    with pytest.raises(NoteRejected, match="does not verify"):
        verify_cosignature(TEXT, line, renamed)


def test_times_lengths_and_texts_are_checked() -> None:
    for timestamp in (0, -1, 2**63):
        with pytest.raises(MalformedNote, match="time"):
            cosign(TEXT, KEY, timestamp)
    never = NoteSignature(KEY.name, KEY.verifier_key.key_id, bytes(8) + FOREIGN_LINE.blob[8:])
    with pytest.raises(NoteRejected, match="time out of range"):
        verify_cosignature(TEXT, never, KEY.verifier_key)
    for length in (1, 72, 2427, 2429):
        line = NoteSignature(KEY.name, KEY.verifier_key.key_id, bytes(length))
        with pytest.raises(NoteRejected, match="another length"):
            verify_cosignature(TEXT, line, KEY.verifier_key)
    with pytest.raises(MalformedNote, match="not a checkpoint"):
        cosign("any text\n", KEY, 5)


def test_a_key_is_of_the_algorithm_that_its_type_names() -> None:
    for algorithm, key in ((ED25519, KEY), (COSIGNATURE_V1, KEY), (MLDSA_COSIGNATURE, ED_KEY)):
        with pytest.raises(MalformedNote, match="another algorithm"):
            SigningKey("name", algorithm, key.private)
    with pytest.raises(MalformedNote, match="type 0x06"):
        sign_note(TEXT, KEY)


def test_a_log_does_not_sign_with_a_cosigners_key() -> None:
    own = SigningKey(ORIGIN, MLDSA_COSIGNATURE, KEY.private)
    with pytest.raises(MalformedNote, match="type"):
        sign_checkpoint(CHECKPOINT, own)


def test_one_key_does_not_count_twice() -> None:
    twin = SigningKey("twin", MLDSA_COSIGNATURE, KEY.private).verifier_key
    with pytest.raises(MalformedNote, match="two cosigner names"):
        CosignerPolicy((KEY.verifier_key, twin), 2)


def test_keys_and_signatures_of_other_lengths_are_refused() -> None:
    for length in (0, 32, 1311, 1313):
        with pytest.raises(MalformedError, match="wrong length"):
            MlDsaPublicKey(bytes(length))
    for length in (0, 31, 33):
        with pytest.raises(MalformedError, match="wrong length"):
            MlDsaPrivateKey.from_seed(bytes(length))
    with pytest.raises(SignatureRejected, match="wrong length"):
        KEY.verifier_key.public.verify_raw(bytes(64), b"")


def test_fresh_keys_sign_and_do_not_show_their_secret() -> None:
    key = MlDsaPrivateKey.generate()
    key.public.verify_raw(key.sign_raw(b"message"), b"message")
    with pytest.raises(SignatureRejected, match="does not verify"):
        key.public.verify_raw(key.sign_raw(b"message"), b"another")
    assert MlDsaPrivateKey.from_seed(key.seed()) == key
    assert repr(key.seed()) not in repr(key)
    assert key.seed().hex() not in repr(key)


def test_a_library_without_the_algorithm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        @staticmethod
        def from_seed_bytes(seed: bytes) -> Any:
            raise UnsupportedAlgorithm("no ML-DSA")

        from_public_bytes = from_seed_bytes

    monkeypatch.setattr(notes, "MLDSA44PrivateKey", Missing)
    monkeypatch.setattr(notes, "MLDSA44PublicKey", Missing)
    with pytest.raises(UnsupportedError, match="cryptography"):
        MlDsaPrivateKey.generate()
    with pytest.raises(UnsupportedError, match="cryptography"):
        verify_cosignature(TEXT, FOREIGN_LINE, KEY.verifier_key)
