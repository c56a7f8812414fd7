"""What an entry of the catalogue says: it stands above the class that cheats, as its decorator."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from inspect import getdoc
from typing import Any, Final, Literal, TypeVar

import httpx
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import seeded
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.services import PROVIDER, Clock
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.messages.identifiers import log_origin
from ragaudit.ledger.messages.signed import SignedRequest
from ragaudit.ledger.messages.verdict import Status
from ragaudit.prover.answering.query import Stages
from ragaudit.prover.keys import load_key
from ragaudit.prover.service import Components
from ragaudit.verifier.procedure.framework import CheckResult, Outcome
from ragaudit.verifier.service import providers

RIVAL: Final = "rival.example"
TAKEN: Final = "taken"


@dataclass(frozen=True)
class Attempt:
    """What came of an intrusion.

    Attributes:
        through: whether it got what it wanted.
        said: what the verifier said to the request that it came down to.
    """

    through: bool
    said: str


class Intruder(Scenario):
    """A pinned provider beside an honest window; subclasses say what it does."""

    def attempt(self) -> Attempt:
        """Bring the honest window up, intrude, and return what comes of it."""
        with ExitStack() as stack:
            self.open(stack)
            return self.intrude()

    def intrude(self) -> Attempt:
        """Do what this intruder does and return what came of it."""
        raise NotImplementedError

    def as_provider(self) -> "Caller":
        """Return the calls of the honest window's own provider, which the verifier has pinned."""
        key = load_key(self.folder / "prover" / "keys" / "provider.key")
        return Caller(PROVIDER, key, self.verifier.transport, self.clock)

    def as_rival(self) -> "Caller":
        """Return the calls of another provider, which the verifier pins now."""
        key = seeded(RIVAL)
        providers.add(self.verifier.service.database, RIVAL, key.public)
        return Caller(RIVAL, key, self.verifier.transport, self.clock)

    def policy(self, window: str, provider: str = PROVIDER) -> dict[str, Any]:
        """Return as much of a policy as the verifier files: names and keys, and no terms at all.

        Args:
            window: its name.
            provider: whose policy: `PROVIDER` or `RIVAL`. Each window has a log key of its own, or
                the verifier would decline the second (docs/spec/08-services.md §8.3).
        """
        keys = {**self.prover.policy.to_json()["keys"]}
        if provider == RIVAL:
            keys["provider"] = seeded(RIVAL).public.raw.hex()
        log = SigningKey(log_origin(provider, window), ED25519, seeded(f"{provider} {window}"))
        return {
            "format": "ragaudit/v1/policy",
            "provider": provider,
            "window": window,
            "start": self.clock.now // 1000 + 3600,
            "tenants": [{"id": "acme", "owner_key": None}],
            "keys": {**keys, "log": str(log.verifier_key)},
        }


class Caller:
    """A provider's calls to the verifier, each of any content (docs/spec/08-services.md §8.1).

    Every call returns what the verifier says: `TAKEN`, or the status with what was wrong.
    """

    def __init__(
        self, name: str, key: PrivateKey, transport: httpx.BaseTransport, clock: Clock
    ) -> None:
        """Sign calls as a provider.

        Args:
            name: the provider's.
            key: the provider's, which the verifier has pinned.
            transport: leads to the verifier.
            clock: of the scenario, for the signed time.
        """
        self._name = name
        self._key = key
        self._clock = clock
        self._http = httpx.Client(transport=transport, base_url="http://verifier.test")

    def register(self, policy: dict[str, Any]) -> str:
        """File a window.

        Args:
            policy: the document as JSON; the embedder's manifest is left empty.
        """
        return self.send("POST", "/v1/windows", dumps({"policy": policy, "embedder": {}}))

    def put_index(self, window: str, commitment: bytes) -> str:
        """Upload an index commitment of the tenant acme.

        Args:
            window: its name.
            commitment: any bytes.
        """
        return self.send("PUT", f"/v1/windows/{window}/tenants/acme/versions/1", commitment)

    def put_records(self, window: str, handover: bytes) -> str:
        """Hand a log over.

        Args:
            window: its name.
            handover: any bytes.
        """
        return self.send("PUT", f"/v1/windows/{window}/records", handover)

    def open_falsely(self, window: str) -> str:
        """Ask for the countersignature of an opening that is none, so that the window is refused.

        Args:
            window: its name.
        """
        opening = {"opening": "00", "salt": "00" * 32, "empty_checkpoint": "none"}
        return self.send("POST", f"/v1/windows/{window}/countersign", dumps(opening))

    def send(self, method: str, path: str, body: bytes) -> str:
        """Make a signed call.

        Args:
            method: of HTTP.
            path: with the query, as it goes into the signature (docs/spec/08-services.md §8.1).
            body: any bytes.
        """
        signed = SignedRequest.issue(
            self._key,
            provider=self._name,
            method=method,
            target=path,
            body=body,
            time=self._clock(),
        )
        answer = self._http.request(method, path, content=body, headers=signed.encode())
        return TAKEN if answer.is_success else f"{answer.status_code} {answer.json()['detail']}"


Staging = Literal["service", "constructed", "intrusion"]

FAMILIES: Final = (
    "SEED", "REGISTRATION", "COUNTER", "NONCE", "SELECTION", "NOISE", "GENERATION", "INDEX",
    "CONTAINMENT", "EMBEDDING", "INTEGRITY", "VERSION", "EPOCH", "RECEIPT", "LOG", "POLICY",
    "SAMPLING", "PROOF", "COALITION", "VERIFIER",
)  # fmt: skip

EASY: Final = "nothing stops a service; evidence made without one shows it in a second"
ONE_CLOCK: Final = "a scenario with services has one clock, from which theirs may differ by an hour"
"""Why evidence with false times is made without services."""

BEFORE_THE_WINDOW: Final = frozenset({"policy", "accounting", "commitments", "index-proof"})

ENROLLED: Final[list["Cheat"]] = []
"""Every entry that was given its class, in the order of the imports."""

Lie = TypeVar("Lie", bound=type[Any])


@dataclass(frozen=True)
class Cheat:
    """One way to cheat, and what becomes of it.

    Attributes:
        name: kebab-case, unique.
        description: if it is not said, the first paragraph of the docstring of the class.
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
    checks: tuple[str, ...] = ()
    _: KW_ONLY
    reason: str
    description: str = ""
    complaint: str = ""
    refused: bool = False
    conditional: bool = False

    def __call__(self, lie: Lie) -> Lie:
        """Enter the class that cheats so into the catalogue, and return it.

        Args:
            lie: a class may have several entries.
        """
        said = self.description or " ".join((getdoc(lie) or "").split("\n\n")[0].split())
        ENROLLED.append(replace(self, description=said, **self.told_by(lie)))
        return lie

    def told_by(self, lie: type[Any]) -> dict[str, Any]:
        """Return the members of the entry that follow from the class that cheats."""
        raise NotImplementedError

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
    """A prover service with components of its own: the decorated class is one, or is the scenario.

    Attributes:
        parts: the components that replace the honest ones, by their name in `Components`.
        disputes: whether the audit finds it in disputes only, so that accounts must complain.
        scenario: what accounts do; another one than `Scenario` if ordinary traffic shows nothing.
        guard: what else stops the window, whatever the checks; "" if nothing does.
    """

    parts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    disputes: bool = False
    scenario: type[Scenario] = Scenario
    guard: str = ""

    def told_by(self, lie: type[Any]) -> dict[str, Any]:
        if issubclass(lie, Scenario):
            return {"scenario": lie}
        return {"parts": {**self.parts, **part(lie)}}

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


def part(lie: type[Any]) -> dict[str, Any]:
    """Return a component with its name in `Components`, as `ServiceCheat.parts` wants it.

    Args:
        lie: a subclass of an honest component, or of one of the stages of a query.
    """
    honest = Components()
    stages = {each.name: getattr(honest.stages, each.name) for each in fields(Stages)}
    for name, stage in stages.items():
        if issubclass(lie, stage):
            return {"stages": Stages(**{name: lie})}
    parts = {each.name: getattr(honest, each.name) for each in fields(Components)}
    return {
        name: lie
        for name, component in parts.items()
        if isinstance(component, type) and issubclass(lie, component)
    }


@dataclass(frozen=True, kw_only=True)
class ConstructedCheat(Cheat):
    """Evidence made without services, since none would get that far.

    Attributes:
        window: makes the cheating window: the decorated class.
        given: arguments of that class.
        why: what stops a service.
        slow: whether it takes a pure Python proof of more than a few seconds.
    """

    window: Callable[[], Window] = field(default=Window, repr=False)
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    why: str = EASY
    slow: bool = False

    def told_by(self, lie: type[Any]) -> dict[str, Any]:
        window: Callable[..., Window] = lie
        return {"window": partial(window, **self.given) if self.given else window}

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
        scenario: who intrudes, and how: the decorated class.
        guards: what repels it; without them it gets through.
    """

    scenario: type[Intruder] = field(default=Intruder, repr=False)
    guards: tuple[Guard, ...]

    def told_by(self, lie: type[Any]) -> dict[str, Any]:
        return {"scenario": lie}

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
