"""Rounds of a public randomness beacon: drand, scheme bls-unchained-g1-rfc9380 (docs/spec 6.13).

A round's randomness is a signature that nobody knows before its time, and that everybody can check
afterwards: who fixes a round in advance cannot choose it. It says "not before", never "not after".

    message = SHA-256(u64 big endian round)      randomness = SHA-256(signature)
    e(signature, generator of G2) = e(hash_to_G1(message), public key of the chain)

The pairing is computed by an optional library: arkworks (7 ms), or py_ecc (half a second).
"""

import hashlib
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Self

from ragaudit.encoding.canonical_json import loads_any
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.kernel import Digest, Form, Hex, Integer, Message, Name

SIGNATURE_BYTES = 48  # a point of G1, compressed
PUBLIC_KEY_BYTES = 96  # a point of G2, compressed
MAX_ROUND = 2**53 - 1  # JSON holds no larger integer (1.4)
MAX_ANSWER_BYTES = 4096
SCHEME: Final = "bls-unchained-g1-rfc9380"
MAX_PERIOD = 86_400  # seconds
MAX_GENESIS = 2**40

_DST = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
# The base field of BLS12-381: a coordinate at or above it would be a second encoding of a point.
_P = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    16,
)
_COMPRESSED, _INFINITY, _FLAGS = 0x80, 0x40, 0xE0

Engine = Callable[[bytes, bytes, bytes], bool]
"""Whether a signature is one of a message under a public key; ValueError for bytes that are no
points of the groups."""


class Known(Form):
    """The texts that version 1 knows how to honour."""

    def __init__(self, *known: str) -> None:
        super().__init__("string", enum=list(known))
        self._known = known

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self._known:
            raise UnsupportedError("not supported", expected=" or ".join(self._known))
        return value


class BeaconChain(Message, where="chain"):
    """A chain of rounds: who signs them, and when.

    Attributes:
        public_key: 96 bytes.
        period: seconds between rounds.
        genesis: time of round 1, Unix seconds.
        group_hash: 32 bytes.
        name: of the chain, for people.
        hash: 32 bytes, by which drand's API names the chain.
        scheme: of signatures; there is one.
    """

    ERROR: ClassVar[type[MalformedError]] = MalformedError

    public_key: Annotated[bytes, Hex(PUBLIC_KEY_BYTES)]
    period: Annotated[int, Integer(1, MAX_PERIOD)]
    genesis: Annotated[int, Integer(1, MAX_GENESIS)]
    group_hash: Digest
    name: Name
    hash: Digest
    scheme: Annotated[str, Known(SCHEME)] = SCHEME

    @classmethod
    def of(cls, public_key: bytes, period: int, genesis: int, group_hash: bytes, name: str) -> Self:
        """Return the chain of these members, with its hash."""
        numbers = period.to_bytes(4, "big") + genesis.to_bytes(8, "big")
        data = numbers + public_key + group_hash + name.encode()
        return cls(public_key, period, genesis, group_hash, name, hashlib.sha256(data).digest())

    def time(self, number: int) -> int:
        """Return when a round is due, Unix seconds.

        Args:
            number: of the round, from 1.
        """
        return self.genesis + self.period * (number - 1)

    def first_from(self, instant: int) -> int:
        """Return the first round that is due at ``instant`` or later.

        Args:
            instant: Unix seconds.
        """
        return max(1, 1 - (self.genesis - instant) // self.period)

    def _check(self) -> None:
        # Who reads a policy compares the hash with the published one: it must be of what is used.
        chain = self.of(self.public_key, self.period, self.genesis, self.group_hash, self.name)
        if self.hash != chain.hash:
            raise MalformedError("not the chain's", where="hash", expected=chain.hash.hex())
        # With the identity for a key, no signature would ever verify.
        if not self.public_key[0] & _COMPRESSED or self.public_key[0] & _INFINITY:
            expected = "a point of G2, compressed"
            raise MalformedError("not a public key", where="public_key", expected=expected)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the chain in an answer of drand's API to ``/<chain hash>/info``.

        Args:
            data: JSON in any spelling.

        Raises:
            MalformedError: not a chain, or one with another hash than is said.
            UnsupportedError: another scheme of signatures.
        """
        if len(data) > MAX_ANSWER_BYTES:
            raise MalformedError("too long", where="chain", expected=f"{MAX_ANSWER_BYTES} bytes")
        names = "public_key period genesis_time hash groupHash schemeID metadata"
        info = dict(Fields(loads_any(data), names, MalformedError, "chain").value)
        metadata = Fields(info.pop("metadata"), "beaconID", MalformedError, "chain.metadata")
        own = {"genesis_time": "genesis", "groupHash": "group_hash", "schemeID": "scheme"}
        members = {own.get(name, name): value for name, value in info.items()}
        return cls.from_json({**members, "name": metadata.raw("beaconID")})


QUICKNET = BeaconChain.of(
    public_key=bytes.fromhex(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c"
        "8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb"
        "5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    ),
    period=3,
    genesis=1_692_803_367,
    group_hash=bytes.fromhex("f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e"),
    name="quicknet",
)
"""The League of Entropy's chain, one round in three seconds."""


class BeaconRound(Message, where="beacon"):
    """One round in the form of drand's API, as somebody showed it; `verify` says whether it is one.

    Attributes:
        round: its number, from 1.
        signature: 48 bytes, the one encoding of a point that is not the identity.
        randomness: SHA-256 of the signature.

    Raises:
        MalformedError: not such a number or signature, or another randomness than the signature's.
    """

    ERROR: ClassVar[type[MalformedError]] = MalformedError

    round: Annotated[int, Integer(1, MAX_ROUND)]
    signature: Annotated[bytes, Hex(SIGNATURE_BYTES)]
    randomness: Digest = b""

    def __post_init__(self) -> None:
        if not 1 <= self.round <= MAX_ROUND:
            raise MalformedError("not a round", where="round", expected=f"1..{MAX_ROUND}")
        head = self.signature[0] if len(self.signature) == SIGNATURE_BYTES else 0
        x = int.from_bytes(bytes([head & ~_FLAGS & 0xFF]) + self.signature[1:], "big")
        if not head & _COMPRESSED or head & _INFINITY or x >= _P:
            raise MalformedError(
                "not a signature",
                where="signature",
                expected=f"{SIGNATURE_BYTES} bytes, a point of G1, compressed",
            )
        randomness = hashlib.sha256(self.signature).digest()
        # A value beside the signature that says something else would be believed by some.
        if self.randomness not in (b"", randomness):
            what = "another randomness than the signature's"
            raise MalformedError(what, where="randomness", expected=randomness.hex())
        object.__setattr__(self, "randomness", randomness)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the round in an answer of drand's HTTP API.

        Args:
            data: JSON with ``round``, ``randomness`` and ``signature``, in any spelling.

        Raises:
            MalformedError: anything else, or a randomness that is not the signature's.
        """
        if len(data) > MAX_ANSWER_BYTES:
            raise MalformedError("too long", where="beacon", expected=f"{MAX_ANSWER_BYTES} bytes")
        return cls.from_json(loads_any(data))

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the message, with round 123 of quicknet as an example."""
        example = {
            "round": 123,
            "randomness": "fb8f7bc29bf24db51871ec8c79f3a1e4bd0557bc0dfcee9ed1d924e69d1c60dc",
            "signature": "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482"
            "e26cd02df835d3546d23c4b13e0dfc92",
        }
        return {**super().json_schema(), "examples": [example]}

    def verify(self, chain: BeaconChain, expected: int, *, engine: Engine | None = None) -> bytes:
        """Return the randomness of the expected round if this is that round of the chain.

        Args:
            chain: whose key must have signed it.
            expected: the round that was fixed in advance.
            engine: computes the pairing; the fastest that is installed if None.

        Raises:
            RejectedError: another round, or its signature does not verify.
            UnsupportedError: no library for pairings is installed.
        """
        # A true signature of another round is one that somebody chose.
        if self.round != expected:
            raise RejectedError(
                f"round {self.round} of the beacon", where="beacon", expected=f"round {expected}"
            )
        message = hashlib.sha256(self.round.to_bytes(8, "big")).digest()
        try:
            holds = (engine or _remembering)(chain.public_key, message, self.signature)
        except ValueError:
            raise RejectedError("signature is no point of the group", where="beacon") from None
        if not holds:
            raise RejectedError("signature does not verify under the chain's key", where="beacon")
        return self.randomness


@lru_cache(maxsize=1024)
def _remembering(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """What the fastest engine says: a window that is shown again has the same rounds."""
    return fastest()(public_key, message, signature)


def fastest() -> Engine:
    """Return the fastest engine that is installed.

    Raises:
        UnsupportedError: there is none.
    """
    for engine in (arkworks_engine, py_ecc_engine):
        try:
            return engine()
        except ModuleNotFoundError:
            continue
    raise UnsupportedError(
        "no library for pairings is installed", expected='pip install "ragaudit-ledger[beacon]"'
    )


def arkworks_engine() -> Engine:
    """Return the engine of py-arkworks-bls12381; ModuleNotFoundError if it is not installed."""
    from py_arkworks_bls12381 import GT, G1Point, G2Point  # noqa: PLC0415 - an extra

    def holds(public_key: bytes, message: bytes, signature: bytes) -> bool:
        # Both readers check that the point is in the subgroup; what they take for the identity is
        # refused before.
        point = G1Point.from_compressed_bytes(signature)
        key = G2Point.from_compressed_bytes(public_key)
        hashed = G1Point.hash_to_curve(message, _DST)
        return bool(GT.pairing_check([point, -hashed], [G2Point(), key]))

    return holds


def py_ecc_engine() -> Engine:
    """Return the engine of py_ecc; ModuleNotFoundError if it is not installed."""
    # It raises the limit of recursion for the whole process when it is loaded. Text that is nested
    # deeply, which the parser of JSON refuses at that limit, would then end the process.
    limit = sys.getrecursionlimit()
    try:
        from py_ecc.bls.g2_primitives import subgroup_check  # noqa: PLC0415 - an extra
        from py_ecc.bls.hash_to_curve import hash_to_G1  # noqa: PLC0415
        from py_ecc.bls.point_compression import decompress_G1, decompress_G2  # noqa: PLC0415
        from py_ecc.optimized_bls12_381 import (  # noqa: PLC0415
            FQ12,
            G2,
            final_exponentiate,
            is_inf,
            neg,
            pairing,
        )
    finally:
        sys.setrecursionlimit(limit)

    def holds(public_key: bytes, message: bytes, signature: bytes) -> bool:
        point = decompress_G1(_integer(signature))
        key = decompress_G2((_integer(public_key[:48]), _integer(public_key[48:])))
        # Reading a point does not check here that it is in the subgroup.
        if is_inf(point) or not subgroup_check(point) or not subgroup_check(key):
            raise ValueError("not in the subgroup")
        hashed = hash_to_G1(message, _DST, hashlib.sha256)
        product = pairing(key, hashed, final_exponentiate=False) * pairing(
            neg(G2), point, final_exponentiate=False
        )
        return bool(final_exponentiate(product) == FQ12.one())

    return holds


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "big")
