"""Where the documents of the tenants are: what every backend delivers.

The prover embeds, scores and selects itself, so that all N rows take part: a backend only lists
the documents in a fixed order once, when an index is committed, and later fetches some by id.
What it returned is what was committed; nothing is assumed of what somebody once inserted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.prover.errors import MalformedDocument

MAX_ID_BYTES = 512
MAX_CONTENT_BYTES = 65_536
MAX_ATTRIBUTES_BYTES = 65_536
MIN_DOCUMENTS = 2

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Document:
    """A document as its backend returned it.

    Attributes:
        id: 1 to 512 bytes of UTF-8 without a zero character, unique in its tenant.
        content: text of at most 65,536 bytes of UTF-8; only a document with a vector has none.
        attributes: canonical JSON of all that the store holds beside the text, as `attributes_text`
            makes it; empty if it holds nothing. At most 65,536 bytes.
        vector: float32[d], the stored vector, which is used instead of the embedder; None where
            the text is embedded, and where `Backend.fetch` leaves it out.

    Raises:
        MalformedDocument: an id, content, attributes or vector of another size, type or shape.
    """

    id: str
    content: str = field(repr=False)
    attributes: str = field(default="", repr=False)
    vector: Vector | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= len(_utf8(self.id, "id")) <= MAX_ID_BYTES:
            raise MalformedDocument("id has a wrong length", expected=f"1 to {MAX_ID_BYTES} bytes")
        # PostgreSQL has no text with it: an answer that serves the row could not be stored.
        if "\x00" in self.id:
            raise MalformedDocument("id has a zero character", where=repr(self.id))
        where = f"document {self.id}"
        for name, text, most in (
            ("content", self.content, MAX_CONTENT_BYTES),
            ("attributes", self.attributes, MAX_ATTRIBUTES_BYTES),
        ):
            if len(_utf8(text, where)) > most:
                raise MalformedDocument(
                    f"{name} too long", where=where, expected=f"at most {most} bytes"
                )
        if self.vector is not None and (self.vector.dtype != np.float32 or self.vector.ndim != 1):
            raise MalformedDocument(
                f"vector is {self.vector.dtype}{list(self.vector.shape)}",
                where=where,
                expected="float32[d]",
            )


class Backend(Protocol):
    """A store of documents by tenant.

    Every method raises BackendUnavailable when the store cannot be reached or does not answer as
    it should, MalformedDocument when it returns what cannot be committed to.
    """

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have documents, rising."""

    def count(self, tenant: str) -> int:
        """Return N; 0 for a tenant without documents."""

    def dimension(self) -> int | None:
        """Return d of the stored vectors, one for all tenants; None if texts are embedded."""

    def metric(self, tenant: str) -> str | None:
        """Return by which the store ranks: "cosine", "inner-product", "l2"; None: it has no say."""

    def pages(self, tenant: str, rows: int) -> Iterator[Sequence[Document]]:
        """Return all documents, page by page, in an order that does not depend on their content.

        Rising by id (bytes of UTF-8), unless the store has an order of its own that never changes.
        Where `dimension` is a number, every document has its vector.

        Args:
            rows: the largest number of documents in a page.
        """

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of ``ids`` in the order of ``ids``; None for one that is gone.

        As they are now: the caller compares them with the commitment. A store that holds vectors
        returns them too, unless its settings say that they are not to be compared.

        Args:
            ids: distinct, of documents that a window committed to.
        """

    def check(self) -> None:
        """Check that the store answers."""

    def close(self) -> None:
        """Let go of connections."""


def attributes_text(metadata: Mapping[str, object], where: str) -> str:
    """Return what a store holds beside a text as canonical JSON (RFC 8785); empty for nothing.

    Args:
        metadata: texts, numbers, booleans, None, lists and objects of them.
        where: names the document in an error.

    Raises:
        MalformedDocument: another type, NaN, infinity, an integer beyond ±(2^53 - 1), or text that
            is not Unicode.
    """
    if not metadata:
        return ""
    try:
        return canonical_text(dict(metadata))
    except MalformedRecord:
        raise MalformedDocument(
            "attributes have no canonical JSON",
            where=where,
            expected="texts, booleans, finite numbers, integers within ±(2^53 - 1)",
        ) from None


def check_servable(backend: Backend, top_k_max: int) -> list[str]:
    """Return the tenants of a backend, rising, if a window can serve all of them.

    Args:
        backend: lists the tenants and counts their documents.
        top_k_max: K_max of the window's policy; every N must exceed it (check 1).

    Raises:
        MalformedDocument: there are none, or one has too few documents for K_max: an answer would
            show its whole index, whatever the noise.
    """
    tenants = list(backend.tenants())
    if not tenants:
        raise MalformedDocument("no tenant has documents", expected="ragaudit prover ingest")
    for tenant in tenants:
        count = backend.count(tenant)
        if count < max(top_k_max + 1, MIN_DOCUMENTS):
            raise MalformedDocument(
                f"{count} documents",
                where=f"tenant {tenant}",
                expected=f"more than top_k_max = {top_k_max}",
            )
    return tenants


def _utf8(text: str, where: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedDocument("text has lone surrogates", where=where) from None


MAX_DIMENSION = 3072  # the longest of the usual models; what is tested ends here


def checked_dimension(dimension: int, where: str) -> int:
    """Return d if vectors of this length are served.

    Args:
        where: names the place in an error.

    Raises:
        MalformedDocument: it is not 1 to 3,072.
    """
    if not 1 <= dimension <= MAX_DIMENSION:
        raise MalformedDocument(
            f"vectors of {dimension} entries", where=where, expected=f"1 to {MAX_DIMENSION}"
        )
    return dimension


def one_dimension(found: Mapping[str, int | None]) -> int:
    """Return d, which is the same for all tenants: a window has one.

    Args:
        found: d of each tenant's vectors; None where there are none.

    Raises:
        MalformedDocument: a tenant has no vectors, or two have vectors of different lengths.
    """
    first: tuple[str, int] | None = None
    for tenant, dimension in found.items():
        where = f"tenant {tenant}"
        if dimension is None:
            raise MalformedDocument("no vectors", where=where, expected="documents with vectors")
        checked_dimension(dimension, where)
        if first is None:
            first = (tenant, dimension)
        if dimension != first[1]:
            raise MalformedDocument(
                f"vectors of {dimension} entries",
                where=where,
                expected=f"{first[1]}, as those of tenant {first[0]}: a window has one dimension",
            )
    if first is None:
        raise MalformedDocument("no tenants", expected="a table of tenants in the settings")
    return first[1]
