"""The generation channel beside the retrieval channel: what k accounts together learn of a row."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Final

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.predicate import Predicate
from ragaudit.privacy.accounting.channel import KeywordChannelEpsilon, read_channel
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
    if isinstance(costs, KeywordChannelEpsilon):
        losses = costs.replace_one_null, costs.replace_one
        null, replaced = (each.epsilon for each in losses)
        said = [f"{_text(each.epsilon)} at delta {float(each.delta):.3g}" for each in losses]
        price = f"{costs.uses} times, which are composed"
    else:
        null, replaced = costs.replace_one_null, costs.replace_one
        said = [_text(null), _text(replaced)]
        price = f"{costs.uses} times at {_text(costs.question)}"
    sentence = (
        f"Answers in words: epsilon {said[0]} for one document changed to or from a null row, "
        f"{said[1]} for one replaced by another, of all answers of the window together and "
        f"for any number of accounts: each row may pay {price}. Over w windows with the same "
        "documents it is w times that."
    )
    if predicate.result == "CONDITIONAL":
        sentence += " Conditional on the provider's word, as said above."
    own = None if table is None else Fraction(table.per_account.epsilon_acc)
    together = ""
    if own is not None and table is not None and table.headline.epsilon:
        both = Fraction(table.headline.epsilon) + null
        together = (
            f"Both channels together: {_text(both)} for {table.parameters.coalition:,} accounts, "
            "the sum of the two."
        )
    curves, top = ((), 0.0) if own is None else _curves(float(own), float(null), float(replaced))
    return ChannelView(sentence, together, curves, f"{top:.3g}")


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
