"""The stores that `ragaudit up` can stand before: what they hold, and the settings to serve it."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.http import HttpClient

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
LEAST_ROWS = 3  # K is less than N, and a list of one row is no ranking
_METRICS = {"cosine": "cosine", "l2": "l2", "ip": "inner-product"}
_LIMIT = 1000
_SLUG = 56


@dataclass(frozen=True)
class Collection:
    """A collection of the store.

    Attributes:
        name: in the store; applications go on using it.
        rows: N.
        dimension: d; 0 for one that never had a row.
        metric: that it ranks by, as policies call it.
        tenant: under which the prover serves it.
    """

    name: str
    rows: int
    dimension: int
    metric: str
    tenant: str = ""

    @property
    def servable(self) -> str:
        """Why it cannot be served; empty if it can."""
        if self.rows < LEAST_ROWS:
            return f"{self.rows} rows, {LEAST_ROWS} or more are needed"
        if self.metric not in {"cosine", "l2"}:
            return f"metric {self.metric}, which needs the largest norm of a policy"
        return ""


@dataclass(frozen=True)
class Found:
    """The collections to serve, all of one dimension and metric; the others, each with a reason."""

    served: tuple[Collection, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def metric(self) -> str:
        """Of all that are served."""
        return self.served[0].metric

    @property
    def least_rows(self) -> int:
        """N of the smallest that is served."""
        return min(each.rows for each in self.served)


def chroma_collections(url: str, token: str | None = None) -> list[Collection]:
    """Return all collections of a Chroma server's default database.

    Args:
        url: of the server.
        token: sent as ``x-chroma-token``; None for a server that wants none.

    Raises:
        UnavailableError: it does not answer, not as Chroma does, or only whoever has a token.
    """
    headers = {} if token is None else {"x-chroma-token": token}
    try:
        with HttpClient(url, headers=headers, timeout=30) as http:
            answer = http.request("GET", BASE, params={"limit": _LIMIT})
            return [_collection(http, each) for each in answer.raise_for_status().json()]
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        raise UnavailableError(
            f"the store answers {status}", where=url,
            expected="--token-file" if status in (401, 403) else "Chroma 1.x",
        ) from None  # fmt: skip
    except httpx.TransportError as error:
        raise UnavailableError(_unreachable(error), where=url, expected="a Chroma server") from None
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        raise UnavailableError(
            "the store does not answer as Chroma does", where=url, expected="Chroma 1.x"
        ) from None


def _unreachable(error: httpx.TransportError) -> str:
    """Why nothing came, in the system's words: "connection refused"."""
    said = re.sub(r"^\[[^]]*\] *", "", str(error)) or type(error).__name__
    return said[:1].lower() + said[1:]


def _collection(http: HttpClient, shown: Any) -> Collection:
    count = http.request("GET", f"{BASE}/{shown['id']}/count").raise_for_status().json()
    settings = shown.get("configuration_json") or {}
    space = (settings.get("hnsw") or settings.get("spann") or {}).get("space") or "l2"
    return Collection(
        name=str(shown["name"]),
        rows=int(count),
        dimension=int(shown.get("dimension") or 0),
        metric=_METRICS.get(space, str(space)),
    )


def chosen(
    collections: Iterable[Collection],
    names: Sequence[str],
    bad: Sequence[tuple[str, str]] = (),
) -> Found:
    """Return what can be served together: one policy has one dimension and one metric.

    The first collection that can be served decides which; name others to serve those.

    Args:
        collections: of the store.
        names: of those that are wanted; empty for all.
        bad: further ones that cannot be served, each with its reason.

    Raises:
        MalformedError: none is left, or one that was named is not there or cannot be served.
    """
    by_name = {each.name: each for each in collections}
    reasons = dict(bad)
    if missing := sorted(set(names) - set(by_name) - set(reasons)):
        raise MalformedError(
            f"no collection {missing[0]!r}",
            where="--collection",
            expected=", ".join(sorted(by_name)) or "a store with collections",
        )
    served: list[Collection] = []
    left_out = [each for each in bad if not names or each[0] in names]
    for each in sorted(by_name.values(), key=lambda it: it.name):
        if names and each.name not in names:
            continue
        reason = each.servable
        if not reason and served:
            first = served[0]
            if (each.dimension, each.metric) != (first.dimension, first.metric):
                reason = f"d = {each.dimension}, {each.metric}: unlike {first.name}"
        if reason:
            left_out.append((each.name, reason))
        else:
            taken = {it.tenant for it in served}
            served.append(
                Collection(
                    each.name, each.rows, each.dimension, each.metric, _tenant(each.name, taken)
                )
            )
    if not served or (names and left_out):
        told = "; ".join(f"{name}: {reason}" for name, reason in left_out) or "no collections"
        raise MalformedError(
            f"nothing to serve: {told}" if not served else f"not all can be served: {told}",
            where="the store",
        )
    return Found(tuple(served), tuple(left_out))


def _tenant(name: str, taken: set[str]) -> str:
    """Return a tenant's name that is like a collection's and not taken."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_SLUG].strip("-") or "tenant"
    number, found = 1, slug
    while found in taken:
        number += 1
        found = f"{slug}-{number}"
    return found


DSN = "store.dsn"


@dataclass(frozen=True)
class Source:
    """A store that was looked at.

    Attributes:
        found: what is served of it.
        backend: returns the section `backend` of the prover's settings, given the folder in which
            its secrets may be.
        chroma: settings of a Chroma server; None for another store.
    """

    found: Found
    backend: Callable[[Path], dict[str, Any]] = field(repr=False)
    chroma: dict[str, Any] | None = None


def of_chroma(url: str, token_file: Path | None, names: Sequence[str]) -> Source:
    """Return a Chroma server as a source.

    Args:
        url: of the server.
        token_file: secret file of its token; None for a server that wants none.
        names: of the collections that are wanted; empty for all.

    Raises:
        RagauditError: it does not answer, or nothing of it can be served.
    """
    token = None
    if token_file is not None:
        from ragaudit.serving.settings import read_secret_file

        token = read_secret_file(token_file)
    found = chosen(chroma_collections(url, token), names)
    settings: dict[str, Any] = {
        "url": url,
        "collections": {each.tenant: each.name for each in found.served},
    }
    if token_file is not None:
        settings["token_file"] = str(token_file.resolve())
    return Source(found, lambda _: {"kind": "chroma", "chroma": settings}, settings)


def of_pgvector(dsn: str, names: Sequence[str]) -> Source:
    """Return a PostgreSQL database with pgvector as a source.

    Args:
        dsn: connection string of libpq.
        names: of the tables that are wanted; empty for all.

    Raises:
        RagauditError: it does not answer, or nothing of it can be served.
    """
    from ragaudit.cli.up.pgvector_tables import pgvector_tables
    from ragaudit.prover.keys import write_secret_file

    tables = {each.collection.name: each for each in pgvector_tables(dsn)}
    good = [each.collection for each in tables.values() if not each.reason]
    bad = [(name, each.reason) for name, each in tables.items() if each.reason]
    found = chosen(good, names, bad)

    def backend(folder: Path) -> dict[str, Any]:
        write_secret_file(folder / DSN, dsn)
        served = {each.tenant: tables[each.name].columns for each in found.served}
        return {
            "kind": "pgvector",
            "pgvector": {"dsn_file": str((folder / DSN).resolve()), "tables": served},
        }

    return Source(found, backend)
