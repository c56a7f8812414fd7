"""What must hold of the services' stores after every fault, whatever was going on (spec 6.9, 8.7).

Nothing that was told is lost, nothing is there twice, and what was signed is one history.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragaudit.encoding.digests import leaf_data
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import verify_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.fence import Fence
from ragaudit.ledger.log.notes import VerifierKey, parse_note
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import UnknownWindow
from ragaudit.prover.settings import Settings as ProverSettings
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import records
from ragaudit.prover.window.registrations import used_counters
from ragaudit.prover.window.windows import Window, Windows
from ragaudit.verifier import settings as verifier_settings
from ragaudit.verifier.service import cosigner, windows
from ragaudit.verifier.service.database import Database
from sqlalchemy import Connection

WINDOW = "w1"


@dataclass(frozen=True)
class Standing:
    """How far the prover's store says that everything is.

    Attributes:
        state: of the window, None if there is none.
        logged: entries; fenced: how many of them the fence knows.
        signed: entries under the last signed checkpoint; cosigned: under the last cosigned one.
        lines: the cosigner's lines by size, as stored.
    """

    state: State | None = None
    logged: int = 0
    fenced: int = 0
    signed: int = 0
    cosigned: int = 0
    lines: tuple[tuple[int, bytes], ...] = ()


@dataclass(frozen=True)
class Attested:
    """What the verifier's store says that it has attested: heads, and its lines under them."""

    heads: tuple[TreeHead, ...] = ()
    lines: tuple[tuple[int, bytes], ...] = ()


def check_prover(
    settings: ProverSettings, answered: Iterable[dict[str, Any]], heads: Sequence[TreeHead]
) -> Standing:
    """Check a prover's database and fence, with nobody serving them.

    Args:
        answered: leaves that were told: `index`, `salt`, `body` of receipts and registrations.
        heads: that the verifier cosigned.
    """
    answered = list(answered)
    with closing(Store.open(settings.store.url)) as store:
        try:
            window = Windows(store).get(WINDOW)
        except UnknownWindow:
            assert not answered and not heads
            return Standing()
        if window.countersignature is None:
            assert not answered
            return Standing(window.state)
        policy = Policy.parse(window.policy)
        log = LogStore.open(store.engine, policy.keys.log)
        assert log.audit() == log.head()
        size = log.head().size
        leaves = log.entries(0, size)
        for each in answered:
            assert leaf_of(each) == leaves[each["index"]], "an answer without its record"
        for head in heads:
            assert head.size <= size and log.root(head.size) == head.root_hash, "a fork is signed"
        with store.read() as connection:
            check_once(connection)
        checkpoints = CheckpointStore(log, CosignerPolicy((policy.keys.cosigner,), 1))
        signed, cosigned = checkpoints.latest(), checkpoints.latest(1)
        for note in (signed, cosigned):
            if note is not None:
                verify_checkpoint(note.encode(), policy.keys.log)
                assert log.root(note.head.size) == note.head.root_hash
        lines: tuple[tuple[int, bytes], ...] = ()
        if cosigned is not None:
            line = cosigned.note.signature_of(policy.keys.cosigner)
            assert line is not None
            lines = ((cosigned.head.size, line.blob),)
        known = fenced(settings, store, window, log)
        # Otherwise a restored back-up could give an index, a counter and noise a second time.
        records_told = [each["index"] for each in answered if "kind" not in each]
        assert max(records_told, default=-1) < known, "an answer left ahead of the fence"
        return Standing(
            window.state,
            size,
            known,
            signed.head.size if signed else 0,
            cosigned.head.size if cosigned else 0,
            lines,
        )


def fenced(settings: ProverSettings, store: Store, window: Window, log: LogStore) -> int:
    """Check that the database is not behind its fence; return how many entries that knows."""
    path = settings.store.fence_folder / f"{WINDOW}.fence"
    empty = log.head().size == 0
    with closing(Fence(path, log.log_key.name, log_is_empty=empty)) as fence:

        def used(pseudonym: bytes) -> int:
            with store.read() as connection:
                return used_counters(connection, window.name, pseudonym)

        fence.check(log.root, used)
        return fence.head.size


def check_once(connection: Connection) -> None:
    """Check that no counter, and no input of noise, is in the log twice."""
    logged = [each.record for each in records(connection, WINDOW)]
    used: dict[bytes, list[int]] = {}
    for record in logged:
        used.setdefault(record.pseudonym, []).append(record.counter)
    for counters in used.values():
        assert counters == list(range(len(counters))), "a counter is missing, or is there twice"


def leaf_of(told: dict[str, Any]) -> bytes:
    """The leaf that was told: of a receipt's public part, or of a registration."""
    kind = told.get("kind", Record.KIND)
    return leaf_data(bytes.fromhex(told["salt"]), kind, bytes.fromhex(told["body"]))


def check_verifier(path: Path, standing: Standing) -> Attested:
    """Check a verifier's database and fence, with nobody serving them.

    Args:
        path: of its settings.
        standing: the prover's, as far as this verifier answered it.
    """
    loaded = verifier_settings.load(path)
    place = loaded.fence_place
    with closing(Database(loaded.database_url, lambda: 2**44, place)) as database:
        origin = windows.of("p.example", WINDOW)
        with database.read() as connection:
            window = windows.find(connection, origin)
            found = cosigner.all_of(connection, origin)
            notes = []
            if window is not None and found:
                key = windows.policy(connection, window).keys.cosigner
                notes = [verify_note(each, key) for each in found]
    if standing.state not in {None, State.DRAFT, State.COMMITTED}:
        assert window is not None and window.countersigned is not None, "a promise is forgotten"
    lines = dict(notes)
    for size, line in standing.lines:
        assert lines.get(size) == line, "a cosignature is forgotten"
    return Attested(tuple(each.head for each in found), tuple(notes))


def verify_note(stored: cosigner.StoredCheckpoint, key: VerifierKey) -> tuple[int, bytes]:
    """The size of a cosigned checkpoint, and the cosigner's line under it."""
    line = parse_note(stored.note).signature_of(key)
    assert line is not None
    return stored.size, line.blob


def prover_settings(folder: Path) -> ProverSettings:
    """The settings of a prover in this folder."""
    return load_settings(folder / "prover.yaml")
