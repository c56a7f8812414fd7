"""Openings of what a record's digests hide (docs/spec/05-records.md §5.7, §5.8)."""

from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.json_fields import Fields, int16_bytes, vector_text
from ragaudit.ledger.messages.merkle_commitments import MAX_DIMENSION
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import MAX_FILTER_BYTES, MAX_QUERY_BYTES, Request

MAX_ENTRY = 127  # of an embedding or row: its norm is at most 127
MAX_SKETCH_BYTES = 64


@dataclass(frozen=True, slots=True)
class Openings:
    """What a record's digests hide of its query: values and salts. The account's and V's own."""

    query: str = field(repr=False)
    salt_q: bytes = field(repr=False)
    embedding: tuple[int, ...] = field(repr=False)
    salt_e: bytes = field(repr=False)
    filter: str = field(repr=False)
    salt_f: bytes = field(repr=False)
    sketch: bytes = field(repr=False)
    salt_s: bytes = field(repr=False)

    MEMBERS = "query salt_q embedding salt_e filter salt_f sketch salt_s"

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "salt_q": self.salt_q.hex(),
            "embedding": vector_text(self.embedding),
            "salt_e": self.salt_e.hex(),
            "filter": self.filter,
            "salt_f": self.salt_f.hex(),
            "sketch": self.sketch.hex(),
            "salt_s": self.salt_s.hex(),
        }

    @classmethod
    def read(cls, f: Fields) -> "Openings":
        """From the members of a larger object."""
        return cls(
            query=f.text("query", 1, MAX_QUERY_BYTES),
            salt_q=f.hex("salt_q", SALT_BYTES),
            embedding=f.vector("embedding", MAX_DIMENSION, MAX_ENTRY),
            salt_e=f.hex("salt_e", SALT_BYTES),
            filter=f.text("filter", 0, MAX_FILTER_BYTES),
            salt_f=f.hex("salt_f", SALT_BYTES),
            sketch=f.hex("sketch", limit=MAX_SKETCH_BYTES),
            salt_s=f.hex("salt_s", SALT_BYTES),
        )

    def verify(self, record: Record, request: Request) -> None:
        """Check that they open ``record``, and are what ``request`` asked; ReceiptRejected.

        Norm of the embedding and recomputation of the sketch are the caller's.
        """
        if (self.query, self.filter) != (request.query, request.filter):
            raise ReceiptRejected("another query or filter than asked", where="openings")
        for name, digest, expected in (
            ("filter", salted(self.salt_f, self.filter), record.filter_digest),
            ("query", salted(self.salt_q, self.query), record.query_digest),
            ("embedding", embedding_digest(self.salt_e, self.embedding), record.embedding_digest),
            ("sketch", salted(self.salt_s, self.sketch), record.sketch_digest),
        ):
            if digest != expected:
                raise ReceiptRejected("does not open its digest", where=name)


def embedding_digest(salt: bytes, embedding: tuple[int, ...]) -> bytes:
    """H(salt_e, e), e as d integers of 16 bits, little endian two's complement."""
    return salted(salt, int16_bytes(embedding))
