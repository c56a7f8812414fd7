"""The calls of the owner of a tenant's documents, and the check of what they return (spec 8.6)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx
from ragaudit.client.checks import CoreOperations
from ragaudit.client.errors import AnswerRejected
from ragaudit.client.transport import Service
from ragaudit.client.window import Window, parsed
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.document_proof import DocumentProof
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.kernel import MAX_TIME
from ragaudit.ledger.messages.opened_entry import Place
from ragaudit.ledger.messages.records import TenantOpening
from ragaudit.ledger.messages.row_proofs import (
    MAX_PROVEN_ROWS,
    ProvenIndexRow,
    RowProof,
    RowProofs,
)

__all__ = ["Batch", "OwnerService", "commit_rows"]

_ID_BYTES: Final = 48 * 1024
"""Of the ids of one request: a service reads bodies of 64 KiB as it is shipped."""
_SECONDS: Final = 120.0

commit_rows = CoreOperations().commit_rows


@dataclass(frozen=True)
class Batch:
    """Rows that were asked for together, each with its proof or what is wrong with it.

    Attributes:
        index: what the log commits to, once it was checked.
        asked: ids or positions, as many as there are rows.
        rows: as `RowProofs.rows`.
        faults: by place in the batch, of rows that are not proven.
    """

    index: TenantOpening
    asked: Sequence[str | int]
    rows: Sequence[ProvenIndexRow | None]
    faults: dict[int, RagauditError]


class OwnerService:
    """One window of a provider, asked with the API key of an owner. An asynchronous context."""

    def __init__(
        self,
        url: str,
        api_key: str,
        window: Window,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect nowhere yet.

        Args:
            url: of the prover service.
            api_key: of the tenant's owner.
            window: authenticated.
            transport: for tests and proxies.
        """
        headers = {"Authorization": f"Bearer {api_key}"}
        self.window = window
        self._service = Service(url, headers=headers, timeout_seconds=_SECONDS, transport=transport)
        self._path = f"/v1/owner/windows/{window.name}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._service.aclose()

    async def counts(self) -> "ShownCounts":
        """Return how many rows each version has, as the provider says.

        Raises:
            ProviderRefusal, ServiceUnreachable, InvalidReply: as `Service.request`.
            AnswerRejected: another form.
        """
        return parsed(ShownCounts.from_json, await self._service.get(f"{self._path}/counts"))

    async def row(self, name: str, version: int | None = None) -> RowProof | None:
        """Return the checked proof of one row, None if the version has not this id.

        Args:
            name: id of the document.
            version: None for the one in force.

        Raises:
            ProviderRefusal, ServiceUnreachable, InvalidReply: as `Service.request`.
            RejectedError: the proof does not hold.
        """
        proofs = await self._ask({"ids": [name], "version": version})
        [proof] = proofs.proofs
        if proof is not None and (
            proof.row.id != name or proof.index.version != (version or proof.index.version)
        ):
            raise AnswerRejected("the proof of another row", where="row proof", expected=name)
        await asyncio.to_thread(proofs.verify, self.window.view.policy, commit_rows)
        return proof

    async def document(self, name: str) -> tuple[DocumentProof, Place | None]:
        """Return the checked proof of what the closed log says of a document, and of its end.

        Args:
            name: id of the document.

        Raises:
            ProviderRefusal: also while the log is not closed.
            RagauditError: as `row`.
        """
        path = f"{self._path}/documents?id={quote(name, safe='')}"
        proof = parsed(DocumentProof.parse, await self._service.request("GET", path))
        if proof.id != name:
            raise AnswerRejected("the proof of another document", where="id", expected=name)
        return proof, proof.verify(self.window.view.policy, commit_rows)

    async def batches(
        self, wanted: Sequence[str] | Sequence[int], version: int
    ) -> AsyncIterator[Batch]:
        """Yield the rows of ids or positions, checked, a batch at a time.

        The next batch is on its way while one is checked.

        Args:
            wanted: of one kind.
            version: of the index.

        Raises:
            RagauditError: as `row`, of what a batch has in common. What is wrong with one row
                stands in the batch.
        """
        coming: asyncio.Task[tuple[Sequence[str | int], RowProofs]] | None = None
        rest: Sequence[str] | Sequence[int] = wanted
        try:
            while rest or coming is not None:
                if coming is None:
                    coming = asyncio.create_task(self._fetch(rest, version))
                asked, proofs = await coming
                rest = rest[len(asked) :]
                coming = asyncio.create_task(self._fetch(rest, version)) if rest else None
                yield await asyncio.to_thread(self._checked, asked, proofs, version)
        finally:
            if coming is not None:
                coming.cancel()

    async def _fetch(
        self, wanted: Sequence[str] | Sequence[int], version: int
    ) -> tuple[Sequence[str | int], RowProofs]:
        count = _fitting(wanted)
        kind = "ids" if isinstance(wanted[0], str) else "positions"
        proofs = await self._ask({kind: list(wanted[:count]), "version": version})
        # A reply may end early, and the rest is asked for again; it has no more than was asked.
        if len(proofs.rows) > count:
            raise AnswerRejected(f"{len(proofs.rows)} rows", where="rows", expected=f"{count}")
        return wanted[: len(proofs.rows)], proofs

    async def _ask(self, body: dict[str, Any]) -> RowProofs:
        data = await self._service.request("POST", f"{self._path}/rows", body)
        return await asyncio.to_thread(parsed, RowProofs.parse, data)

    def _checked(self, asked: Sequence[str | int], proofs: RowProofs, version: int) -> Batch:
        policy = self.window.view.policy
        index = proofs.index.verify(policy)
        if proofs.index.version != version:
            raise AnswerRejected("another version", where="version", expected=f"{version}")
        rows = [row for row in proofs.rows if row is not None]
        try:
            proofs.index.check(index, rows, policy, commit_rows)
            faults: dict[int, RagauditError] = {}
        except RagauditError:
            # Once more, row by row: an owner must know which, and the others hold.
            faults = dict(self._faults(index, proofs))
        return Batch(index, asked, proofs.rows, faults)

    def _faults(self, index: TenantOpening, proofs: RowProofs) -> Any:
        for at, row in enumerate(proofs.rows):
            if row is None:
                continue
            try:
                proofs.index.check(index, [row], self.window.view.policy, commit_rows)
            except RagauditError as error:
                yield at, error


@dataclass(frozen=True, slots=True)
class ShownCounts(JsonMessage):
    """How many rows the versions of an index have, as the provider says; nothing is proven.

    Attributes:
        versions: of each version, rising from 1: rows, null rows, and the entry's Unix
            milliseconds, None of version 1.
    """

    MEMBERS = "window tenant in_force versions"
    WHERE = "counts"

    window: str
    tenant: str
    in_force: int
    versions: tuple[tuple[int, int, int | None], ...]

    def _members(self) -> dict[str, Any]:
        shown = [
            {"version": number, "rows": rows, "null_rows": null, "time": time}
            for number, (rows, null, time) in enumerate(self.versions, start=1)
        ]
        head = {"window": self.window, "tenant": self.tenant, "in_force": self.in_force}
        return {**head, "versions": shown}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        versions = []
        for number, (where, item) in enumerate(f.objects("versions", 1, 1001), start=1):
            v = Fields(item, "version rows null_rows time", MalformedRecord, where)
            v.constant("version", number)
            time = v.optional(v.integer, "time", 0, MAX_TIME)
            rows = v.integer("rows", 1, MAX_TIME)
            versions.append((rows, v.integer("null_rows", 0, rows), time))
        force = f.integer("in_force", 1, len(versions))
        return cls(f.text("window", 1, 64), f.text("tenant", 1, 64), force, tuple(versions))


def _fitting(wanted: Sequence[str] | Sequence[int]) -> int:
    """Return how many of the first ids or positions fit into one request, at least one."""
    size = 0
    for count, each in enumerate(wanted[:MAX_PROVEN_ROWS]):
        # Every byte of an id may be escaped.
        size += 2 * len(each.encode()) + 8 if isinstance(each, str) else 16
        if count and size > _ID_BYTES:
            return count
    return min(len(wanted), MAX_PROVEN_ROWS)
