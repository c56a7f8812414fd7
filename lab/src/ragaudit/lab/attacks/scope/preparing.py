"""From a target to a plan: the adapter, its client and the canaries."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.attacks.scope.canaries import Canary, read
from ragaudit.lab.attacks.scope.exchange import Client, HttpClient, Secrets
from ragaudit.lab.attacks.scope.planning import Options, Plan
from ragaudit.lab.attacks.scope.stores.chroma import Chroma
from ragaudit.lab.attacks.scope.stores.dify import Dify
from ragaudit.lab.attacks.scope.stores.mcp import Mcp
from ragaudit.lab.attacks.scope.stores.openai import OpenAi
from ragaudit.lab.attacks.scope.stores.pgvector import Pgvector, SqlClient
from ragaudit.lab.attacks.scope.stores.prover import Prover
from ragaudit.lab.attacks.scope.stores.qdrant import Qdrant
from ragaudit.lab.attacks.scope.stores.store import Scene, Store, StoreKind, Target

STORES: Final[dict[StoreKind, type[Store]]] = {
    "chroma": Chroma,
    "qdrant": Qdrant,
    "openai": OpenAi,
    "pgvector": Pgvector,
    "prover": Prover,
    "mcp": Mcp,
    "dify": Dify,
}


@contextmanager
def prepared(target: Target, options: Options, *, plant: bool) -> Iterator[tuple[Plan, Secrets]]:
    """Give the plan of a run, and what must not be printed.

    Args:
        target: with absolute paths.
        plant: whether to plant the canaries before and remove them afterwards.

    Raises:
        MalformedError: keys or canaries are missing or unfit; ``where`` names the field.
        UnavailableError: the store does not answer.
    """
    kind = STORES[target.store]
    canaries = _canaries(target, kind)
    if plant and not kind.plants:
        raise MalformedError(
            f"nothing can be planted over this interface ({target.store})",
            where="--plant", expected="your own ingestion of the file of canaries",
        )  # fmt: skip
    if options.writes and kind.writes is Store.writes:
        raise MalformedError(
            f"nothing can be written over this interface ({target.store}): {kind.writeless}",
            where="--writes", expected="the test of the store behind it",
        )  # fmt: skip
    if options.writes and not (plant or kind.restores):
        raise MalformedError(
            "canaries that are overwritten must be planted again",
            where="--writes", expected="with --plant",
        )  # fmt: skip
    keys = target.keys()
    secrets = Secrets(keys)
    client = _client(target, kind, secrets)
    try:
        scene = Scene(
            target, canaries, client, np.random.default_rng([options.seed, 0]), frozenset(keys)
        )
        store = kind(scene)
        store.open()
        yield Plan(store, options, plant=plant), secrets
    finally:
        client.close()


def _client(target: Target, kind: type[Store], secrets: Secrets) -> Client:
    if kind is Pgvector:
        return SqlClient(secrets, target.timeout_seconds)
    header = kind.header if target.key_header is None else target.key_header.lower()
    prefix = kind.prefix if target.key_prefix is None else target.key_prefix
    return HttpClient(target.url, header, prefix, secrets, target.timeout_seconds)


def _canaries(target: Target, kind: type[Store]) -> dict[str, list[Canary]]:
    found: dict[str, list[Canary]] = {}
    for canary in read(target.canaries, "canaries"):
        if canary.tenant not in target.tenants:
            raise MalformedError(
                f"of {canary.tenant}", where="canaries", expected="tenants of the target alone"
            )
        length = None if canary.vector is None else len(canary.vector)
        if kind.vectors and length != target.dimension:
            raise MalformedError(
                f"canaries of dimension {length}",
                where="dimension",
                expected="that of `ragaudit attack canaries --dimension`",
            )
        found.setdefault(canary.tenant, []).append(canary)
    return found
