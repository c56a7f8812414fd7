"""Windows of one provider at the same time: an item of evidence (docs/spec 9.10, 10.1).

Each window has its own budget. Where two of them answer from the same documents at the same time,
whoever may ask in both learns what both tell; neither alone says so.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.ledger.messages.kernel import Integer, Message
from ragaudit.ledger.messages.policy import Policy

MAX_WINDOWS: Final = 10_000
"""As the chain of a provider's windows (8.11)."""

Number: TypeAlias = Annotated[int, Integer(0, MAX_WINDOWS)]


class OverlappingWindow(Message, where="overlapping window"):
    """A window that the verifier countersigned, at the same time as another one.

    Attributes:
        policy: of it.
        allowed: how many such windows with a tenant of its own the terms allow under which it was
            countersigned.
        shared: how many of these there are, the window that the evidence is of among them.
    """

    policy: Policy
    allowed: Number
    shared: Number


@dataclass(frozen=True, slots=True)
class Overlaps(EvidenceList[OverlappingWindow]):
    """`public/overlaps.json`: by rising name of the window, at least one."""

    @staticmethod
    def read(value: Any) -> OverlappingWindow:
        return OverlappingWindow.from_json(value)

    def __post_init__(self) -> None:
        names = [each.policy.window for each in self.messages]
        if not 1 <= len(names) <= MAX_WINDOWS or names != sorted(set(names)):
            raise MalformedError(
                "not by rising name", where="overlaps", expected=f"1..{MAX_WINDOWS} windows"
            )


def overlap(one: Policy, other: Policy) -> bool:
    """Return whether two windows are of one provider and at the same time, and one has noise.

    Without noise in either of them there is no budget that the other would spend.

    Args:
        one, other: their policies; of one window twice: no.
    """
    if one.provider != other.provider or one.window == other.window:
        return False
    return one.start < other.end and other.start < one.end and (one.noised or other.noised)


def shared_tenants(one: Policy, other: Policy) -> tuple[str, ...]:
    """Return the tenants of both, in the order of the first.

    Args:
        one, other: policies of windows that overlap.
    """
    return tuple(tenant for tenant in one.tenants if tenant in other.tenants)
