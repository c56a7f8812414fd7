"""What anybody, or a pinned provider, throws at a real service: memory, disk and log are bounded.

The bounds follow from the limits that docs/operations.md and docs/regulator.md state.
"""

from __future__ import annotations

import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from prover_process import STEPPING, Setting
from ragaudit.encoding.json_structure import BYTES_FOR_A_BYTE
from ragaudit.encoding.tagged import enc
from ragaudit.lab.scenario.policy import END
from ragaudit.serving.bodies import ANONYMOUS_BYTES
from ragaudit.verifier.settings import Limits
from service_window import ServiceWindow
from verifier_process import ProcessScenario, VerifierProcess, now

MIB = 2**20


@dataclass(frozen=True)
class Taken:
    """What something cost a process, in bytes: the most at a time, and what stayed.

    Attributes:
        memory: by which its largest resident set exceeded the one before.
        disk: by which files exceeded what they had, at their largest; ``kept``: afterwards.
        log: written to it.
    """

    memory: int
    disk: int
    kept: int
    log: int


WATCHED = "from ragaudit.serving import server; server.keep_private = lambda: True"
"""A prelude: a service that its own user may watch, as otherwise nobody may."""


class Footprint:
    """A process that is watched.

    Args:
        pid: of one that was started with `WATCHED`.
        folders: where it may write; a file that it holds open counts wherever it is.
    """

    def __init__(self, pid: int, log: Path, folders: Sequence[Path]) -> None:
        self._proc = Path(f"/proc/{pid}")
        self._log = log
        self._folders = folders

    def memory(self, name: str = "VmRSS") -> int:
        """The resident set (or "VmHWM", the largest so far)."""
        for line in (self._proc / "status").read_text().splitlines():
            if line.startswith(name):
                return 1024 * int(line.split()[1])
        raise AssertionError(name)

    def disk(self) -> int:
        """Bytes in its folders, and in files that it holds and nobody else can see."""
        sizes = {}
        for folder in self._folders:
            for path in folder.rglob("*"):
                with suppress(OSError):
                    found = path.stat()
                    sizes[found.st_dev, found.st_ino] = found.st_size if path.is_file() else 0
        for path in (self._proc / "fd").iterdir():
            with suppress(OSError):
                if "(deleted)" in str(path.readlink()):
                    found = path.stat()
                    sizes[found.st_dev, found.st_ino] = found.st_size
        return sum(sizes.values())

    @contextmanager
    def watching(self) -> Iterator[list[Taken]]:
        """Watch while the block runs; the list holds the result after it."""
        result: list[Taken] = []
        (self._proc / "clear_refs").write_text("5")  # the largest begins anew
        memory, disk, log = self.memory(), self.disk(), self._log.stat().st_size
        most, done = [disk], threading.Event()

        def sample() -> None:
            while not done.wait(0.02):
                most.append(max(most.pop(), self.disk()))

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            yield result
        finally:
            done.set()
            sampler.join()
        after = self.disk()
        result.append(
            Taken(
                memory=self.memory("VmHWM") - memory,
                disk=max(most[0], after) - disk,
                kept=after - disk,
                log=self._log.stat().st_size - log,
            )
        )


pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SLACK = 48 * MIB  # buffers of connections and threads, and pages that an allocator keeps
SMALL = 2 * MIB  # of disk: a database's journal
LINES = 4096  # of log
HALF_OPEN = 1200
HANG_UPS = 300
UPLOAD = 200 * MIB
BASE = "/v1/windows/w1"
LIMITS = Limits()
NOBODYS = 496  # connections of nobody, each with a body that only accounts may send
UPSERT = "/api/v2/tenants/default_tenant/databases/default_database/collections/docs/upsert"


class Target:
    """A service of its own process, and raw connections to it."""

    def __init__(self, url: str, footprint: Footprint) -> None:
        self.url = url
        self.footprint = footprint
        parsed = httpx.URL(url)
        self.address = (parsed.host, parsed.port)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=60)

    def head(self, method: str, path: str, **headers: str) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.address[0]}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    def upload(self, head: bytes, size: int, *, chunked: bool) -> int:
        """Send a head and ``size`` bytes of body as far as they are taken; the status."""
        piece = bytes(2**16)
        framed = b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece
        with self.connect() as peer:
            with suppress(OSError):  # it answers and hangs up before it has read everything
                peer.sendall(head)
                for _ in range(size // len(piece)):
                    peer.sendall(framed)
                if chunked:
                    peer.sendall(b"0\r\n\r\n")
            return status(peer)

    def watch(self, attack: Callable[[], object]) -> Taken:
        """What the service takes under an attack; it serves afterwards."""
        with self.footprint.watching() as taken:
            attack()
            assert httpx.get(f"{self.url}/healthz", timeout=60, trust_env=False).is_success
        print(f"{taken[0]}")
        return taken[0]

    def half_open(self) -> None:
        """Hold more connections than it serves, each with half a head, while others ask."""
        with ExitStack() as held:
            for _ in range(HALF_OPEN):
                peer = held.enter_context(self.connect())
                with suppress(OSError):
                    peer.sendall(b"GET /healthz HTTP/1.1\r\nHo")
            for _ in range(3):
                assert httpx.get(f"{self.url}/healthz", timeout=60, trust_env=False).is_success

    def hang_up(self) -> None:
        """Send half of a body and reset the connection, again and again."""
        head = self.head("POST", f"{BASE}/receipts", Content_Length="100000")
        for _ in range(HANG_UPS):
            with self.connect() as peer:
                peer.sendall(head + bytes(50_000))
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def status(peer: socket.socket) -> int:
    """The status of the reply; 0 if the connection was cut off without one."""
    try:
        line = peer.recv(64)
    except OSError:
        return 0
    return int(line.split()[1]) if line else 0


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessScenario]:
    """A verifier at the end of a countersigned window whose log has a handful of entries."""
    folder = tmp_path_factory.mktemp("verifier")
    process = VerifierProcess(folder)
    scenario = ProcessScenario(process)
    try:
        process.start()
        window = ServiceWindow(scenario)  # type: ignore[arg-type]
        window.open()
        for number in range(8):
            window.tree.append(b"entry %d" % number)
        window.checkpoint(0)
        process.stop()
        scenario.ahead = 1000 * (END + 1) - now()
        offset = folder / "offset"
        offset.write_text(str(scenario.ahead))
        process.prelude = f"{WATCHED}\n{STEPPING % str(offset)}"
        process.start()
        yield scenario
    finally:
        scenario.close()
        process.stop()


@pytest.fixture(scope="module")
def verifier(scenario: ProcessScenario) -> Target:
    process = scenario.process
    assert process.process is not None
    return Target(process.url, Footprint(process.process.pid, process.log, [process.settings.data]))


def test_an_upload_that_nobody_signed(verifier: Target) -> None:
    head = verifier.head("PUT", f"{BASE}/records", Transfer_Encoding="chunked")
    statuses = []
    taken = verifier.watch(lambda: statuses.append(verifier.upload(head, UPLOAD, chunked=True)))
    assert set(statuses) <= {401, 0}
    assert taken.disk < SMALL and taken.kept < SMALL and taken.memory < SLACK
    assert taken.log < LINES


@pytest.mark.parametrize("chunked", [False, True])
def test_json_of_63_mib_by_nobody(verifier: Target, chunked: bool) -> None:
    size = 63 * MIB
    named = {"Transfer_Encoding": "chunked"} if chunked else {"Content_Length": str(size)}
    head = verifier.head("POST", f"{BASE}/receipts", **named)
    statuses = []
    taken = verifier.watch(lambda: statuses.append(verifier.upload(head, size, chunked=chunked)))
    assert set(statuses) <= {413, 0}
    assert taken.disk < SMALL and taken.kept < SMALL
    assert taken.memory < SLACK and taken.log < LINES


def test_the_largest_json_that_nobody_may_send_sixteen_times_at_once(verifier: Target) -> None:
    # Of what is not refused it takes the most: nearly 16 bytes for each.
    count = (LIMITS.anonymous_bytes - 64) // 25
    body = b'{"receipts":[' + b",".join([b'{"":"%s"}' % (b"a" * 17)] * count) + b"]}"
    assert LIMITS.anonymous_bytes - 128 < len(body) <= LIMITS.anonymous_bytes
    senders = 16

    def send(_: int) -> int:
        return httpx.post(
            f"{verifier.url}{BASE}/receipts", content=body, timeout=300, trust_env=False
        ).status_code

    def attack() -> None:
        with ThreadPoolExecutor(senders) as pool:
            assert set(pool.map(send, range(senders))) == {400}

    taken = verifier.watch(attack)
    parsing = LIMITS.anonymous_at_once * BYTES_FOR_A_BYTE * LIMITS.anonymous_bytes
    assert taken.memory < parsing + 2 * ANONYMOUS_BYTES + SLACK
    assert taken.disk < SMALL and taken.kept < SMALL
    assert taken.log < LINES


def test_noise_for_an_index(verifier: Target, scenario: ProcessScenario) -> None:
    """A pinned provider's: on disk while it arrives, and nothing of it afterwards."""
    noise = secrets.token_bytes(UPLOAD)
    statuses = []
    taken = verifier.watch(
        lambda: statuses.append(
            scenario.send("PUT", f"{BASE}/tenants/acme/versions/1", noise).status_code
        )
    )
    assert statuses == [400]
    assert taken.disk < UPLOAD + SMALL and taken.kept < SMALL and taken.memory < SLACK
    assert taken.log < LINES


def test_a_flooded_handover(verifier: Target, scenario: ProcessScenario) -> None:
    """The log has eight entries: what follows from it is read, and no more."""
    frame = enc("ragaudit/v1/handover", 1, "registration", bytes(32), bytes(3000), None, None)
    flood = (len(frame).to_bytes(8, "little") + frame) * (UPLOAD // len(frame))
    target = f"{BASE}/records"
    signed = scenario.headers("PUT", target, flood)
    statuses = []

    def attack() -> None:
        for headers in (signed, {**signed, "Transfer-Encoding": "chunked"}):
            named = {name.replace("-", "_"): value for name, value in headers.items()}
            chunked = "Transfer-Encoding" in headers
            if not chunked:
                named["Content_Length"] = str(len(flood))
            head = verifier.head("PUT", target, **named)
            statuses.append(verifier.upload(head, len(flood), chunked=chunked))

    taken = verifier.watch(attack)
    assert set(statuses) <= {413, 0}
    assert taken.disk < 2 * SMALL and taken.kept < SMALL and taken.memory < SLACK
    assert taken.log < LINES


def test_half_open_connections_and_clients_that_hang_up(verifier: Target) -> None:
    for attack in (verifier.half_open, verifier.hang_up):
        taken = verifier.watch(attack)
        assert taken.memory < SLACK and taken.disk < SMALL and taken.log < LINES


def test_bodies_that_never_end(verifier: Target) -> None:
    """One room for all of them, nothing on disk; a buffer of each on its way."""
    count, sent = 300, 2**20 - 2**16
    head = verifier.head("POST", f"{BASE}/receipts", Content_Length=str(2**20))

    def attack() -> None:
        with ExitStack() as held:
            for _ in range(count):
                peer = held.enter_context(verifier.connect())
                with suppress(OSError):
                    peer.sendall(head + bytes(sent))
            assert httpx.get(f"{verifier.url}/healthz", timeout=60, trust_env=False).is_success

    taken = verifier.watch(attack)
    assert taken.memory < ANONYMOUS_BYTES + count * 2**18 + SLACK
    assert taken.disk < SMALL
    assert taken.log < LINES


def test_questions_about_a_window(verifier: Target) -> None:
    def attack() -> None:
        with httpx.Client(base_url=verifier.url, trust_env=False, timeout=60) as http:
            for _ in range(300):
                assert http.get(BASE).status_code == 200

    taken = verifier.watch(attack)
    assert taken.memory < SLACK and taken.disk < SMALL and taken.log < LINES


@pytest.fixture
def prover(tmp_path: Path) -> Iterator[Target]:
    made = Setting(tmp_path)
    made.prover.prelude = WATCHED
    made.prover.environment["RAGAUDIT_PROVER__SURFACES__ENABLED"] = '["chroma"]'
    made.prover.start()
    assert made.prover.process is not None
    yield Target(
        str(made.prover.http.base_url),
        Footprint(made.prover.process.pid, made.prover.log, [made.made.settings.parent]),
    )
    made.stop()


def test_floods_of_a_prover(prover: Target) -> None:
    for size, chunked in ((UPLOAD, True), (63 * MIB, False)):
        named = {"Transfer_Encoding": "chunked"} if chunked else {"Content_Length": str(size)}
        head = prover.head("POST", f"{BASE}/query", **named)
        statuses: list[int] = []
        taken = prover.watch(
            lambda head=head, size=size, chunked=chunked, statuses=statuses: statuses.append(  # type: ignore[misc]
                prover.upload(head, size, chunked=chunked)
            )
        )
        assert set(statuses) <= {401, 413, 0}
        assert taken.memory < SLACK and taken.disk < SMALL and taken.log < LINES
    for attack in (prover.half_open, prover.hang_up):
        taken = prover.watch(attack)
        assert taken.memory < SLACK and taken.disk < SMALL and taken.log < LINES


def test_bodies_of_nobody_that_only_accounts_may_send(prover: Target) -> None:
    """Nothing is read of them, announced or in chunks, with a key that nobody has or without."""
    size = 4 * MIB
    sent: list[int] = []
    for chunked in (False, True):
        named = {"Transfer_Encoding": "chunked"} if chunked else {"Content_Length": str(size)}
        head = prover.head("POST", UPSERT, X_Chroma_Token="guessed", **named)

        def attack(head: bytes = head, chunked: bool = chunked) -> None:
            piece = b"10000\r\n" + bytes(2**16) + b"\r\n" if chunked else bytes(2**16)
            with ExitStack() as held:
                peers = [held.enter_context(prover.connect()) for _ in range(NOBODYS)]
                for peer in peers:
                    peer.sendall(head)
                    peer.setblocking(False)
                for _ in range(size // len(piece)):
                    for peer in peers:
                        with suppress(OSError):  # the buffers on its way are full
                            peer.send(piece)
                for peer in peers:
                    peer.settimeout(60)
                    sent.append(status(peer))

        taken = prover.watch(attack)
        assert taken.memory < ANONYMOUS_BYTES + NOBODYS * 2**18 + SLACK
        assert taken.disk < SMALL and taken.log < LINES
    assert set(sent) <= {401, 0}
