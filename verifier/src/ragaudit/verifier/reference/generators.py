"""Generators without set-up: each is a hash of its list and index (spec 4.2)."""

from functools import lru_cache
from hashlib import sha512

from .field import le
from .ristretto import Point, from_uniform_bytes

DOMAIN = "ragaudit/v1/generator/"

_HASH_BYTES, _HASH_BLOCK_BYTES = 64, 128


def expand_message_xmd(message: bytes, domain: bytes, length: int) -> bytes:
    """RFC 9380 §5.3.1 with SHA-512; ``domain`` up to 255 bytes, ``length`` up to 255·64."""
    suffix = domain + le(len(domain), 1)
    first = sha512(bytes(_HASH_BLOCK_BYTES) + message + length.to_bytes(2, "big") + b"\0" + suffix)
    block, output = bytes(_HASH_BYTES), b""
    for counter in range(1, -(-length // _HASH_BYTES) + 1):
        mixed = bytes(a ^ b for a, b in zip(first.digest(), block, strict=True))
        block = sha512(mixed + le(counter, 1) + suffix).digest()
        output += block
    return output[:length]


@lru_cache(maxsize=1 << 16)
def generator(name: str, index: int = 0) -> Point:
    """gen(name, index): the generator number ``index`` of the list ``name``."""
    uniform = expand_message_xmd(le(index, 8), (DOMAIN + name).encode("ascii"), 64)
    return from_uniform_bytes(uniform)


def generators(name: str, count: int) -> list[Point]:
    """gen(name, 0), ..., gen(name, count - 1)."""
    return [generator(name, index) for index in range(count)]
