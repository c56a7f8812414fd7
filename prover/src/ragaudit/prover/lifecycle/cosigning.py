"""Third parties beside the verifier: they cosign the logs of windows, and stamp their times.

Further cosigners are asked from time to time, all for one checkpoint. A time stamp (RFC 3161) is of
a window's opening and final checkpoint. Nothing waits for it: an authority is asked in a thread
beside, again until it has answered, and what it gives is verified and stored. What the policy asks
for goes to the verifier, which judges it.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import httpx
from ragaudit.encoding.errors import MalformedSettings, RagauditError
from ragaudit.encoding.text import hex_encode
from ragaudit.http import HttpClient, OddAnswer, trusted_authorities
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import Checkpoint, parse_checkpoint
from ragaudit.ledger.log.timestamps import (
    MAX_TOKEN_BYTES,
    REQUEST_TYPE,
    StampRequest,
    read_roots,
    verify_stamp,
)
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages.bodies import MAX_NOTES
from ragaudit.ledger.messages.evidence import TimeStamp
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.settings import StampSettings
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store, insert_new
from ragaudit.prover.store.states import FINAL
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.verifier.cosigners import AskedLog, Cosigners
from ragaudit.prover.window.windows import Window, Windows
from sqlalchemy import select

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_log = logging.getLogger(__name__)


class NoStamp(Exception):
    """Why an authority gave none, in words."""


class Stamping:
    """Asks the authorities of the settings. Safe to use from several threads.

    Attributes:
        every_seconds: how often to look.
    """

    def __init__(
        self,
        settings: StampSettings,
        store: Store,
        verifier: VerifierClient,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            settings: with one authority at least.
            store: keeps what they give.
            verifier: is given it.

        Raises:
            MalformedSettings: no roots, or files that hold no certificates.
        """
        self.every_seconds = settings.every_seconds
        self._roots = read_stamp_roots(settings)
        self._store = store
        self._verifier = verifier
        verify = trusted_authorities(settings.ca_file, "time_stamps.ca_file")
        self._authorities = {
            url: HttpClient(
                url,
                timeout=settings.timeout_seconds,
                most=MAX_TOKEN_BYTES,
                verify=verify,
                proxy=settings.proxy,
            )
            for url in settings.authorities
        }
        self._pool = ThreadPoolExecutor(len(self._authorities), "time stamps")
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}
        self._failures: dict[tuple[str, str], str] = {}
        self._given: set[tuple[str, int, str]] = set()

    @classmethod
    def of(
        cls,
        settings: StampSettings,
        store: Store,
        verifier: VerifierClient,
    ) -> Self | None:
        """Return what asks the authorities, None if the settings name none; raises as `__init__`.

        Args:
            settings, store, verifier: as of `__init__`.
        """
        return cls(settings, store, verifier) if settings.authorities else None

    def step(self, window: Window, checkpoints: CheckpointStore, *, give: bool) -> None:
        """Begin to ask whoever is idle and has not stamped; give the verifier what is new.

        Args:
            window: countersigned, as it was read.
            checkpoints: of its log.
            give: whether the verifier still takes stamps.

        Raises:
            VerifierUnreachable, VerifierRefused: not taken; the next step gives it again.
        """
        wanted = self._wanted(window, checkpoints)
        stored = self._stored(window.name)
        for url in self._authorities:
            for what, checkpoint in wanted.items():
                if (what, url) in stored:
                    continue
                with self._lock:
                    running = self._running.get(url)
                    if running is None or running.done():
                        ask = partial(self._ask, url, window.name, what, checkpoint)
                        self._running[url] = self._pool.submit(ask)
        if give and Policy.parse(window.policy).time_stamps is not None:
            self._give(window.name, stored)

    def status(self, name: str) -> dict[str, Any]:
        """Return which checkpoints are stamped by whom, and why who gave nothing.

        Args:
            name: of any window.
        """
        found: dict[str, Any] = {"opening": {}, "final": {}, "failures": {}}
        for (what, url), (size, not_after, _) in self._stored(name).items():
            found[what][url] = {"size": size, "time": not_after}
        with self._lock:
            found["failures"] = {
                url: why for (of, url), why in self._failures.items() if of == name
            }
        return found

    def forget(self, name: str) -> None:
        """Let go of what was noted of a window that is finished."""
        with self._lock:
            self._failures = {key: why for key, why in self._failures.items() if key[0] != name}
        self._given = {key for key in self._given if key[0] != name}

    def wait(self) -> None:
        """Wait until nobody is being asked."""
        with self._lock:
            running = list(self._running.values())
        wait(running)

    def close(self) -> None:
        """Break off what is under way and release the connections."""
        for http in self._authorities.values():
            http.close()
        self._pool.shutdown(cancel_futures=True)

    def _wanted(self, window: Window, checkpoints: CheckpointStore) -> dict[str, Checkpoint]:
        """The checkpoints to be stamped, as far as they exist."""
        found = {}
        # Only what the verifier has cosigned is shown to anybody (spec 6.2).
        opening = checkpoints.covering(0)
        if opening is not None:
            found["opening"] = opening.checkpoint
        if window.final_checkpoint is not None:
            found["final"] = parse_checkpoint(window.final_checkpoint).checkpoint
        return found

    def _stored(self, name: str) -> dict[tuple[str, str], tuple[int, int, bytes]]:
        """(which, URL) -> size, time, token of what was given."""
        columns = tables.time_stamp.c
        query = select(tables.time_stamp).where(columns.window == name)
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        return {(row.which, row.authority): (row.size, row.not_after, row.token) for row in rows}

    def _give(self, name: str, stored: dict[tuple[str, str], tuple[int, int, bytes]]) -> None:
        for (what, url), (size, _, token) in stored.items():
            key = (name, size, f"{what} {url}")
            if key not in self._given:
                self._verifier.put_time_stamps(name, [TimeStamp(size, token)])
                self._given.add(key)

    def _ask(self, url: str, name: str, what: str, checkpoint: Checkpoint) -> None:
        why: str | None = None
        try:
            request = StampRequest.of(checkpoint)
            token = self._send(url, request.body)
            stamp = verify_stamp(token, checkpoint, self._roots, nonce=request.nonce)
            row = {
                "window": name,
                "which": what,
                "authority": url,
                "size": checkpoint.head.size,
                "not_after": stamp.not_after,
                "token": token,
            }
            with self._store.write() as connection:
                insert_new(connection, tables.time_stamp, [row])
        except (NoStamp, RagauditError) as error:
            why = str(error)
        except Exception as error:
            why = type(error).__name__
            _log.exception("time stamps: %s", url)
        with self._lock:
            before = self._failures.pop((name, url), None)
            if why is not None:
                self._failures[name, url] = why
        if why is not None and why != before:
            _log.warning("window %s: %s gave no time stamp: %s", name, url, why)

    def _send(self, url: str, body: bytes) -> bytes:
        http, headers = self._authorities[url], {"Content-Type": REQUEST_TYPE}
        try:
            answer = http.request("POST", "", content=body, headers=headers)
        except OddAnswer:
            raise NoStamp("an answer that is packed or too long") from None
        except httpx.TimeoutException:
            raise NoStamp("no answer in time") from None
        except httpx.HTTPError as error:
            raise NoStamp(f"it cannot be reached: {type(error).__name__}") from None
        if not answer.is_success:
            raise NoStamp(f"it answered {answer.status_code}")
        return answer.content


def read_stamp_roots(settings: StampSettings) -> "tuple[Certificate, ...]":
    """Return the roots that vouch for the authorities of the settings.

    Raises:
        MalformedSettings: no such file is named, or it holds no certificates.
    """
    path = settings.roots_file
    if path is None:
        raise MalformedSettings("no roots", where="time_stamps.roots_file", expected="a PEM file")
    where = f"time_stamps.roots_file: {path}"
    try:
        return read_roots(path.read_bytes())
    except OSError as error:
        raise MalformedSettings(f"cannot read: {error.strerror}", where=where) from None
    except RagauditError as error:
        raise MalformedSettings(error.what, where=where, expected="PEM") from None


class CosigningRounds:
    """Has the checkpoints of windows cosigned by third parties, and says how far that got.

    Attributes:
        every_seconds: how often a round begins.
    """

    def __init__(
        self,
        windows: Windows,
        open_windows: OpenWindows,
        verifier: VerifierClient,
        clock: Callable[[], int],
        cosigners: Cosigners | None,
        stamping: Stamping | None = None,
    ) -> None:
        """Collect the parts.

        Args:
            windows: all of them.
            open_windows: with their logs.
            verifier: is given what has the quorum.
            clock: Unix milliseconds.
            cosigners: None if the settings name none.
            stamping: None if the settings name no time-stamping authority.
        """
        self._windows = windows
        self._open_windows = open_windows
        self._verifier = verifier
        self._clock = clock
        self._cosigners = cosigners
        self._given: dict[str, int] = {}  # size of the last checkpoint that the verifier was given
        self._stamping = stamping
        asked = [each.every_seconds for each in (cosigners, stamping) if each is not None]
        self.every_seconds = min(asked, default=0.0)

    @property
    def trust(self) -> TrustPolicy | None:
        """The further cosigners that the settings name."""
        return None if self._cosigners is None else self._cosigners.policy

    def step(self, name: str) -> bool:
        """Begin a round with the last checkpoint; return False once there is nothing to ask for.

        Args:
            name: of any window.
        """
        window = self._windows.get(name)
        if window.state in FINAL or window.unusable is not None:
            self._forget(name, Policy.parse(window.policy).origin)
            return False
        if self._cosigners is None and self._stamping is None:
            return False
        if window.countersignature is None:
            return True
        log = self._open_windows.get(name).log
        # Only what the verifier has cosigned is shown to anybody (spec 6.2).
        checkpoint = log.checkpoints.latest(cosignatures=1)
        if self._cosigners is not None and checkpoint is not None:
            try:
                self._cosigners.ask(AskedLog(log.entries, log.checkpoints), checkpoint)
            except RestoredBackup as error:
                self._open_windows.give_up(name, error)
                return False
        # From the sampling instant on the verifier takes nothing more.
        taken = self._clock() < 1000 * Policy.parse(window.policy).sampling_instant
        if self._stamping is not None:
            self._stamping.step(window, log.checkpoints, give=taken)
        if taken:
            self._give(name, window, log.checkpoints)
        return True

    def _forget(self, name: str, origin: str) -> None:
        self._given.pop(name, None)
        if self._cosigners is not None:
            self._cosigners.forget(origin)
        if self._stamping is not None:
            self._stamping.forget(name)

    def _give(self, name: str, window: Window, checkpoints: CheckpointStore) -> None:
        """Give the verifier what has the quorum since the last time; all of it after a restart.

        Raises:
            VerifierUnreachable, VerifierRefused: not taken; the next round gives it again.
        """
        if Policy.parse(window.policy).cosigners is None:
            return
        while found := checkpoints.reached(self._given.get(name, -1), MAX_NOTES):
            self._verifier.put_cosigned(name, [signed.encode() for signed in found])
            self._given[name] = found[-1].head.size

    def status(self, name: str) -> dict[str, Any] | None:
        """Return what is asked and what is reached; None if nothing is asked.

        Args:
            name: of any window.
        """
        if self._cosigners is None:
            return None
        policy = self._policy(name, self._cosigners.policy)
        status: dict[str, Any] = {
            "policy": hex_encode(policy.digest),
            "quorum": policy.quorum,
            "latest": None,
            "reached": None,
            "failures": {},
        }
        if self._windows.get(name).countersignature is None:
            return status
        checkpoints = self._open_windows.signed_log(name).checkpoints
        status["failures"] = self._cosigners.failures(checkpoints.log_key.name)
        for member, quorum in (("latest", False), ("reached", True)):
            signed = checkpoints.latest(cosignatures=1, quorum=quorum)
            if signed is not None:
                status[member] = policy.judge(signed.encode(), checkpoints.log_key).to_json()
        return status

    def _policy(self, name: str, asked: TrustPolicy) -> TrustPolicy:
        """Return whose quorum counts in a window: its policy says so, or else the settings."""
        terms = Policy.parse(self._windows.get(name).policy).cosigners
        return asked if terms is None else terms.trust

    def time_stamps(self, name: str) -> dict[str, Any] | None:
        """Return what is stamped; None if the settings name no time-stamping authority.

        Args:
            name: of any window.
        """
        return None if self._stamping is None else self._stamping.status(name)

    def close(self) -> None:
        """Break off what is under way."""
        if self._stamping is not None:
            self._stamping.close()
        if self._cosigners is not None:
            self._cosigners.close()
