"""A window's log of any length, made without proofs: valid counters, times, sketches and tree.

Entries go to files as they are made, so that a million records take no memory here. Nothing was
asked: digests of queries are random, and nobody is challenged. What only the log's checks look at
is as in an honest window.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data, salted
from ragaudit.lab.scenario.policy import (
    BITS,
    CLOSED,
    END,
    HANDED_OVER,
    START,
    second_policy_document,
)
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tiles import bundles_of, encode_entry_bundle, entries_path
from ragaudit.ledger.log.tree import HASH_BYTES
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.account_index import AccountIndex, ListedRecord
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.records import Close, Record, Registration
from ragaudit.verifier.procedure.facts import Pins

__all__ = ["TILES", "LargeLog", "LargeLogSizes", "write_evidence", "write_large_log"]

_TENANT: Final = "bench"
TILES: Final = "log"
_FIRST, _LAST = 2, 118  # seconds after the start in which records are made
_STEP: Final = 5  # seconds between two checkpoints


@dataclass(frozen=True)
class LargeLogSizes:
    """How long a log is.

    Attributes:
        records: R, or questions where all are answered in words.
        accounts: that ask in turn, all alike often; at least one.
    """

    records: int
    accounts: int

    @property
    def queries(self) -> int:
        """Records of the account that has most."""
        return -(-self.records // self.accounts)


class LargeLog(Window):
    """The window whose log is written to a folder of evidence as it grows."""

    tenants = (_TENANT,)

    def __init__(self, sizes: LargeLogSizes, folder: Path) -> None:
        self.sizes, self.folder = sizes, folder
        self.slots, self.queries_per_account = max(2, sizes.accounts), sizes.queries
        super().__init__(rows=8)
        self.others: list[dict[str, Any]] = []
        self._listed: list[ListedRecord] = []
        self._random = Random(2)  # noqa: S311 - the same log in every run
        self._files = {name: self._file(name) for name in (names.RECORDS, names.LEAVES)}

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        made = second_policy_document(keys, changes, noised=True)
        return {**made, "versions": False, "account_index": True}

    def _file(self, name: str) -> BinaryIO:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")

    def append(self, kind: str, body: bytes, salt_s: bytes = b"", sketch: bytes = b"") -> int:
        entry = Entry(self.tree.size, kind, self.draw(), body, salt_s, sketch)
        leaf = leaf_data(entry.salt, kind, body)
        self._files[names.RECORDS].write(entry.encode())
        self._files[names.LEAVES].write(leaf)
        if kind == Record.KIND:
            account = entry.index - 1 - self.slots
            pseudonym = self.registered[account % self.sizes.accounts].pseudonym
            self._listed.append(ListedRecord(entry.index, entry.salt, pseudonym))
        else:
            self.others.append(entry.to_json())
            self.entries.append((kind, entry.salt, body))
        return self.tree.append(leaf)

    def play(self) -> None:
        self.open()
        self.registered = [self._registration(slot) for slot in range(self.slots)]
        for body in self.registered:
            self.append(Registration.KIND, body.encode())
        self.checkpoint(-20)
        due = START + _STEP
        for number in range(self.sizes.records):
            time = _FIRST * 1000 + number * 1000 * (_LAST - _FIRST) // self.sizes.records
            while START + time // 1000 >= due:
                self.checkpoint(due - START)
                due += _STEP
            self._answer(number, 1000 * START + time)
        self.checkpoint(_LAST + 1)
        index = AccountIndex.build(
            self.window, (each.pseudonym for each in self.registered), self._listed
        )
        self.log_accounts(index)
        self.append("close", Close(self.window, len(self._listed), 0, 1000 * END).encode())
        self.checkpoint(CLOSED - START)
        for file in self._files.values():
            file.close()

    def _registration(self, slot: int) -> Registration:
        pseudonym = sha256(f"pseudonym of account {slot}".encode()).digest()
        time = 1000 * (START - 25)
        return Registration(self.window, pseudonym, _TENANT, slot, None, None, time)

    def _answer(self, number: int, time: int) -> None:
        """Log what a query gives, a record."""
        draw = self._random.randbytes
        salt_s, sketch = draw(32), draw(BITS // 8)
        account = self.registered[number % self.sizes.accounts]
        body = Record(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=_TENANT,
            version=1,
            rows=self.indices[_TENANT].commitment.rows,
            top_k=3,
            filter_digest=draw(32),
            pseudonym=account.pseudonym,
            epoch=1,
            slot=account.slot,
            counter=number // self.sizes.accounts,
            activation=1,
            time=time,
            nonce=None,
            query_digest=draw(32),
            embedding_digest=draw(32),
            sketch_digest=salted(salt_s, sketch),
            selection_commitment=draw(32),
        ).encode()
        self.append(Record.KIND, body, salt_s, sketch)

    def written_items(self) -> dict[str, bytes]:
        """Return the items beside those that are written already."""
        dumps = canonical_json.dumps
        covered = enumerate(self.covered_sizes(), start=1)
        empty = dict.fromkeys((names.RECEIPTS, names.REFUSALS, names.STATEMENTS), b"[]")
        return {
            **empty,
            **dict.fromkeys((names.CLAIMS, names.DISPUTES, names.JUDGED), b"[]"),
            **self.opening_items(),
            names.ENTRIES: dumps(self.others),
            names.COUNTERSIGNATURE: self.countersignature(),
            names.ACTIVATIONS: dumps([self.activation(a, size) for a, size in covered]),
            names.FINAL_CHECKPOINT: self.checkpoints[-1][2].encode(),
            names.CHECKPOINTS: dumps([note for _, _, note in self.checkpoints]),
            names.CLOCK: Clock({}, {}, 1000 * CLOSED, 1000 * HANDED_OVER).encode(),
        }


def write_evidence(window: LargeLog, folder: Path) -> None:
    """Play a window and write its items.

    Args:
        folder: that the window was made with.
    """
    window.play()
    for name, data in window.written_items().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_large_log(sizes: LargeLogSizes, folder: Path) -> Pins:
    """Write the evidence of a window with a log of these sizes, and its entry bundles.

    Args:
        sizes: how long.
        folder: an empty one; the items go there by their names (docs/spec/10-verdict.md §10.1), the
            bundles and the checkpoint to ``log`` beside it, as tlog-tiles names them.

    Returns:
        The keys that whoever audits has pinned.
    """
    window = LargeLog(sizes, folder)
    write_evidence(window, folder)
    tiles = folder.parent / TILES
    with (folder / names.LEAVES).open("rb") as leaves:
        for bundle in bundles_of(window.tree.size):
            path = tiles / entries_path(bundle)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_entry_bundle(list(_leaves(leaves, bundle.width))))
    (tiles / "checkpoint").write_bytes(window.checkpoints[-1][2].encode())
    return window.pins


def _leaves(file: BinaryIO, count: int) -> Iterator[bytes]:
    return (file.read(HASH_BYTES) for _ in range(count))
