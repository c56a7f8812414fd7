"""What an adapter does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar
from uuid import UUID

import numpy as np
from ragaudit.lab.attacks.scope.canaries import Canary, near
from ragaudit.lab.attacks.scope.exchange import Client, Request
from ragaudit.lab.attacks.scope.probes import Attempt, Census, Oracle, Probe, Write
from ragaudit.lab.attacks.scope.target import Target

__all__ = ["IDENTITY_HEADERS", "Scene", "Store"]

IDENTITY_HEADERS = (
    "x-tenant", "x-tenant-id", "tenant", "x-scope-orgid", "x-user", "x-user-id",
    "x-forwarded-user", "x-remote-user", "x-auth-request-user", "ragaudit-user",
)  # fmt: skip
"""In which proxies and applications pass on who somebody is."""


@dataclass(frozen=True)
class Scene:
    """What every adapter needs.

    Attributes:
        canaries: of each tenant that has some.
        generator: seeded: the same requests every time.
    """

    target: Target
    canaries: dict[str, list[Canary]]
    client: Client
    generator: np.random.Generator
    keys: frozenset[str] = field(default_factory=frozenset)

    def planted(self, tenant: str) -> list[Canary]:
        """Return the canaries of a tenant that are in the store."""
        return [canary for canary in self.canaries[tenant] if canary.planted]


class Store:
    """The requests of one interface; a subclass for each."""

    header: ClassVar[str] = "authorization"
    prefix: ClassVar[str] = "Bearer "
    vectors: ClassVar[bool] = False
    """Whether questions are vectors, so that canaries need some."""
    plants: ClassVar[bool] = False
    """Whether `plant` and `remove` are offered."""

    restores: ClassVar[bool] = False
    """Whether `writes` takes back all that it may have changed, without planting anew."""

    writeless: ClassVar[str] = "it has no call that writes"
    """Why `writes` is not offered, where it is not."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.target = scene.target

    def open(self) -> None:
        """Look up what requests need, as the ids of collections.

        Raises:
            UnavailableError: the store does not answer a tenant; ``where`` names the field.
        """

    def control(self, tenant: str) -> Request:
        """Return a lawful request of a tenant, whose answer has its own canaries."""
        raise NotImplementedError

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        """Return what is tried with one tenant's key to see another's rows."""
        raise NotImplementedError

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        """Return the requests whose answers could tell whether a row of another exists."""
        return []

    def writes(self, attacker: str, victim: str) -> list[Write]:
        """Return what is tried with one tenant's key to change, add or remove another's rows.

        They name canaries and rows of the test alone.
        """
        return []

    def censuses(self, attacker: str, victim: str) -> list[Census]:
        """Return the counts that another's rows could raise; the victim's key adds a row for them.

        The row is of the test alone.
        """
        return []

    def plant(self, tenant: str) -> list[Request]:
        """Return the requests that put a tenant's canaries into the store with its own key."""
        raise NotImplementedError

    def remove(self, tenant: str) -> list[Request]:
        """Return the requests that take them out again."""
        raise NotImplementedError

    def has_key(self, tenant: str) -> bool:
        """Return whether requests can be made in a tenant's name."""
        return tenant in self.scene.keys

    def near(self, tenant: str) -> list[float]:
        """Return a vector whose nearest row is a canary of a tenant, and not that canary's own."""
        return near(self.scene.planted(tenant)[0], self.scene.generator)

    def rows(self, tenant: str) -> Sequence[tuple[Canary, dict[str, str]]]:
        """Return the planted canaries of a tenant with their metadata."""
        value = self.target.value(tenant)
        return [
            (canary, canary.metadata(self.target.tenant_field, value))
            for canary in self.scene.planted(tenant)
        ]

    def forged(self, victim: str, of: Canary | None = None) -> Canary:
        """Return a row that only the attacker writes: where a canary of the victim is nearest.

        Args:
            victim: whose reader is to find it.
            of: the canary whose id it takes; None for an id of its own.
        """
        place = self.scene.planted(victim)[0] if of is None else of
        draw = self.scene.generator.bytes
        return replace(
            place,
            id=str(UUID(bytes=draw(16), version=4)) if of is None else of.id,
            marker=f"forged{draw(16).hex()}",
            tag=f"tag{draw(16).hex()}",
        )

    def disposable(self) -> str:
        """Return a name for what the victim makes for the test, to see who may take it away."""
        return f"ragaudit-{self.scene.generator.bytes(8).hex()}"

    def own_row(self, tenant: str) -> Canary | None:
        """Return a planted canary of a tenant; None if it has none."""
        known = tenant in self.scene.canaries
        return self.scene.planted(tenant)[0] if known else None

    def attempts(
        self, read: Request, row: Canary, requests: Iterable[Request], undo: Sequence[Request],
        *, loses: str = "", setup: Sequence[Request] = (),
    ) -> tuple[Attempt, ...]:  # fmt: skip
        """Return attempts to write one row, or to remove it.

        Args:
            read: of the victim, whose answer has the row.
            row: as it is written; of a removal the canary itself.
            requests: of the attacker.
            undo: of whoever may.
            loses: what the victim does not read any more once the row is overwritten or removed.
            setup: of the victim, before each attempt.
        """
        shows = "" if row.marker == loses else row.marker
        return tuple(
            Attempt(request, read, shows, loses, tuple(undo), tuple(setup)) for request in requests
        )
