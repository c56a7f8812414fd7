"""What the provider opens of a sampled record: docs/spec/08-services.md §8.5."""

import struct
from dataclasses import dataclass, field
from typing import Final, Self

from ragaudit.encoding.digests import PREFIX
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import DIGEST_BYTES, decode, enc, read_digest, read_int
from ragaudit.ledger.messages.json_fields import int16_bytes
from ragaudit.ledger.messages.merkle_commitments import KeyOpening

RESPONSE_TAG: Final = PREFIX + "response"
_FIELDS: Final = 13
MAX_PATH: Final = 63
MAX_QUERY_BYTES: Final = 8192
MAX_FILTER_BYTES: Final = 8192
MAX_PROOF_BYTES: Final = 2**20  # a proof about 2^32 rows has less than 8 kB
MAX_RESPONSE_BYTES: Final = 2 * 2**20  # what the parts may have, and 4096 entries of the vector


@dataclass(frozen=True, slots=True)
class Response:
    """What the provider opened of a sampled record; nothing in it has been checked.

    Attributes:
        index: of the record's log entry.
        key: the noise key with its paths in C_seed.
        query: UTF-8 of the text, None where texts are not due (``salt_q`` too).
        embedding: the query vector, d entries in -2^15..2^15-1.
        filter: UTF-8 of the filter.
        proof: the selection argument.
    """

    index: int
    key: KeyOpening = field(repr=False)
    salt_q: bytes | None = field(repr=False)
    query: bytes | None = field(repr=False)
    salt_e: bytes = field(repr=False)
    embedding: tuple[int, ...] = field(repr=False)
    salt_f: bytes = field(repr=False)
    filter: bytes = field(repr=False)
    salt_s: bytes = field(repr=False)
    sketch: bytes = field(repr=False)
    proof: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return the response as it is sent."""
        return enc(
            RESPONSE_TAG,
            self.index,
            self.key.key,
            b"".join(self.key.counter_path),
            b"".join(self.key.slot_path),
            self.salt_q,
            self.query,
            self.salt_e,
            int16_bytes(self.embedding),
            self.salt_f,
            self.filter,
            self.salt_s,
            self.sketch,
            self.proof,
        )

    @classmethod
    def decode(cls, data: bytes, dimension: int) -> Self:
        """Return the response in ``data``, the strict inverse of `encode`.

        Args:
            dimension: d, the length of the query vector.

        Raises:
            MalformedError: not a response, or a part of another length.
        """
        f = decode(RESPONSE_TAG, data, _FIELDS)
        for part, limit in ((f[5], MAX_QUERY_BYTES), (f[9], MAX_FILTER_BYTES)):
            if len(part) > limit:
                raise MalformedError("text too long", where="response", expected=f"{limit} bytes")
        if len(f[12]) > MAX_PROOF_BYTES:
            raise MalformedError("proof too long", where="response")
        if len(f[7]) != 2 * dimension:
            raise MalformedError("embedding", where="response", expected=f"{dimension} times i16")
        disclosed = bool(f[4] or f[5])
        return cls(
            index=read_int(f[0]),
            key=KeyOpening(read_digest(f[1]), _path(f[2]), _path(f[3])),
            salt_q=read_digest(f[4]) if disclosed else None,
            query=f[5] if disclosed else None,
            salt_e=read_digest(f[6]),
            embedding=struct.unpack(f"<{dimension}h", f[7]),
            salt_f=read_digest(f[8]),
            filter=f[9],
            salt_s=read_digest(f[10]),
            sketch=f[11],
            proof=f[12],
        )


def _path(data: bytes) -> tuple[bytes, ...]:
    if len(data) % DIGEST_BYTES or len(data) > MAX_PATH * DIGEST_BYTES:
        raise MalformedError("path", where="response", expected=f"at most {MAX_PATH} hashes")
    return tuple(data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES))
