"""BLS signatures of a beacon's rounds (spec 6.13): the curve BLS12-381, its pairing, hashing to G1.

Curve points are affine (x, y), None the identity. G1 lies on y² = x³ + 4 over F_p; G2 on
y² = x³ + 4·(1 + u) over F_p² = F_p[u]/(u² + 1), whose elements are pairs. The pairing takes both to
F_p¹² = F_p[w]/(w¹² - 2·w⁶ + 2), in which u = w⁶ - 1; its elements are 12 coefficients.
"""

from hashlib import sha256
from typing import Final, TypeAlias

from . import isogeny
from .errors import MalformedProof, ProofRejected

P: Final = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    16,
)
ORDER: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
LOOP: Final = 0xD201000000010000  # the curve's parameter is -LOOP
COFACTOR: Final = 1 + LOOP  # h_eff of G1 (RFC 9380 §8.8.1)
DST: Final = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"

Pair: TypeAlias = tuple[int, int]  # a + b·u
G1: TypeAlias = tuple[int, int]
G2: TypeAlias = tuple[Pair, Pair]
Big: TypeAlias = list[int]  # 12 coefficients

GENERATOR: Final[G2] = (
    (
        0x24AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
        0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
    ),
    (
        0xCE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
        0x606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
    ),
)


def verify_round(public_key: bytes, message: bytes, signature: bytes) -> None:
    """Check a signature: e(signature, generator of G2) = e(hash_to_G1(message), public key).

    Args:
        public_key: of the chain, a point of G2, 96 bytes.
        message: SHA-256 of the round's number.
        signature: a point of G1, 48 bytes.

    Raises:
        MalformedProof: not the one encoding of a point of the group, or the identity.
        ProofRejected: the equation does not hold.
    """
    key, (x, y) = decode_g2(public_key), decode_g1(signature)
    product = _times(_miller(GENERATOR, (x, P - y)), _miller(key, hash_to_g1(message)))
    if _power(product, (P**12 - 1) // ORDER) != [1] + 11 * [0]:
        raise ProofRejected("signature does not verify")


# Points of G1


def add(a: G1 | None, b: G1 | None) -> G1 | None:
    """Return the sum of two points of y² = x³ + 4 over F_p."""
    if a is None or b is None:
        return b if a is None else a
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    if a == b:
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) % P
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def multiply(point: G1, scalar: int) -> G1 | None:
    """Return ``scalar`` times a point; 0 gives the identity."""
    total: G1 | None = None
    for bit in bin(scalar)[2:]:
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total


def encode_g1(point: G1) -> bytes:
    """Return the 48 bytes of a point: x, with flags in the three highest bits."""
    x, y = point
    return (x | 1 << 383 | (y > P // 2) << 381).to_bytes(48, "big")


def decode_g1(data: bytes) -> G1:
    """Return the point of G1 that 48 bytes encode, never the identity."""
    x, larger = _coordinate(data, 48)
    square = (x**3 + 4) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        raise MalformedProof("not on the curve")
    point = x, y if (y > P // 2) == larger else P - y
    if multiply(point, ORDER) is not None:
        raise MalformedProof("not in the subgroup")
    return point


def _coordinate(data: bytes, length: int) -> tuple[int, bool]:
    """The first coordinate, and whether the larger y is meant."""
    if len(data) != length or not data[0] & 0x80 or data[0] & 0x40:
        raise MalformedProof("not a compressed point")
    x = int.from_bytes(bytes([data[0] & 0x1F]) + data[1:48], "big")
    if x >= P:
        raise MalformedProof("not a number below p")
    return x, bool(data[0] & 0x20)


def hash_to_g1(message: bytes) -> G1:
    """Return hash_to_curve of RFC 9380 for BLS12381G1_XMD:SHA-256_SSWU_RO_."""
    uniform = expand(message, DST, 128)
    first, second = (_map(int.from_bytes(uniform[at : at + 64], "big") % P) for at in (0, 64))
    total = add(first, second)
    cleared = None if total is None else multiply(total, COFACTOR)
    if cleared is None:
        raise ProofRejected("the message hashes to the identity")
    return cleared


def expand(message: bytes, tag: bytes, length: int) -> bytes:
    """Return expand_message_xmd with SHA-256 (RFC 9380 §5.3.1), at most 255 blocks of 32 bytes."""
    suffix = tag + bytes([len(tag)])
    first = sha256(bytes(64) + message + length.to_bytes(2, "big") + b"\0" + suffix).digest()
    block, out = bytes(32), b""
    for i in range(1, -(-length // 32) + 1):
        mixed = bytes(a ^ b for a, b in zip(first, block, strict=True))
        block = sha256(mixed + bytes([i]) + suffix).digest()
        out += block
    return out[:length]


def _map(u: int) -> G1:
    """map_to_curve_simple_swu on E', then its isogeny (RFC 9380 §6.6.2, §6.6.3)."""
    a, b, z = isogeny.A, isogeny.B, isogeny.Z
    t = (z * z * pow(u, 4, P) + z * u * u) % P
    x = b * pow(z * a, -1, P) % P if t == 0 else -b * pow(a, -1, P) * (1 + pow(t, -1, P)) % P
    square = (x**3 + a * x + b) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        x = z * u * u * x % P
        square = (x**3 + a * x + b) % P
        y = pow(square, (P + 1) // 4, P)
    if y % 2 != u % 2:  # sgn0
        y = P - y
    numerator, denominator = _evaluate(isogeny.X_NUMERATOR, x), _evaluate(isogeny.X_DENOMINATOR, x)
    above, below = _evaluate(isogeny.Y_NUMERATOR, x), _evaluate(isogeny.Y_DENOMINATOR, x)
    return numerator * pow(denominator, -1, P) % P, y * above * pow(below, -1, P) % P


def _evaluate(coefficients: tuple[int, ...], x: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * x + coefficient) % P
    return value


# Points of G2


def _mul(a: Pair, b: Pair) -> Pair:
    return (a[0] * b[0] - a[1] * b[1]) % P, (a[0] * b[1] + a[1] * b[0]) % P


def _sub(a: Pair, b: Pair) -> Pair:
    return (a[0] - b[0]) % P, (a[1] - b[1]) % P


def _inverse(a: Pair) -> Pair:
    norm = pow(a[0] * a[0] + a[1] * a[1], -1, P)
    return a[0] * norm % P, -a[1] * norm % P


def _root(a: Pair) -> Pair:
    """A square root in F_p²; MalformedProof if there is none."""
    norm = pow(a[0] * a[0] + a[1] * a[1], (P + 1) // 4, P)
    for sign in (norm, -norm):
        half = (a[0] + sign) * pow(2, -1, P) % P
        real = pow(half, (P + 1) // 4, P)
        root = (
            (real, a[1] * pow(2 * real, -1, P) % P)
            if real
            else (0, pow(-a[0] % P, (P + 1) // 4, P))
        )
        if _mul(root, root) == a:
            return root
    raise MalformedProof("not on the curve")


def decode_g2(data: bytes) -> G2:
    """Return the point of G2 that 96 bytes encode, never the identity."""
    imaginary, larger = _coordinate(data, 96)
    real = int.from_bytes(data[48:], "big")
    if real >= P:
        raise MalformedProof("not a number below p")
    x = real, imaginary
    cube = _mul(_mul(x, x), x)
    y = _root(((cube[0] + 4) % P, (cube[1] + 4) % P))
    if ((y[1] or y[0]) > P // 2) != larger:
        y = -y[0] % P, -y[1] % P
    point = x, y
    # (ORDER - 1)·point = -point says so without the identity on the way.
    total = point
    for bit in bin(ORDER - 1)[3:]:
        total, _ = _double(total)
        if bit == "1":
            total, _ = _chord(total, point)
    if total != (x, (-y[0] % P, -y[1] % P)):
        raise MalformedProof("not in the subgroup")
    return point


def _double(a: G2) -> tuple[G2, Pair]:
    """2·a, and the slope of the tangent."""
    square = _mul(a[0], a[0])
    return _third(a, a, _mul((3 * square[0], 3 * square[1]), _inverse((2 * a[1][0], 2 * a[1][1]))))


def _chord(a: G2, b: G2) -> tuple[G2, Pair]:
    """a + b for a != ±b, and the slope of the line through them."""
    return _third(a, b, _mul(_sub(b[1], a[1]), _inverse(_sub(b[0], a[0]))))


def _third(a: G2, b: G2, slope: Pair) -> tuple[G2, Pair]:
    x = _sub(_sub(_mul(slope, slope), a[0]), b[0])
    return (x, _sub(_mul(slope, _sub(a[0], x)), a[1])), slope


# The pairing


def _miller(q: G2, p: G1) -> Big:
    """The Miller loop of the ate pairing, over the absolute value of the curve's parameter.

    What is left out of it (the parameter's sign inverts, lines are scaled by w³) does not change
    whether a product of pairings is 1: the final power takes it away, or inverts all factors.
    """
    value, total = [1] + 11 * [0], q
    for bit in bin(LOOP)[3:]:
        base = total
        total, slope = _double(total)
        value = _times(_times(value, value), _line(base, slope, p))
        if bit == "1":
            base = total
            total, slope = _chord(total, q)
            value = _times(value, _line(base, slope, p))
    return value


def _line(base: G2, slope: Pair, p: G1) -> Big:
    """w³ times the line at p: a point (x, y) of the twist is (x/w², y/w³) on the curve."""
    constant = _sub(_mul(slope, base[0]), base[1])
    linear = -slope[0] * p[0], -slope[1] * p[0]
    line = 12 * [0]
    # a + b·u = (a - b) + b·w⁶.
    line[0], line[6] = (constant[0] - constant[1]) % P, constant[1]
    line[2], line[8] = (linear[0] - linear[1]) % P, linear[1] % P
    line[3] = p[1]
    return line


def _times(a: Big, b: Big) -> Big:
    product = 23 * [0]
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                product[i + j] += x * y
    for i in range(22, 11, -1):  # w¹² = 2·w⁶ - 2
        product[i - 6] += 2 * product[i]
        product[i - 12] -= 2 * product[i]
    return [x % P for x in product[:12]]


def _power(base: Big, exponent: int) -> Big:
    value = [1] + 11 * [0]
    for bit in bin(exponent)[2:]:
        value = _times(value, value)
        if bit == "1":
            value = _times(value, base)
    return value
