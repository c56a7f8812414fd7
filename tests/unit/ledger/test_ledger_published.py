"""A stored log against what was published of it, and against what its leaves were made from."""

from collections.abc import Iterator
from typing import Any

import pytest
from ledger_logs import COSIGNER, KEY, fill, leaf, leaves
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import CorruptLog, MalformedNote, NoteRejected, RestoredBackup
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy, cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.log.tree import MemoryTree
from sqlalchemy import Connection

TIME = 1_790_000_000
STRANGER = SigningKey("stranger.example/1", COSIGNATURE_V1, PrivateKey.from_seed(b"\x09" * 32))


def published(tree: MemoryTree, *cosigners: tuple[SigningKey, int]) -> bytes:
    """A checkpoint of a tree, signed by the log and cosigned."""
    signed = sign_checkpoint(Checkpoint(KEY.name, tree.head()), KEY)
    lines = [cosign(signed.note.text, key, time) for key, time in cosigners]
    return signed.note.with_signatures(iter(lines)).encode()


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300])
def test_a_log_that_goes_on_from_it_gets_its_time(
    store: Any, checkpoints: CheckpointStore, size: int
) -> None:
    fill(store, 300)
    assert checkpoints.compare(published(MemoryTree(leaves(size)), (COSIGNER, TIME))) == TIME


def test_a_log_that_is_behind_is_a_restored_backup(
    store: Any, checkpoints: CheckpointStore
) -> None:
    fill(store, 3)
    note = published(MemoryTree(leaves(4)), (COSIGNER, TIME))
    with pytest.raises(RestoredBackup, match="seen a larger tree") as caught:
        checkpoints.compare(note)
    assert caught.value.expected == "4 entries"
    fill(store, 1)
    checkpoints.compare(note)


def test_another_history_of_the_same_length_is_a_restored_backup(
    store: Any, checkpoints: CheckpointStore
) -> None:
    fill(store, 300)
    other = leaves(300)
    other[7] = leaf(9_999)
    for size in (8, 299, 300):
        with pytest.raises(RestoredBackup, match="another history"):
            checkpoints.compare(published(MemoryTree(other[:size]), (COSIGNER, TIME)))
    checkpoints.compare(published(MemoryTree(other[:7]), (COSIGNER, TIME)))


def test_only_what_log_and_cosigner_signed_is_believed(
    store: Any, checkpoints: CheckpointStore
) -> None:
    """Else anybody between the two could close a window, or stop its clock."""
    fill(store, 3)
    ahead = MemoryTree(leaves(9))
    with pytest.raises(NoteRejected, match="cosigned by 0"):
        checkpoints.compare(published(ahead))
    with pytest.raises(NoteRejected, match="cosigned by 0"):
        checkpoints.compare(published(ahead, (STRANGER, TIME)))
    with pytest.raises(MalformedNote):
        checkpoints.compare(b"nothing")
    forged = published(ahead, (COSIGNER, TIME)).replace(b"\n9\n", b"\n8\n")
    with pytest.raises(NoteRejected):
        checkpoints.compare(forged)
    # A line of a key that nobody knows says nothing of the time.
    late = published(MemoryTree(leaves(3)), (COSIGNER, TIME), (STRANGER, 2 * TIME))
    assert checkpoints.compare(late) == TIME


def test_a_policy_without_cosigners_has_no_time(store: Any) -> None:
    fill(store, 3)
    alone = CheckpointStore(store, CosignerPolicy((), 0))
    assert alone.compare(published(MemoryTree(leaves(2)))) == 0


def again(*changed: int, missing: int = 0) -> Any:
    """Leaves as a caller makes them again, some of them from contents that changed."""

    def made(_connection: Connection, start: int, end: int) -> Iterator[bytes]:
        for number in range(start, end - missing):
            yield leaf(number + 1_000 if number in changed else number)

    return made


def test_leaves_are_made_again_before_they_are_signed_over(
    store: Any, checkpoints: CheckpointStore
) -> None:
    fill(store, 300)
    for changed in (0, 255, 256, 299):
        with pytest.raises(CorruptLog, match="not that of its stored entry") as caught:
            checkpoints.sign(KEY, again(changed, 299))
        assert caught.value.where == f"entry {changed}"
    with pytest.raises(CorruptLog) as caught:
        checkpoints.sign(KEY, again(missing=2))
    assert caught.value.where == "entry 298"
    assert checkpoints.latest() is None
    assert checkpoints.sign(KEY, again()).head == MemoryTree(leaves(300)).head()
    # Only what is new is made again: a start and a signature do not take longer with the log.
    fill(store, 2)
    assert checkpoints.sign(KEY, again(7)).head.size == 302


def test_a_caller_with_an_entry_too_many_is_told(store: Any, checkpoints: CheckpointStore) -> None:
    fill(store, 3)

    def more(_connection: Connection, start: int, end: int) -> Iterator[bytes]:
        yield from leaves(end - start + 1, start)

    with pytest.raises(CorruptLog) as caught:
        checkpoints.sign(KEY, more)
    assert caught.value.where == "entry 3"
