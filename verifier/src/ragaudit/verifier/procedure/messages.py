"""The verifier's own signed messages, read back (docs/spec/08-services.md §8.4).

The procedure checks them like anything else: who re-checks a bundle trusts the verifier's keys,
not the files that the verifier packed.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import PREFIX, structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PublicKey, verify
from ragaudit.encoding.tagged import DIGEST_BYTES, Field, enc
from ragaudit.encoding.text import hex_decode

RECEIPTS_LIST_TAG: Final = PREFIX + "receipts-list"
RECEIPTS_PER_GROUP: Final = 1000
# A signed 64-bit field would take more, a JSON number would not.
MAX_TIME: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Countersignature:
    """The verifier agrees to audit a window: what it saw, and when (Unix milliseconds)."""

    window: str
    policy_digest: bytes
    opening_digest: bytes
    terms_digest: bytes
    activation_anchor: bytes
    time: int
    signature: bytes

    @classmethod
    def parse(cls, data: bytes) -> "Countersignature":
        """MalformedError unless ``data`` is a countersignature in canonical JSON."""
        read = _Reader(data, "countersignature", 7)
        return cls(
            read.text("window"),
            read.hex("policy_digest"),
            read.hex("opening_digest"),
            read.hex("terms_digest"),
            read.hex("activation_anchor"),
            read.integer("time"),
            read.hex("signature", SIGNATURE_BYTES),
        )

    def verify(self, key: PublicKey) -> None:
        """SignatureRejected unless ``key`` signed it."""
        digests = (self.policy_digest, self.opening_digest, self.terms_digest)
        fields = (self.window, *digests, self.activation_anchor, self.time)
        verify(key, self.signature, "countersignature", *fields)


@dataclass(frozen=True, slots=True)
class Activation:
    """n_a, released at or after t_a, with the size of the log that it activates."""

    window: str
    a: int
    preimage: bytes
    covered_size: int
    time: int
    signature: bytes

    @classmethod
    def of(cls, value: object) -> "Activation":
        """The activation of a JSON value; MalformedError for any other value."""
        read = _Reader(value, "activation", 6)
        return cls(
            read.text("window"),
            read.integer("a"),
            read.hex("preimage"),
            read.integer("covered_size"),
            read.integer("time"),
            read.hex("signature", SIGNATURE_BYTES),
        )

    def verify(self, key: PublicKey) -> None:
        """SignatureRejected unless ``key`` signed it."""
        fields = (self.window, self.a, self.preimage, self.covered_size, self.time)
        verify(key, self.signature, "activation", *fields)


@dataclass(frozen=True, slots=True)
class ReceiptsList:
    """The verifier's commitment to the receipts that arrived before the sampling instant."""

    window: str
    digest: bytes
    count: int
    time: int
    signature: bytes

    @classmethod
    def of(cls, value: object) -> "ReceiptsList":
        """The list of a JSON value; MalformedError for any other value."""
        read = _Reader(value, "receipts-list", 5)
        return cls(
            read.text("window"),
            read.hex("digest"),
            read.integer("count"),
            read.integer("time"),
            read.hex("signature", SIGNATURE_BYTES),
        )

    def verify(self, key: PublicKey) -> None:
        """SignatureRejected unless ``key`` signed it."""
        fields = (self.window, self.digest, self.count, self.time)
        verify(key, self.signature, "receipts-list", *fields)


@dataclass(frozen=True, slots=True)
class ChallengedStratum:
    """A stratum as the challenge names it; population None: all of the tenant's records."""

    id: str
    population: tuple[int, ...] | None
    sample: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Challenge:
    """What the provider was asked to open."""

    window: str
    final_root: bytes
    final_size: int
    preimage: bytes
    receipts_list: ReceiptsList
    strata: tuple[ChallengedStratum, ...]
    deadline: int
    signature: bytes
    digest: bytes

    @classmethod
    def parse(cls, data: bytes) -> "Challenge":
        """MalformedError unless ``data`` is a challenge in canonical JSON."""
        value = canonical_json.loads(data)
        read = _Reader(value, "challenge", 8)
        unsigned = {name: each for name, each in value.items() if name != "signature"}
        return cls(
            window=read.text("window"),
            final_root=read.hex("final_root"),
            final_size=read.integer("final_size"),
            preimage=read.hex("preimage"),
            receipts_list=ReceiptsList.of(read.get("receipts_list", dict)),
            strata=tuple(_stratum(each) for each in read.get("strata", list)),
            deadline=read.integer("deadline"),
            signature=read.hex("signature", SIGNATURE_BYTES),
            digest=hashlib.sha256(canonical_json.dumps(unsigned)).digest(),
        )

    def verify(self, key: PublicKey) -> None:
        """SignatureRejected unless ``key`` signed it."""
        verify(key, self.signature, "challenge", self.window, self.digest)


@dataclass(frozen=True, slots=True)
class Clock:
    """What only the verifier's clock says, in Unix milliseconds.

    Attributes:
        responses: when each response was received, by leaf index.
        claims: when each claim was taken, by the identity of its promise.
        close, records: when the window was closed and its log handed over.
    """

    responses: Mapping[int, int]
    claims: Mapping[bytes, int]
    close: int | None
    records: int | None

    @classmethod
    def parse(cls, data: bytes) -> "Clock":
        """MalformedError unless ``data`` is ``public/clock.json``."""
        match canonical_json.loads(data):
            case {
                "responses": dict(responses),
                "claims": dict(claims),
                "close": int() | None as close,
                "records": int() | None as records,
                **more,
            } if not more:
                return cls(dict(_received(responses)), dict(_taken(claims)), close, records)
        raise MalformedError("not a clock", expected="responses, claims, close and records")


def opening_digest(salt: bytes, body: bytes) -> bytes:
    """What a countersignature names the opening by."""
    return structure("opening-digest", salt, body)


def receipts_digest(receipts: Iterable[tuple[int, bytes]]) -> bytes:
    """Digest of a receipts list over (leaf index, identity); the order given does not matter."""
    fields: list[Field] = []
    groups: list[bytes] = []
    for count, (index, identity) in enumerate(sorted(receipts), start=1):
        fields += (index, identity)
        if count % RECEIPTS_PER_GROUP == 0:
            groups.append(enc(RECEIPTS_LIST_TAG, *fields))
            fields = []
    if fields:
        groups.append(enc(RECEIPTS_LIST_TAG, *fields))
    return hashlib.sha256(enc(RECEIPTS_LIST_TAG, *groups)).digest()


class _Reader:
    """Members of a JSON object of one format, which has ``count`` of them beside ``format``."""

    def __init__(self, value: object, kind: str, count: int) -> None:
        if isinstance(value, bytes):
            value = canonical_json.loads(value)
        expected = f"{PREFIX}{kind}"
        if not isinstance(value, dict) or value.get("format") != expected:
            raise MalformedError(f"not a {kind}", expected=f"format {expected}")
        if len(value) != count + 1:
            raise MalformedError("other members", where=kind, expected=f"{count} beside format")
        self._value: dict[str, Any] = value
        self._kind = kind

    def get(self, name: str, kind: type) -> Any:
        found = self._value.get(name)
        if not isinstance(found, kind) or isinstance(found, bool):
            raise MalformedError(f"{name} is missing or of another type", where=self._kind)
        return found

    def text(self, name: str) -> str:
        return str(self.get(name, str))

    def hex(self, name: str, length: int = DIGEST_BYTES) -> bytes:
        return hex_decode(self.get(name, str), length)

    def integer(self, name: str) -> int:
        """A number from 0 on: times, counts, sizes and positions are never negative."""
        found = self.get(name, int)
        if found < 0:
            raise MalformedError(f"{name} is negative", where=self._kind)
        return int(found)


def _indices(value: object, where: str) -> tuple[int, ...]:
    if isinstance(value, list) and all(type(each) is int and each >= 0 for each in value):
        return tuple(value)
    raise MalformedError("not a list of leaf indices", where=where)


def _stratum(value: object) -> ChallengedStratum:
    match value:
        case {"id": str(name), "population": population, "sample": sample, **more} if not more:
            members = None if population is None else _indices(population, name)
            return ChallengedStratum(name, members, _indices(sample, name))
    raise MalformedError("not a stratum", expected="id, population and sample")


def _received(responses: Mapping[str, object]) -> Iterable[tuple[int, int]]:
    for index, time in responses.items():
        canonical = index.isascii() and index.isdecimal() and len(index) < 20
        if not canonical or str(int(index)) != index or type(time) is not int:
            raise MalformedError("not a time of receipt", where="clock responses")
        yield int(index), time


def _taken(claims: Mapping[str, object]) -> Iterable[tuple[bytes, int]]:
    for identity, time in claims.items():
        if type(time) is not int:
            raise MalformedError("not a time of intake", where="clock claims")
        yield hex_decode(identity, DIGEST_BYTES), time
