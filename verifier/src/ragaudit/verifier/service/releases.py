"""What V keeps secret until an instant: the activation chain (docs/spec/05-records.md §5.6).

The seed of a window is derived from a secret file and a random salt in the database; neither alone
gives it. What binds is the order: n_a is computed in a transaction at or after t_a, transactions
never go back in time, so no checkpoint can be cosigned "before t_a" once n_a is known. Under a
policy with a beacon nothing is released before its round is at hand.
"""

import hashlib
import hmac

from ragaudit.encoding.errors import Conflict, NotFound, RejectedError, TooEarly
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.chains import activation_anchor, activation_preimage
from ragaudit.ledger.messages.countersignature import Activation
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.rounds import RoundFinder
from ragaudit.verifier.history import Statement
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import cosigner, tables, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.windows import Window, check_due
from sqlalchemy import Connection, func, insert, select

_SEED_TAG = "ragaudit/v1/activation-seed"


def chain_seed(keys: VerifierKeys, window: Window) -> bytes:
    """Return s_V of the window, 32 bytes: docs/spec/08-services.md §8.4, countersignature.

    It is n_A (docs/spec/05-records.md §5.6), and secret until the challenge.
    """
    message = enc(_SEED_TAG, window.name, window.policy_digest, window.chain_salt)
    return hmac.digest(keys.activation, message, hashlib.sha256)


def chain_anchor(keys: VerifierKeys, window: Window, count: int) -> bytes:
    """Return h^A(s_V), what the countersignature commits to (docs/spec/05-records.md §5.6).

    Args:
        count: A, the number of the policy's activation instants.
    """
    return activation_anchor(window.name, chain_seed(keys, window), count)


def due_round(policy: Policy, rounds: RoundFinder, a: int, now: int) -> BeaconRound | None:
    """Return the beacon's round with which an instant's value is released; None without a beacon.

    Args:
        rounds: finds it.
        a: 1 to A.
        now: Unix milliseconds.

    Raises:
        TooEarly: before t_a, or the round is not due or not at hand.
    """
    check_due(policy.release_instant(a), now)
    number = policy.round_of(a)
    if policy.beacon is None or number is None:
        return None
    found = rounds.find(policy.beacon.chain, number)
    if found is None:
        raise TooEarly(
            f"round {number} of the beacon is not at hand", retry_after=1, expected="that round"
        )
    return found


def take_round(database: Database, rounds: RoundFinder, origin: Origin, shown: BeaconRound) -> None:
    """Take a round of a window's beacon from its provider.

    Args:
        shown: as the provider has it.

    Raises:
        Conflict: the window is not countersigned, or its policy names no beacon.
        RejectedError: of no instant of the policy, or it does not verify.
        TooEarly: it is not due.
    """
    with database.read() as connection:
        window = windows.demand_countersigned(windows.get(connection, origin))
        policy = windows.policy(connection, window)
    if policy.beacon is None:
        raise Conflict("the policy names no beacon", where=origin)
    if shown.number not in map(policy.round_of, range(1, policy.activations + 1)):
        raise RejectedError(f"round {shown.number}", where="round", expected="one of an instant")
    # The signers of a chain could make it earlier; nobody else has it.
    check_due(policy.beacon.chain.time(shown.number), database.now())
    rounds.offer(policy.beacon.chain, shown)


def next_release(connection: Connection, window: Window, policy: Policy) -> int:
    """Return the first instant whose value is not released, A + 1 after all of them."""
    columns = tables.activation.c
    query = select(columns.a).where(columns.window == window.origin)
    released = set(connection.scalars(query))
    last = policy.activations if window.challenged is None else policy.activations + 1
    return next((a for a in range(1, policy.activations) if a not in released), last)


def release_activation(
    database: Database, keys: VerifierKeys, rounds: RoundFinder, origin: Origin, a: int
) -> bytes:
    """Return the signed activation of ``a``; the same bytes at every call.

    Args:
        rounds: finds those of the beacon.
        a: 1 to A - 1; n_A is released with the challenge only.

    Returns:
        Canonical JSON (docs/spec/08-services.md §8.4).

    Raises:
        NotFound: no such window or activation (the last instant has none).
        Conflict: the window is not countersigned.
        TooEarly: as `due_round`.
    """
    with database.read() as connection:
        window = windows.get(connection, origin)
        policy = windows.policy(connection, window)
        if not 1 <= a < policy.activations:
            expected = f"1..{policy.activations - 1}"
            raise NotFound("no such activation", where=str(a), expected=expected)
        stored = _find_activation(connection, origin, a)
    if stored is not None:
        return stored
    due_round(policy, rounds, a, database.now())  # spares the early ones a writing transaction
    with database.write() as transaction:
        return ensure_activation(transaction, keys, rounds, window, policy, a)


def ensure_activation(
    transaction: Transaction,
    keys: VerifierKeys,
    rounds: RoundFinder,
    window: Window,
    policy: Policy,
    a: int,
) -> bytes:
    """Return the activation of ``a``, made now if it was not yet.

    Args:
        rounds: finds those of the beacon.
        policy: the window's.
        a: 1 to A - 1.

    Raises:
        TooEarly: as `due_round`.
    """
    stored = _find_activation(transaction.connection, window.origin, a)
    if stored is not None:
        return stored
    instant = policy.activation_instants[a - 1]
    shown = due_round(policy, rounds, a, transaction.now)
    released = _count(transaction.connection, window.origin)
    transaction.attest(Statement.ACTIVATION, window.origin, before=released, after=released + 1)
    message = (
        Activation(
            window=window.name,
            a=a,
            preimage=activation_preimage(
                window.name, chain_seed(keys, window), policy.activations, a
            ),
            # Read in the transaction that releases n_a: every cosignature of before t_a is
            # committed by then, and none of before t_a can follow.
            covered_size=cosigner.covered_size(transaction.connection, window.origin, instant),
            time=transaction.now,
            round=shown,
        )
        .signed(keys.statement)
        .encode()
    )
    row = {"window": window.origin, "a": a, "message": message}
    transaction.connection.execute(insert(tables.activation).values(row))
    return message


def _count(connection: Connection, window: Origin) -> int:
    table = tables.activation
    query = select(func.count()).select_from(table).where(table.c.window == window)
    return int(connection.execute(query).scalar_one())


def _find_activation(connection: Connection, window: Origin, a: int) -> bytes | None:
    columns = tables.activation.c
    condition = (columns.window == window) & (columns.a == a)
    message: bytes | None = connection.scalar(select(columns.message).where(condition))
    return message
