"""Moving windows along their life, one step at a time, and having their logs signed (spec 8.2).

Every step reads the window's state from the store, does what that state asks for, and stores the
result; a step that fails because the verifier is away is simply repeated. So a process killed
anywhere continues where it was.

Signing is beside the queries: an entry is durable before, and no query waits for a cosignature.
When a tree grew, its log signs a checkpoint, it is cosigned, and receipts below it are complete.
"""

import logging
from collections.abc import Callable
from typing import Any

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.checkpoints import SignedCheckpoint
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.log.notes import NoteSignature
from ragaudit.ledger.messages.challenge import Activation, Challenge
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import ClocksDiffer
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.lifecycle.committing import Committer
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import FINAL, UNSIGNED, State, check_transition
from ragaudit.prover.verifier.client import SizeConflict, VerifierClient
from ragaudit.prover.window.charges import IN_HANDOVER
from ragaudit.prover.window.open_window import OpenWindow, WindowLog
from ragaudit.prover.window.records import entries
from ragaudit.prover.window.windows import Window, Windows
from ragaudit.serving.jobs.runner import Runner
from ragaudit.serving.rounds import RoundFinder

_log = logging.getLogger(__name__)

ENTRY_BATCH = 500
MAX_REASON = 500


class Releases:
    """Asks for what is due. Safe to use from several threads."""

    def __init__(
        self, verifier: VerifierClient, rounds: RoundFinder, clock: Callable[[], int]
    ) -> None:
        """Collect the parts; the clock gives Unix milliseconds."""
        self._verifier = verifier
        self._rounds = rounds
        self._clock = clock

    def activation(self, live: OpenWindow, number: int) -> Activation | None:
        """Return an activation, authenticated; None while it is not released.

        Args:
            number: a, 1..A-1.

        Raises:
            VerifierUnreachable, VerifierRefused: ask again.
            RejectedError: not the activation that it must be (`Activation.authenticate`).
            UnsupportedError: no library is installed that verifies its round.
        """
        if not self._due(live, number):
            return None
        activation = self._verifier.activation(live.name, number)
        if activation is None:
            self._show_round(live, number)
            return None
        # On the countersigned chain: the verifier cannot choose its share of the noise afterwards.
        activation.authenticate(live.policy, anchor=live.anchor, number=number)
        return activation

    def challenge(self, live: OpenWindow) -> Challenge | None:
        """Return the challenge, parsed only; None while there is none.

        Raises:
            VerifierUnreachable, VerifierRefused: ask again.
            MalformedError: not a challenge.
        """
        last = live.policy.activations
        if not self._due(live, last):
            return None
        challenge = self._verifier.challenge(live.name)
        if challenge is None:
            # The sample waits for every activation, also for those that no query needed.
            for a in range(live.released() + 1, last + 1):
                self._show_round(live, a)
        return challenge

    def _due(self, live: OpenWindow, a: int) -> bool:
        return self._clock() >= 1000 * live.policy.release_instant(a)

    def _show_round(self, live: OpenWindow, a: int) -> None:
        beacon, number = live.policy.beacon, live.policy.round_of(a)
        if beacon is None or number is None:
            return
        found = self._rounds.find(beacon.chain, number)
        if found is not None:
            self._verifier.put_round(live.name, found)


class Checkpointer:
    """Signs the trees of logs and has them cosigned. Safe to use from several threads."""

    def __init__(self, verifier: VerifierClient, clock: Callable[[], int]) -> None:
        self._verifier = verifier
        self._clock = clock

    def step(self, log: WindowLog) -> SignedCheckpoint:
        """Sign the tree as it is and have it cosigned; return the cosigned checkpoint.

        Raises:
            RestoredBackup: the cosigner has seen a larger tree than ours, or another one.
            VerifierUnreachable, VerifierRefused, ClocksDiffer: no cosignature this time.
        """
        with log.lock:
            return self._step(log)

    def compare(self, log: WindowLog) -> None:
        """Compare the log, once in a process, with the largest checkpoint that was cosigned.

        Raises:
            RestoredBackup: the log is behind that, or holds another history.
            VerifierUnreachable, VerifierRefused: the cosigner does not say.
            MalformedNote, NoteRejected: what it says is not signed by this log and itself.
        """
        if log.compared:
            return
        note = self._verifier.cosigned(log.entries.log_key.name)
        if note is not None:
            log.cosigned_time = max(log.cosigned_time, 1000 * log.checkpoints.compare(note))
        log.compared = True

    def _step(self, log: WindowLog) -> SignedCheckpoint:
        # Before this process signs anything: fence and database may have been restored together.
        self.compare(log)
        # An entry's time must not lie further than the policy's skew before the cosignature of a
        # checkpoint that lacks it (check 9). Times are taken under these locks, so every entry that
        # the head lacks is later than ``read``; a request that is older than the skew when it
        # arrives is not cosigned, and is made anew.
        with log.append_lock, log.entries.transaction() as connection:
            log.entries.lock(connection)
            read = self._clock()
        checkpoint = log.sign()
        cosigned = log.checkpoints.latest(cosignatures=1)
        if cosigned is not None and cosigned.head == checkpoint.head:
            return cosigned
        # Nor further than the skew after the first one that has it: a cosigner whose clock was set
        # back together with ours would confirm that.
        if read < log.stamped_time:
            raise ClocksDiffer(
                "the clock is behind a time in the log",
                where=log.entries.log_key.name,
                expected="no checkpoint until it has passed that",
            )
        old_size = cosigned.head.size if cosigned else 0
        answer = self._submit(log, checkpoint, old_size, read)
        if isinstance(answer, SizeConflict):
            if answer.size > log.entries.head().size:
                raise RestoredBackup(
                    "the cosigner has seen a larger tree",
                    where=log.entries.log_key.name,
                    expected=f"{answer.size} entries",
                )
            if answer.size > checkpoint.head.size:
                # This process stood still, and another one that leads since then signed more.
                return checkpoint
            # Once more with the cosigner's size; a second conflict is left to the next step.
            answer = self._submit(log, checkpoint, answer.size, read)
            if isinstance(answer, SizeConflict):
                return checkpoint
        cosigned = log.checkpoints.add_cosignatures(checkpoint.head.size, answer)
        # Unknown keys' lines were dropped, known ones verified.
        log.note_cosigned(cosigned)
        return cosigned

    def _submit(
        self, log: WindowLog, checkpoint: SignedCheckpoint, old_size: int, read: int
    ) -> tuple[NoteSignature, ...] | SizeConflict:
        proof = log.entries.consistency_proof(old_size, checkpoint.head.size)
        request = AddCheckpointRequest(old_size, proof, checkpoint.encode())
        return self._verifier.add_checkpoint(request, read)


class Driver:
    """The life cycle of windows. One call of `step` at a time per window."""

    def __init__(
        self,
        *,
        store: Store,
        windows: Windows,
        open_windows: OpenWindows,
        committer: Committer,
        checkpointer: Checkpointer,
        closing: Closing,
        challenges: ChallengeWorker,
        verifier: VerifierClient,
        runner: Runner,
        rounds: RoundFinder,
        clock: Callable[[], int],
        on_countersigned: Callable[[OpenWindow], None] | None = None,
    ) -> None:
        """Collect the parts.

        Args:
            rounds: finds those of the beacon.
            on_countersigned: called once with each window before its first activation.
        """
        self._on_countersigned = on_countersigned
        self._prepared: set[str] = set()  # windows with which it was called
        self._store = store
        self._windows = windows
        self._open_windows = open_windows
        self._committer = committer
        self._checkpointer = checkpointer
        self._closing = closing
        self._challenges = challenges
        self._runner = runner
        self._releases = Releases(verifier, rounds, clock)
        self._verifier = verifier
        self._clock = clock
        self._proven: set[str] = set()  # windows whose sampled records are proven
        self._looked_at: dict[str, int] = {}  # entries below were sent, or are records
        self.progress: dict[str, tuple[str, float]] = {}  # what a window is busy with, and how far
        self.failures: dict[str, str] = {}  # why the last step of a window failed, if it did
        self._steps: dict[State, Callable[[Window], bool]] = {
            State.DRAFT: self._commit,
            State.COMMITTED: self._countersign,
            State.COUNTERSIGNED: self._activate,
            State.ACTIVATED: self._open,
            State.OPEN: self._close,
            State.CLOSED: self._finish,
            State.CHALLENGED: self._respond,
        }

    def step(self, name: str) -> bool:
        """Do what a window's state asks for; return whether the state may have changed.

        Args:
            name: of any window; a finished one has no steps.

        Raises:
            VerifierUnreachable, StoreUnavailable: nothing is lost; call again.
            RagauditError: something must be repaired first; calling again is harmless.
        """
        self._store.hold()
        window = self._windows.get(name)
        if window.state in FINAL or window.unusable is not None:
            return False
        # From its first instant on nobody countersigns it: it would hold its documents for ever.
        if window.state in UNSIGNED and self._clock() >= 1000 * Policy.parse(window.policy).start:
            return self._end_late(window)
        return self._steps[window.state](window)

    def checkpoint(self, name: str) -> None:
        """Sign and cosign the log of a window if it grew.

        Args:
            name: of a countersigned window.

        Raises:
            VerifierUnreachable, VerifierRefused: no cosignature this time.
        """
        window = self._windows.get(name)
        live = self._open_windows.get(name)
        # A checkpoint of a restored database would contradict one that was cosigned (check 6).
        if window.unusable is not None or window.handed_over:
            return
        try:
            self._checkpointer.step(live.log)
        except RestoredBackup as error:
            self._open_windows.give_up(name, error)

    def compare(self, name: str) -> None:
        """Compare the log of a countersigned window with what was cosigned, as far as V says."""
        self._open_windows.compare(name, self._checkpointer.compare)

    def abandon(self, name: str, reason: str) -> None:
        """End a window that is not countersigned; its documents are free again.

        Args:
            reason: shown to the operator, cut at MAX_REASON characters.

        Raises:
            UnknownWindow: there is none of this name.
            WrongState: it is countersigned: the verifier expects its log; or it is finished.
        """
        with self._store.write() as connection:
            window = self._windows.get(name, connection)
            check_transition(name, window.state, State.ABANDONED)
            self._windows.advance(
                connection, name, window.state, State.ABANDONED, unusable=reason[:MAX_REASON]
            )
        self.forget(name)
        _log.warning("window %s is abandoned: %s", name, reason)

    def forget(self, name: str) -> None:
        """Let go of what the work for a finished window left behind."""
        for known in (self.progress, self.failures, self._looked_at):
            known.pop(name, None)
        for names in (self._prepared, self._proven):
            names.discard(name)
        self._runner.withdraw(name)

    def _end_late(self, window: Window) -> bool:
        """End a window that was not countersigned in time.

        The verifier's signed refusal says so to everybody; without one, the window is abandoned,
        so that its documents do not stay frozen.
        """
        try:
            return self._steps[window.state](window)
        except RagauditError as error:
            self.abandon(window.name, f"not countersigned before its start; {error}")
            return True

    def _commit(self, window: Window) -> bool:
        def notify(tenant: str, share: float) -> None:
            self.progress[window.name] = (f"index of {tenant}", share)

        self._committer.commit(window, notify)
        self.progress.pop(window.name, None)
        return True

    def _countersign(self, window: Window) -> bool:
        self._committer.countersign(window)
        return True

    def _activate(self, window: Window) -> bool:
        live = self._open_windows.get(window.name)
        if self._on_countersigned is not None and window.name not in self._prepared:
            self._on_countersigned(live)
            self._prepared.add(window.name)
        self._send_entries(window)
        return self._next_activation(live, State.COUNTERSIGNED, State.ACTIVATED)

    def _open(self, window: Window) -> bool:
        live = self._open_windows.get(window.name)
        self._send_entries(window)
        if self._clock() < 1000 * live.policy.start:
            return False
        self._move(window.name, State.ACTIVATED, State.OPEN)
        return True

    def _close(self, window: Window) -> bool:
        live = self._open_windows.get(window.name)
        self._send_entries(window)
        if window.stopped or self._clock() >= 1000 * live.policy.end:
            # Under the log's lock: no answer, of whichever process, is between its check of the
            # state and its commit.
            with live.committing(self._store) as transaction:
                self._windows.advance(transaction.connection, window.name, State.OPEN, State.CLOSED)
            _log.info("window %s is %s", window.name, State.CLOSED)
            return True
        return self._next_activation(live)

    def _finish(self, window: Window) -> bool:
        live = self._open_windows.get(window.name)
        if not window.handed_over:
            if not self._closing.finish_log(live):
                return False
            # Without further lines: it goes into the next window's policy (spec 5.1).
            final = live.log.checkpoints.demanded(self._checkpointer.step(live.log))
            if final.head != live.log.entries.head():
                return True  # the head is not cosigned yet: the next step asks again
            # Stored first: a handover that is repeated after a crash names the same checkpoint.
            self._windows.note(window.name, final_checkpoint=final.encode())
            self._send_entries(window)
            self._closing.hand_over(live, final)
            self._windows.note(window.name, handed_over=True)
            # Nothing is appended any more.
            live.fence.close()
        return self._take_challenge(live)

    def _take_challenge(self, live: OpenWindow) -> bool:
        message = self._releases.challenge(live)
        if message is None:
            return False
        # Before it is stored, and again before anything is opened (`_prepare`).
        self._challenges.check(live, message)
        self._move(live.name, State.CLOSED, State.CHALLENGED, challenge=message.encode())
        return True

    def _respond(self, window: Window) -> bool:
        live = self._open_windows.get(window.name)
        assert window.challenge is not None
        challenge = Challenge.parse(window.challenge)
        if window.name not in self._proven:
            self._prepare(live, challenge)
        if self._clock() < live.policy.release_time:
            return False
        self._challenges.deliver(live)
        verdict = self._verifier.verdict(window.name)
        if verdict is None:
            return False
        self._move(window.name, State.CHALLENGED, State.ARCHIVED, verdict=verdict)
        self._proven.discard(window.name)
        self._looked_at.pop(window.name, None)
        return True

    def _prepare(self, live: OpenWindow, challenge: Challenge) -> None:
        """Prove what is sampled; the proofs wait for the policy's time of release.

        The moment of their handover then says nothing of how long each took.
        """
        positions = self._challenges.check(live, challenge)
        rows = sum(map(len, challenge.sampled_rows.values()))
        label = f"{len(positions)} proofs" + (f", {rows} rows" if rows else "")

        def notify(share: float) -> None:
            self.progress[live.name] = (label, share)

        self._challenges.prepare(live, positions, notify, challenge.sampled_rows)
        self.progress.pop(live.name, None)
        self._proven.add(live.name)
        if self._clock() > live.policy.release_time:
            _log.warning("window %s: its proofs took longer than release_seconds", live.name)

    def _next_activation(
        self, live: OpenWindow, before: State | None = None, after: State | None = None
    ) -> bool:
        """Fetch the next activation that is due; move the state with it if one is given."""
        number = len(self._windows.activations(live.name)) + 1
        if number >= live.policy.activations:
            return False
        activation = self._releases.activation(live, number)
        if activation is None:
            return False
        with self._store.write() as connection:
            self._windows.add_activation(connection, live.name, number, activation.encode())
            if before is not None and after is not None:
                self._windows.advance(connection, live.name, before, after)
        # Durable first: after a restart the same queries must get the same noise keys.
        live.activate(activation)
        return True

    def _send_entries(self, window: Window) -> None:
        """Hand over the entries but those of questions that the verifier does not have yet."""
        start = max(window.entries_sent, self._looked_at.get(window.name, 0))
        public, end = [], start
        with self._store.read() as connection:
            for entry in entries(connection, window.name, start):
                end = entry.index + 1
                # These follow after the window, all of them in one handover (spec 8.3).
                if entry.kind not in IN_HANDOVER:
                    public.append(entry)
        for at in range(0, len(public), ENTRY_BATCH):
            self._verifier.put_entries(window.name, public[at : at + ENTRY_BATCH])
        if public:
            self._windows.note(window.name, entries_sent=end)
        self._looked_at[window.name] = end

    def _move(self, name: str, before: State, after: State, **values: Any) -> None:
        with self._store.write() as connection:
            self._windows.advance(connection, name, before, after, **values)
        _log.info("window %s is %s", name, after)
