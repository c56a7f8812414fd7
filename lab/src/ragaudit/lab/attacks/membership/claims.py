"""A claimed guarantee that a membership test may refute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.translation import largest_auc
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp

__all__ = ["Claim"]

_PRESENCE = NeighboringRelation.ADD_REMOVE


@dataclass(frozen=True)
class Claim:
    """What is claimed of a document's presence, for all questions about it together.

    Attributes:
        parameters: decimals as they were given, by name: epsilon and delta of approximate DP, or
            mu of Gaussian DP.
    """

    parameters: Mapping[str, str]

    @classmethod
    def of(cls, epsilon: str | None, delta: str | None, mu: str | None) -> Self | None:
        """Return the claim of one command line, None if none is made.

        Args:
            epsilon: 0 to 10^31.
            delta: 0 to 1, of an epsilon alone; 0 if it is None.
            mu: 0 to 10^15.

        Raises:
            MalformedError: both are claimed, or a delta of nothing.
            InvalidArgumentError: a value out of its range, or no number.
        """
        if epsilon is not None and mu is not None:
            raise MalformedError(
                "two claims", where="--claim-mu", expected="it, or --claim-epsilon"
            )
        if delta is not None and epsilon is None:
            raise MalformedError(
                "a delta without its epsilon", where="--claim-delta", expected="--claim-epsilon"
            )
        if epsilon is not None:
            claim = cls({"epsilon": epsilon, "delta": "0" if delta is None else delta})
        elif mu is not None:
            claim = cls({"mu": mu})
        else:
            return None
        claim.guarantee()
        return claim

    def guarantee(self) -> ApproximateDp | GaussianDp:
        """Return the guarantee, under add-remove; InvalidArgumentError."""
        if "mu" in self.parameters:
            return GaussianDp.of(self.parameters["mu"], _PRESENCE)
        return ApproximateDp.of(self.parameters["epsilon"], self.parameters["delta"], _PRESENCE)

    @property
    def cap(self) -> float:
        """The largest AUC of any test under it."""
        return largest_auc(self.guarantee())

    def __str__(self) -> str:
        """Return it in words."""
        return " at ".join(f"{name} {value}" for name, value in self.parameters.items())
