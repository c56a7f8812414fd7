"""Checkpoints and their cosignatures: origin, quorum, times."""

import base64
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import MalformedNote, NoteRejected
from ragaudit.ledger.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    parse_checkpoint,
    parse_size,
    sign_checkpoint,
    verify_checkpoint,
)
from ragaudit.ledger.log.cosignatures import (
    CosignerPolicy,
    cosign,
    cosignature_message,
    verify_cosignature,
    verify_cosigned,
)
from ragaudit.ledger.log.notes import (
    COSIGNATURE_V1,
    ED25519,
    Note,
    NoteSignature,
    SigningKey,
    parse_note,
    sign_note,
    verify_note,
)
from ragaudit.ledger.log.tree import EMPTY_ROOT, MemoryTree, TreeHead

ORIGIN = "provider.example/ragaudit/w1"
LOG = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x01" * 32))
COSIGNERS = [
    SigningKey(f"cosigner.example/{i}", COSIGNATURE_V1, PrivateKey.from_seed(bytes([i]) * 32))
    for i in (2, 3, 4)
]
HEAD = MemoryTree([b"a", b"b", b"c"]).head()
CHECKPOINT = Checkpoint(ORIGIN, HEAD)


def policy(quorum: Any, count: int = 3) -> CosignerPolicy:
    return CosignerPolicy(tuple(key.verifier_key for key in COSIGNERS[:count]), quorum)


def cosigned(times: Any = (100, 300, 200)) -> Any:
    lines = [cosign(CHECKPOINT.text, k, t) for k, t in zip(COSIGNERS, times, strict=False)]
    return sign_checkpoint(CHECKPOINT, LOG).note.with_signatures(lines).encode()


# --- checkpoints


def test_checkpoints_round_trip() -> None:
    signed = sign_checkpoint(CHECKPOINT, LOG)
    assert verify_checkpoint(signed.encode(), LOG.verifier_key) == signed
    assert Checkpoint.parse(CHECKPOINT.text) == CHECKPOINT
    assert CHECKPOINT.text.startswith(f"{ORIGIN}\n3\n")


def test_the_empty_tree_has_a_checkpoint() -> None:
    empty = Checkpoint(ORIGIN, TreeHead(0, EMPTY_ROOT))
    assert empty.text == f"{ORIGIN}\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    assert Checkpoint.parse(empty.text) == empty


ROOT = base64.b64encode(HEAD.root_hash).decode()


@for_each(
    "text",
    [
        "", f"{ORIGIN}\n3\n{ROOT}", f"{ORIGIN}\n3\n", f"\n3\n{ROOT}\n", f"{ORIGIN}\n03\n{ROOT}\n",
        f"{ORIGIN}\n+3\n{ROOT}\n", f"{ORIGIN}\n-3\n{ROOT}\n", f"{ORIGIN}\n 3\n{ROOT}\n",
        f"{ORIGIN}\n3_0\n{ROOT}\n", f"{ORIGIN}\n\u0663\n{ROOT}\n", f"{ORIGIN}\n{2**63}\n{ROOT}\n",
        f"{ORIGIN}\n{10**400}\n{ROOT}\n", f"{ORIGIN}\n3\n{ROOT[:-1]}\n",
        f"{ORIGIN}\n3\n{ROOT[:-4]}\n", f"{ORIGIN}\n3\n{ROOT}\nextension\n",
        f"{ORIGIN}\n3\n{ROOT}\n\n", f"{ORIGIN}\n0\n{ROOT}\n", f"ori gin\n3\n{ROOT}\n",
        f"{ORIGIN}\u2028\n3\n{ROOT}\n",
    ],
)  # fmt: skip
def test_malformed_checkpoints_are_refused(text: Any) -> None:
    with pytest.raises(MalformedNote):
        Checkpoint.parse(text)


@given(st.integers(0, 2**63 - 1))
def test_sizes_round_trip(size: Any) -> None:
    assert parse_size(str(size)) == size


def test_a_checkpoint_of_another_log_is_rejected() -> None:
    other = SigningKey("other.example/log", ED25519, LOG.private)
    data = sign_checkpoint(Checkpoint("other.example/log", HEAD), other).encode()
    with pytest.raises(NoteRejected, match="another log"):
        verify_checkpoint(data, LOG.verifier_key)
    with pytest.raises(MalformedNote, match="another name"):
        sign_checkpoint(CHECKPOINT, other)


def test_a_log_signs_with_its_own_kind_of_key() -> None:
    cosigner = SigningKey(ORIGIN, COSIGNATURE_V1, LOG.private)
    with pytest.raises(MalformedNote, match="type"):
        sign_checkpoint(CHECKPOINT, cosigner)
    with pytest.raises(MalformedNote, match="type"):
        verify_note(sign_checkpoint(CHECKPOINT, LOG).note, cosigner.verifier_key)
    with pytest.raises(MalformedNote, match="type"):
        cosign("text\n", LOG, 1)


def test_note_and_checkpoint_belong_together() -> None:
    note = sign_checkpoint(CHECKPOINT, LOG).note
    with pytest.raises(MalformedNote, match="differ"):
        SignedCheckpoint(Checkpoint(ORIGIN, TreeHead(0, EMPTY_ROOT)), note)


# --- cosignatures


def test_a_quorum_of_cosigners() -> None:
    checked = verify_cosigned(cosigned(), LOG.verifier_key, policy(2))
    assert [each.timestamp for each in checked.cosignatures] == [100, 300, 200]
    assert checked.quorum_time == 200  # when the second of them had signed
    assert checked.signed.checkpoint == CHECKPOINT


def test_too_few_cosigners_are_rejected() -> None:
    data = cosigned()
    with pytest.raises(NoteRejected, match="cosigned by 1"):
        note = parse_note(data)
        verify_cosigned(Note(note.text, note.signatures[:2]).encode(), LOG.verifier_key, policy(2))
    # Cosigners that nobody knows do not count.
    with pytest.raises(NoteRejected, match="cosigned by 0"):
        stranger = SigningKey("s", COSIGNATURE_V1, PrivateKey.generate())
        verify_cosigned(data, LOG.verifier_key, CosignerPolicy((stranger.verifier_key,), 1))


def test_a_bad_cosignature_of_a_known_key_is_rejected_even_beyond_the_quorum() -> None:
    note = parse_note(cosigned())
    last = note.signatures[-1]
    for blob in (last.blob[:-1] + bytes([last.blob[-1] ^ 1]), b"\0" * 7 + b"\1" + last.blob[8:]):
        forged = Note(
            note.text, (*note.signatures[:-1], NoteSignature(last.name, last.key_id, blob))
        )
        with pytest.raises(NoteRejected, match="does not verify"):
            verify_cosigned(forged.encode(), LOG.verifier_key, policy(1))


def cosigned_at(timestamp: Any) -> NoteSignature:
    """A line that verifies, at a time at which nobody may sign."""
    key = COSIGNERS[0]
    signature = key.private.sign_raw(cosignature_message(CHECKPOINT.text, timestamp))
    return NoteSignature(
        key.name, key.verifier_key.key_id, timestamp.to_bytes(8, "big") + signature
    )


def test_cosignature_times_and_lengths_are_checked() -> None:
    key = COSIGNERS[0]
    verify_cosignature(CHECKPOINT.text, cosigned_at(2**63 - 1), key.verifier_key)
    for timestamp in (0, 2**63, 2**64 - 1):
        with pytest.raises(NoteRejected, match="time out of range"):
            verify_cosignature(CHECKPOINT.text, cosigned_at(timestamp), key.verifier_key)
    for length in (1, 8, 64, 71, 73):
        line = NoteSignature(key.name, key.verifier_key.key_id, bytes(length))
        with pytest.raises(NoteRejected, match="another length"):
            verify_cosignature(CHECKPOINT.text, line, key.verifier_key)
    for timestamp in (0, -1, 2**63):
        with pytest.raises(MalformedNote, match="time"):
            cosign(CHECKPOINT.text, key, timestamp)
    with pytest.raises(MalformedNote, match="type"):
        verify_cosignature(CHECKPOINT.text, sign_note(CHECKPOINT.text, LOG), LOG.verifier_key)


def test_a_cosignature_of_another_key_is_rejected() -> None:
    line = cosign(CHECKPOINT.text, COSIGNERS[0], 5)
    with pytest.raises(NoteRejected, match="another key"):
        verify_cosignature(CHECKPOINT.text, line, COSIGNERS[1].verifier_key)


def test_one_key_does_not_count_twice() -> None:
    twin = SigningKey("twin", COSIGNATURE_V1, COSIGNERS[0].private).verifier_key
    with pytest.raises(MalformedNote, match="two cosigner names"):
        CosignerPolicy((COSIGNERS[0].verifier_key, twin), 2)
    own = SigningKey("own", COSIGNATURE_V1, LOG.private).verifier_key
    with pytest.raises(NoteRejected, match="own key"):
        verify_cosigned(cosigned(), LOG.verifier_key, CosignerPolicy((own,), 0))


@pytest.mark.parametrize("quorum", [-1, 4])
def test_a_quorum_fits_its_cosigners(quorum: Any) -> None:
    with pytest.raises(MalformedNote, match="quorum"):
        policy(quorum)
    with pytest.raises(MalformedNote, match="type"):
        CosignerPolicy((LOG.verifier_key,), 1)


def test_without_cosigners_no_time_is_attested() -> None:
    checked = verify_cosigned(cosigned(), LOG.verifier_key, policy(0, 0))
    with pytest.raises(NoteRejected, match="no cosigner"):
        _ = checked.quorum_time


def test_the_cosigned_message() -> None:
    assert cosignature_message("o\n0\nr\n", 17) == b"cosignature/v1\ntime 17\no\n0\nr\n"


def test_parsing_verifies_nothing_but_keeps_everything() -> None:
    assert parse_checkpoint(cosigned()).encode() == cosigned()
