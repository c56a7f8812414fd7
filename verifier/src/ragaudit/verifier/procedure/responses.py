"""Responses to the challenge (docs/spec/08-services.md §8.5)."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import decode, read_digest, read_int
from ragaudit.ledger.messages.merkle_commitments import KeyOpening

_TAG: Final = "ragaudit/v1/response"
_HASH_BYTES: Final = 32
MAX_PATH: Final = 63
MAX_QUERY_BYTES: Final = 8192
MAX_FILTER_BYTES: Final = 8192
MAX_PROOF_BYTES: Final = 2**20  # a proof about 2^32 rows has less than 8 kB
MAX_RESPONSE_BYTES: Final = 2 * 2**20  # what the parts may have, and 4096 entries of the vector


@dataclass(frozen=True, slots=True)
class Response:
    """What the provider opened of a sampled record; nothing in it has been checked.

    Attributes:
        key: the noise key with its paths in C_seed.
        query: UTF-8 of the text, None where texts are not due (``salt_q`` too).
        embedding: int16[d].
    """

    index: int
    key: KeyOpening = field(repr=False)
    salt_q: bytes | None = field(repr=False)
    query: bytes | None = field(repr=False)
    salt_e: bytes = field(repr=False)
    embedding: npt.NDArray[np.int16] = field(repr=False)
    salt_f: bytes = field(repr=False)
    filter: bytes = field(repr=False)
    salt_s: bytes = field(repr=False)
    sketch: bytes = field(repr=False)
    proof: bytes = field(repr=False)

    @classmethod
    def decode(cls, data: bytes, dimension: int) -> "Response":
        """The response in ``data``.

        Raises:
            MalformedError: not a response, or a part of another length.
        """
        f = decode(_TAG, data, 13)
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
            embedding=np.frombuffer(f[7], dtype="<i2").astype(np.int16),
            salt_f=read_digest(f[8]),
            filter=f[9],
            salt_s=read_digest(f[10]),
            sketch=f[11],
            proof=f[12],
        )


def _path(data: bytes) -> tuple[bytes, ...]:
    if len(data) % _HASH_BYTES or len(data) > MAX_PATH * _HASH_BYTES:
        raise MalformedError("path", where="response", expected=f"at most {MAX_PATH} hashes")
    return tuple(data[at : at + _HASH_BYTES] for at in range(0, len(data), _HASH_BYTES))
