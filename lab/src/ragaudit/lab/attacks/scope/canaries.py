"""Canaries: documents with markers that nobody can guess, some planted and some not."""

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
from ragaudit.encoding.errors import MalformedError

PLANTED: Final = 10
"""Of each tenant; as many again are drawn and not planted. C(20, 10) = 184756 ways to choose them
are few enough to look at all, and enough for a p-value of 2e-5."""
MIN_DIMENSION: Final = 8
"""Of a vector whose numbers nobody guesses."""
TAG: Final = "ragaudit_tag"
"""The member of the metadata that holds the second marker."""


@dataclass(frozen=True)
class Canary:
    """A document that exists for the test alone.

    Attributes:
        tenant: whose it is.
        planted: whether it is in the store. Ids and markers of planted and other canaries come
            from one draw, so that only a store that looks at foreign rows can tell them apart.
        id: a random UUID.
        marker: in its text, 128 random bits.
        tag: in its metadata, 128 other random bits.
        vector: of length 1; None where the system under test embeds texts itself.
    """

    tenant: str
    planted: bool
    id: str
    marker: str
    tag: str
    vector: tuple[float, ...] | None

    @property
    def text(self) -> str:
        """The document; whoever shows its beginning or its end shows the marker."""
        return f"{self.marker}: {question(self.tenant)} Its marker is {self.marker}."

    @property
    def spelled(self) -> str:
        """Its vector, as a request has it; "" without one."""
        return "" if self.vector is None else json.dumps(self.vector)[1:-1]

    def metadata(self, tenant_field: str, tenant_value: str) -> dict[str, str]:
        """Return the metadata of the document.

        Args:
            tenant_field: the member that says whose a row is.
            tenant_value: its value.
        """
        return {tenant_field: tenant_value, TAG: self.tag}

    def markers(self) -> dict[str, str]:
        """Return what it shows if it leaks, by the text that gives it away."""
        return {self.marker: "content", self.tag: "metadata", self.id: "id"}


def question(tenant: str) -> str:
    """Return a text that is near all canaries of a tenant, and has no marker."""
    return f"Ragaudit canary document of the tenant {tenant}, planted to test retrieval scope."


def draw(tenants: Iterable[str], dimension: int | None) -> list[Canary]:
    """Return new canaries of tenants, planted and not, in an order that does not say which.

    Args:
        dimension: of the vectors; None for none.

    Raises:
        MalformedError: a dimension in which vectors could be guessed.
    """
    if dimension is not None and dimension < MIN_DIMENSION:
        raise MalformedError(
            str(dimension), where="dimension", expected=f"{MIN_DIMENSION} at least, or none"
        )
    # Of the system's generator, not of the run's seed: whoever reads the seed must not know them.
    generator = np.random.default_rng(secrets.randbits(128))
    canaries = []
    for tenant in tenants:
        for place in generator.permutation(2 * PLANTED):
            vector = None if dimension is None else _unit(generator.normal(size=dimension))
            canaries.append(
                Canary(
                    tenant=tenant,
                    planted=bool(place < PLANTED),
                    id=str(UUID(bytes=secrets.token_bytes(16), version=4)),
                    marker=f"canary{secrets.token_hex(16)}",
                    tag=f"tag{secrets.token_hex(16)}",
                    vector=vector,
                )
            )
    return canaries


def near(canary: Canary, generator: np.random.Generator) -> list[float]:
    """Return a vector whose nearest row is the canary, and that is not the canary's own.

    An answer that repeats the question is then no leak of the canary's vector.
    """
    assert canary.vector is not None
    vector = np.asarray(canary.vector)
    other = np.asarray(_unit(generator.normal(size=len(vector))))
    return list(_unit(vector + 0.2 * other))


def write(path: Path, canaries: Sequence[Canary]) -> None:
    """Write canaries as JSON lines, with their text, into a new file that nobody else may read.

    Raises:
        MalformedError: there is such a file.
    """
    try:
        path.touch(mode=0o600, exist_ok=False)
        lines = [json.dumps({**asdict(each), "text": each.text}) for each in canaries]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise MalformedError(
            f"cannot write: {error.strerror}", where=str(path), expected="a new file"
        ) from None


def read(path: Path, where: str) -> list[Canary]:
    """Return the canaries of a file that `write` wrote.

    Args:
        where: the field's name, for errors.

    Raises:
        MalformedError: no such file, or another content.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        found = [_canary(json.loads(line)) for line in lines]
    except OSError as error:
        raise MalformedError(
            f"cannot read {path}: {error.strerror}",
            where=where,
            expected="a file of `ragaudit attack canaries`",
        ) from None
    except (ValueError, KeyError, TypeError):
        raise MalformedError(
            f"{path} has no canaries", where=where, expected="a file of `ragaudit attack canaries`"
        ) from None
    for tenant in {each.tenant for each in found}:
        planted = [each.planted for each in found if each.tenant == tenant]
        if planted.count(True) != PLANTED or len(planted) != 2 * PLANTED:
            raise MalformedError(
                f"{path}: not {PLANTED} planted canaries of {2 * PLANTED} of {tenant}", where=where
            )
    return found


def _canary(given: Any) -> Canary:
    vector = given["vector"]
    canary = Canary(
        tenant=str(given["tenant"]),
        planted=given["planted"] is True,
        id=str(UUID(given["id"])),
        marker=str(given["marker"]),
        tag=str(given["tag"]),
        vector=None if vector is None else tuple(map(float, vector)),
    )
    if min(len(canary.marker), len(canary.tag)) < 32 or (
        canary.vector is not None and len(canary.vector) < MIN_DIMENSION
    ):
        raise ValueError
    return canary


def _unit(vector: Any) -> tuple[float, ...]:
    array = np.asarray(vector, dtype=np.float64)
    return tuple(map(float, (array / np.linalg.norm(array)).astype(np.float32)))
