"""The discrete Gaussian sampler "ragaudit/v1/dgs" (docs/spec/03-noise.md).

Integers only: parameters from the policy's decimal string, the table of thresholds, and a
slow reference sampler. How far it is from the law that it claims is measured by the tests
(`tests/support/noise_certificate.py`).
"""

import hmac
from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import isqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.parameters import LIMITS, SQUARED_NORM
from ragaudit.encoding.tagged import enc, read_digest, read_optional_digest
from ragaudit.encoding.text import parse_decimal

__all__ = ["COIN_TAG", "NoiseParameters", "Table", "noise_key", "sample_noise", "table"]


class Interval(NamedTuple):
    """Enclosure of a real number >= 0 in units of ``2^-bits`` (bits is the caller's).

    It stands for the reals in ``[low / 2^bits, high / 2^bits]``. Every operation rounds outwards,
    in integers only, so that it encloses the exact result.

    Attributes:
        low, high: its ends, both included.
    """

    low: int
    high: int


def enclose(value: Fraction, bits: int) -> Interval:
    """Return the tightest interval around a rational >= 0.

    Args:
        value: at least 0.
        bits: of the interval.
    """
    scaled = value.numerator << bits
    return Interval(scaled // value.denominator, -(-scaled // value.denominator))


def multiply(a: Interval, b: Interval, bits: int) -> Interval:
    """Return an enclosure of the product of two intervals at ``bits``.

    Args:
        a, b: at ``bits``, as is the result.
        bits: of all three intervals.
    """
    # Each end is rounded away from the product: a bound made of these is never too small.
    return Interval((a.low * b.low) >> bits, -((-a.high * b.high) >> bits))


def exp_negative(value: Fraction, bits: int) -> Interval:
    """Return an enclosure of ``exp(-value)`` for ``value >= 0``.

    The argument is halved until it is at most 1/2, the alternating series is summed until
    its next term is below one unit (which bounds the remainder), and the result squared back.

    Args:
        value: at least 0.
        bits: of the interval.
    """
    halvings = max(0, (2 * value.numerator // value.denominator).bit_length())
    argument = enclose(value / 2**halvings, bits)
    total = Interval(0, 0)
    term = Interval(1 << bits, 1 << bits)
    order = 0
    while term.high > 1:
        if order % 2 == 0:
            total = Interval(total.low + term.low, total.high + term.high)
        else:
            total = Interval(total.low - term.high, total.high - term.low)
        order += 1
        product = multiply(term, argument, bits)
        term = Interval(product.low // order, -(-product.high // order))
    result = Interval(max(0, total.low - term.high), total.high + term.high)
    for _ in range(halvings):
        result = multiply(result, result, bits)
    return result


THRESHOLD_BYTES = 16
THRESHOLD_BITS = 8 * THRESHOLD_BYTES
KEY_BYTES = 32
# ChaCha20's block counter has 32 bits and blocks have 2^6 bytes (RFC 8439 §2.3).
MAX_STREAM_BYTES = 2**38

# Spec 3.1. A direct table has at most 2 · 13 · 512 thresholds, 208 KiB.
_DIRECT_LIMIT = 512
_FACTOR_LIMIT = 256
_TAIL = 13  # standard deviations kept in the table
_START_BITS = 256

NOISE_TAG: Final = "ragaudit/v1/noise"
COIN_TAG: Final = "ragaudit/v1/generation"


@dataclass(frozen=True)
class NoiseParameters:
    """Parameters of the sampler for one sigma (docs/spec/03-noise.md §3.1).

    Attributes:
        sigma: the policy's decimal string.
        sigma_units: S = sigma · 16129, the parameter on the score lattice, in [16, 2^40].
        levels: L, the number of convolutions; 0 for a direct table.
        factor: K, the integer weight between levels; 1 for a direct table.
        base_variance: s², the variance parameter of the table's law.
        half_width: w; the table covers -w..w.
    """

    sigma: str
    sigma_units: Fraction
    levels: int
    factor: int
    base_variance: Fraction
    half_width: int

    @classmethod
    def for_sigma(cls, sigma: str) -> "NoiseParameters":
        """Return the parameters of a decimal sigma (cosine units).

        Args:
            sigma: of the policy (docs/spec/01-encoding.md §1.8).

        Raises:
            MalformedError: not a decimal string, or sigma_units outside [16, 2^40].
        """
        return cls.for_units(parse_decimal(sigma) * SQUARED_NORM, sigma)

    @classmethod
    def for_units(cls, units: Fraction, sigma: str) -> "NoiseParameters":
        """Return the parameters for an exact sigma_units, named ``sigma`` in messages.

        Args:
            units: S, on the lattice of scores.
            sigma: the text that messages name.

        Raises:
            MalformedError: units outside [16, 2^40].
        """
        if not LIMITS.sigma_units_min <= units <= LIMITS.sigma_units_max:
            raise MalformedError(
                "sigma out of range", where=sigma, expected="sigma_units from 16 to 2^40"
            )
        levels, factor = _levels_and_factor(units)
        variance = units**2 / _geometric(factor, levels) if levels else units**2
        width = _ceil_sqrt(_TAIL**2 * variance)
        return cls(sigma, units, levels, factor, variance, width)


@dataclass(frozen=True)
class Table:
    """The sampler's thresholds.

    Attributes:
        parameters: of the sampler.
        thresholds: ``T_v``, v = -w..w-1, as 16 bytes little endian each, in rising v.

    Raises:
        MalformedError: wrong length, or thresholds that decrease.
    """

    parameters: NoiseParameters
    thresholds: bytes = field(repr=False)

    def __post_init__(self) -> None:
        length = 2 * self.parameters.half_width * THRESHOLD_BYTES
        if len(self.thresholds) != length:
            raise MalformedError("noise table has a wrong length", expected=f"{length} bytes")
        values = self.values()
        if any(a > b for a, b in pairwise(values)):
            raise MalformedError("noise table decreases", expected="thresholds in rising order")

    def values(self) -> list[int]:
        """Return the thresholds as integers in [0, 2^128)."""
        data = self.thresholds
        return [
            int.from_bytes(data[at : at + THRESHOLD_BYTES], "little")
            for at in range(0, len(data), THRESHOLD_BYTES)
        ]


@lru_cache(maxsize=16)
def table(parameters: NoiseParameters) -> Table:
    """Return the specification's table (docs/spec/03-noise.md §3.2).

    Args:
        parameters: of the sampler.
    """
    bits = _START_BITS
    while True:
        thresholds = _thresholds(parameters, bits)
        if thresholds is not None:
            data = b"".join(t.to_bytes(THRESHOLD_BYTES, "little") for t in thresholds)
            return Table(parameters, data)
        bits *= 2


@lru_cache(maxsize=16)
def table_for(sigma: str) -> Table:
    """Return the table of a decimal sigma; raises as `NoiseParameters.for_sigma`.

    Args:
        sigma: of the policy.
    """
    return table(NoiseParameters.for_sigma(sigma))


def weights(parameters: NoiseParameters, bits: int, count: int) -> list[Interval]:
    """Return enclosures of ``exp(-v²/(2 s²))`` for v = 0..count-1.

    ``p_(v+1) = p_v q^(2v+1)`` with ``q = exp(-1/(2 s²))``: two multiplications per value.

    Args:
        parameters: s² is their base variance.
        bits: of the intervals.
        count: number of weights, at least 1.
    """
    q = exp_negative(1 / (2 * parameters.base_variance), bits)
    square = multiply(q, q, bits)
    values = [Interval(1 << bits, 1 << bits)]
    step = q
    while len(values) < count:
        values.append(multiply(values[-1], step, bits))
        step = multiply(step, square, bits)
    return values


def noise_key(
    k: bytes,
    *,
    window: str,
    tenant: str,
    version: int,
    pseudonym: bytes,
    epoch: int,
    slot: int,
    counter: int,
    activation_randomness: bytes,
    nonce: bytes,
    tag: str = NOISE_TAG,
) -> bytes:
    """Return the key of a record's noise, or of an answer's coins (spec 3.3, 11.9).

    Args:
        k: the 32-byte key k_(g,i,c) that C_seed commits to.
        window, tenant, version: whose index is searched.
        pseudonym: of the account, 32 bytes.
        epoch, slot, counter: g, i and c of the record.
        activation_randomness: rnd_a, 32 bytes.
        nonce: 32 bytes of an anchored client, or empty.
        tag: NOISE_TAG, or COIN_TAG for a charge entry.

    Raises:
        MalformedError: a byte string of another length.
    """
    read_optional_digest(nonce)
    # Window, tenant and version are in it as well: one key used for two indexes would give both
    # answers the same noise, which cancels in their difference.
    message = enc(
        tag,
        window,
        tenant,
        version,
        read_digest(pseudonym),
        epoch,
        slot,
        counter,
        read_digest(activation_randomness),
        nonce,
    )
    return hmac.digest(read_digest(k), message, "sha256")


def sample_noise(noise_table: Table, key: bytes, count: int) -> npt.NDArray[np.int64]:
    """Return ``z_0 .. z_(count-1)`` as int64[count] (docs/spec/03-noise.md §3.4).

    The reference: one look-up at a time, not in constant time.

    Args:
        noise_table: of the sampler.
        key: 32 bytes, see :func:`noise_key`.
        count: >= 0.

    Raises:
        MalformedError: a key that is not 32 bytes, or a negative count.
        RefusedError: more than 2^38 bytes of key stream would be used.
    """
    parameters = noise_table.parameters
    # The same number for every sample: no rejection, so a position's bytes depend on its index
    # alone, and the time on no value.
    per_sample = parameters.levels + 1
    length = THRESHOLD_BYTES * per_sample * count
    if count < 0:
        raise MalformedError("negative number of samples", expected="count >= 0")
    if length > MAX_STREAM_BYTES:
        raise RefusedError("key stream exhausted", expected="at most 2^38 bytes per key")
    stream = _key_stream(key, length)
    thresholds = noise_table.values()
    result = np.empty(count, dtype=np.int64)
    at = 0
    for position in range(count):
        value, weight = 0, 1
        for _ in range(per_sample):
            u = int.from_bytes(stream[at : at + THRESHOLD_BYTES], "little")
            # bisect_right counts the T_v <= u, which is how 3.4 defines x.
            value += weight * (bisect_right(thresholds, u) - parameters.half_width)
            weight *= parameters.factor
            at += THRESHOLD_BYTES
        result[position] = value
    return result


def _key_stream(key: bytes, length: int) -> bytes:
    if len(key) != KEY_BYTES:
        raise MalformedError("noise key has a wrong length", expected=f"{KEY_BYTES} bytes")
    # The library's 16-byte nonce is the block counter (4 bytes, zero) and RFC 8439's nonce.
    cipher = Cipher(ChaCha20(key, bytes(16)), mode=None)
    return cipher.encryptor().update(bytes(length))


def _levels_and_factor(units: Fraction) -> tuple[int, int]:
    if units <= _DIRECT_LIMIT:
        return 0, 1
    levels = 1
    while True:
        factor = _largest_factor(units, levels)
        if factor <= _FACTOR_LIMIT:
            return levels, factor
        levels += 1


def _largest_factor(units: Fraction, levels: int) -> int:
    """Return the largest K with ``S² >= 4 (1 + K²)(1 + K² + ... + K^(2L))``; K = 1 always fits."""
    low, high = 1, 2
    while _fits(units, levels, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(units, levels, middle) else (low, middle)
    return low


def _fits(units: Fraction, levels: int, factor: int) -> bool:
    return units**2 >= 4 * (1 + factor**2) * _geometric(factor, levels)


def _geometric(factor: int, levels: int) -> int:
    return sum(factor ** (2 * level) for level in range(levels + 1))


def _ceil_sqrt(value: Fraction) -> int:
    """Return the least integer w >= 0 with w² >= value."""
    ceiling = -(-value.numerator // value.denominator)
    root = isqrt(ceiling)
    return root if root * root >= ceiling else root + 1


def _thresholds(parameters: NoiseParameters, bits: int) -> list[int] | None:
    """Return the thresholds, or None if ``bits`` do not settle every floor."""
    w = parameters.half_width
    half = weights(parameters, bits, w + 1)
    whole = [half[abs(v)] for v in range(-w, w + 1)]
    z_low = sum(p.low for p in whole)
    z_high = sum(p.high for p in whole)
    low = high = 0
    thresholds = []
    for p in whole[:-1]:
        low += p.low
        high += p.high
        floor = (low << THRESHOLD_BITS) // z_high
        # Where both ends have one floor it is the real number's, so all builders get one table.
        if floor != (high << THRESHOLD_BITS) // z_low:
            return None
        thresholds.append(floor)
    return thresholds
