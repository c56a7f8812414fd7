"""What checks conclude, and the two claims that follow (docs/spec/10-verdict.md §10.3, §10.6).

Integrity: answers came from the committed indexes alone, and no query is missing from the log.
Privacy: the noise that was promised was added. A verdict states each with a result of its own, and
both follow from the statuses of its checks: whoever reads a verdict can derive them again.
"""

from collections.abc import Mapping
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
    """What a check concludes; NOT APPLICABLE in v2 verdicts only."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    EXCEEDED = "EXCEEDED"
    NOT_ESTABLISHED = "NOT ESTABLISHED"
    NOT_RUN = "NOT RUN"
    NOT_APPLICABLE = "NOT APPLICABLE"


PRIVACY_CHECKS: Final = ("accounting", "seed", "coalition", "epsilon")
"""The checks that a claim of privacy rests on, beside all others."""

MAY_BE_OPEN: Final = ("embedding", "cosigners", "time-stamps")
"""Checks that may leave open what they are about, and say so, in a window with integrity."""

CONDITIONS: Final = ("generator", "replay")
"""Checks that a claim of privacy is conditional on where they leave open what they are about."""

_STATEMENTS: Final = {
    ("integrity", PASS): (
        "Every answer that was checked is what the committed index of the account's own tenant "
        "gives for what was asked, and the log that holds them is complete."
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


@dataclass(frozen=True, slots=True)
class Claims:
    """The results of the two claims.

    Attributes:
        integrity: PASS, FAIL or REFUSED.
        privacy: PASS, FAIL, EXCEEDED, CONDITIONAL, REFUSED or NOT CLAIMED.
    """

    integrity: str
    privacy: str

    @classmethod
    def of(cls, statuses: Mapping[str, Status], *, refused: bool = False) -> Self:
        """Return the claims that follow from the statuses of checks.

        Args:
            statuses: by the check's id.
            refused: whether the opening was refused.
        """
        private = [status for name, status in statuses.items() if name in PRIVACY_CHECKS]
        open_ = any(statuses.get(name) is Status.NOT_ESTABLISHED for name in CONDITIONS)
        unclaimed = bool(private) and all(one is Status.NOT_APPLICABLE for one in private)
        if refused:
            return cls(REFUSED, NOT_CLAIMED if unclaimed else REFUSED)
        others = {name: one for name, one in statuses.items() if name not in PRIVACY_CHECKS}
        sound = all(_sound(name, one, unclaimed) for name, one in others.items())
        integrity = PASS if sound else FAIL
        if unclaimed:
            return cls(integrity, NOT_CLAIMED)
        privacy = _privacy(private) if sound else FAIL
        return cls(integrity, CONDITIONAL if privacy == PASS and open_ else privacy)

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
        """What the two results mean, in the words of §10.6: of integrity and of privacy."""
        return _STATEMENTS["integrity", self.integrity], _STATEMENTS["privacy", self.privacy]

    def to_json(self) -> dict[str, Any]:
        """Return the member ``claims``."""
        integrity, privacy = self.statements
        return {
            "integrity": {"result": self.integrity, "statement": integrity},
            "privacy": {"result": self.privacy, "statement": privacy},
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the claims of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedError: other members, results or statements.
        """
        match value:
            case {
                "integrity": {"result": str(integrity)},
                "privacy": {"result": str(privacy)},
            }:
                claims = cls(integrity, privacy)
                # A statement of another result would be what a reader believes.
                known = ("integrity", integrity) in _STATEMENTS and (
                    "privacy",
                    privacy,
                ) in _STATEMENTS
                if known and value == claims.to_json():
                    return claims
        raise MalformedError("not the claims of a verdict", where="claims")


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
