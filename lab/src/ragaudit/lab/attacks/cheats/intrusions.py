"""VERIFIER: what a pinned provider does to the verifier, or through it to another provider.

Nothing of this reaches an audit: the service repels it, and says why. What it keeps of an intruder
follows from the policy, the log and the quotas (docs/spec/08-services.md §8.3).
"""

import secrets
from collections.abc import Iterator
from typing import Final

from ragaudit.encoding.tagged import enc
from ragaudit.lab.attacks.cheat import RIVAL, TAKEN, Attempt, Guard, Intruder, Intrusion
from ragaudit.lab.scenario.services import PROVIDER, WINDOW
from ragaudit.ledger.messages.handover import Entry, write_handover
from ragaudit.prover.window.records import entries
from ragaudit.verifier.service import (
    handover,
    providers,
    registration,
    tables,
    windows,
)
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.settings import MIB, Limits
from sqlalchemy import select

OTHERS: Final = "w2"  # a window that is the honest provider's

# 64 bytes each, so one index stays below the MiB that it may have in these scenarios.
_NOISE_ROWS = 10_000
_NO_BOUND = 2**31


def index_of_noise(window: str, rows: int) -> bytes:
    """Return bytes with the lengths of an index commitment (§5.4); nothing in them is one.

    Args:
        window: that they name.
        rows: N; 64 bytes each.
    """
    noise = secrets.token_bytes(32 * rows)
    form = ("ragaudit/v1/index/commitment", window, "acme", 1, rows, 4)
    return enc(*form, noise, None, noise, b"no argument")


_FORM = Guard(registration, "check_index_lengths", lambda *_, **__: None)
_BYTES = Guard(providers, "bytes_left", lambda *_: _NO_BOUND)
_WINDOWS = Guard(providers, "demand_window", lambda *_: None)
_ENTRIES = Guard(handover, "_most_entries", lambda *_: _NO_BOUND)
_NAMES = Guard(windows, "of", lambda _provider, name: Origin(name))


@Intrusion(
    "noise-stored-as-an-index", "VERIFIER", guards=(_FORM,), reason="not an index commitment"
)
class StoresNoise(Intruder):
    """Uploads megabytes of noise as an index commitment.

    Repelled by the form of an index commitment, which is read before anything is kept.
    """

    def intrude(self) -> Attempt:
        provider = self.as_provider()
        provider.register(self.policy(OTHERS))
        answer = provider.put_index(OTHERS, secrets.token_bytes(4 * MIB))
        return Attempt(answer == TAKEN, answer)


@Intrusion(
    "store-filled-before-the-opening", "VERIFIER", guards=(_BYTES,), reason="413 body too long"
)
class FillsTheStore(Intruder):
    """Uploads noise in the form of index commitments until the disk is full.

    It does so for one window after the other.

    Repelled by the bound on the bytes of a provider's windows that have no countersignature.
    """

    limits = Limits(waiting_bytes=2 * MIB, index_bytes=MIB)  # soon full

    def intrude(self) -> Attempt:
        answer, most = "", 2 * self.limits.waiting_bytes // (64 * _NOISE_ROWS)
        for number in range(most):
            answer = self.waste(f"noise-{number}")
            if answer != TAKEN:
                break
        return Attempt(self.kept() > self.limits.waiting_bytes, answer)

    def waste(self, window: str) -> str:
        """Register one more window of noise and return what the verifier says to its upload.

        Args:
            window: a new name.
        """
        provider = self.as_provider()
        provider.register(self.policy(window))
        return provider.put_index(window, index_of_noise(window, _NOISE_ROWS))

    def kept(self) -> int:
        """Return the bytes of index commitments of noise that the verifier keeps."""
        with self.verifier.service.database.read() as connection:
            mine = tables.window.c.name.startswith("noise-")
            found = connection.execute(select(tables.window.c.origin).where(mine)).scalars()
            return sum(
                item.size
                for origin in found.all()
                for item in windows.list_items(connection, Origin(origin), "public/index/")
            )


@Intrusion(
    "store-filled-with-refused-windows", "VERIFIER", guards=(_BYTES,), reason="413 body too long"
)
class FillsTheStoreWithRefusals(FillsTheStore):
    """Has windows of noise refused, day by day, whose evidence fills the disk.

    It comes back when the quota of new windows is free again; the evidence stays.

    Repelled by the same bound: the bytes of refused windows count for good (§8.3).
    """

    def waste(self, window: str) -> str:
        answer = super().waste(window)
        self.as_provider().open_falsely(window)
        # By then the quota of new windows is free again, and only what is kept for good still
        # counts.
        self.clock.now += 2 * providers.DAY_MS
        return answer


@Intrusion(
    "windows-without-end",
    "VERIFIER",
    guards=(_WINDOWS,),
    reason="429 16 windows are not countersigned",
)
class RegistersWithoutEnd(Intruder):
    """Registers windows and never opens one.

    Repelled by the bound on a provider's windows that wait for a countersignature.
    """

    def intrude(self) -> Attempt:
        answer, number = TAKEN, 0
        while answer == TAKEN and number < 2 * self.limits.waiting_windows:
            number += 1
            answer = self.register(f"w-{number}")
        return Attempt(answer == TAKEN, answer)

    def register(self, window: str) -> str:
        """Return what the verifier says to one more window.

        Args:
            window: a new name.
        """
        return self.as_provider().register(self.policy(window))


@Intrusion(
    "refused-windows-without-end",
    "VERIFIER",
    guards=(_WINDOWS,),
    reason="429 6 windows registered in 24 hours",
)
class RegistersAndIsRefused(RegistersWithoutEnd):
    """Registers windows and has each refused at once.

    So none of them waits.

    Repelled by the bound on a provider's new windows in 24 hours.
    """

    limits = Limits(windows_per_day=6)

    def register(self, window: str) -> str:
        answer = super().register(window)
        if answer == TAKEN:
            self.as_provider().put_index(window, index_of_noise(window, 1))
            self.as_provider().open_falsely(window)
        return answer


@Intrusion(
    "handover-of-more-than-the-log",
    "VERIFIER",
    guards=(_ENTRIES,),
    reason="more entries than the log has",
)
class LogsMoreThanTheLog(Intruder):
    """Hands over entries beyond the last cosigned checkpoint.

    Repelled by their number: no more are read than the largest cosigned checkpoint has.

    Attributes:
        count, size: how many entries are made up, and the bytes of each body.
    """

    count, size = 4, 100

    def intrude(self) -> Attempt:
        policy = self.prover.policy
        self.clock.at(policy.activation_instants[0])
        self.prover.drive()
        self.prover.checkpoint()
        self.clock.at(policy.end)
        answer = self.as_provider().put_records(WINDOW, write_handover(self.entries()))
        return Attempt(answer == TAKEN, answer)

    def entries(self) -> Iterator[Entry]:
        """Yield the log's entries, and well-formed ones after them."""
        number = 0
        with self.prover.service.store.read() as connection:
            for entry in entries(connection, WINDOW):
                yield Entry(number, entry.kind, entry.salt, entry.body)
                number += 1
        for more in range(number, number + self.count):
            yield Entry(more, "registration", bytes(32), bytes(self.size))


@Intrusion("handover-flooded", "VERIFIER", guards=(_ENTRIES,), reason="413 body too long")
class FloodsTheHandover(LogsMoreThanTheLog):
    """Hands over megabytes of entries for a log of a handful.

    There are thousands of them.
    """

    count, size = 3000, 2000


@Intrusion(
    "name-of-anothers-window-taken",
    "VERIFIER",
    guards=(_NAMES,),
    reason="to provider.example: taken",
)
class TakesAName(Intruder):
    """Registers the window's name that another provider is going to use.

    Repelled because a window's name is its provider's own (§8.3).
    """

    def intrude(self) -> Attempt:
        self.as_rival().register(self.policy(OTHERS, RIVAL))
        answer = self.as_provider().register(self.policy(OTHERS))
        return Attempt(answer != TAKEN, f"to {PROVIDER}: {answer}")


@Intrusion(
    "index-for-anothers-window", "VERIFIER", guards=(_NAMES,), reason="ragaudit/w2: no such window"
)
class WritesIntoAnothersWindow(Intruder):
    """Uploads an index for another provider's window before its provider does.

    The provider's own is then refused.

    Repelled because a provider's call is about that provider's window only (§8.3).
    """

    def intrude(self) -> Attempt:
        self.as_provider().register(self.policy(OTHERS))
        answer = self.as_rival().put_index(OTHERS, index_of_noise(OTHERS, 1))
        return Attempt(answer == TAKEN, answer)
