"""What an owner is shown of its documents in an index, with proofs: asked for, checked, told.

Row proofs say what the index holds of a document, document proofs that it is gone, and since when
(docs/spec 5.16 and 8.6).
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

from ragaudit.client import offline
from ragaudit.client.checks import CoreOperations, check_pin
from ragaudit.client.errors import AnswerRejected
from ragaudit.client.state import read_bytes
from ragaudit.client.transport import Service
from ragaudit.client.window import Window, parsed
from ragaudit.encoding.commands import of_file
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import CommitmentRejected
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.ledger.messages.documents import (
    MAX_PROVEN_ROWS,
    DocumentProof,
    ProvenIndexRow,
    RowProof,
    RowProofs,
)
from ragaudit.ledger.messages.entries import TenantOpening, Version
from ragaudit.ledger.messages.kernel import Count, Items, Message, Milliseconds, Name
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import Embed, StepResult
from ragaudit.ledger.messages.shown import Place

__all__ = [
    "Batch",
    "Erased",
    "Given",
    "OwnerProof",
    "OwnerService",
    "ShownCounts",
    "check",
    "check_file",
    "described",
    "far_off",
    "is_proof",
    "opened",
    "read",
    "too_short",
]

OwnerProof: TypeAlias = "RowProof | DocumentProof"
_KINDS: dict[str, type[RowProof] | type[DocumentProof]] = {
    RowProof.FORMAT: RowProof,
    DocumentProof.FORMAT: DocumentProof,
}
_ID_BYTES: Final = 48 * 1024
"""Of the ids of one request: a service reads bodies of 64 KiB as it is shipped."""
_COMMIT = CoreOperations().commit_rows


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


class ShownVersion(Message):
    """How many rows a version of an index has; null rows are the provider's word.

    Attributes:
        version: from 1.
        rows, null_rows: how many.
        time: of its entry; None of version 1.
    """

    version: Count
    rows: Count
    null_rows: Count
    time: Milliseconds | None

    def _check(self) -> None:
        if not 0 < self.rows >= self.null_rows:
            raise MalformedError("more null rows than rows, or none", where="null_rows")


class ShownCounts(Message, where="counts"):
    """The versions of an index as the provider says; nothing is proven.

    Attributes:
        window, tenant: names.
        in_force: number of the version that is.
        versions: in order, from 1.
    """

    window: Name
    tenant: Name
    in_force: Count
    versions: Annotated[tuple[ShownVersion, ...], Items(1, 1001)]

    def _check(self) -> None:
        if [each.version for each in self.versions] != [*range(1, len(self.versions) + 1)]:
            raise MalformedError("not in order", where="versions", expected="1, 2, ...")
        if not 1 <= self.in_force <= len(self.versions):
            expected = f"1..{len(self.versions)}"
            raise MalformedError("no such version", where="in_force", expected=expected)


class OwnerService:
    """One window of a provider, asked with the API key of an owner."""

    def __init__(self, service: Service, window: Window) -> None:
        """Connect nowhere yet.

        Args:
            service: of the prover, with the API key of the tenant's owner.
            window: authenticated.
        """
        self.window = window
        self._service = service
        self._path = f"/v1/owner/windows/{window.name}"

    async def counts(self) -> ShownCounts:
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
        await asyncio.to_thread(proofs.verify, self.window.view.policy, _COMMIT)
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
        return proof, proof.verify(self.window.view.policy, _COMMIT)

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
            proofs.index.check(index, rows, policy, _COMMIT)
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
                proofs.index.check(index, [row], self.window.view.policy, _COMMIT)
            except RagauditError as error:
                yield at, error


def _fitting(wanted: Sequence[str] | Sequence[int]) -> int:
    """Return how many of the first ids or positions fit into one request, at least one."""
    size = 0
    for count, each in enumerate(wanted[:MAX_PROVEN_ROWS]):
        # Every byte of an id may be escaped.
        size += 2 * len(each.encode()) + 8 if isinstance(each, str) else 16
        if count and size > _ID_BYTES:
            return count
    return min(len(wanted), MAX_PROVEN_ROWS)


@dataclass(frozen=True)
class Given:
    """What whoever checks a row proof has beside it.

    Attributes:
        text: of the document; None if it is not at hand.
        attributes: canonical JSON text of its metadata; None if it is not at hand.
        embed: the committed embedder, where it is.
    """

    text: str | None = field(default=None, repr=False)
    attributes: str | None = field(default=None, repr=False)
    embed: Embed | None = field(default=None, repr=False)

    @classmethod
    def read(cls, text: Path | None, attributes: Path | None, embed: Embed | None) -> "Given":
        """Return what files hold.

        Args:
            text: of UTF-8, exactly the document's.
            attributes: JSON of its metadata, in any spelling; an empty object for none.
            embed: the committed embedder, where it is at hand.

        Raises:
            MalformedError: not such files.
            UnavailableError: one cannot be read.
        """
        said = None
        if attributes is not None:
            value = offline.read_json(attributes)
            if not isinstance(value, dict):
                raise MalformedError("not an object", where=str(attributes), expected="metadata")
            said = canonical_text(value) if value else ""
        return cls(None if text is None else _text(text), said, embed)


@dataclass(frozen=True)
class Erased:
    """What a document proof says, for people.

    Attributes:
        gone: whether the document is not in the last version of the index, or never was.
        since: RFC 3339 time from which on it is gone; None if that is not known, or not so.
        version: from which on it is gone; None if it never was there, or is.
        sentence: all of it.
    """

    gone: bool
    since: str | None
    version: int | None
    sentence: str


def is_proof(value: Mapping[str, Any]) -> bool:
    """Return whether a file's JSON calls itself a row proof or a document proof."""
    return value.get("format") in _KINDS


def read(path: Path) -> OwnerProof:
    """Return the proof in a file, in its canonical bytes; nothing is verified.

    Args:
        path: of the reply, as it was saved.

    Raises:
        MalformedError: neither of the two.
        UnavailableError: it cannot be read.
    """
    value = offline.read_file(path)
    if not is_proof(value):
        expected = " or ".join(_KINDS)
        raise MalformedError(
            "neither a row proof nor a document proof", where=str(path), expected=expected
        )
    with of_file(path):
        return _KINDS[value["format"]].from_json(value)


def opened(source: offline.Source, proof: OwnerProof) -> tuple[Policy, Window | None]:
    """Return the policy of a proof's window, and the window where it is at hand.

    Args:
        source: the policy alone is enough.
        proof: names the window; nobody vouches for that.

    Raises:
        RagauditError: as `Source.load`; not a policy.
    """
    if source.policy is not None and source.none:
        return offline.read_policy(source.policy), None
    origin = proof.index.origin if isinstance(proof, RowProof) else proof.origin
    window = source.load(origin.rpartition("/")[2])
    return window.view.policy, window


def check(proof: OwnerProof, policy: Policy, given: Given) -> tuple[list[StepResult], Place | None]:
    """Run every check of a proof; return them, and where the log has the end of a document.

    Args:
        proof: of either kind.
        policy: of the window.
        given: what is at hand beside it; a step without what it needs is "not done".

    Raises:
        RejectedError: a check that fails.
        RagauditError: as `RowProof.verify` and `DocumentProof.verify`.
    """
    if isinstance(proof, DocumentProof):
        place = proof.verify(policy, _COMMIT)
        return [StepResult(1, "log", "done"), StepResult(2, "document list", "done")], place
    index = proof.index.verify(policy)
    steps = [StepResult(1, "log", "done")]
    proof.index.check(index, [proof.row], policy, _COMMIT)
    steps.append(StepResult(2, "row", "done", _holds(proof)))
    steps.append(_check_text(proof, given))
    steps.append(_check_vector(proof, policy, given))
    return steps, None


def check_file(
    path: Path, source: offline.Source, text: Path | None, attributes: Path | None
) -> list[StepResult]:
    """Run every check of the proof in a file, and say what it proves in the last of them.

    Args:
        path: of a row proof or a document proof.
        source: of its window.
        text, attributes: files with the document's own, of a row proof.

    Raises:
        RagauditError: as `read`, `check` and `opened`.
    """
    proof = read(path)
    policy, window = opened(source, proof)
    steps = [StepResult(0, "window", "done") if window is None else check_pin(window)]
    embed = None if window is None else offline.embed_of(window)
    done, place = check(proof, policy, Given.read(text, attributes, embed))
    steps += done
    if isinstance(proof, DocumentProof):
        said = described(proof, policy, place, window).sentence
        steps.append(StepResult(3, "document", "done", said))
    return steps


def described(
    proof: DocumentProof, policy: Policy, place: Place | None, window: Window | None
) -> Erased:
    """Return whether a document is gone, and since when, in words.

    Args:
        proof: verified.
        policy: of the window.
        place: where the log has the entry of the version without the document, as `check` returns.
        window: with its activations, where it is at hand; else the time is the earliest that the
            entry allows.
    """
    where = f"the index of {proof.tenant} in window {policy.window}"
    if proof.listed is None or proof.listed.ended is None:
        return Erased(True, None, None, f"{proof.id} was never in {where}.")
    version = proof.gone_since
    if version is None:
        at = proof.listed.position
        sentence = (
            f"{proof.id} is still there: row {at} of version {proof.entry.version} of {where}."
        )
        return Erased(False, None, None, sentence)
    if proof.gone is None or place is None:
        sentence = (
            f"{proof.id} is gone from {where}: version {version}, its last one, has a null row in "
            "its place; under noise nothing says since when."
        )
        return Erased(True, None, version, sentence)
    if window is None:
        logged = Version.parse(proof.gone.entry.body).time
        instant = next((i for i in policy.activation_instants if 1000 * i > logged), None)
        since = None if instant is None else rfc3339(1000 * instant)
        how = f"in force from {since} at the earliest"
    else:
        activation = activation_of(place.index, window.view.covered_sizes)
        instants = policy.activation_instants
        since = None if activation is None else rfc3339(1000 * instants[activation - 1])
        how = f"in force since {since}"
    if since is None:
        how = "which no instant of the window put in force"
    sentence = f"{proof.id} is gone from {where} since version {version}, {how}."
    return Erased(True, since, version, sentence)


def _holds(proof: RowProof) -> str:
    row = proof.row
    if row.null:
        said = "marked as deleted" if row.marked else "of no document"
        return f"row {row.position} is a null row, {said}"
    return f"row {row.position} holds {row.id}"


def _check_text(proof: RowProof, given: Given) -> StepResult:
    row = proof.row
    if given.text is None and given.attributes is None:
        return StepResult(3, "text", "not done", "no --text")
    text = row.content if given.text is None else given.text
    attributes = row.attributes if given.attributes is None else given.attributes
    if text is None or attributes is None:
        lacking = "--text" if text is None else "--attributes"
        return StepResult(3, "text", "not done", f"the proof has none of its own: no {lacking}")
    if not row.holds(text, attributes):
        where = f"row {row.position}"
        raise CommitmentRejected("committed with another text or other metadata", where=where)
    return StepResult(3, "text", "done")


def _check_vector(proof: RowProof, policy: Policy, given: Given) -> StepResult:
    row = proof.row
    text = row.content if given.text is None else given.text
    if row.null or given.embed is None or not (text or "").strip():
        lacking = "a null row" if row.null else "no embedder at hand, or no text"
        return StepResult(4, "vector", "not done", lacking)
    [made] = given.embed([str(text)])
    if said := far_off(made, row, policy):
        raise CommitmentRejected(f"{row.id} {said}", where=f"row {row.position}")
    return StepResult(4, "vector", "done")


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedError("not UTF-8", where=str(path), expected="the document's text") from None


def far_off(made: Sequence[int], row: ProvenIndexRow, policy: Policy) -> str:
    """Return how far a row is off from the embedding of its text, in words; empty if it is not.

    Args:
        made: by the committed embedder, quantised.
        row: proven.
        policy: of the window.
    """
    distance = sum((int(a) - b) ** 2 for a, b in zip(made, row.vector, strict=True))
    if distance <= policy.embedder_tolerance:
        return ""
    own, there = (math.sqrt(sum(int(a) ** 2 for a in each)) for each in (made, row.vector))
    if there < own / 2:
        return too_short(there / own)
    most = policy.embedder_tolerance
    return f"is committed with a vector that is off by {distance}, more than {most}"


def too_short(share: float) -> str:
    """Return what is said of a row whose vector has that share of the length it should have."""
    return f"is committed at {share:.2f} of its length: no search ranks it where it belongs"
