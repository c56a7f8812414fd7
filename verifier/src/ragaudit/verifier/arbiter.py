"""The arbiter: judges receipt files that the verifier must not see (docs/spec 5.10, 8.9).

It has a key and a store of its own, and no place into which a noise key could be put: it is given
receipt files and answers with signed findings, which say a step and no position. Of the files it
keeps digests only, so that neither its store nor the verifier's ever holds the noise of a record
and the positions that were selected, also where one organisation runs both.

Over HTTP an account brings a case, and takes the finding to the verifier itself. Nothing but the
two judges of a case is behind it, the provider's signature on the file and the verifier's on the
window: so it asks nobody who brings one, and calls out to nobody.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError, UnavailableError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.messages.bodies import CaseBody, FindingBody
from ragaudit.ledger.messages.disputes import Finding, file_digest
from ragaudit.ledger.messages.receipt_check import GroupOperations, WindowView
from ragaudit.ledger.messages.receipts import PublicPart
from ragaudit.ledger.messages.shown import ShownWindow
from ragaudit.serving.application import application
from ragaudit.serving.bodies import anonymous_room, receive_anonymous
from ragaudit.serving.problems import documented
from ragaudit.verifier import keys as key_files
from ragaudit.verifier.procedure.statement_checks import judge
from ragaudit.verifier.service.bodies import described, parse

KEY_FILE = "arbiter.key"
FINDINGS_FOLDER = "findings"
MAX_KEPT = 1000
"""Findings of one log that are kept. A provider can sign files without end: beyond these, each is
judged anew whenever it is brought, and costs no room and nobody else's time."""


class Arbiter:
    """An arbiter's key and store, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Read the key.

        Args:
            folder: the arbiter's own, with its key and its findings.

        Raises:
            MalformedError: no key there, or others can read it.
            RefusedError: the folder holds the secrets of a verifier.
        """
        _keep_apart(folder)
        self._key = PrivateKey.from_seed(key_files.read_seed(folder / KEY_FILE))
        self._store = folder / FINDINGS_FOLDER

    @classmethod
    def create(cls, folder: Path) -> "Arbiter":
        """Return an arbiter with a fresh key, written into ``folder``.

        Args:
            folder: where the verifier has no secrets; it is made where there is none.

        Raises:
            RefusedError: there is a key, or the secrets of a verifier.
        """
        _keep_apart(folder)
        key_files.write_seed(folder / KEY_FILE, PrivateKey.generate())
        return cls(folder)

    @property
    def public(self) -> PublicKey:
        """What a policy names as ``keys.arbiter``."""
        return self._key.public

    def judge(
        self,
        document: dict[str, Any],
        view: WindowView,
        operations: GroupOperations,
        clock: Callable[[], int],
    ) -> tuple[Finding, PublicPart]:
        """Judge a receipt file; the same finding for the same file, as long as it is kept.

        Args:
            document: the receipt file, a JSON value; nothing of it is kept but its digest.
            view: the window, authenticated (`read_window`).
            operations: what opens commitments: an engine.
            clock: Unix milliseconds.

        Returns:
            The finding, and the file's public part, which goes with it to the verifier.

        Raises:
            RejectedError: the policy names another arbiter.
            UnavailableError: the finding cannot be kept.
            RagauditError: the provider did not sign the file, part for part.
        """
        if view.policy.keys.arbiter != self.public:
            raise RejectedError("the policy names another arbiter", where="keys.arbiter")
        judgement = judge(document, view, operations)
        public, digest = judgement.public, file_digest(document)
        path = self._store / view.policy.provider / f"{view.policy.window}.jsonl"
        with _locked(path):
            earlier = list(_read(path))
            # The same case gets the same finding: nobody can bring it until the answer suits.
            for finding in earlier:
                if (finding.index, finding.file_digest) == (public.index, digest):
                    return finding, public
            finding = Finding(
                origin=public.origin,
                index=public.index,
                answer_digest=public.answer_digest,
                file_digest=digest,
                step=judgement.step,
                time=clock(),
            ).signed(self._key)
            if len(earlier) < MAX_KEPT:
                _append(path, finding.encode())
        return finding, public

    def findings(self) -> Iterator[Finding]:
        """Return the findings that are kept, log by log, each log's in order."""
        for path in sorted(self._store.glob("*/*.jsonl")):
            yield from _read(path)


def read_window(value: Any, verifier: PublicKey) -> WindowView:
    """Return a window as the provider shows it, believed as far as it is countersigned.

    Args:
        value: the provider's answer to `GET /v1/windows/{w}`, a JSON value.
        verifier: the verifier's statement key, from elsewhere.

    Raises:
        MalformedError: not a window, or ``verifier`` is another key of its policy.
        RejectedError: not countersigned by ``verifier``, or a version that is not in the log.
    """
    window = ShownWindow.from_json(value)
    # Else a provider could countersign a policy and an opening of its own for the arbiter's eyes.
    if window.policy.keys.verifier != verifier:
        keys = window.policy.keys
        kind = MalformedError if keys.role(verifier) else RejectedError  # a wrong key, or window
        raise kind(keys.mistaken(verifier), where="keys.verifier")
    _, opening = window.countersigned()
    versions, epochs = window.logged_versions(), window.logged_epochs()
    return WindowView(window.policy, opening, versions=versions, epochs=epochs)


def _keep_apart(folder: Path) -> None:
    """RefusedError for a folder with a verifier's secrets: the roles have stores of their own."""
    for name in (key_files.VERIFIER, key_files.ACTIVATION):
        if (folder / name).exists():
            what, where = "this folder holds a verifier's secrets", str(folder / name)
            raise RefusedError(what, where=where, expected="a folder of the arbiter's own")


def _read(path: Path) -> Iterator[Finding]:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            yield Finding.from_json(canonical_json.loads(line))
        except MalformedError as error:
            where = f"{path}:{number}"
            raise MalformedError(error.what, where=where, expected="a finding") from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One judge of a log at a time, also among processes: a file has one finding."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The findings file is the lock: it is never replaced, only added to.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnavailableError(f"findings cannot be kept: {reason}", where=str(path)) from None


def _append(path: Path, line: bytes) -> None:
    """Add a line durably, or nothing of it."""
    before = path.stat().st_size
    try:
        with path.open("ab", buffering=0) as file:
            if file.write(line + b"\n") != len(line) + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
    except OSError:
        # Half a line would make every later reading of this log's findings fail.
        os.truncate(path, before)
        raise


MAX_CASE_BYTES = 2**24
_AT_ONCE = 2  # parsed JSON takes up to 16 times its bytes


def create_app(
    arbiter: Arbiter, verifier: PublicKey, operations: GroupOperations, clock: Callable[[], int]
) -> FastAPI:
    """Return the arbiter's HTTP application.

    Args:
        verifier: the statement key of the verifier whose windows are judged.
        clock: Unix milliseconds.
    """
    app = application("ragaudit arbiter")
    at_once, room = asyncio.Semaphore(_AT_ONCE), anonymous_room()

    async def received(request: Request) -> AsyncIterator[bytes]:
        async for place in receive_anonymous(request, MAX_CASE_BYTES, room):
            async with at_once:
                yield place.settle()

    @app.get("/healthz")
    def health() -> dict[str, str]:
        """Say that the service answers."""
        return {"status": "ok"}

    @app.get("/v1/keys")
    def keys() -> dict[str, str]:
        """Show the keys that a policy must name for this arbiter to judge its window."""
        return {"arbiter": hex_encode(arbiter.public.raw), "verifier": hex_encode(verifier.raw)}

    @app.post(
        "/v1/findings",
        openapi_extra=described(CaseBody),
        responses=documented(400, 413, 422, 503),
    )
    def find(body: Annotated[bytes, Depends(received)]) -> dict[str, Any]:
        """Judge a receipt file; the reply is what the verifier takes at `POST .../findings`."""
        case = parse(CaseBody, body)
        view = read_window(case.window, verifier)
        finding, public = arbiter.judge(case.file, view, operations, clock)
        return FindingBody(finding.to_json(), public.to_json()).to_json()

    return app
