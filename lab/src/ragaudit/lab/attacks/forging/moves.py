"""What both provers do: send, run a masked sumcheck's mask, open (spec 4.4, 4.5)."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

Spelled = Mapping[int, Callable[[bytes], bytes]]
"""How elements of a proof are spelled, by their number; the transcript runs over what is sent."""

# Of ristretto255 (RFC 9496 §4): the field, and the order of the group.
FIELD = 2**255 - 19
GROUP = 2**252 + 27742317777372353535851937790883648493


def negative(point: bytes) -> bytes:
    """Return p - s for the encoding s of a point: a decoder without that check takes both."""
    return (FIELD - int.from_bytes(point, "little")).to_bytes(32, "little")


def top_bit(element: bytes) -> bytes:
    """Return the same with bit 255 set, which a decoder may drop."""
    return element[:31] + bytes([element[31] | 0x80])


def unreduced(scalar: bytes) -> bytes:
    """Return a scalar plus 15 times the group order, below 2^256 for all but a share of 2^-124."""
    return (int.from_bytes(scalar, "little") + 15 * GROUP).to_bytes(32, "little")


def modules(package: ModuleType) -> SimpleNamespace:
    """Return the modules of the reference package, or of a mutated copy of it, by name.

    Args:
        package: whose submodules are imported. A mutated copy drops one rule, and the proof that
            this prover then makes is for the mutated relation.
    """
    names = (
        "field", "ristretto", "generators", "transcript",
        "selection", "index", "budget", "charge",
    )  # fmt: skip
    return SimpleNamespace(
        **{name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
    )


def weighted_sum(tools: SimpleNamespace, terms: list[tuple[int, Any]]) -> Any:
    """Return the sum of scalar·point over ``terms``; scalars are reduced by the group order."""
    order = tools.field.ORDER
    return tools.ristretto.multiscalar((scalar % order, point) for scalar, point in terms)


def _times(tools: SimpleNamespace, scalar: int, point: Any) -> Any:
    result = tools.ristretto.IDENTITY
    if point == result:  # padding
        return point
    for bit in f"{scalar:b}":
        result = tools.ristretto.add(result, result)
        if bit == "1":
            result = tools.ristretto.add(result, point)
    return result


@dataclass
class Mask:
    """The mask g of a sumcheck, summed over the cube while variables get bound (spec 4.5).

    Attributes:
        coefficients: a_0, then a_(k,1..deg_k) of each variable in turn.
        degrees: deg_k of each variable.
        order: of the group, by which values are reduced.
    """

    coefficients: list[int]
    degrees: list[int]
    order: int

    def __post_init__(self) -> None:
        rest = iter(self.coefficients[1:])
        self.own = [[next(rest) for _ in range(degree)] for degree in self.degrees]
        self.bound = self.coefficients[0]

    def total(self) -> int:
        """Return G_sum, the sum of g over the cube, not reduced."""
        n = len(self.degrees)
        return (1 << n) * self.coefficients[0] + (1 << n - 1) * sum(self.coefficients[1:])

    def at(self, k: int, X: int) -> int:
        """Return the sum over the variables after k, variable k at X, the earlier ones bound.

        Args:
            k: the variable of this round, from 0.
            X: where its polynomial is evaluated.
        """
        left = len(self.degrees) - k - 1
        value = self.bound + sum(c * X**e for e, c in enumerate(self.own[k], start=1))
        later = sum(c for own in self.own[k + 1 :] for c in own)
        return int((1 << left) * value + ((1 << left - 1) * later if left else 0))

    def bind(self, k: int, r_k: int) -> None:
        """Bind variable k to the challenge r_k; variables are bound in order."""
        self.bound += sum(c * r_k**e for e, c in enumerate(self.own[k], start=1))
        self.bound %= self.order


class Moves:
    """A prover that talks to its own transcript.

    Attributes:
        spelled: other spellings of elements, by their number; empty for an honest prover.
        proof: what was sent so far.
    """

    def __init__(self, tools: SimpleNamespace, transcript: Any) -> None:
        """Go on from a transcript that has absorbed the statement.

        Args:
            tools: of `modules`.
            transcript: of the same package.
        """
        self.tools, self.transcript = tools, transcript
        self.order: int = tools.field.ORDER
        self.spelled: Spelled = {}
        self.proof = b""

    def random(self) -> int:
        """Return a scalar below the group order from the system's randomness."""
        return secrets.randbelow(self.order)

    def send(self, tag: str | None, data: bytes) -> None:
        """Add an element to the proof and absorb it as it is sent, however it is spelled.

        Args:
            tag: under which it is absorbed; None for the last ones of OPEN, which are not.
            data: 32 bytes.
        """
        if (spelling := self.spelled.get(len(self.proof) // 32)) is not None:
            data = spelling(data)
        if tag is not None:
            self.transcript.absorb(tag, data)
        self.proof += data

    def send_point(self, tag: str, terms: list[tuple[int, Any]]) -> None:
        """Send the weighted sum of ``terms``: (scalar, point) each."""
        self.send(tag, self.tools.ristretto.encode(weighted_sum(self.tools, terms)))

    def send_scalar(self, tag: str | None, value: int) -> None:
        """Send a scalar, reduced by the group order; ``tag`` as of `send`."""
        self.send(tag, self.tools.field.le(value % self.order, 32))

    def send_round(self, values: list[int]) -> int:
        """Send a round of the sumcheck and return the challenge r_k (spec 4.5).

        Args:
            values: of the round's polynomial at 0, 1, 2 and, for degree 3, at 3. The coefficient
                c_1 is not sent: the verifier derives it.
        """
        coefficients = self._interpolate(values)
        for j, coefficient in enumerate(coefficients):
            if j != 1:
                self.send_scalar("round", coefficient)
        return int(self.transcript.scalar("point"))

    def _interpolate(self, values: list[int]) -> list[int]:
        """Coefficients of the polynomial with these values at 0, 1, 2 and perhaps 3."""
        y0, y1, y2, *rest = values
        sixth = pow(6, -1, self.order)
        c3 = (rest[0] - 3 * y2 + 3 * y1 - y0) * sixth if rest else 0
        c2 = (y2 - 2 * y1 + y0) * 3 * sixth - 3 * c3
        return [v % self.order for v in (y0, y1 - y0 - c2 - c3, c2, c3)][: len(values)]

    def fold(self, table: list[int], X: int) -> list[int]:
        """Return a table with its first variable, the top bit of the index, at X."""
        middle = len(table) // 2
        pairs = zip(table[:middle], table[middle:], strict=True)
        return [(low + X * (high - low)) % self.order for low, high in pairs]

    def sumcheck(
        self, tables: list[list[int]], value: Callable[..., int], mask: Mask, rho: int
    ) -> tuple[list[int], list[int]]:
        """Send the rounds of a sumcheck, three evaluations and one more in each variable.

        Args:
            tables: of the same length, a power of two.
            value: of the summand, from a value of each table.
            mask: of the rounds.
            rho: its weight.

        Returns:
            The point, and each table's value there.
        """
        point: list[int] = []
        for k in range(len(mask.degrees)):
            values = []
            for X in range(4):
                rows = zip(*(self.fold(table, X) for table in tables), strict=True)
                total = sum(value(*row) for row in rows)
                values.append((total + rho * mask.at(k, X)) % self.order)
            point.append(self.send_round(values))
            mask.bind(k, point[-1])
            tables = [self.fold(table, point[-1]) for table in tables]
        return point, [table[0] for table in tables]

    def open(self, g: list[Any], L: list[int], a: list[int], rho: int, x: int) -> None:
        """Send OPEN (spec 4.4) for the witness (a, rho), true or not, which ends the proof.

        Args:
            g: n generators.
            L: n values of the form.
            a: n values of the witness.
            rho: its blinding.
            x: the challenge before OPEN; V is not needed, as the prover folds a and L themselves.
        """
        tools, order = self.tools, self.order
        Q, H = tools.generators.generator("Q"), tools.generators.generator("H")
        size = 1 << max(1, tools.field.variables_for(len(g)))
        missing = size - len(g)
        g = [*g, *[tools.ristretto.IDENTITY] * missing]
        L, a = [*L, *[0] * missing], [*a, *[0] * missing]
        dot = tools.field.dot
        while size > 1:
            size //= 2
            lam, mu = self.random(), self.random()
            for part, bases, form, blind in (
                (a[:size], g[size:], L[size:], lam),
                (a[size:], g[:size], L[:size], mu),
            ):
                terms = [*zip(part, bases, strict=True), (x * dot(part, form), Q), (blind, H)]
                self.send_point("L" if blind is lam else "R", terms)
            c = self.transcript.scalar("fold")
            inverse = tools.field.inverse(c)
            halves = range(size)
            a = [(a[i] + inverse * a[size + i]) % order for i in halves]
            L = [(L[i] + c * L[size + i]) % order for i in halves]
            g = [tools.ristretto.add(g[i], _times(tools, c, g[size + i])) for i in halves]
            rho = (rho + c * lam + inverse * mu) % order
        s, t = self.random(), self.random()
        self.send_point("T", [(s, g[0]), (s * L[0] * x, Q), (t, H)])
        c = self.transcript.scalar("last")
        self.send_scalar(None, s + c * a[0])
        self.send_scalar(None, t + c * rho)
