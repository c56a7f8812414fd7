"""The account's place in a window: its registration, checked against the log."""

from dataclasses import dataclass

from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.client.window import Window
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.receipt_check import AccountView
from ragaudit.ledger.messages.records import Registration
from ragaudit.ledger.messages.shown import RegistrationEntry, ShownAccount

__all__ = ["AccountState", "check_activated", "check_entry"]


@dataclass(frozen=True, slots=True)
class AccountState(ShownAccount):
    """An account as `GET /v1/windows/{w}/account` shows it.

    Slot and registration are None before registration.
    """

    def view(self, counter: int | None) -> AccountView:
        """Return what a record of this account must say.

        Args:
            counter: of the record; None if it is not known.
        """
        index = None if self.registration is None else self.registration.index
        return AccountView(self.tenant, self.pseudonym, self.slot, index, counter)

    def expected(self, window: Window) -> Registration:
        """Return the registration that the log must hold; its time, which the provider sets, is 0.

        Raises:
            StateConflict: the account is not registered.
        """
        if self.slot is None:
            raise StateConflict("the account is not registered", where=window.name)
        return Registration(
            window=window.name,
            pseudonym=self.pseudonym,
            tenant=self.tenant,
            slot=self.slot,
            anchor=self.anchor,
            dispute_key=self.dispute_key,
            time=0,
        )


def check_entry(entry: RegistrationEntry, window: Window, expected: Registration) -> bool:
    """Check a registration's log entry; return whether its inclusion could be checked too.

    Args:
        entry: as the provider shows it.
        window: in whose log it must be.
        expected: the registration that it must hold; its time is not compared.

    Raises:
        AnswerRejected: it says something else of this account, or is not in the log.
    """
    try:
        logged = entry.registration
        for name in ("window", "pseudonym", "tenant", "slot", "anchor", "dispute_key"):
            if getattr(logged, name) != getattr(expected, name):
                raise AnswerRejected("another one", where=f"registration, {name}")
        return entry.verify_inclusion(window.view.policy)
    except AnswerRejected:
        raise
    except RagauditError as error:
        raise AnswerRejected(error.what, where=f"registration, {error.where}") from error


def check_activated(entry: RegistrationEntry, window: Window, now: int) -> None:
    """Check that the registration is activated by what the verifier has released.

    Args:
        entry: checked before.
        window: its activations are those released so far.
        now: Unix milliseconds.

    Raises:
        StateConflict: no instant released so far activates it; it names the next one.
    """
    if activation_of(entry.index, window.view.covered_sizes) is None:
        activating = window.view.policy.activation_instants[:-1]
        raise StateConflict(
            "the registration is not activated",
            where=window.name,
            expected="registration before an activation instant of the policy",
            next_instant=next((instant for instant in activating if 1000 * instant > now), None),
        )
