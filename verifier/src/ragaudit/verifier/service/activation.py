"""The activation chain (docs/spec/05-records.md §5.6): its seed, anchor, and timed release.

The seed of a window is derived from a secret file and a random salt in the database; neither alone
gives it. What binds is the order: n_a is computed in a transaction at or after t_a, transactions
never go back in time, so no checkpoint can be cosigned "before t_a" once n_a is known.
"""

import hashlib
import hmac
from collections.abc import Sequence

from ragaudit.encoding.errors import NotFound, TooEarly
from ragaudit.encoding.tagged import enc
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import activation_anchor, activation_preimage
from ragaudit.ledger.messages.countersignature import Activation
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.database import (
    Database,
    Origin,
    Transaction,
    activations,
    checkpoints,
)
from ragaudit.verifier.service.windows import Window
from sqlalchemy import Connection, func, insert, select

SEED_TAG = "ragaudit/v1/activation-seed"


def seed(keys: VerifierKeys, window: Window) -> bytes:
    """s_V = n_A of the window; secret until the challenge."""
    message = enc(SEED_TAG, window.name, window.policy_digest, window.chain_salt)
    return hmac.digest(keys.activation, message, hashlib.sha256)


def anchor(keys: VerifierKeys, window: Window, count: int) -> bytes:
    """h^A(s_V), what the countersignature commits to; A is ``count``."""
    return activation_anchor(window.name, seed(keys, window), count)


def release(database: Database, keys: VerifierKeys, origin: Origin, a: int) -> bytes:
    """The signed activation of ``a``; the same bytes at every call.

    Raises:
        NotFound: no such window or activation (the last instant has none).
        Conflict: the window is not countersigned.
        TooEarly: before t_a.
    """
    with database.read() as connection:
        window = windows.get(connection, origin)
        instants = windows.policy(connection, window).activation_instants
        if not 1 <= a < len(instants):
            raise NotFound("no such activation", where=str(a), expected=f"1..{len(instants) - 1}")
        stored = find(connection, origin, a)
    if stored is not None:
        return stored
    check_due(instants[a - 1], database.now())  # spares the early ones a writing transaction
    with database.write() as transaction:
        return ensure(transaction, keys, window, instants, a)


def ensure(
    transaction: Transaction, keys: VerifierKeys, window: Window, instants: Sequence[int], a: int
) -> bytes:
    """The activation of ``a``, made now if it was not yet; TooEarly before t_a."""
    stored = find(transaction.connection, window.origin, a)
    if stored is not None:
        return stored
    instant = instants[a - 1]
    check_due(instant, transaction.now)
    message = Activation.issue(
        keys.statement,
        window=window.name,
        a=a,
        preimage=activation_preimage(window.name, seed(keys, window), len(instants), a),
        covered_size=covered_size(transaction.connection, window.origin, instant),
        time=transaction.now,
    ).encode()
    row = {"window": window.origin, "a": a, "message": message}
    transaction.connection.execute(insert(activations).values(row))
    return message


def find(connection: Connection, window: Origin, a: int) -> bytes | None:
    """The stored activation of ``a``."""
    condition = (activations.c.window == window) & (activations.c.a == a)
    message = connection.execute(
        select(activations.c.message).where(condition)
    ).scalar_one_or_none()
    return None if message is None else bytes(message)


def covered_size(connection: Connection, window: Origin, instant: int) -> int:
    """Size of the largest checkpoint cosigned strictly before ``instant``, 0 if none."""
    condition = (checkpoints.c.window == window) & (checkpoints.c.time < instant)
    size = connection.execute(select(func.max(checkpoints.c.size)).where(condition)).scalar_one()
    return int(size or 0)


def check_due(instant: int, now: int) -> None:
    """Return from ``instant`` (seconds) on; TooEarly before, with the seconds to wait."""
    if now < 1000 * instant:
        raise TooEarly(
            "the instant has not come",
            retry_after=-(-(1000 * instant - now) // 1000),
            expected=f"{rfc3339(1000 * instant)} or later",
        )
