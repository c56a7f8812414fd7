"""The group ristretto255 (RFC 9496) over edwards25519, in extended coordinates.

A point is a tuple (X, Y, Z, T) with x = X/Z, y = Y/Z, T = XY/Z on -x² + y² = 1 + d x² y². Several
tuples stand for one group element; only :func:`encode` and :func:`is_identity` may compare.
Nothing here is constant time: a verifier holds no secret.
"""

from collections.abc import Iterable

from .errors import MalformedProof

Point = tuple[int, int, int, int]

P = 2**255 - 19
POINT_BYTES = 32

# RFC 9496 §4.1; their defining equations are checked in the tests.
D = 37095705934669439343138083508754565189542113879843219016388785533085940283555
SQRT_M1 = 19681161376707505956807079304988542015446066515923890162744021073123829784752
SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235
INVSQRT_A_MINUS_D = 54469307008909316920995813868745141605393597292927456921205312896311721017578
ONE_MINUS_D_SQ = 1159843021668779879193775521855586647937357759715417654439879720876111806838
D_MINUS_ONE_SQ = 40440834346308536858101042469323190826248399146238708352240133220865137265952

IDENTITY: Point = (0, 1, 1, 0)


def _is_negative(value: int) -> bool:
    return value % P % 2 == 1


def _absolute(value: int) -> int:
    return -value % P if _is_negative(value) else value % P


def sqrt_ratio(u: int, v: int) -> tuple[bool, int]:
    """RFC 9496 §4.2 SQRT_RATIO_M1: (u/v is a square, the non-negative root of u/v or of i·u/v)."""
    u %= P
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    correct, flipped, flipped_i = check == u, check == -u % P, check == -u * SQRT_M1 % P
    if flipped or flipped_i:
        r = SQRT_M1 * r % P
    return correct or flipped, _absolute(r)


def decode(data: bytes) -> Point:
    """RFC 9496 §4.3.1: the element encoded by 32 bytes; the identity (32 zero bytes) is allowed.

    Raises:
        MalformedProof: ``data`` is not the canonical encoding of an element.
    """
    s = int.from_bytes(data, "little")
    if len(data) != POINT_BYTES or s >= P or _is_negative(s):
        raise MalformedProof("a point must be 32 bytes holding a non-negative field element")
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    was_square, invsqrt = sqrt_ratio(1, v * u2 * u2)
    den_x = invsqrt * u2 % P
    den_y = invsqrt * den_x * v % P
    x = _absolute(2 * s * den_x)
    y = u1 * den_y % P
    t = x * y % P
    if not was_square or _is_negative(t) or y == 0:
        raise MalformedProof("these 32 bytes encode no ristretto255 element")
    return (x, y, 1, t)


def encode(point: Point) -> bytes:
    """RFC 9496 §4.3.2: the canonical 32 bytes of an element."""
    x0, y0, z0, t0 = point
    u1 = (z0 + y0) * (z0 - y0) % P
    u2 = x0 * y0 % P
    _, invsqrt = sqrt_ratio(1, u1 * u2 * u2)
    den1, den2 = invsqrt * u1 % P, invsqrt * u2 % P
    z_inv = den1 * den2 * t0 % P
    if _is_negative(t0 * z_inv):
        x, y, den_inv = y0 * SQRT_M1, x0 * SQRT_M1, den1 * INVSQRT_A_MINUS_D
    else:
        x, y, den_inv = x0, y0, den2
    if _is_negative(x * z_inv):
        y = -y
    return _absolute(den_inv * (z0 - y)).to_bytes(POINT_BYTES, "little")


def _map_to_element(t: int) -> Point:
    """RFC 9496 §4.3.4 MAP: the Elligator map of one field element."""
    r = SQRT_M1 * t * t % P
    u = (r + 1) * ONE_MINUS_D_SQ % P
    v = (-1 - r * D) * (r + D) % P
    was_square, s = sqrt_ratio(u, v)
    c = -1
    if not was_square:
        s, c = -_absolute(s * t), r
    n = (c * (r - 1) * D_MINUS_ONE_SQ - v) % P
    w0, w1 = 2 * s * v % P, n * SQRT_AD_MINUS_ONE % P
    w2, w3 = 1 - s * s, 1 + s * s
    return (w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P)


def from_uniform_bytes(data: bytes) -> Point:
    """RFC 9496 §4.3.4: the element derived from 64 uniform bytes."""
    low, high = (int.from_bytes(half, "little") % 2**255 for half in (data[:32], data[32:64]))
    return add(_map_to_element(low % P), _map_to_element(high % P))


def add(left: Point, right: Point) -> Point:
    """The sum of two points (complete: no exceptional case)."""
    x1, y1, z1, t1 = left
    x2, y2, z2, t2 = right
    a = (y1 - x1) * (y2 - x2)
    b = (y1 + x1) * (y2 + x2)
    c = 2 * D * t1 * t2 % P
    d = 2 * z1 * z2
    e, f, g, h = (b - a) % P, (d - c) % P, (d + c) % P, (b + a) % P
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def negate(point: Point) -> Point:
    """-point."""
    x, y, z, t = point
    return (-x % P, y, z, -t % P)


def is_identity(point: Point) -> bool:
    """Whether the element is the identity (RFC 9496 §4.3.3 against (0, 1))."""
    return point[0] % P == 0 or point[1] % P == 0


def multiscalar(terms: Iterable[tuple[int, Point]]) -> Point:
    """Sum of scalar·point over (scalar, point), scalars in 0..l-1, by Pippenger's buckets."""
    pairs = [(scalar, point) for scalar, point in terms if scalar]
    width = max(2, len(pairs).bit_length() - 3)
    total = IDENTITY
    for shift in reversed(range(0, 253, width)):
        for _ in range(width):
            total = add(total, total)
        buckets: list[Point | None] = [None] * (1 << width)
        for scalar, point in pairs:
            digit = scalar >> shift & (1 << width) - 1
            if digit:
                held = buckets[digit]
                buckets[digit] = point if held is None else add(held, point)
        # Sum of digit · bucket[digit]: each bucket is counted once for every digit up to its own.
        running = IDENTITY
        for bucket in reversed(buckets[1:]):
            if bucket is not None:
                running = add(running, bucket)
            total = add(total, running)
    return total
