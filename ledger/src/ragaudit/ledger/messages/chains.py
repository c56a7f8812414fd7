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

MAX_CHAIN = 1_000_000  # what an anchor costs its checker: a second of hashing
NONCE_BYTES = DIGEST_BYTES  # of each value of a chain
_STRIDE = 1024  # a chain in memory keeps every 1024th value


class Chain:
    """The function x -> SHA-256(enc(tag, fields.., x)) of one purpose."""

    def __init__(self, tag: str, *fields: bytes | str) -> None:
        """Fix the purpose; the window, and for nonces the account, are in the fields.

        A value of one chain is therefore none of another, even from one seed.
        """
        # Everything in front of a 32-byte last field is the same at every step.
        self._prefix = enc(tag, *fields, bytes(DIGEST_BYTES))[:-DIGEST_BYTES]

    def walk(self, value: bytes, steps: int) -> bytes:
        """Return h applied ``steps`` times.

        Args:
            value: 32 bytes.
            steps: 0..1,000,000.

        Raises:
            MalformedRecord: not 32 bytes, or steps outside 0..1,000,000.
        """
        if len(value) != DIGEST_BYTES:
            raise MalformedRecord("a chain value of the wrong length", expected="32 bytes")
        # The number comes out of a message: without a bound it would cost its checker hours.
        if not 0 <= steps <= MAX_CHAIN:
            raise MalformedRecord(f"{steps} steps of a chain", expected=f"0..{MAX_CHAIN}")
        for _ in range(steps):
            value = hashlib.sha256(self._prefix + value).digest()
        return value


def activation_chain(window: str) -> Chain:
    """Return the chain h(x) = SHA-256(enc("ragaudit/v1/activation", window, x)).

    Args:
        window: its name; it is hashed at every step.

    Raises:
        MalformedRecord: not a window's name.
    """
    return Chain("ragaudit/v1/activation", check_window(window))


def activation_anchor(window: str, seed: bytes, count: int) -> bytes:
    """Return the anchor h^A(seed), 32 bytes.

    Args:
        window: its name.
        seed: the verifier's secret, 32 bytes.
        count: A activation instants, the sampling instant included.
    """
    return activation_chain(window).walk(seed, count)


def activation_preimage(window: str, seed: bytes, count: int, a: int) -> bytes:
    """Return n_a = h^(A-a)(seed), 32 bytes; n_A is the seed itself, the sampling nonce.

    Args:
        window, seed, count: as of `activation_anchor`.
        a: 1..A.

    Raises:
        MalformedRecord: ``a`` out of range.
    """
    if not 1 <= a <= count:
        raise MalformedRecord(f"activation {a}", expected=f"1..{count}")
    return activation_chain(window).walk(seed, count - a)


def verify_activation_preimage(window: str, anchor: bytes, a: int, preimage: bytes) -> None:
    """Check n_a against the anchor of the countersignature: h^a(n_a) is the anchor.

    Args:
        window: its name.
        anchor: 32 bytes; countersigned before the window, so that no n_a can be chosen later.
        a: at least 1.
        preimage: said to be n_a, 32 bytes.

    Raises:
        MalformedRecord: not 32 bytes, or a < 1.
        ChainRejected: another value.
    """
    if a < 1:
        raise MalformedRecord(f"activation {a}", expected="1 or more")
    if not hmac.compare_digest(activation_chain(window).walk(preimage, a), anchor):
        raise ChainRejected("not the chain's preimage", where=f"activation {a}")


def activation_randomness(window: str, a: int, preimage: bytes, beacon: bytes = b"") -> bytes:
    """Return rnd_a, 32 bytes, which goes into the noise of the records that a activates.

    Args:
        window: its name.
        a: number of the instant, from 1.
        preimage: n_a, 32 bytes.
        beacon: the round's randomness; empty with beacon "none".
    """
    return structure("rnd", check_window(window), a, preimage, beacon)


def activation_of(index: int, covered_sizes: Sequence[int]) -> int | None:
    """Return the activation of a log entry: the first a whose checkpoint covers it.

    None while no instant activates the entry: its noise must not be known when it is logged.

    Args:
        index: of the entry, from 0.
        covered_sizes: of a = 1, 2, .. as far as they are known, a < A: size of the largest
            checkpoint cosigned strictly before t_a.
    """
    # A checkpoint of size s covers the entries 0..s-1.
    return next((a for a, size in enumerate(covered_sizes, start=1) if size > index), None)


def nonce_chain(window: str, pseudonym: bytes) -> Chain:
    """Return the chain h(x) = SHA-256(enc("ragaudit/v1/nonce", window, pseudonym, x)).

    Args:
        window: its name.
        pseudonym: of the account, 32 bytes.
    """
    if len(pseudonym) != PSEUDONYM_BYTES:
        raise MalformedRecord("pseudonym of the wrong length", expected="32 bytes")
    return Chain("ragaudit/v1/nonce", check_window(window), pseudonym)


class NonceChain:
    """A client's chain for r queries: anchor h^r(seed), nonce_c = h^(r-1-c)(seed).

    Attributes:
        length: r.
        anchor: 32 bytes, for the registration.
    """

    def __init__(self, window: str, pseudonym: bytes, seed: bytes, length: int) -> None:
        """Compute the anchor.

        Args:
            window: its name.
            pseudonym: of the account, 32 bytes.
            seed: the account's secret, 32 bytes, used for this window only.
            length: r, 1..1,000,000.

        Raises:
            MalformedRecord: another length or range.
        """
        if not 1 <= length <= MAX_CHAIN:
            raise MalformedRecord(f"chain of {length}", expected=f"1..{MAX_CHAIN}")
        self.length = length
        self._chain = nonce_chain(window, pseudonym)
        self._values = [self._chain.walk(seed, 0)]  # no step, but the seed's length is checked
        for _ in range(length // _STRIDE):
            self._values.append(self._chain.walk(self._values[-1], _STRIDE))
        self.anchor = self._at(length)

    def nonce(self, counter: int) -> bytes:
        """Return nonce_c, 32 bytes; reveal it only for a promise that is checked and stored.

        With nonce and no promise the provider can compute the noise, and then choose what to log.

        Args:
            counter: c, 0..r-1.

        Raises:
            MalformedRecord: out of range.
        """
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
        window: its name.
        pseudonym: of the account, 32 bytes.
        counter: c of the record.
        nonce: said to be nonce_c, 32 bytes.
        after: a lower counter; -1: the registration.
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
