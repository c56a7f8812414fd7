"""Hash chains (docs/spec/05-records.md §5.6): activation by the verifier, nonces by a client.

A chain starts at a secret seed and ends at its published anchor, h applied ``length`` times; its
values are revealed from the anchor towards the seed, so each one is fixed and none is foreseen.
"""

import hashlib
import hmac
from collections.abc import Sequence

from ragaudit.encoding.digests import structure
from ragaudit.encoding.tagged import DIGEST_BYTES, enc
from ragaudit.ledger.errors import ChainRejected, MalformedRecord
from ragaudit.ledger.messages.identifiers import PSEUDONYM_BYTES, check_window

MAX_CHAIN = 1_000_000
NONCE_BYTES = DIGEST_BYTES  # of each value of a chain
_STRIDE = 1024  # a chain in memory keeps every 1024th value


class Chain:
    """The function x -> SHA-256(enc(tag, fields.., x)) of one purpose."""

    def __init__(self, tag: str, *fields: bytes | str) -> None:
        # Everything in front of a 32-byte last field is the same at every step.
        self._prefix = enc(tag, *fields, bytes(DIGEST_BYTES))[:-DIGEST_BYTES]

    def walk(self, value: bytes, steps: int) -> bytes:
        """h applied ``steps`` times to a 32-byte value.

        Raises:
            MalformedRecord: not 32 bytes, or steps outside 0..1,000,000.
        """
        if len(value) != DIGEST_BYTES:
            raise MalformedRecord("a chain value of the wrong length", expected="32 bytes")
        if not 0 <= steps <= MAX_CHAIN:
            raise MalformedRecord(f"{steps} steps of a chain", expected=f"0..{MAX_CHAIN}")
        for _ in range(steps):
            value = hashlib.sha256(self._prefix + value).digest()
        return value


def activation_chain(window: str) -> Chain:
    """h(x) = SHA-256(enc("ragaudit/v1/activation", window, x))."""
    return Chain("ragaudit/v1/activation", check_window(window))


def activation_anchor(window: str, seed: bytes, count: int) -> bytes:
    """h^A(seed) for A = ``count`` activation instants, the sampling instant included."""
    return activation_chain(window).walk(seed, count)


def activation_preimage(window: str, seed: bytes, count: int, a: int) -> bytes:
    """n_a = h^(A-a)(seed), 1 <= a <= A; n_A is the seed itself, the sampling nonce."""
    if not 1 <= a <= count:
        raise MalformedRecord(f"activation {a}", expected=f"1..{count}")
    return activation_chain(window).walk(seed, count - a)


def verify_activation_preimage(window: str, anchor: bytes, a: int, preimage: bytes) -> None:
    """Check n_a against the anchor of the countersigned opening: h^a(n_a) is the anchor.

    Raises:
        MalformedRecord: not 32 bytes, a < 1. ChainRejected: another value.
    """
    if a < 1:
        raise MalformedRecord(f"activation {a}", expected="1 or more")
    if not hmac.compare_digest(activation_chain(window).walk(preimage, a), anchor):
        raise ChainRejected("not the chain's preimage", where=f"activation {a}")


def activation_randomness(window: str, a: int, preimage: bytes, beacon: bytes = b"") -> bytes:
    """rnd_a; ``beacon`` is the round's randomness, empty with beacon "none"."""
    return structure("rnd", check_window(window), a, preimage, beacon)


def activation_of(index: int, covered_sizes: Sequence[int]) -> int | None:
    """The activation of log entry ``index``: the first a whose checkpoint covers it.

    Args:
        covered_sizes: of a = 1, 2, .. as far as they are known, a < A: size of the largest
            checkpoint cosigned strictly before t_a.

    Returns: None while no instant activates the entry.
    """
    return next((a for a, size in enumerate(covered_sizes, start=1) if size > index), None)


def nonce_chain(window: str, pseudonym: bytes) -> Chain:
    """h(x) = SHA-256(enc("ragaudit/v1/nonce", window, pseudonym, x))."""
    if len(pseudonym) != PSEUDONYM_BYTES:
        raise MalformedRecord("pseudonym of the wrong length", expected="32 bytes")
    return Chain("ragaudit/v1/nonce", check_window(window), pseudonym)


class NonceChain:
    """A client's chain for r = ``length`` queries: anchor h^r(seed), nonce_c = h^(r-1-c)(seed)."""

    def __init__(self, window: str, pseudonym: bytes, seed: bytes, length: int) -> None:
        if not 1 <= length <= MAX_CHAIN:
            raise MalformedRecord(f"chain of {length}", expected=f"1..{MAX_CHAIN}")
        self.length = length
        self._chain = nonce_chain(window, pseudonym)
        self._values = [self._chain.walk(seed, 0)]
        for _ in range(length // _STRIDE):
            self._values.append(self._chain.walk(self._values[-1], _STRIDE))
        self.anchor = self._at(length)

    def nonce(self, counter: int) -> bytes:
        """nonce_c; reveal it only for a promise that was checked and stored durably."""
        if not 0 <= counter < self.length:
            raise MalformedRecord(f"counter {counter}", expected=f"0..{self.length - 1}")
        return self._at(self.length - 1 - counter)

    def _at(self, steps: int) -> bytes:
        return self._chain.walk(self._values[steps // _STRIDE], steps % _STRIDE)


def verify_nonce(
    window: str, pseudonym: bytes, anchor: bytes, counter: int, nonce: bytes, *, after: int = -1
) -> None:
    """Check nonce_c, c = ``counter``: h^(c - after)(nonce) is ``anchor``.

    Args:
        anchor: the registration's anchor; or, with ``after``, the nonce of that lower counter,
            checked before. A whole account costs one hash per record that way.

    Raises:
        MalformedRecord: not 32 bytes, or a counter not above ``after``.
        ChainRejected: another value.
    """
    if not -1 <= after < counter:
        raise MalformedRecord(f"counter {counter}", expected=f"above {after}")
    value = nonce_chain(window, pseudonym).walk(nonce, counter - after)
    if not hmac.compare_digest(value, anchor):
        raise ChainRejected("not the chain's nonce", where=f"counter {counter}")
