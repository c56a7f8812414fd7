"""A window's whole life in one process: prover, verifier with its cosigner, and three clients.

Ada asks plainly; bob is anchored; cyd asks plainly and disputes her answers. They ask one at a
time, or at the same moment: then their answers share a transaction and a fence. Nothing goes on by
itself: what background threads do, the plan's steps do, one after the other.

What the model cannot express: two threads of a party at one moment; PostgreSQL, and with it a
commit that arrives after a later one (on SQLite a commit that was given up is there at once, or
never); pages of the database that a loss of power tears (the tests of power cuts have them);
several processes of a prover, further cosigners, a channel that generates, owners, later versions
of an index. Proofs of selections draw their own coins in the compiled core: what depends on a seed
is everything but their bytes, and what has their digests.
"""

import hashlib
import json
import math
import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from fastapi import FastAPI
from invariants import check_once, leaf_of
from kept_folders import KeptFolder
from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import b64_decode
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.log.database import close_engine, open_engine
from ragaudit.ledger.log.fence import FenceReader
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.ledger.messages.disputes import Dispute
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.identifiers import pseudonym
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.command.set_up import set_up
from ragaudit.prover.http.app import create_app as create_prover
from ragaudit.prover.service import Components, Service
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store import tables
from ragaudit.prover.store.states import State
from ragaudit.prover.window import log_transaction
from ragaudit.prover.window.log_transaction import Begin, LogTransaction, WindowFence, _Member
from ragaudit.prover.window.registrations import used_counters
from ragaudit.prover.window.windows import Window
from ragaudit.serving.clock import UNTIL_CONFIRMED, UNTIL_IT_STAYS, EvenClock
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.app import create_app as create_verifier
from ragaudit.verifier.service.database import Database, create_tables
from regulator import Regulator
from scenario import START, WINDOW, fill, pinned
from simulated_ports import (
    MEMBER,
    Died,
    Disk,
    Faults,
    Party,
    Sender,
    Time,
    Wall,
    Wire,
    in_order,
    seeded,
    watch_commits,
    written_to,
)
from sqlalchemy import select, update

NAME = "w1"
PATH = f"/v1/windows/{NAME}"
QUERIES = 6  # of each account
MERGE = 30  # seconds: below the merge delay, so that an outage ends before it counts
FORMER = 5  # back-ups, of which a restore takes one
# Vectors are short, and chance makes accounts look alike: they may.
SETTINGS = {**WINDOW, "coalition_max": 3, "queries_per_account": QUERIES}
_DISPUTES = PrivateKey.from_seed(b"\xd1" * 32)


class Violation(AssertionError):
    """What must hold of a window does not."""


class _Inline:
    """A pool without threads: who hands in work waits for it."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> None:
        work(*arguments)

    def shutdown(self, **_options: Any) -> None:
        """There is nothing to end."""


class _Impatient:
    """An event that nobody waits for."""

    def wait(self, _seconds: float) -> bool:
        return True

    def set(self) -> None:
        """Nobody waits."""

    def is_set(self) -> bool:
        return False


@dataclass
class Client:
    """An account that goes on with what it began until there is an answer.

    Attributes:
        number: of questions that it began.
        body: of the question that it waits for.
        promised: whether it may reveal.
        files: receipt files that it holds, in order.
    """

    name: str
    key: str
    number: int = 0
    body: dict[str, Any] | None = None
    promised: bool = False
    registered: bool = False
    files: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class House:
    """What every window begins with: folders, a countersigned window, API keys."""

    kept: KeptFolder
    keys: dict[str, str]
    now: int


class World:
    """One window and all who have to do with it.

    Attributes:
        result: of the verdict, once the window ended with one.
        lost: what the disk lost, or a restored database; then the window need not end in PASS.
        errors: what services said of steps that failed, the last ones.
        violations: what was seen to be wrong while messages were under way.
        groups: how many answers shared a transaction, of each that several did.
    """

    def __init__(self, folder: Path, house: House | None = None) -> None:
        """Begin in an empty folder, or in one like a house's."""
        self.folder = folder
        self.time = Time(START if house is None else house.now)
        self.prover, self.verifier = (Party(name, folder / name) for name in ("prover", "verifier"))
        self.clients = Party("clients", folder / "clients", alive=True, mortal=False)
        self.faults = Faults()
        self.disk = Disk(self.faults, (self.prover, self.verifier))
        self.to_prover, self.to_verifier = (
            Wire(party, self.faults) for party in (self.prover, self.verifier)
        )
        self.walls = {"prover": Wall(self.time), "verifier": Wall(self.time)}
        self.result: str | None = None
        self.lost: list[str] = []
        self.errors: list[str] = []
        self.violations: list[str] = []
        self.told: dict[int, bytes] = {}
        self.records: dict[tuple[bytes, int], Any] = {}
        self.roots: dict[int, bytes] = {}
        self.heads: dict[int, bytes] = {}
        self.back_ups: list[bytes] = []
        self.groups: list[int] = []
        self._unfenced: dict[bytes, int] = {}  # counters of groups whose fence is not durable
        self._at_loss: int | None = None
        self._latest = 0  # that any clock has shown, when it was set
        self._waits_since: int | None = None  # since when an entry waits for a cosignature
        if house is not None:
            house.kept.restore(folder)
        self.regulator = Regulator(folder / "verifier", self.walls["verifier"])  # type: ignore[arg-type]
        self.keys = self._provide() if house is None else house.keys
        self.settings = pinned(load_settings(folder / "prover/prover.yaml"), self.regulator.keys)
        self.people = {name: Client(name, key) for name, key in self.keys.items()}
        self.to_prover.told = self._answered
        self.to_verifier.told = self._attested
        self.service: Service | None = None
        self._verifying: FastAPI | None = None
        self._looking = open_engine(self.settings.store.url)
        self.policy: Policy | None = None

    # Parties

    def _provide(self) -> dict[str, str]:
        paths = set_up(
            self.folder / "prover", provider="provider.example", verifier="http://verifier"
        )
        url = self.regulator.settings.database_url
        create_tables(url)
        with closing(Database(url, lambda: START)) as database:
            providers.add(database, "provider.example", paths.provider_key)
        return fill(load_settings(paths.settings))

    def start_prover(self) -> None:
        """Start the prover's process; it may end on the way, or refuse."""
        if self.prover.alive:
            return
        self.prover.alive = True
        clock = EvenClock(UNTIL_CONFIRMED, self.walls["prover"], self.time.steady)
        components = Components(
            embedder=lambda _: HashEmbedder(16),
            transport=Sender(self.to_verifier, self.prover),
            clock=clock,
        )
        app = create_prover(self.settings, components=components)
        self.service = service = app.state.service
        watch_commits(service.store.engine, self.faults, self.prover)
        # What these threads do, the plan's steps do.
        service.succession.start = lambda: None
        service._clock_watch._thread.start = lambda: None
        try:
            service.start()
        except (RagauditError, OSError) as error:
            self._note(error)
            self.prover.alive = False
        except Died:
            pass
        else:
            # Looked up as time goes by, in a thread: a key that is not known takes another way.
            keys = service.callers
            keys._callers |= keys._known()
            keys._looked = math.inf
            self.to_prover.listen(app)
        self.bury()

    def start_verifier(self) -> None:
        """Start the verifier's process; as `start_prover`."""
        if self.verifier.alive:
            return
        self.verifier.alive = True
        clock = EvenClock(UNTIL_IT_STAYS, self.walls["verifier"], self.time.steady)
        try:
            app = create_verifier(self.regulator.settings, clock=clock)
        except (RagauditError, OSError) as error:
            self._note(error)
            self.verifier.alive = False
        except Died:
            pass
        else:
            self._verifying, service = app, app.state.service
            watch_commits(service.database.engine, self.faults, self.verifier)
            service.runner._pool, service.runner._stopping = _Inline(), _Impatient()
            self.to_verifier.listen(app)
        self.bury()

    def bury(self) -> None:
        """Let go of what processes that ended held."""
        if not self.prover.alive and self.service is not None:
            service, self.service = self.service, None
            self.to_prover.listen(None)
            for end in (
                service.stop,
                service.open_windows.close,
                service._fences.release,
                service.store.close,
            ):
                with suppress(Died, Exception):
                    end()
        if not self.verifier.alive and self._verifying is not None:
            verifying, self._verifying = self._verifying.state.service, None
            self.to_verifier.listen(None)
            for end in (verifying.close, verifying.database.close):
                with suppress(Died, Exception):
                    end()
        for party in (self.prover, self.verifier):
            if not party.alive:
                self.disk.close_all(party)

    def start_all(self) -> None:
        """Start who is not there: the verifier first, as the prover asks it."""
        self.start_verifier()
        self.start_prover()

    def end(self, party: Party) -> None:
        """End a process, wherever it is."""
        party.alive = False
        self.bury()

    @contextmanager
    def running(self) -> Iterator["World"]:
        """Have what parties write go to the simulated disk; end all of them afterwards."""
        with written_to(self.disk), in_order(), self._watching_groups():
            try:
                yield self
            finally:
                for party in (self.prover, self.verifier):
                    self.end(party)
                for wire in (self.to_prover, self.to_verifier):
                    wire.listen(None)
                close_engine(self._looking)

    # Steps of the services

    def _attempt(self, party: Party, work: Callable[[], Any]) -> None:
        """Take a step of a service, as its thread does: what fails is said, and tried again."""
        if not party.alive:
            return
        try:
            work()
        except Died:
            pass
        except Exception as error:
            self._note(error)
        self.bury()

    def _note(self, error: BaseException) -> None:
        self.errors = [*self.errors[-20:], f"{type(error).__name__}: {error}"]

    def watch(self) -> None:
        """Compare the prover's clock, as its watch does every second."""
        service = self.service
        if service is not None:
            self._attempt(self.prover, service._clock_watch.step)

    def drive(self) -> None:
        """Take the window's next step at the prover."""
        self.watch()
        service = self.service
        if service is not None:
            self._attempt(self.prover, lambda: service.driver.step(NAME))

    def checkpoint(self) -> None:
        """Have the log signed and cosigned."""
        service = self.service
        if service is not None and self.window().countersignature is not None:
            self._attempt(self.prover, lambda: service.driver.checkpoint(NAME))

    def tick(self) -> None:
        """Do what is due at the verifier."""
        app = self._verifying
        if app is not None:
            self._attempt(self.verifier, app.state.service.scheduler.tick)

    def window(self) -> Window:
        """The window, as the prover's database has it."""
        assert self.service is not None
        return self.service.windows.get(NAME)

    def live(self) -> bool:
        """Whether the prover runs and can look at its window."""
        return self.service is not None and self.prover.alive

    # Steps of the clients

    def _request(
        self, client: Client, path: str, body: Any, key: str | None = None
    ) -> httpx.Request:
        headers = {"Authorization": f"Bearer {client.key}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return httpx.Request("POST", f"http://prover{PATH}{path}", json=body, headers=headers)

    def _sent(self, wire: Wire, request: httpx.Request) -> httpx.Response | None:
        try:
            return wire.send(request, self.clients)
        except httpx.TransportError:
            return None
        finally:
            self.bury()

    def register(self, name: str) -> None:
        """Register an account, or try again."""
        client = self.people[name]
        body = {
            "anchor": self.chain().anchor.hex() if name == "bob" else None,
            "dispute_key": _DISPUTES.public.raw.hex() if name == "cyd" else None,
        }
        answer = self._sent(self.to_prover, self._request(client, "/registration", body))
        if answer is not None and answer.is_success:
            client.registered = True

    def chain(self) -> NonceChain:
        """Bob's nonces."""
        return NonceChain(NAME, self.pseudonym("bob"), b"\x07" * 32, QUERIES)

    def pseudonym(self, name: str) -> bytes:
        """An account's pseudonym, 32 bytes."""
        return pseudonym(self.pseudonym_key, NAME, name)

    def ask(self, name: str, number: int = 0) -> None:
        """Ask, or repeat what is not answered yet."""
        client = self.people[name]
        asked = self._question(client, number)
        if asked is not None:
            self._take(client, asked, self._sent(self.to_prover, asked))

    def ask_together(self, names: Sequence[str], number: int = 0) -> None:
        """Ask, or repeat, at the same moment, in this order."""
        people = [self.people[name] for name in names]
        asked = [
            (client, request)
            for client in people
            if (request := self._question(client, number)) is not None
        ]
        answers = self.to_prover.send_together([request for _, request in asked], self.clients)
        self.bury()
        for (client, request), answer in zip(asked, answers, strict=True):
            self._take(client, request, answer)

    def _question(self, client: Client, number: int) -> httpx.Request | None:
        """Return what a client asks next; None once it has asked all that it may."""
        if client.body is None:
            if client.number >= QUERIES:
                return None
            query = f"question {client.number} {number}"
            client.body = {"query": query, "top_k": 1 + number % 3, "filter": ""}
            client.number += 1
        counter = client.number - 1
        if client.name != "bob":
            return self._request(client, "/query", client.body, f"{client.name} {client.number}")
        if not client.promised:
            return self._request(client, "/promise", {**client.body, "counter": counter})
        nonce = self.chain().nonce(counter).hex()
        return self._request(client, "/reveal", {"counter": counter, "nonce": nonce})

    def _take(self, client: Client, request: httpx.Request, answer: httpx.Response | None) -> None:
        if answer is not None and request.url.path.endswith("/promise"):
            # Whoever has a record already is told so: then only the nonce is asked for again.
            client.promised = answer.status_code in {200, 409}
        elif answer is not None and answer.status_code == 200:
            client.files.append(answer.json())
            client.body, client.promised = None, False
        elif answer is not None and answer.status_code in {404, 409}:
            client.promised = False

    def dispute(self, number: int) -> None:
        """Dispute one of cyd's answers, an honest one."""
        files = self.people["cyd"].files
        if files:
            file = files[number % len(files)]
            made = Dispute.issue(_DISPUTES, pseudonym=self.pseudonym("cyd"), receipt_file=file)
            body = {"disputes": [made.to_json()]}
            request = httpx.Request("POST", f"http://verifier{self._there}/disputes", json=body)
            self._sent(self.to_verifier, request)

    @property
    def _there(self) -> str:
        return f"/v1/windows/{NAME}"

    # What left

    def _answered(self, request: httpx.Request, answer: httpx.Response) -> None:
        """Look at an answer that leaves the prover: it must be durable, and new or the same."""
        name = request.url.path.rsplit("/", 1)[-1]
        if not answer.is_success or request.method != "POST":
            return
        content = json.loads(answer.content)
        if name in {"query", "reveal"}:
            public = content["public"]
            self._tell(public["index"], public)
            self._use(Record.parse(bytes.fromhex(public["body"])), public["index"])
        elif name == "registration":
            shown = content["registration"]
            self._tell(shown["index"], {"kind": "registration", **shown})
        elif name == "promise":
            record = Record.parse_promised(bytes.fromhex(content["body"]))
            known = self.records.setdefault((record.pseudonym, record.counter), record.query_digest)
            if known != record.query_digest:
                self.violations.append("a counter is promised twice")
            self._demand_fenced(record, 0)

    def _use(self, record: Record, index: int) -> None:
        key = (record.pseudonym, record.counter)
        known = self.records.setdefault(key, record.query_digest)
        if known != record.query_digest:
            self.violations.append("a counter and its noise are used twice")
        self._demand_fenced(record, index + 1)

    def _demand_fenced(self, record: Record, size: int) -> None:
        if self._unfenced.get(record.pseudonym) == record.counter + 1:
            self.violations.append("an answer left of a group whose fence is not durable")
        if any(path.is_relative_to(self.prover.folder) for path in self.disk.unsynced):
            self.violations.append("an answer left before its fence was synchronised")
        assert self.policy is not None
        reader = FenceReader(self._fence, self.policy.origin)
        reader.read()
        if reader.head.size < size or reader.records.get(record.pseudonym, 0) <= record.counter:
            self.violations.append("an answer left ahead of the fence")

    @property
    def _fence(self) -> Path:
        return self.settings.store.fence_folder / f"{NAME}.fence"

    def _tell(self, index: int, told: dict[str, Any]) -> None:
        leaf = leaf_of(told)
        if self._at_loss is not None and index not in self.told:
            self.violations.append("a window answered after its database was set back")
        if self.told.setdefault(index, leaf) != leaf:
            self.violations.append("a position is used twice")
        log = self._log()
        if log.head().size <= index or log.entries(index, index + 1)[0] != leaf:
            self.violations.append("an answer without its record")

    def _attested(self, request: httpx.Request, answer: httpx.Response) -> None:
        """Look at what reached the verifier: no two roots of one size are signed, or cosigned."""
        if not request.url.path.endswith("/add-checkpoint"):
            return
        head = parse_checkpoint(AddCheckpointRequest.parse(request.content).checkpoint).head
        if self.roots.setdefault(head.size, head.root_hash) != head.root_hash:
            self.violations.append("two roots of one size are signed")
        if answer.is_success and (
            self.heads.setdefault(head.size, head.root_hash) != head.root_hash
        ):
            self.violations.append("two roots of one size are cosigned")

    # Transactions that several answers share

    @contextmanager
    def _watching_groups(self) -> Iterator[None]:
        """Have answers that share a transaction fail, and look at what becomes of the others."""
        commit, advance, opening = log_transaction._together, WindowFence.advance, WindowFence.open

        def commit_together(begin: Begin, group: list[_Member]) -> None:
            if len(group) > 1:
                self._commit(partial(commit, begin, group), group)
            else:
                commit(begin, group)

        def advance_all(fence: WindowFence, head: TreeHead, counters: Mapping[bytes, int]) -> None:
            if len(counters) > 1:
                self._unfenced |= counters
            advance(fence, head, counters)
            self._fenced(counters)

        def open_again(fence: WindowFence) -> None:
            opening(fence)
            self._fenced(fence.opened().records)  # it was written anew

        with (
            patch.object(log_transaction, "_together", commit_together),
            patch.object(WindowFence, "advance", advance_all),
            patch.object(WindowFence, "open", open_again),
        ):
            yield

    def _fenced(self, counters: Mapping[bytes, int]) -> None:
        for who, count in counters.items():
            if self._unfenced.get(who, count + 1) <= count:
                del self._unfenced[who]

    def _commit(self, commit: Callable[[], None], group: Sequence[_Member]) -> None:
        """Commit a group; whoever has no fault of its own, or of all, must have none."""
        self.groups.append(len(group))
        fates = dict[int, str]()
        for member in group:
            member.work = partial(self._perhaps_fails, member.work, fates, id(member))
        before = len(self.faults.happened)
        commit()
        of_all = any(MEMBER not in each for each in self.faults.happened[before:])
        for member in group:
            if isinstance(member.error, InternalError) and not (of_all or fates.get(id(member))):
                self.violations.append("one answer's failure is another's")

    def _perhaps_fails(
        self,
        work: Callable[[LogTransaction], Any],
        fates: dict[int, str],
        member: int,
        transaction: LogTransaction,
    ) -> Any:
        result = work(transaction)
        if member not in fates:
            fates[member] = self.faults.at(MEMBER, self.prover)[0]
        if fates[member] == "fails":
            raise InternalError("an answer fails", where="simulation")
        if fates[member] == "refused":
            again = {"window": NAME, "position": 0, "kind": Record.KIND, "salt": bytes(32)}
            row = {**log_transaction._PUBLIC, **again, "body": b""}
            transaction.later(log_transaction._INSERT_ENTRY, **row)
        return result

    # What must hold after each step

    def _log(self) -> LogStore:
        assert self.policy is not None
        return LogStore.open(self._looking, self.policy.keys.log)

    def check(self) -> None:
        """Raise Violation if something does not hold."""
        if self.violations:
            raise Violation("; ".join(dict.fromkeys(self.violations)))
        if self.policy is None or self.lost:
            return
        log = self._log()
        head = log.audit()
        if head.size <= max(self.heads, default=0):
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = self.time.now
        if head != log.head():
            raise Violation("the log is not what its head says")
        for index, leaf in self.told.items():
            if index >= head.size or log.entries(index, index + 1)[0] != leaf:
                raise Violation("an answer without its record")
        for size, root in self.roots.items():
            if size > head.size or log.root(size) != root:
                raise Violation("what was signed is not of this log")
        with self._looking.connect() as connection:
            try:
                check_once(connection)
            except AssertionError as error:
                raise Violation(str(error)) from None

    # The disk

    def keep(self) -> None:
        """Make a back-up of the prover's database."""
        with closing(sqlite3.connect(self._database)) as connection:
            self.back_ups.append(connection.serialize())

    def restore(self, number: int) -> None:
        """End the prover, and put one of the last back-ups in the place of its database."""
        if not self.back_ups:
            return
        self.end(self.prover)
        self._looking.dispose()
        data = self.back_ups[-1 - number % min(len(self.back_ups), FORMER)]
        for more in ("-wal", "-shm"):
            Path(self._database + more).unlink(missing_ok=True)
        Path(self._database).write_bytes(data)
        # One that is put back as it was has lost nothing, whatever was in its place before.
        behind = self._is_behind()
        self.lost = ["a database that was set back"] if behind else []
        self._at_loss = len(self.told) if behind else None

    def _is_behind(self) -> bool:
        """Whether the database lacks what was answered, by the fence."""
        assert self.policy is not None
        reader = FenceReader(self._fence, self.policy.origin)
        reader.read()

        # Not by the rule that is under test.
        log, head = self._log(), reader.head
        if log.head().size < head.size or log.root(head.size) != head.root_hash:
            return True
        with self._looking.connect() as connection:
            return any(
                used_counters(connection, NAME, pseudonym) < count
                for pseudonym, count in reader.records.items()
            )

    def flip(self, number: int) -> None:
        """Flip a bit of a stored body that was answered with."""
        if not self.told:
            return
        position = sorted(self.told)[number % len(self.told)]
        table = tables.entry
        of = (table.c.window == NAME) & (table.c.position == position)
        with self._looking.begin() as connection:
            body = bytearray(connection.execute(select(table.c.body).where(of)).scalar_one())
            bit = number % (8 * len(body))
            body[bit // 8] ^= 1 << bit % 8
            connection.execute(update(table).where(of).values(body=bytes(body)))
        self.lost.append(f"a bit of entry {position}")

    @property
    def _database(self) -> str:
        return self.settings.store.url.removeprefix("sqlite:///")

    # The life of a window

    def load(self) -> None:
        """Read the policy, once it is there."""
        self.policy = Policy.parse(self.window().policy)
        self.pseudonym_key = self.window().pseudonym_key

    def trace(self) -> str:
        """A digest of what happened, 64 hex digits: the same whenever a seed runs again."""
        told, records, roots, heads = (
            sorted(each.items()) for each in (self.told, self.records, self.roots, self.heads)
        )
        said = [each.replace(str(self.folder), "") for each in self.errors]
        files = [client.files for client in self.people.values()]
        ends = (self.time.now, self.lost, self.result)
        happened = (self.faults.happened, self.groups)
        seen = (happened, told, records, roots, heads, said, files, ends)
        return hashlib.sha256(repr(seen).encode()).hexdigest()

    def state(self) -> State:
        """The window's state, by the prover."""
        return self.window().state

    def until(self, *states: State, steps: int = 40) -> bool:
        """Let everybody do what is due until the window is in a state; return whether it is."""
        for _ in range(steps):
            self.start_all()
            if not self.live():
                continue
            if self.state() in states:
                return True
            self.drive()
            self.checkpoint()
            self.tick()
        return False

    def heal(self) -> None:
        """Start everything anew, and from now on nothing goes wrong."""
        self.faults.arm(())
        for party in (self.prover, self.verifier):
            self.end(party)
        for party in (self.prover, self.verifier):
            self.set_clock(party, 0)
        # What was attested with a clock that was ahead binds until that time.
        self.pass_to(self._latest + 1)
        self.to_prover.late, self.to_verifier.late = [], []
        self.start_all()
        self.watch()

    def open(self) -> None:
        """Register who is not yet, and open the window."""
        self.heal()
        for client in self.people.values():
            if not client.registered:
                self.register(client.name)
        self.checkpoint()
        assert self.policy is not None
        self.pass_to(1000 * self.policy.start)
        if not self.until(State.OPEN):
            raise Violation(f"the window does not open: {self.errors[-3:]}")

    def let_pass(self, seconds: int) -> None:
        """Let time pass, and everybody do what is due; a record is not left without a checkpoint.

        Args:
            seconds: below the merge delay.
        """
        if self._waits_since is not None and (
            self.time.now + 1000 * seconds > self._waits_since + 1000 * MERGE
        ):
            self.recover()
        self.time.now += 1000 * seconds
        self.drive()
        self.checkpoint()
        self.tick()

    def recover(self) -> None:
        """End the outage of everything: what was late is lost."""
        self.heal()
        self.checkpoint()

    def set_clock(self, party: Party, offset: int) -> None:
        """Set a party's clock, milliseconds from the true time."""
        wall = self.walls[party.name]
        self._latest = max(self._latest, self.time.now + wall.offset)
        wall.offset = offset

    def pass_to(self, milliseconds: int) -> None:
        """Let time pass."""
        self.time.now = max(self.time.now, milliseconds)

    def finish(self) -> None:
        """Heal everything, let the window end, and judge how it ended."""
        self.heal()
        if not self.lost:
            self._settle()
        self.checkpoint()
        self.check()
        assert self.policy is not None
        self.pass_to(1000 * self.policy.end)
        ended = self.until(State.CLOSED)
        self.drive()
        self.pass_to(1000 * self.policy.sampling_instant)
        ended = ended and self.until(State.CHALLENGED)
        self.drive()
        self.pass_to(self.policy.release_time)
        ended = ended and self.until(State.ARCHIVED)
        self.check()
        verdict = self.verdict() if ended else None
        self.result = None if verdict is None else verdict["result"]
        self._judge(verdict)

    def _settle(self) -> None:
        """Every client has what it asked for, once everything runs."""
        for _ in range(4):
            self.ask_together([each.name for each in self.people.values() if each.body is not None])
        waiting = [client.name for client in self.people.values() if client.body is not None]
        if waiting:
            raise Violation(f"{waiting} have no answer though all runs: {self.errors[-3:]}")

    def verdict(self) -> dict[str, Any]:
        """What the verifier signed."""
        envelope = json.loads(self.window().verdict or b"{}")
        predicate: dict[str, Any] = json.loads(b64_decode(envelope["payload"]))["predicate"]
        return predicate

    def _judge(self, verdict: dict[str, Any] | None) -> None:
        if not self.lost:
            if verdict is None:
                raise Violation(f"no verdict: {self.errors[-3:]}")
            if verdict["result"] != "PASS":
                wrong = [each for each in verdict["checks"] if each["status"] != "PASS"]
                raise Violation(f"an honest window has {verdict['result']}: {wrong}")
            return
        if verdict is not None and verdict["result"] == "PASS":
            raise Violation(f"PASS, though {self.lost} is lost")
        unusable = self.live() and self.window().unusable
        if not (unusable or self.errors or verdict):
            raise Violation(f"{self.lost} is lost, and nobody says so")


def build(folder: Path) -> House:
    """Make what every window begins with, always the same."""
    with seeded(random.Random("house")), World(folder).running() as world:
        world.start_all()
        assert world.service is not None
        world.service.create_window(NAME, SETTINGS)
        if not world.until(State.COUNTERSIGNED):
            raise AssertionError(world.errors)
        world.end(world.prover)
        world.end(world.verifier)
        parts = ("prover", "verifier/data", "verifier/secrets")
        return House(KeptFolder.of(folder, parts), world.keys, world.time.now)
