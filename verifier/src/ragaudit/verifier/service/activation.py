"""The activation chain (docs/spec/05-records.md §6): its seed, anchor, and timed release.

The seed of a window is derived from a secret file and a random salt in the database; neither alone
gives it. What binds is the order: n_a is computed in a transaction at or after t_a, transactions
never go back in time, so no checkpoint can be cosigned "before t_a" once n_a is known.
"""

import hashlib
import hmac

from ragaudit.encoding.digests import structure
from ragaudit.encoding.tagged import enc
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import statements, windows
from ragaudit.verifier.service.database import Database, Transaction, activations, checkpoints
from ragaudit.verifier.service.errors import TooEarlyError, UnknownError
from ragaudit.verifier.service.terms import Terms
from ragaudit.verifier.service.windows import Window
from sqlalchemy import Connection, func, insert, select

SEED_TAG = "ragaudit/v1/activation-seed"


def seed(keys: VerifierKeys, window: Window) -> bytes:
    """s_V = n_A of the window; secret until the challenge."""
    message = enc(SEED_TAG, window.name, window.policy_digest, window.chain_salt)
    return hmac.digest(keys.activation, message, hashlib.sha256)


def preimage(keys: VerifierKeys, window: Window, steps: int) -> bytes:
    """h^steps(s_V): the anchor for A steps, n_a for A - a, the sampling nonce for none."""
    value = seed(keys, window)
    for _ in range(steps):
        value = structure("activation", window.name, value)
    return value


def release(database: Database, keys: VerifierKeys, name: str, a: int) -> bytes:
    """The signed activation of ``a``; the same bytes at every call.

    Raises:
        UnknownError: no such window or activation (the last instant has none).
        ConflictError: the window is not countersigned.
        TooEarlyError: before t_a.
    """
    with database.read() as connection:
        window = windows.get(connection, name)
        terms = windows.terms(connection, window)
        if not 1 <= a < len(terms.instants):
            raise UnknownError(
                "no such activation", where=str(a), expected=f"1..{len(terms.instants) - 1}"
            )
        stored = find(connection, name, a)
    if stored is not None:
        return stored
    check_due(terms.instants[a - 1], database.now())  # spares the early ones a writing transaction
    with database.write() as transaction:
        return ensure(transaction, keys, window, terms, a)


def ensure(
    transaction: Transaction, keys: VerifierKeys, window: Window, terms: Terms, a: int
) -> bytes:
    """The activation of ``a``, made now if it was not yet; TooEarlyError before t_a."""
    stored = find(transaction.connection, window.name, a)
    if stored is not None:
        return stored
    instant = terms.instants[a - 1]
    check_due(instant, transaction.now)
    message = statements.activation(
        keys.statement,
        window=window.name,
        a=a,
        preimage=preimage(keys, window, len(terms.instants) - a),
        covered_size=covered_size(transaction.connection, window.name, instant),
        time=transaction.now,
    )
    row = {"window": window.name, "a": a, "message": message}
    transaction.connection.execute(insert(activations).values(row))
    return message


def find(connection: Connection, window: str, a: int) -> bytes | None:
    """The stored activation of ``a``."""
    condition = (activations.c.window == window) & (activations.c.a == a)
    message = connection.execute(
        select(activations.c.message).where(condition)
    ).scalar_one_or_none()
    return None if message is None else bytes(message)


def covered_size(connection: Connection, window: str, instant: int) -> int:
    """Size of the largest checkpoint cosigned strictly before ``instant``, 0 if none."""
    condition = (checkpoints.c.window == window) & (checkpoints.c.time < instant)
    size = connection.execute(select(func.max(checkpoints.c.size)).where(condition)).scalar_one()
    return int(size or 0)


def check_due(instant: int, now: int) -> None:
    """Return from ``instant`` (seconds) on; TooEarlyError before, with the seconds to wait."""
    if now < 1000 * instant:
        raise TooEarlyError(
            "the instant has not come",
            retry_after=-(-(1000 * instant - now) // 1000),
            expected=f"at or after {instant}",
        )
