"""Finding rounds of a randomness beacon: sources that are asked in turn (docs/spec 8.4).

A round has one signature, and it is verified wherever it comes from: a source can withhold it or
show something else, and then the next one is asked. Nobody waits for a source: it is asked in a
thread beside, and who needs the round asks again.
"""

import logging
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Self

import httpx
from pydantic import Field, field_validator
from ragaudit.encoding.errors import (
    MalformedError,
    MalformedSettings,
    RagauditError,
    UnavailableError,
)
from ragaudit.http import HttpClient, LongAnswer, OddAnswer, trusted_authorities
from ragaudit.ledger.messages.beacon import (
    MAX_ANSWER_BYTES,
    QUICKNET,
    BeaconChain,
    BeaconRound,
    Engine,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.settings import Section

__all__ = ["BeaconSettings", "RoundFinder"]

MAX_FILE_BYTES = 16 * 2**20  # of a file with rounds
KEPT = 4096  # rounds in memory: those that were needed last
_WEB = ("http://", "https://")

_log = logging.getLogger(__name__)


class BeaconSettings(Section):
    """Where rounds of the beacon come from, and of which chain.

    Attributes:
        sources: asked in turn. A URL is the address of drand's API, without the chain's hash; a
            path is a folder with a file ``<round>.json`` for each round, or a file with a round in
            each line, as that API shows them.
        chain_file: the chain as drand's API shows it (``/<hash>/info``); quicknet without one.
        every_seconds: how often the sources are asked again for a round that none had.
        timeout_seconds: timeout of each phase of a call.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        proxy: URL of the HTTP proxy through which the sources are reached.
    """

    sources: tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...] = Field(
        default=(), max_length=8
    )
    chain_file: Path | None = None
    every_seconds: float = Field(default=1.0, ge=0.1, le=3600)
    timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    ca_file: Path | None = None
    proxy: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] | None = None

    @field_validator("sources")
    @classmethod
    def _without_secrets(cls, sources: tuple[str, ...]) -> tuple[str, ...]:
        for source in sources:
            if "://" in source and (not source.startswith(_WEB) or "@" in source):
                raise ValueError("not a source: http(s)://host/path without a password, or a path")
        return sources

    def beside(self, folder: Path) -> Self:
        """Return the settings with paths relative to a folder.

        Args:
            folder: of the settings' file.
        """
        sources = tuple(
            each if each.startswith(_WEB) else str(folder / each) for each in self.sources
        )
        files = {
            name: None if path is None else folder / path
            for name, path in (("chain_file", self.chain_file), ("ca_file", self.ca_file))
        }
        return self.model_copy(update={"sources": sources, **files})

    def chain(self) -> BeaconChain:
        """Return the chain.

        Raises:
            MalformedSettings: the file cannot be read, or holds no chain.
        """
        if self.chain_file is None:
            return QUICKNET
        where = f"beacon.chain_file: {self.chain_file}"
        try:
            return BeaconChain.parse(_read(self.chain_file, MAX_ANSWER_BYTES))
        except OSError as error:
            raise MalformedSettings(f"cannot read: {error.strerror}", where=where) from None
        except RagauditError as error:
            raise MalformedSettings(error.what, where=where, expected="drand's /info") from None


class NoRound(Exception):
    """Why a source gave none, in words."""


class RoundFinder:
    """Asks the sources of the settings. Safe to use from several threads.

    Attributes:
        chain: of the settings.
    """

    def __init__(self, settings: BeaconSettings, *, engine: Engine | None = None) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            settings: where rounds come from.
            engine: computes the pairing; the fastest that is installed if None.

        Raises:
            MalformedSettings: no chain, or no certificates, in the files.
        """
        self.chain = settings.chain()
        self._settings, self._engine = settings, engine
        verify = trusted_authorities(settings.ca_file, "beacon.ca_file")
        self._sources = {source: _reader(source, settings, verify) for source in settings.sources}
        self._pool = ThreadPoolExecutor(1, "beacon")
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[bytes, int], BeaconRound] = OrderedDict()
        self._asking: Future[None] | None = None
        self._again: dict[tuple[bytes, int], float] = {}  # not before, on the monotonic clock
        self._failures: dict[str, str] = {}

    def find(self, chain: BeaconChain, number: int) -> BeaconRound | None:
        """Return a verified round, or None and have the sources asked for it.

        Args:
            chain: of the policy.
            number: of the round, which must be due.
        """
        key = (chain.hash, number)
        with self._lock:
            found = self._found.get(key)
            idle = self._asking is None or self._asking.done()
            if found is None and self._sources and idle:
                now = time.monotonic()
                if now >= self._again.get(key, now):
                    waiting = {each: at for each, at in self._again.items() if at > now}
                    self._again = {**waiting, key: now + self._settings.every_seconds}
                    self._asking = self._pool.submit(self._ask, chain, number)
        return found

    def offer(self, chain: BeaconChain, shown: BeaconRound) -> None:
        """Take a round that somebody shows.

        Args:
            chain: of the policy.
            shown: of any number.

        Raises:
            RejectedError: it does not verify.
        """
        shown.verify(chain, shown.round, engine=self._engine)
        with self._lock:
            self._found[chain.hash, shown.round] = shown
            while len(self._found) > KEPT:
                self._found.popitem(last=False)

    def status(self, policy: Policy, next_release: int, now: int) -> dict[str, Any] | None:
        """Return which round a window waits for, since when; None without a beacon.

        Args:
            policy: of the window.
            next_release: the first a, up to A, that is not released; A + 1 after all of them.
            now: Unix milliseconds.

        Returns:
            JSON; ``since`` is when the round was due, Unix seconds.
        """
        if policy.beacon is None:
            return None
        waits = None
        if next_release <= policy.activations:
            due, number = policy.release_instant(next_release), policy.round_of(next_release)
            if now >= 1000 * due:
                waits = {"round": number, "since": due}
        rounds = [policy.round_of(a) for a in range(1, min(next_release, policy.activations + 1))]
        with self._lock:
            failures = dict(self._failures)
        chain = policy.beacon.chain
        return {
            "chain": chain.hash.hex(),
            "name": chain.name,
            "mixed_in": rounds,
            "waits_for": waits,
            "failures": failures,
        }

    def check(self, now: int) -> None:
        """Check that each source shows a round of the chain that is due.

        Args:
            now: Unix milliseconds.

        Raises:
            UnavailableError: a source does not; it is named.
        """
        # The last round may be on its way.
        number = max(1, self.chain.first_from(now // 1000) - 1 - 30 // self.chain.period)
        for source in self._sources:
            try:
                self._read_round(source, self.chain, number)
            except NoRound as error:
                raise UnavailableError(
                    str(error), where=f"beacon.sources: {source}", expected=f"round {number}"
                ) from None

    def wait(self) -> None:
        """Wait until no source is being asked."""
        with self._lock:
            asking = self._asking
        if asking is not None:
            asking.result()

    def close(self) -> None:
        """Ask nobody any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, chain: BeaconChain, number: int) -> None:
        for source in self._sources:
            try:
                self.offer(chain, self._read_round(source, chain, number))
            except NoRound as error:
                self._note(source, f"round {number}: {error}")
                continue
            self._note(source, None)
            return

    def _read_round(self, source: str, chain: BeaconChain, number: int) -> BeaconRound:
        """The verified round as a source shows it; NoRound says why there is none."""
        try:
            found = self._sources[source](chain, number)
            found.verify(chain, number, engine=self._engine)
        except RagauditError as error:
            raise NoRound(f"refused: {error}") from None
        except OddAnswer as error:
            what = "too long" if isinstance(error, LongAnswer) else "packed"
            raise NoRound(f"refused: {what}") from None
        except httpx.RemoteProtocolError:
            raise NoRound("it cannot be read: not HTTP, or not JSON to its end") from None
        except (httpx.HTTPError, OSError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise NoRound(f"it cannot be read: {why}") from None
        return found

    def _note(self, source: str, why: str | None) -> None:
        with self._lock:
            before = self._failures.pop(source, None)
            if why is not None:
                self._failures[source] = why
        if why is not None and why != before:
            _log.warning("beacon: %s: %s", source, why)


def _reader(
    source: str, settings: BeaconSettings, verify: ssl.SSLContext | None
) -> Callable[[BeaconChain, int], BeaconRound]:
    if not source.startswith(_WEB):
        return lambda _chain, number: _of_file(Path(source), number)
    http = HttpClient(
        source,
        timeout=settings.timeout_seconds,
        most=MAX_ANSWER_BYTES,
        verify=verify,
        proxy=settings.proxy,
    )

    def read(chain: BeaconChain, number: int) -> BeaconRound:
        answer = http.request("GET", f"{chain.hash.hex()}/public/{number}")
        if answer.status_code != HTTPStatus.OK:
            raise NoRound(f"it answered {answer.status_code}")
        return BeaconRound.parse(answer.content)

    return read


def _of_file(path: Path, number: int) -> BeaconRound:
    if path.is_dir():
        return BeaconRound.parse(_read(path / f"{number}.json", MAX_ANSWER_BYTES))
    for line in _read(path, MAX_FILE_BYTES).splitlines():
        found = BeaconRound.parse(line)
        if found.round == number:
            return found
    raise MalformedError("no such round", where=str(path), expected=f"round {number}")


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise MalformedError("too long", where=str(path), expected=f"at most {most} bytes")
    return data
