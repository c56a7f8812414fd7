"""What it takes a verifier to check a window's log of any length, as handed over and from tiles.

The log is made without proofs, with valid counters, times, sketches and tree. Entries go to files
as they are made, so that a million records take no memory here. Nothing was asked: digests of
queries are random, and nobody is challenged. What only the log's checks look at is as in an honest
window.
"""

import http.client
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, BinaryIO, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data, salted
from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.harness import Measurement, Notify, measure_once
from ragaudit.lab.scenario.policy import (
    BITS,
    CLOSED,
    END,
    HANDED_OVER,
    START,
    full_policy_document,
)
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.tiles import (
    bundles_of,
    decode_entry_bundle,
    encode_entry_bundle,
    entries_path,
)
from ragaudit.ledger.log.tree import HASH_BYTES, MemoryTree, TreeHead, verify_inclusion
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.accounts import AccountIndex, ListedRecord
from ragaudit.ledger.messages.entries import Close, Record, Registration
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.checks import CHECKS
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import Pins

_TENANT: Final = "bench"
TILES: Final = "log"
_FIRST, _LAST = 2, 118  # seconds after the start in which records are made
_STEP: Final = 5  # seconds between two checkpoints


@dataclass(frozen=True)
class LargeLogSizes:
    """How long a log is.

    Attributes:
        records: R, or questions where all get generated answers.
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
        made = full_policy_document(keys, changes, noised=True)
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


CHECKED: Final = (
    "log",
    "split-view",
    "registrations",
    "counters",
    "schedule",
    "containment",
    "accounts",
)
"""Checks of the procedure, in its order: those that only a log is needed for."""

_PROCESSOR: Final = "processor ms"


def check_log(sizes: LargeLogSizes, notify: Notify) -> list[Measurement]:
    """Measure the download of a log's entries and each check over its evidence, once each.

    The log is made in another process, so that memory is that of whoever checks.

    Args:
        sizes: of the log.
        notify: told what is being done.

    Raises:
        InternalError: a check fails: what is timed must be an honest log.
    """
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "evidence"
        notify("making a log", 0, 0)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            pool.submit(write_large_log, sizes, folder).result()
        notify("downloading entries", 0, 0)
        found = [_measured("download, rehash", partial(_download, folder.parent / TILES), sizes)]
        audited = Context(Evidence.from_directory(folder), engine=engine("core"), pins=Pins())
        for check in CHECKS:
            if check.id not in CHECKED:
                continue
            notify(check.id, 0, 0)

            def run(applied: Callable[[Context], object] = check.apply) -> None:
                result = applied(audited)
                if getattr(result, "status", None) is not Status.PASS:
                    raise InternalError(f"an honest log fails: {result}")

            found.append(_measured(f"check {check.id}", run, sizes))
        tree = audited.log.tree
        proving = partial(_prove_inclusion, tree, tree.size // 3)
        found.append(_measured("an inclusion proof", proving, LargeLogSizes(1, 1)))
        return found


def _measured(name: str, action: Callable[[], object], sizes: LargeLogSizes) -> Measurement:
    before = time.process_time()
    found = measure_once(name, action, records=sizes.records)
    # Of this process: beside others on the machine the clock on the wall says little.
    spent = {_PROCESSOR: 1000 * (time.process_time() - before)}
    return replace(found, details=spent)


def _download(folder: Path) -> MemoryTree:
    """Fetch every entry bundle from a server of files, and compare the root."""
    with _served(folder) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        head = parse_checkpoint(_fetched(connection, "checkpoint")).head
        tree = MemoryTree()
        for bundle in bundles_of(head.size):
            data = _fetched(connection, entries_path(bundle))
            tree.extend(decode_entry_bundle(data, bundle.width))
        connection.close()
    if tree.head() != head:
        raise InternalError("the entries give another root")
    return tree


def _fetched(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", f"/{path}")
    return connection.getresponse().read()


def _prove_inclusion(tree: MemoryTree, index: int) -> None:
    proof = tree.inclusion_proof(index)
    head = TreeHead(tree.size, tree.root())
    verify_inclusion(leaf=tree.subtree_hash(0, index), index=index, head=head, proof=proof)


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for all requests
    disable_nagle_algorithm = True  # head and body leave as two packets: 40 ms for each bundle

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
