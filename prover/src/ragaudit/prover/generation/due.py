"""Which rows are due for a question, and what is released of how many there are (spec 11.9)."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import COIN_TAG, noise_key
from ragaudit.ledger.messages.charges import Charge
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.records import Record
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.privacy.mechanisms.streams import bin_counts, running_sums
from ragaudit.prover.window.open_window import OpenWindow

__all__ = ["Due", "coins_of", "due_rows", "nothing_due"]

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Due:
    """What a charge entry says of rows, and what opens it.

    Attributes:
        rows: D_t, int64, rising; private.
        blinding: rho_t, 32 bytes; private.
        threshold: tau_t; None where nothing is charged.
        point: B_t, 32 bytes; None where nothing is charged.
        sums: that are released.
    """

    rows: Positions = field(repr=False)
    blinding: bytes = field(repr=False)
    threshold: int | None = None
    point: bytes | None = None
    sums: tuple[int, ...] = ()


def nothing_due() -> Due:
    """Return what is due where no rows are charged (NAIVE)."""
    return Due(np.empty(0, dtype=np.int64), _blinding())


def due_rows(
    terms: GenerationTerms,
    scores: npt.NDArray[np.int64],
    payable: npt.NDArray[np.bool_],
    coins: KeyedCoins,
) -> Due:
    """Return which rows pay for a question.

    Args:
        terms: that charge rows.
        scores: int64[N], of the question.
        payable: bool[N], of rows that are live and allowed.
        coins: of the question, none of which was used.
    """
    threshold, sums = terms.threshold, tuple[int, ...]()
    if terms.adaptive is not None:
        # Scores of other rows lie in no bin. Their number must not show in the time that this took.
        counts = bin_counts(np.where(payable, scores, -1), terms.adaptive.edges)
        noisy = running_sums(counts, terms.adaptive.epsilon, terms.adaptive.enough, coins)
        sums = tuple(int(total) for total in noisy)
        threshold = terms.adaptive.threshold_of(sums)
    assert threshold is not None  # rows are charged
    due = payable & (scores > threshold)
    blinding = _blinding()
    # The time to the entry must not say how many rows there are.
    point = core.commit_marked(due, blinding)
    return Due(np.flatnonzero(due), blinding, threshold, point, sums)


def coins_of(
    live: OpenWindow, question: Record | Charge, drawn: int = 0, nonce: bytes | None = None
) -> KeyedCoins:
    """Return the coins of a question.

    Args:
        question: a record without time and selection, or its charge entry.
        drawn: draws that were used before.
        nonce: of an anchored account, 32 bytes; None of a plain one.
    """
    key = noise_key(
        live.epochs.tree(question.epoch).key(question.slot, question.counter),
        window=question.window,
        tenant=question.tenant,
        version=question.version,
        pseudonym=question.pseudonym,
        epoch=question.epoch,
        slot=question.slot,
        counter=question.counter,
        activation_randomness=live.activation_randomness(question.activation),
        nonce=nonce or b"",
        tag=COIN_TAG,
    )
    return KeyedCoins(key, drawn)


def _blinding() -> bytes:
    # From the operating system in every window: the verifier opens keys, and a blinding that
    # followed from one would let it test which rows were charged.
    blinding: bytes = core.random_scalars(1)[0].tobytes()
    return blinding
