"""The generation channel beside the retrieval channel: what k accounts together learn of a row."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Final

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.ledger.messages.predicate import Predicate
from ragaudit.privacy.accounting.generation import (
    ChannelCosts,
    KeywordChannelEpsilon,
    Loss,
    read_channel,
)
from ragaudit.privacy.accounting.table import EpsilonTable

MOST: Final = 20
"""Accounts at the right end of the picture."""

WIDTH: Final = 480
HEIGHT: Final = 220
_LEFT, _BOTTOM, _TOP, _RIGHT = 44, 28, 12, 12


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of the picture: points as SVG has them, and where its label stands."""

    label: str
    points: str
    x: int
    y: int
    kind: str


@dataclass(frozen=True, slots=True)
class ChannelView:
    """What the report says of the channel.

    Attributes:
        sentence: what holds for any number of accounts.
        curves: none where the retrieval channel states no epsilon to compare with.
        top: epsilon at the upper edge of the picture.
    """

    sentence: str
    together: str
    curves: tuple[Curve, ...]
    top: str
    width: int = WIDTH
    height: int = HEIGHT
    most: int = MOST


def channel_view(predicate: Predicate, table: EpsilonTable | None) -> ChannelView | None:
    """Return the view of a predicate's channel; None where it states none that can be read.

    Args:
        table: of the retrieval channel.
    """
    try:
        costs = read_channel(predicate.generation)
    except MalformedError:
        return None
    null, replaced = _losses(costs)
    if isinstance(costs, KeywordChannelEpsilon):
        price = f"{costs.uses} times, which are composed"
    else:
        price = f"{costs.uses} times at {_text(costs.question)}"
    sentence = (
        f"Generated answers: epsilon {_said(null)} for one document changed to or from a null row, "
        f"{_said(replaced)} for one replaced by another, of all answers of the window together and "
        f"for any number of accounts: each row may pay {price}. Over w windows with the same "
        "documents it is w times that."
    )
    if predicate.claims.conditional:
        sentence += " Conditional on the provider's word, as said above."
    own = None if table is None else Fraction(table.per_account.epsilon_acc)
    together = ""
    if table is not None and table.headline.epsilon:
        terms = table.parameters
        # What neighbours differ in is one thing for both, or the sum would be of neither.
        other = replaced if terms.relation is NeighboringRelation.REPLACE else null
        both = Loss(
            Fraction(table.headline.epsilon) + other.epsilon,
            Fraction(terms.delta_policy) + other.delta,
        )
        together = (
            f"Both channels together: epsilon {_said(both)} for {terms.coalition:,} accounts under "
            f"{terms.relation.value}, the sums of the two."
        )
    curves: tuple[Curve, ...] = ()
    top = 0.0
    if own is not None:
        curves, top = _curves(float(own), float(null.epsilon), float(replaced.epsilon))
    return ChannelView(sentence, together, curves, f"{top:.3g}")


def _losses(costs: ChannelCosts) -> tuple[Loss, Loss]:
    """Return what one document costs that is changed to or from null rows, and one replaced."""
    if isinstance(costs, KeywordChannelEpsilon):
        return costs.replace_one_null, costs.replace_one
    pure = Fraction(0)
    return Loss(costs.replace_one_null, pure), Loss(costs.replace_one, pure)


def _said(loss: Loss) -> str:
    delta = f" at delta {float(loss.delta):.3g}" if loss.delta else ""
    return f"{_text(loss.epsilon)}{delta}"


def _curves(own: float, null: float, replaced: float) -> tuple[tuple[Curve, ...], float]:
    top = 1.05 * max(own * sqrt(MOST), replaced)
    grown = [(k, own * sqrt(k)) for k in range(1, MOST + 1)]
    lines = (
        ("retrieval: grows with the square root of k", grown, "grows"),
        ("generation, one document to a null row", [(1, null), (MOST, null)], "flat"),
        ("generation, one document replaced", [(1, replaced), (MOST, replaced)], "flat dashed"),
    )
    curves = []
    for label, values, kind in lines:
        places = [_place(k, epsilon, top) for k, epsilon in values]
        points = " ".join(f"{x},{y}" for x, y in places)
        middle = places[len(places) // 2] if len(places) > 2 else places[0]
        curves.append(Curve(label, points, middle[0] + 4, middle[1] - 5, kind))
    return tuple(curves), top


def _place(k: int, epsilon: float, top: float) -> tuple[int, int]:
    across = (WIDTH - _LEFT - _RIGHT) * (k - 1) / (MOST - 1)
    up = (HEIGHT - _TOP - _BOTTOM) * epsilon / top
    return round(_LEFT + across), round(HEIGHT - _BOTTOM - up)


def _text(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{value} ({float(value):.4g})"
