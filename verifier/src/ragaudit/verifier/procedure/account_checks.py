"""Check 22: how many records each account has, as the log states it before it closes."""

from ragaudit.ledger.messages.account_index import AccountIndex, Accounts
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Findings


def account_index(context: Context) -> AccountIndex:
    """Return the account index that registrations and records give (spec 5.14).

    Raises:
        MissingInput: they cannot be read; their checks say why.
    """
    registered, records = context.registrations.pseudonyms, context.records.listed()
    return AccountIndex.build(context.policy.window, registered, records)


def check_accounts(context: Context, found: Findings) -> None:
    """22: the entry before the close commits to every account's records, sorted and whole."""
    # Where the last entry is no close, nobody knows which one must be the index: check 5 says so.
    _ = context.close
    entry = context.log.before_last
    if entry is None or entry.kind != Accounts.KIND:
        found.fault("the entry before the close is no account index")
        return
    stated, where = Accounts.parse(entry.body), f"entry {entry.index}"
    if stated.window != context.policy.window:
        found.fault("names another window", where)
    index = account_index(context)
    # A row left out would be an account that can be denied; a row too many, one that is made up.
    if stated.accounts != index.accounts:
        found.fault(f"counts {stated.accounts} accounts, the log has {index.accounts}", where)
    elif stated.index_root != index.root:
        found.fault("other records, or another order, than the log gives", where)
    found.summary = f"{index.accounts} accounts, each with the records that the log has"
