"""Write epochs.json: log entries of seed epochs, and the noise keys that a later epoch commits to.

Run `python tests/vectors/make_epochs.py` to regenerate; the tests compare bit for bit. Written from
docs/spec (5.5, 5.7, 5.15, 6.1) alone: the standard library, nothing of ours.
"""

import hashlib
import hmac
import json
from pathlib import Path

from make_encoding import pack as enc

WINDOW, SLOTS, QUERIES = "2026-w47", 3, 2


def some(label: str) -> bytes:
    return hashlib.sha256(b"ragaudit epochs vector: " + label.encode()).digest()


def root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    return hashlib.sha256(b"\x01" + root(leaves[:half]) + root(leaves[half:])).digest()


def key(secret: bytes, epoch: int, slot: int, counter: int) -> bytes:
    of_slot = hmac.digest(secret, enc("ragaudit/v1/seed/slot", WINDOW, epoch, slot), "sha256")
    return hmac.digest(of_slot, enc("ragaudit/v1/seed/counter", counter), "sha256")


def slot_root(secret: bytes, epoch: int, slot: int) -> bytes:
    return root(
        [
            hashlib.sha256(
                enc("ragaudit/v1/key", epoch, slot, c, key(secret, epoch, slot, c))
            ).digest()
            for c in range(QUERIES)
        ]
    )


def seed_root(secret: bytes, epoch: int) -> bytes:
    return root([slot_root(secret, epoch, slot) for slot in range(SLOTS)])


def entry(epoch: int, reason: str, before: bytes, after: bytes, size: int, time: int) -> object:
    salt, tree = some(f"salt {epoch}"), some(f"root {size}")
    fields = (WINDOW, epoch, reason, before or None, after or None, size, tree, time)
    body = enc("ragaudit/v1/entry/epoch", *fields)
    return {
        "epoch": epoch, "reason": reason, "previous_root": before.hex(), "seed_root": after.hex(),
        "size": size, "root": tree.hex(), "time": time, "salt": salt.hex(), "body": body.hex(),
        "leaf": hashlib.sha256(enc("ragaudit/v1/leaf", salt, "epoch", body)).hexdigest(),
    }  # fmt: skip


def main() -> None:
    secrets = [some(f"secret {epoch}") for epoch in (1, 2, 3)]
    roots = [seed_root(secret, epoch) for epoch, secret in enumerate(secrets, start=1)]
    value = {
        "window": WINDOW,
        "slots": SLOTS,
        "queries": QUERIES,
        "seeds": [
            {
                "epoch": epoch,
                "secret": secret.hex(),
                "root": roots[epoch - 1].hex(),
                "keys": [
                    [key(secret, epoch, slot, c).hex() for c in range(QUERIES)]
                    for slot in range(SLOTS)
                ],
            }
            for epoch, secret in enumerate(secrets, start=1)
        ],
        "entries": [
            entry(2, "restore", roots[0], roots[1], 812, 1_800_000_000_000),
            entry(3, "key-loss", roots[1], roots[2], 2_000, 1_800_000_900_000),
        ],
        "unnoised": [entry(2, "restore", b"", b"", 0, 1_800_000_000_000)],
    }
    path = Path(__file__).parent / "epochs.json"
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
