"""What the prover keeps of a logged record beside its body: enough to prove and to answer again."""

from dataclasses import dataclass, field

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.openings import Openings, embedding_digest
from ragaudit.ledger.messages.records import MAX_ROWS, MAX_TOP_K
from ragaudit.ledger.messages.requests import Request


@dataclass(frozen=True)
class QueryDigests:
    """The salted digests of a query that stand in its record."""

    query: bytes
    embedding: bytes
    filter: bytes
    sketch: bytes

    @classmethod
    def of(cls, openings: Openings) -> "QueryDigests":
        return cls(
            query=salted(openings.salt_q, openings.query),
            embedding=embedding_digest(openings.salt_e, openings.embedding),
            filter=salted(openings.salt_f, openings.filter),
            sketch=salted(openings.salt_s, openings.sketch),
        )


@dataclass(frozen=True)
class RecordOpenings:
    """Everything about a logged record that is not in its body."""

    request: Request
    openings: Openings
    selected: tuple[int, ...] = field(repr=False)
    selection_blinding: bytes = field(repr=False)
    salt_r: bytes = field(repr=False)

    def encode(self) -> bytes:
        return dumps(
            {
                "request": self.request.to_json(),
                **self.openings.to_json(),
                "selected": list(self.selected),
                "selection_blinding": self.selection_blinding.hex(),
                "salt_r": self.salt_r.hex(),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> "RecordOpenings":
        """The inverse of `encode`; MalformedRecord for anything else."""
        names = f"request {Openings.MEMBERS} selected selection_blinding salt_r"
        f = Fields(loads(data), names, MalformedRecord, "stored record")
        return cls(
            request=Request.from_json(f.raw("request")),
            openings=Openings.read(f),
            selected=f.integers("selected", (0, MAX_TOP_K), 0, MAX_ROWS - 1),
            selection_blinding=f.hex("selection_blinding", DIGEST_BYTES),
            salt_r=f.hex("salt_r", SALT_BYTES),
        )
