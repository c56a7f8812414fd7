"""What checks conclude, and the two claims that follow (docs/spec/10-verdict.md §10.3, §10.6).

Integrity: answers came from the committed indexes alone, and no query is missing from the log.
Privacy: the noise that was promised was added. A verdict states each with a result of its own, and
both follow from the statuses of its checks: whoever reads a verdict can derive them again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from ragaudit.encoding.errors import MalformedError

PASS: Final = "PASS"  # noqa: S105 - not a password
FAIL: Final = "FAIL"
EXCEEDED: Final = "EXCEEDED"
REFUSED: Final = "REFUSED"
CONDITIONAL: Final = "CONDITIONAL"
RESULTS: Final = (PASS, FAIL, EXCEEDED, REFUSED, CONDITIONAL)
NOT_CLAIMED: Final = "NOT CLAIMED"
"""Result of the claim of privacy where the policy adds no noise."""


class Status(StrEnum):
    """What a check concludes."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    EXCEEDED = "EXCEEDED"
    NOT_ESTABLISHED = "NOT ESTABLISHED"
    NOT_RUN = "NOT RUN"
    NOT_APPLICABLE = "NOT APPLICABLE"


PRIVACY_CHECKS: Final = ("accounting", "seed", "coalition", "epsilon")
"""The checks that a claim of privacy rests on, beside all others."""

MAY_BE_OPEN: Final = ("embedding", "cosigners", "time-stamps", "rows")
"""Checks that may leave open what they are about, and say so, in a window with integrity."""

CONDITIONS: Final = ("generator", "replay")
"""Checks that a claim of privacy is conditional on where they leave open what they are about."""

_STATEMENTS: Final = {
    ("integrity", PASS): (
        "Every answer that was checked is what the committed index of the account's own tenant "
        "gives for what was asked, but for rows that its receipt names as withheld, and the log "
        "that holds them is complete; whether that index holds the documents as their owner gave "
        "them, and whether withheld rows had to be, is the provider's word, which no check here "
        "compares with the documents."
    ),
    ("integrity", FAIL): (
        "That answers came from the committed indexes alone, and that the log is complete, is not "
        "established."
    ),
    ("integrity", REFUSED): (
        "The verifier refused to countersign the opening of this window; nothing in it is audited."
    ),
    ("privacy", PASS): (
        "The noise that was promised before the window was added to every answer that was "
        "checked; epsilon is stated in this verdict."
    ),
    ("privacy", EXCEEDED): (
        "The noise was added, but more accounts look as if they act together than the policy "
        "plans for; epsilon is restated for their number."
    ),
    ("privacy", CONDITIONAL): (
        "Charges and budgets of the generation channel are proven. That its answers used only "
        "charged rows, the votes, the noise, and the tokens or keywords are the provider's word, "
        "and the channel's epsilon is conditional on it."
    ),
    ("privacy", FAIL): "No guarantee of privacy follows from this window.",
    ("privacy", REFUSED): "No guarantee of privacy follows from this window.",
    ("privacy", NOT_CLAIMED): ("No epsilon is claimed: the policy of this window adds no noise."),
}

_OPEN: Final = {
    "embedding": (
        "That query vectors are those of the texts asked is not established (check embedding)."
    ),
    "cosigners": (
        "That the quorum of further cosigners saw the log in time is not established (check "
        "cosigners)."
    ),
    "time-stamps": (
        "That the log existed by the times that were promised is not established (check "
        "time-stamps)."
    ),
    "rows": (
        "That all sampled rows of the indexes hold the vectors of their texts is not established "
        "(check rows)."
    ),
}
"""What the statement of integrity says further of each of `MAY_BE_OPEN` that is left open."""

_VOID: Final = (
    "Of the charges {} are void: documents paid for them as for answers, and none was given."
)


@dataclass(frozen=True, slots=True)
class Claims:
    """The results of the two claims.

    Attributes:
        integrity: PASS, FAIL or REFUSED.
        privacy: PASS, FAIL, EXCEEDED, CONDITIONAL, REFUSED or NOT CLAIMED.
        open: ids of the checks, in the order of `MAY_BE_OPEN` and `CONDITIONS`, that leave open
            what they are about in a window with integrity.
        voids: charges of the generation channel that have no answer, in a window with integrity.
    """

    integrity: str
    privacy: str
    open: tuple[str, ...] = ()
    voids: int = 0

    @classmethod
    def of(
        cls, statuses: Mapping[str, Status], *, refused: bool = False, voids: object = None
    ) -> Self:
        """Return the claims that follow from the statuses of checks.

        Args:
            statuses: by the check's id.
            refused: whether the opening was refused.
            voids: the verdict's count of void charges; anything but a number above 0 is none.
        """
        private = [status for name, status in statuses.items() if name in PRIVACY_CHECKS]
        unclaimed = bool(private) and all(one is Status.NOT_APPLICABLE for one in private)
        if refused:
            return cls(REFUSED, NOT_CLAIMED if unclaimed else REFUSED)
        others = {name: one for name, one in statuses.items() if name not in PRIVACY_CHECKS}
        sound = all(_sound(name, one, unclaimed) for name, one in others.items())
        # Where integrity fails nothing is established, and no single check is said to be open.
        if not sound:
            return cls(FAIL, NOT_CLAIMED if unclaimed else FAIL)
        left = _left(lambda name: statuses.get(name) is Status.NOT_ESTABLISHED)
        if unclaimed:
            return cls(PASS, NOT_CLAIMED, left)
        void = voids if type(voids) is int and voids > 0 else 0
        privacy = _privacy(private)
        conditional = privacy == PASS and any(name in CONDITIONS for name in left)
        return cls(PASS, CONDITIONAL if conditional else privacy, left, void)

    @property
    def result(self) -> str:
        """The result of the whole verdict, one of RESULTS."""
        if self.integrity == REFUSED:
            return REFUSED
        if FAIL in (self.integrity, self.privacy):
            return FAIL
        return self.privacy if self.privacy in (EXCEEDED, CONDITIONAL) else PASS

    @property
    def unclaimed(self) -> bool:
        """Whether no privacy is claimed."""
        return self.privacy == NOT_CLAIMED

    @property
    def results(self) -> dict[str, str]:
        """The two results by the name of the claim."""
        return {"integrity": self.integrity, "privacy": self.privacy}

    @property
    def statements(self) -> tuple[str, str]:
        """What the two results mean, in the words of §10.6: of integrity and of privacy.

        A result never hides what is left open beside it: each has its own sentence.
        """
        left = [_OPEN[name] for name in self.open if name in _OPEN]
        left += [_VOID.format(self.voids)] if self.voids else []
        integrity = " ".join((_STATEMENTS["integrity", self.integrity], *left))
        privacy = _STATEMENTS["privacy", self.privacy]
        if self.privacy == EXCEEDED and self.conditional:
            privacy = f"{privacy} {_STATEMENTS['privacy', CONDITIONAL]}"
        return integrity, privacy

    @property
    def conditional(self) -> bool:
        """Whether privacy is conditional on answers that were not computed again."""
        return any(name in CONDITIONS for name in self.open)

    def to_json(self) -> dict[str, Any]:
        """Return the member ``claims``."""
        integrity, privacy = self.statements
        found: dict[str, Any] = {
            name: {
                "result": result,
                "statement": statement,
                "open": [check for check in self.open if (check in CONDITIONS) == of_privacy],
            }
            for name, result, statement, of_privacy in (
                ("integrity", self.integrity, integrity, False),
                ("privacy", self.privacy, privacy, True),
            )
        }
        if self.voids:
            found["integrity"]["voids"] = self.voids
        return found

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the claims of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedError: other members, results or statements.
        """
        match value:
            case {
                "integrity": {"result": str(integrity), "open": list(first), **more},
                "privacy": {"result": str(privacy), "open": list(second)},
            }:
                voids, left = more.get("voids", 0), _left(lambda name: name in (*first, *second))
                if type(voids) is not int or voids < 0:
                    raise MalformedError("not a number of charges", where="claims")
                claims = cls(integrity, privacy, left, voids)
                # A statement of another result would be what a reader believes.
                known = ("integrity", integrity) in _STATEMENTS and (
                    "privacy",
                    privacy,
                ) in _STATEMENTS
                if known and value == claims.to_json():
                    return claims
        raise MalformedError("not the claims of a verdict", where="claims")


def _left(is_open: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(name for name in (*MAY_BE_OPEN, *CONDITIONS) if is_open(name))


def _sound(name: str, status: Status, unclaimed: bool) -> bool:
    if status is Status.NOT_ESTABLISHED:
        return name in (*MAY_BE_OPEN, *CONDITIONS)
    # Without noise there is nothing to promise; anywhere else a rule that is not applied is broken.
    if status is Status.NOT_APPLICABLE:
        return name == "promises" and unclaimed
    return status is Status.PASS


def _privacy(statuses: list[Status]) -> str:
    if not statuses or not set(statuses) <= {Status.PASS, Status.EXCEEDED}:
        return FAIL
    return EXCEEDED if Status.EXCEEDED in statuses else PASS
