"""The ChaCha20 key stream of RFC 8439, nonce zero, block counter from 0 (spec 3.3)."""

from struct import pack, unpack

BLOCK_BYTES = 64
_CONSTANTS = unpack("<4I", b"expand 32-byte k")
_MASK = 0xFFFFFFFF
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """RFC 8439 §2.3: 64 bytes of key stream; ``key`` has 32 bytes and ``nonce`` 12."""
    start = [*_CONSTANTS, *unpack("<8I", key), counter, *unpack("<3I", nonce)]
    state = list(start)
    for _ in range(10):
        for indices in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *indices)
    return pack("<16I", *((a + b) & _MASK for a, b in zip(state, start, strict=True)))


def _quarter_round(state: list[int], i: int, j: int, k: int, n: int) -> None:
    a, b, c, d = state[i], state[j], state[k], state[n]
    a = (a + b) & _MASK
    d = _rotate(d ^ a, 16)
    c = (c + d) & _MASK
    b = _rotate(b ^ c, 12)
    a = (a + b) & _MASK
    d = _rotate(d ^ a, 8)
    c = (c + d) & _MASK
    b = _rotate(b ^ c, 7)
    state[i], state[j], state[k], state[n] = a, b, c, d


def _rotate(word: int, count: int) -> int:
    return (word << count | word >> 32 - count) & _MASK


def key_stream(key: bytes, length: int) -> bytes:
    """The first ``length`` bytes of the key stream, ``length`` up to 2^38."""
    blocks = -(-length // BLOCK_BYTES)
    return b"".join(block(key, counter, bytes(12)) for counter in range(blocks))[:length]
