"""What the prover needs of a document store, be it this process or a remote vector store.

The prover embeds, scores and selects itself, so that all N rows get noise: a backend only lists
the documents in a fixed order once, when the window commits, and later fetches some by id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ragaudit.prover.errors import MalformedDocument

MAX_ID_BYTES = 512
MAX_CONTENT_BYTES = 65_536


@dataclass(frozen=True)
class Document:
    """A row: id (1 to 512 bytes), content (text, not blank), public columns (none yet)."""

    id: str
    content: str = field(repr=False)
    columns: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(_utf8(self.id, "id")) <= MAX_ID_BYTES:
            raise MalformedDocument("id has a wrong length", expected=f"1 to {MAX_ID_BYTES} bytes")
        if not self.content.strip():
            raise MalformedDocument("empty content", where=f"document {self.id}")
        if len(_utf8(self.content, f"document {self.id}")) > MAX_CONTENT_BYTES:
            raise MalformedDocument(
                "content too long",
                where=f"document {self.id}",
                expected=f"at most {MAX_CONTENT_BYTES} bytes",
            )
        if self.columns:
            raise MalformedDocument(
                "public columns are not supported", where=f"document {self.id}", expected="{}"
            )


class Backend(Protocol):
    """A store of documents by tenant.

    Every method raises BackendUnavailable when the store cannot be reached.
    """

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have documents, rising."""

    def count(self, tenant: str) -> int:
        """Return N; 0 for a tenant without documents."""

    def pages(self, tenant: str, rows: int) -> Iterator[Sequence[Document]]:
        """Yield all documents in an order that does not depend on their content.

        Args:
            rows: the largest number of documents in a page.
        """

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        """Return the documents of ``ids`` in the order of ``ids``.

        Raises:
            BackendUnavailable: one of them is gone.
        """

    def check(self) -> None:
        """Return if the store answers."""


def _utf8(text: str, where: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedDocument("text has lone surrogates", where=where) from None
