"""Proofs of what a closed window's log says of an account, made from its evidence (spec 5.14)."""

from ragaudit.encoding.errors import RefusedError, RejectedError
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.account_index import Accounts
from ragaudit.ledger.messages.account_proof import AccountProof
from ragaudit.ledger.messages.shown_entries import OpenedEntry
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput, Pins
from ragaudit.verifier.procedure.log_checks import account_index


def prove_account(evidence: Evidence, pseudonym: bytes, *, engine: Engine) -> AccountProof:
    """Return the proof of how many records an account has, or that it has none.

    Args:
        evidence: whole, both parts.
        pseudonym: 32 bytes; it need not be of the window.
        engine: of the context, which no argument is checked with here.

    Raises:
        RefusedError: the policy asks for no account index, or the evidence is not all there.
        RejectedError: the log has another index than its registrations and records give (check 22).
    """
    context = Context(evidence, engine=engine, pins=Pins())
    try:
        return _prove(context, pseudonym)
    except MissingInput as missing:
        raise RefusedError(
            missing.reason, where=missing.owner, expected="evidence that can be read"
        ) from missing


def _prove(context: Context, pseudonym: bytes) -> AccountProof:
    policy = context.policy
    if not policy.account_index:
        raise RefusedError("the policy asks for no account index", where="policy")
    index, _, entry = account_index(context), context.close, context.log.before_last
    # Of an index that is not the log's a proof could say anything.
    if entry is None or entry.kind != Accounts.KIND or Accounts.parse(entry.body) != index.entry:
        raise RejectedError("the log has no such account index", where="the entry before the close")
    path = context.log.tree.inclusion_proof(entry.index)
    proof = TlogProof(entry.index, path, context.final.signed.encode())
    opened = OpenedEntry(entry.salt, entry.body)
    return AccountProof.of(policy.origin, pseudonym, index, opened, proof)
