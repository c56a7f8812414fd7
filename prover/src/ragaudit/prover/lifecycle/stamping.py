"""Time stamps of a window's opening and final checkpoint, by third parties (RFC 3161).

Nothing waits for them: an authority is asked in a thread beside, again until it has answered, and
what it gives is verified, stored, and given to the verifier where the policy asks for it.
"""

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Self

import httpx
from cryptography.x509 import Certificate
from ragaudit.encoding.errors import MalformedSettings, RagauditError
from ragaudit.http import HttpClient, OddAnswer, trusted_authorities
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import Checkpoint, parse_checkpoint
from ragaudit.ledger.log.timestamps import (
    MAX_TOKEN_BYTES,
    REQUEST_TYPE,
    StampRequest,
    read_roots,
    verify_stamp,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.time_stamps import TimeStamp
from ragaudit.prover.stamp_settings import StampSettings
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.inserting import insert_new
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.windows import Window
from sqlalchemy import select

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


def read_stamp_roots(settings: StampSettings) -> tuple[Certificate, ...]:
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
