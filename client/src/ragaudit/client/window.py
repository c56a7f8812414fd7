"""A window, and an account in it, as the provider shows them.

The window is believed only as far as the verifier has signed it, the account's registration only
as far as the log holds it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ragaudit.client.errors import AnswerRejected, StateConflict, WrongPin
from ragaudit.encoding.errors import MalformedError, RagauditError, UnsupportedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.receipt_check import AccountView, WindowView
from ragaudit.ledger.messages.shown import RegistrationEntry, ShownAccount, ShownWindow

__all__ = [
    "SERVED",
    "AccountState",
    "Pins",
    "Window",
    "authenticate",
    "check_activated",
    "check_entry",
    "check_mine",
    "parsed",
]

SERVED = ("countersigned", "activated", "open")
T = TypeVar("T")
_MINE = (
    "the state directory of the registration; or the dispute key that the provider was given "
    "before the window registered the account; or another account"
)


@dataclass(frozen=True)
class Pins:
    """What the account knows from elsewhere; one of the two is enough to trust a window.

    Attributes:
        verifier: the verifier's key (`keys.verifier`), which signs countersignatures.
        policy_digest: of the policy that the account agreed to.
    """

    verifier: PublicKey | None = None
    policy_digest: bytes | None = None

    @property
    def none(self) -> bool:
        """Return whether nothing is pinned: then whoever answers can claim to be any window."""
        return self.verifier is None and self.policy_digest is None

    def demanded(self, expected: str, *, allow_unpinned: bool) -> "Pins":
        """Return these pins.

        Args:
            expected: how pins are given here, for the error.
            allow_unpinned: whether to go without.

        Raises:
            MalformedError: there are none, and ``allow_unpinned`` is false.
        """
        # Provider and verifier in one could show a window that nobody audits (spec 8.1).
        if self.none and not allow_unpinned:
            raise MalformedError(
                "nothing is pinned: whoever answers could show a window of its own",
                expected=expected,
            )
        return self


@dataclass(frozen=True)
class Window:
    """A window whose countersignature, opening, embedder and activations were checked.

    Attributes:
        name, state: as the provider says.
        view: policy, opening and activations for receipt checks.
        embedder: C_emb's manifest, as JSON.
        pinned: whether a pin was compared.
        shown: all of it, as the provider shows it.
    """

    name: str
    state: str
    view: WindowView
    embedder: Mapping[str, Any]
    pinned: bool
    shown: ShownWindow = field(repr=False)

    @property
    def origin(self) -> str:
        """Return the origin of the window's log, unique among all providers."""
        return self.view.policy.origin


def authenticate(shown: ShownWindow, pins: Pins) -> Window:
    """Return the window of `GET /v1/windows/{w}`, believed as far as the verifier signed it.

    Args:
        shown: the reply.
        pins: what is known from elsewhere.

    Raises:
        StateConflict: not countersigned yet.
        WrongPin: another key or policy than pinned.
        AnswerRejected: a bad signature, an opening or embedder other than countersigned.
        MalformedError: its opening's body is none.
        UnsupportedError: the policy names a beacon, and no library for its rounds is installed.
    """
    try:
        return _authenticate(shown, pins)
    except (AnswerRejected, StateConflict, MalformedError, UnsupportedError):
        raise  # what this side lacks, as a library for the beacon's rounds, accuses nobody
    except RagauditError as error:
        where = f"window, {error.where}" if error.where else "window"
        raise AnswerRejected(error.what, where=where, expected=error.expected) from error


def _authenticate(shown: ShownWindow, pins: Pins) -> Window:
    policy = shown.policy
    if shown.countersignature is None:
        # As honest as any window before its countersignature, or while the verifier is away.
        raise StateConflict(
            "the window is not countersigned",
            where=shown.window,
            expected="the verifier's signature",
        )
    # Pins first: a window that somebody else set up is well signed, by its own verifier.
    if pins.verifier not in (None, policy.keys.verifier):
        assert pins.verifier is not None
        raise WrongPin(
            policy.keys.mistaken(pins.verifier), where="verifier key",
            expected="the statement key of the verifier, as it gives it out itself",
        )  # fmt: skip
    if pins.policy_digest not in (None, policy.digest):
        raise WrongPin(
            f"the policy of window {shown.window} of {policy.provider} is another one",
            where="policy digest", expected="that of the policy that was agreed to",
        )  # fmt: skip
    signed, opening = shown.authenticate()
    # Signed later, it would not say that the noise key was fixed before the first query.
    if signed.time >= 1000 * min(policy.activation_instants[0], policy.start):
        raise AnswerRejected("countersigned too late", where="countersignature")
    # In the order of a, each on the countersigned chain: `authenticate` has checked that.
    covered = [activation.covered_size for activation in shown.activations]
    view = WindowView(policy, opening, covered, shown.logged_versions(), shown.logged_epochs())
    return Window(shown.window, shown.state, view, shown.embedder.to_json(), not pins.none, shown)


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

        Args:
            window: in whose log it is.

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


def check_mine(account: AccountState, anchor: bytes | None, key: bytes | None, window: str) -> None:
    """Check that an account is registered with what its client holds.

    Args:
        account: as the provider shows it, registered.
        anchor: of the client's nonce chain, 32 bytes; None for a plain account.
        key: its public dispute key, 32 bytes; None for a client that signs nothing, whoever does.
        window: for the error.

    Raises:
        StateConflict: somebody else registered it with this API key, or from another directory; or
            the provider did, without the key that it was given.
    """
    if account.anchor != anchor:
        what = "registered with another nonce chain" if account.anchor else "registered as plain"
    elif key is None or account.dispute_key == key:
        return
    elif account.dispute_key is None:
        what = "registered without a dispute key: nobody could dispute its answers"
    else:
        what = "registered with another dispute key"
    raise StateConflict(what, where=window, expected=_MINE)


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
            # Another anchor or key here, and the provider could answer in the account's name.
            if getattr(logged, name) != getattr(expected, name):
                raise AnswerRejected("another one", where=f"registration, {name}")
        if entry.proof is None:
            return False
        entry.verify_inclusion(window.view.policy)
        return True
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
        policy = window.view.policy
        activating = [policy.release_instant(a) for a in range(1, policy.activations)]
        raise StateConflict(
            "the registration is not activated",
            where=window.name,
            expected="registration before an activation instant of the policy",
            next_instant=next((instant for instant in activating if 1000 * instant > now), None),
        )


def parsed(read: Callable[[Any], T], value: Any) -> T:
    """Return what ``read`` makes of a reply.

    Raises:
        AnswerRejected: also where the reply is malformed.
        WrongPin: as ``read``.
    """
    try:
        return read(value)
    except WrongPin:
        raise
    except MalformedError as error:
        raise AnswerRejected(error.what, where=error.where, expected=error.expected) from error
