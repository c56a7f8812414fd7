"""Ed25519 by whoever has the key, with a nonce of its own: as many signatures as one likes.

RFC 8032 §5.1.6, but the nonce is random instead of derived from key and message. A verifier cannot
tell; so a signature says who signed, and is no identity of what was signed.
"""

from __future__ import annotations

import secrets
from hashlib import sha512

from ragaudit.encoding.signing import SIGN_PREFIX, PrivateKey
from ragaudit.encoding.tagged import Field, enc

# Edwards25519 (RFC 8032 §5.1): field, order, curve constant and base point.
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
_Y = 4 * pow(5, -1, P) % P
_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
BASE = (_X, _Y)

Point = tuple[int, int]


def another_signature(key: PrivateKey, what: str, *fields: Field) -> bytes:
    """Return a valid signature over ``sign/<what>`` of the fields, another one at each call.

    Args:
        key: the signer's.
        what: domain of the signature (docs/spec/01-encoding.md §1.3).
        fields: what is signed.

    Returns:
        64 bytes, R || S.
    """
    data = enc(SIGN_PREFIX + what, *fields)
    secret = sha512(key.seed()).digest()
    # Clamped as the honest signer's is (RFC 8032 §5.1.5), or it is another key.
    scalar = int.from_bytes(secret[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    nonce = secrets.randbelow(ORDER)
    commitment = encoded(multiplied(nonce, BASE))
    digest = sha512(commitment + key.public.raw + data).digest()
    response = (nonce + int.from_bytes(digest, "little") * scalar) % ORDER
    return commitment + response.to_bytes(32, "little")


def added(a: Point, b: Point) -> Point:
    """Return the sum of two points in affine coordinates (RFC 8032 §3)."""
    (x, y), (u, v) = a, b
    product = D * x * y * u * v % P
    return (
        (x * v + y * u) * pow(1 + product, -1, P) % P,
        (y * v + x * u) * pow(1 - product, -1, P) % P,
    )


def multiplied(scalar: int, point: Point) -> Point:
    """Return scalar·point by doubling and adding; scalar >= 0. Not in constant time."""
    found = (0, 1)
    while scalar:
        if scalar & 1:
            found = added(found, point)
        point, scalar = added(point, point), scalar >> 1
    return found


def encoded(point: Point) -> bytes:
    """Return a point as 32 bytes: y, with the lowest bit of x on top (RFC 8032 §5.1.2)."""
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")
