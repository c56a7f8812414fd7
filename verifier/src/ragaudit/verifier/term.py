"""One term of a verifier: a number that bounds policies, or a list of what it knows (9.4)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.messages.policy import Policy, exact

MAX_KNOWN: Final = 1000
"""Entries of one list: a file of a person."""


@dataclass(frozen=True, slots=True)
class Term:
    """One bound on policies.

    Attributes:
        name: ``most_...`` bounds from above, ``least_...`` from below.
        meaning: for people.
        default: a decimal (text) or an integer.
        low, high: what the bound itself may be.
        of: what it bounds of a policy; None: of the audited window.
        of_noise: whether it bounds what only a window with noise has.
        raised: what the bound becomes for a policy that asks for more than the verifier does.
    """

    name: str
    meaning: str
    default: str | int
    low: Fraction
    high: Fraction
    of: Callable[[Policy], str | int | Fraction] | None
    of_noise: bool = False
    raised: Callable[[Policy, Fraction], Fraction] = lambda _, bound: bound

    def read(self, value: object) -> Fraction:
        """Return the bound that a member of the document states.

        Args:
            value: as the document has it; of the type of ``default``.

        Returns:
            The bound, exactly.

        Raises:
            MalformedError: of another type than the default, or outside low..high.
        """
        # true is an int to Python, and 0.1 is not one tenth: only these two types are exact.
        decimal = isinstance(self.default, str)
        if type(value) is not (str if decimal else int):
            kind = "a decimal in quotes" if decimal else "an integer"
            raise MalformedError("wrong type", where=self.name, expected=kind)
        bound = exact(value) if isinstance(value, str) else Fraction(str(value))
        if not self.low <= bound <= self.high:
            raise MalformedError(
                "out of range", where=self.name, expected=f"{self.low}..{self.high}"
            )
        return bound

    def check(self, bound: Fraction, policy: Policy) -> None:
        """Check that the policy keeps the bound.

        Args:
            bound: as :meth:`read` returned it.

        Raises:
            RejectedError: it does not; names the bound.
        """
        # Of the audited window: check 11 applies it to the log.
        if self.of is None:
            return
        # Without noise nothing is promised that it would bound.
        if self.of_noise and not policy.noised:
            return
        value, bound = self.of(policy), self.raised(policy, bound)
        number = exact(value) if isinstance(value, str) else Fraction(value)
        most = self.name.startswith("most_")
        if number > bound if most else number < bound:
            side = "at most" if most else "at least"
            shown = _text(value) if isinstance(value, Fraction) else value
            raise RejectedError(
                f"{self.meaning} is {shown}", where=self.name, expected=f"{side} {_text(bound)}"
            )


@dataclass(frozen=True, slots=True)
class Known:
    """A list of what the verifier knows from elsewhere; nobody else decides who is trusted.

    Attributes:
        name: member of the document.
        meaning: for people.
        form: of one text; raises MalformedError for any other.
        of: what a policy names, all of which must be known; None: the audit says what is known.
    """

    name: str
    meaning: str
    form: Callable[[str], object]
    of: Callable[[Policy], Iterable[str]] | None

    def read(self, value: object) -> tuple[str, ...]:
        """Return the texts that a member of the document states.

        Args:
            value: as the document has it.

        Raises:
            MalformedError: not a list of at most `MAX_KNOWN` such texts, rising and distinct.
        """
        texts = value if isinstance(value, list) else [None]
        if len(texts) > MAX_KNOWN or not all(isinstance(each, str) for each in texts):
            most = f"a list of at most {MAX_KNOWN} texts"
            raise MalformedError("wrong type", where=self.name, expected=most)
        if texts != sorted(set(texts)):
            raise MalformedError("not rising and distinct", where=self.name)
        for number, text in enumerate(texts):
            try:
                self.form(text)
            except MalformedError as error:
                where = f"{self.name}/{number}"
                raise MalformedError(error.what, where=where, expected=error.expected) from error
        return tuple(texts)

    def check(self, known: Iterable[str], policy: Policy) -> None:
        """Check that the policy names nothing that is not known.

        Args:
            known: as :meth:`read` returned it.

        Raises:
            RejectedError: it does; names the first.
        """
        strange = sorted(set(() if self.of is None else self.of(policy)) - set(known))
        if strange:
            raise RejectedError(
                f"{strange[0]} is not among {self.meaning}", where=self.name,
                expected=f"of the {len(set(known))} that the verifier lists",
            )  # fmt: skip


def _text(bound: Fraction) -> str:
    return str(bound) if bound.denominator == 1 else f"{float(bound):.12g}"
