"""One account in one window: the window's signature, the registration, the nonce chain."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.client.registration import AccountState, parse_account
from ragaudit.client.state import StateDirectory
from ragaudit.client.transport import Service
from ragaudit.client.window import Pins, Window, authenticate
from ragaudit.ledger.chains import NonceChain, activation_of

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = ["POLL_SECONDS", "Session"]

POLL_SECONDS = 0.25
_REGISTRATION_SECONDS = 30.0
_SERVED = ("countersigned", "activated", "open")


class Session:
    """What a client knows and keeps between its queries.

    Attributes:
        provider: calls with the account's API key.
        embedder: recomputes embeddings, or None.
        state: durable state of an anchored account, None before registration and for plain ones.
        chain: the nonce chain that goes with it.
    """

    def __init__(
        self,
        provider: Service,
        pins: Pins,
        *,
        window: str | None,
        embedder: "Embedder | None",
        state_root: Path | None,
    ) -> None:
        self.provider = provider
        self.embedder = embedder
        self.state: StateDirectory | None = None
        self.chain: NonceChain | None = None
        self._pins = pins
        self._wanted = window
        self._state_root = state_root
        self._window: Window | None = None
        self._account: AccountState | None = None
        self._checked = False

    def close(self) -> None:
        """Close the connections and release the state directory."""
        self.provider.close()
        if self.state is not None:
            self.state.close()
            self.state = None

    @property
    def anchored(self) -> bool:
        return self._state_root is not None

    @property
    def window(self) -> Window:
        """The window, its countersignature checked; fetched once."""
        if self._window is None:
            self._window = self._fetch_window()
        return self._window

    def path(self, rest: str) -> str:
        """The path of a call in this window."""
        return f"/v1/windows/{self.window.name}/{rest}"

    def account(self) -> AccountState:
        """What the provider says of the account now."""
        return parse_account(self.provider.get(self.path("account")))

    def register(self) -> AccountState:
        """Register once; the seed of an anchored account's chain is durable before its anchor is
        sent. Raises StateConflict and AnswerRejected as `Client.register`."""
        if self._account is not None:
            return self._account
        account = self.account()
        anchor = self._prepare_chain(account)
        if account.slot is None:
            body = {"anchor": None if anchor is None else anchor.hex()}
            self.provider.post(self.path("registration"), body, repeatable=True)
            account = self.account()
        if account.slot is None:
            raise AnswerRejected("the account is not registered after all", where=self.window.name)
        if account.anchor != anchor:
            raise StateConflict(
                "registered with another nonce chain" if account.anchor else "registered as plain",
                where=self.window.name,
                expected="the state directory of the registration, or another account",
            )
        self._account = account
        return account

    def ready(self) -> AccountState:
        """The account, registered, included in the log and activated; checked once."""
        account = self.register()
        if not self._checked:
            self._check_embedder()
            self._account = account = self._included(account)
            if self.state is not None:
                self._check_counter(self.state, account)
            self._checked = True
        return account

    def _fetch_window(self) -> Window:
        if self._wanted is not None:
            return authenticate(self.provider.get(f"/v1/windows/{self._wanted}"), self._pins)
        listed = self.provider.get("/v1/windows")
        windows = listed["windows"] if isinstance(listed, dict) else listed
        served = [each for each in windows if each.get("state") in _SERVED]
        if len(served) != 1:
            names = ", ".join(str(each.get("window")) for each in served) or "none"
            raise StateConflict(f"windows being served: {names}", expected="name one: window=")
        return authenticate(served[0], self._pins)

    def _prepare_chain(self, account: AccountState) -> bytes | None:
        """Open the state directory; return the anchor to register with, None for plain."""
        if self._state_root is None:
            return None
        policy = self.window.view.policy
        if self.state is None:
            folder = self._state_root / policy.window / account.pseudonym.hex()[:16]
            self.state = StateDirectory(folder)
        chain = self.state.chain()
        if chain is None:
            if account.slot is not None:
                raise StateConflict(
                    "the account is registered, and this state directory has no chain for it",
                    where=str(self.state.directory),
                    expected="the directory of the registration, or another account",
                )
            length = policy.queries_per_account
            chain = self.state.start_chain(policy.origin, account.pseudonym, length)
        if (chain.origin, chain.pseudonym) != (policy.origin, account.pseudonym):
            raise StateConflict(
                "the nonce chain is of another account", where=str(self.state.directory)
            )
        self.chain = NonceChain(policy.window, chain.pseudonym, chain.seed, chain.length)
        return self.chain.anchor

    def _included(self, account: AccountState) -> AccountState:
        """The account with an included, activated registration."""
        deadline = time.monotonic() + _REGISTRATION_SECONDS
        while True:
            entry = account.registration
            if entry is None:
                raise AnswerRejected("no registration entry", where=self.window.name)
            if entry.verify(self.window, account.expected(self.window)):
                break
            if time.monotonic() > deadline:
                raise AnswerRejected(
                    "no inclusion proof of the registration", expected="a cosigned checkpoint"
                )
            time.sleep(POLL_SECONDS)
            account = self.account()
        if activation_of(entry.index, self.window.view.covered_sizes) is None:
            self._window = self._fetch_window()  # released since the first look, perhaps
        entry.check_activated(self.window)
        return account

    def _check_counter(self, state: StateDirectory, account: AccountState) -> None:
        counter = state.next_counter()
        pending = state.pending() is not None
        if not counter <= account.counter <= counter + pending:
            raise StateConflict(
                f"the provider has logged {account.counter} records, this client {counter}",
                where=str(state.directory),
                expected="a state directory that was not restored; else register another account",
            )

    def _check_embedder(self) -> None:
        if self.embedder is None:
            return
        if self.embedder.manifest().digest() != self.window.view.opening.embedder_digest:
            raise StateConflict(
                f"{self.embedder.name} is not the committed embedder",
                where=self.window.name,
                expected=str(self.window.embedder.get("name")),
            )
