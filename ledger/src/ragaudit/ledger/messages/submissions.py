"""What an account gets for what it submits: the replies of the verifier.

docs/spec/08-services.md §8.3. The verifier signs none of its replies.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.fields import MAX_TIME, Fields

__all__ = ["Submission"]


class Submission(NamedTuple):
    """How many documents were new to the verifier, and how many it knew.

    Attributes:
        accepted: new ones.
        known: those that it had.
    """

    accepted: int = 0
    known: int = 0

    @classmethod
    def total(cls, parts: Iterable["Submission"]) -> "Submission":
        """Return the sum of the replies to several requests.

        Args:
            parts: one for each request; of none the sum is zero.
        """
        return cls(*(sum(column) for column in zip(*parts, strict=True)))

    @classmethod
    def from_json(cls, value: Any) -> "Submission":
        """Return the counts of a JSON value.

        Args:
            value: the verifier's reply.

        Raises:
            MalformedRecord: not exactly the members `accepted` and `known`, each a number >= 0.
        """
        f = Fields(value, "accepted known", MalformedRecord, "submission")
        return cls(f.integer("accepted", 0, MAX_TIME), f.integer("known", 0, MAX_TIME))
