"""What is known of an account beside a receipt that is checked apart from its client."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragaudit.client.checker import embedding
from ragaudit.client.window import AccountState, Window, check_entry
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import AccountView, Embed

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """What a check has beside receipt and window; each part may be missing.

    Attributes:
        account: as the provider shows it; its registration is checked against the log.
        anchor: of the account's nonce chain, where there is no ``account``.
        promise: the one that the record keeps.
        embedder: the committed one.
    """

    account: AccountState | None = None
    anchor: bytes | None = None
    promise: Promise | None = None
    embedder: "Embedder | None" = field(default=None, repr=False)

    @property
    def chain(self) -> bytes | None:
        """The anchor of the account's nonce chain, as far as it is known."""
        return self.anchor if self.account is None else self.account.anchor

    def view(self, window: Window) -> AccountView:
        """Return what entries of the account must say, as far as the log shows its registration."""
        # An empty view compares nothing: the steps that need the account are "not done".
        if self.account is None:
            return AccountView()
        view, entry = self.account.view(None), self.account.registration
        # Without an inclusion proof the provider may still log another registration.
        if entry is not None and check_entry(entry, window, self.account.expected(window)):
            return view
        return AccountView(view.tenant, view.pseudonym, view.slot, None, None)

    def embed(self, window: Window) -> Embed | None:
        """Return what repeats quantised embeddings, if the embedder is at hand."""
        if self.embedder is None:
            return None
        return embedding(self.embedder, window.view.policy)
