"""What an entry of the catalogue says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ragaudit.lab.attacks.intruder import Attempt, Intruder
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.verdict import Status
from ragaudit.prover.service import Components
from ragaudit.verifier.procedure.framework import CheckResult, Outcome

Staging = Literal["service", "constructed", "intrusion"]

FAMILIES: Final = (
    "SEED", "REGISTRATION", "COUNTER", "NONCE", "SELECTION", "NOISE", "GENERATION", "INDEX",
    "CONTAINMENT", "EMBEDDING", "INTEGRITY", "VERSION", "EPOCH", "RECEIPT", "LOG", "POLICY",
    "SAMPLING", "PROOF", "COALITION", "VERIFIER",
)  # fmt: skip

ONE_CLOCK: Final = "a scenario with services has one clock, from which theirs may differ by an hour"
"""Why evidence with false times is made without services."""

BEFORE_THE_WINDOW: Final = frozenset({"policy", "accounting", "commitments", "index-proof"})


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """One way to cheat, and what becomes of it.

    Attributes:
        name: kebab-case, unique.
        checks: ids of the checks that fail, all of them, in their order (docs/spec/09-audit.md);
            none of an intrusion, which the verifier's service repels before anything is audited.
        conditional: whether these checks are left open instead: nothing is false, and nothing is
            established.
        reason: a fragment of what one of them, or the service, says.
        complaint: a fragment of what an account's client library says; "" if it sees nothing.
        refused: whether the verifier refuses the window before it begins.
    """

    name: str
    family: str
    description: str
    checks: tuple[str, ...] = ()
    reason: str
    complaint: str = ""
    refused: bool = False
    conditional: bool = False

    @property
    def staging(self) -> Staging:
        """How it is staged."""
        raise NotImplementedError

    @property
    def result(self) -> str:
        """What the verdict says."""
        if self.conditional:
            return "CONDITIONAL"
        return "REFUSED" if self.refused else "FAIL"

    def named(self, outcome: Outcome) -> tuple[CheckResult, ...]:
        """Return the checks of an outcome that failed, or that were left open, as this names."""
        status = Status.NOT_ESTABLISHED if self.conditional else Status.FAIL
        return tuple(each for each in outcome.checks if each.status is status)


@dataclass(frozen=True, kw_only=True)
class ServiceCheat(Cheat):
    """A prover service with components of its own.

    Attributes:
        parts: the components that replace the honest ones, by their name in `Components`.
        disputes: whether the audit finds it in disputes only, so that accounts must complain.
        scenario: what accounts do; another one than `Scenario` if ordinary traffic shows nothing.
        guard: what else stops the window, whatever the checks; "" if nothing does.
    """

    parts: Mapping[str, Any] = field(repr=False)
    disputes: bool = False
    scenario: type[Scenario] = Scenario
    guard: str = ""

    @property
    def staging(self) -> Staging:
        return "service"

    def components(self, honest: Components) -> Components:
        """Return honest components with this cheat's parts in their place."""
        return replace(honest, **self.parts)

    @property
    def from_the_start(self) -> bool:
        """Whether the window differs from an honest one before its first query."""
        # These act on queries or later: an honest prepared window is as good to begin with, and
        # saves the proof of the index for each cheat.
        return not set(self.parts) <= {"mechanism", "stages", "promises", "closing", "challenges"}


@dataclass(frozen=True, kw_only=True)
class ConstructedCheat(Cheat):
    """Evidence made without services, since none would get that far.

    Attributes:
        window: makes the cheating window.
        why: what stops a service.
        slow: whether it takes a pure Python proof of more than a few seconds.
    """

    window: Callable[[], Window] = field(repr=False)
    why: str
    slow: bool = False

    @property
    def staging(self) -> Staging:
        return "constructed"


@dataclass(frozen=True)
class Guard:
    """A function of the verifier's service that repels an intrusion.

    Attributes:
        owner: its module or class.
        name: its name there.
        without: what stands in its place in a verifier that lacks it.
    """

    owner: Any
    name: str
    without: Any = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Intrusion(Cheat):
    """What a pinned provider does to the verifier itself, or to another provider there.

    Attributes:
        scenario: who intrudes, and how.
        guards: what repels it; without them it gets through.
    """

    scenario: type[Intruder] = field(repr=False)
    guards: tuple[Guard, ...]

    @property
    def staging(self) -> Staging:
        return "intrusion"

    @property
    def result(self) -> str:
        return "REPELLED"

    def repelled(self, attempt: Attempt) -> bool:
        """Return whether an attempt got nowhere, for the named reason.

        Args:
            attempt: what came of it; one repelled for another reason shows nothing of these guards.
        """
        return not attempt.through and self.reason in attempt.said
