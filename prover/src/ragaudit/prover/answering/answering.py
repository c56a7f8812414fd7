"""Answering: the way of a plain account's query through the stages of `query` (spec 8.7)."""

from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.query import Logged, Promised, Query
from ragaudit.prover.answering.stage import Context
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.receipts import LoggedRecord
from ragaudit.prover.window.registrations import Registered


class Answering:
    """Answers queries of open windows. Safe to use from several threads."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def query(self, live: OpenWindow, account: Account) -> Query:
        """Return the first stage of a query; call it under the lock of the account."""
        return self.context.stages.query(self.context, live, account)

    def answer(self, live: OpenWindow, account: Account, request: Request) -> ReceiptFile:
        """Answer a plain account; returns the receipt file.

        Raises:
            MalformedQuery, MalformedError: the query, K or filter, or the query's embedding.
            QueryRefused: budget, closed or unavailable; signed.
            Conflict: the account is not registered, or is anchored.
            StoreUnavailable, BackendUnavailable: nothing was answered; try again.
        """
        with live.account_lock(account.name):
            admitted = self.query(live, account).admit(anchored=False)
            logged = admitted.describe(request).select().log()
        return logged.answer()

    def repeated(self, live: OpenWindow, registered: Registered, logged: LoggedRecord) -> Logged:
        """Return the last stage of a record that is logged already."""
        record, stages = Record.decode(logged.body), self.context.stages
        return stages.selected(
            self.context, live, registered, record, logged.openings, logged.salt
        ).again(logged)

    def claimed(self, live: OpenWindow, registered: Registered, promise: Promise) -> Promised:
        """Return the stage of a promise that was claimed: it is kept after the window's end."""
        return self.context.stages.promised(self.context, live, registered, promise)
