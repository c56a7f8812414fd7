"""The four signed messages of the verifier (docs/spec/08-services.md §4), canonical JSON."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import PREFIX, structure
from ragaudit.encoding.signing import PrivateKey, sign
from ragaudit.encoding.tagged import Field, enc

RECEIPTS_LIST_TAG = PREFIX + "receipts-list"
GROUP = 1000


def opening_digest(salt: bytes, body: bytes) -> bytes:
    """What the countersignature names the opening by."""
    return structure("opening-digest", salt, body)


def countersignature(
    key: PrivateKey, *, window: str, policy: bytes, opening: bytes, anchor: bytes, time: int
) -> bytes:
    """Countersign an opening; digests of 32 bytes, time in Unix milliseconds."""
    return canonical_json.dumps(
        {
            "format": "ragaudit/v1/countersignature",
            "window": window,
            "policy_digest": policy.hex(),
            "opening_digest": opening.hex(),
            "activation_anchor": anchor.hex(),
            "time": time,
            "signature": sign(key, "countersignature", window, policy, opening, anchor, time).hex(),
        }
    )


def activation(
    key: PrivateKey, *, window: str, a: int, preimage: bytes, covered_size: int, time: int
) -> bytes:
    """Release n_a with the size of the log that it activates."""
    return canonical_json.dumps(
        {
            "format": "ragaudit/v1/activation",
            "window": window,
            "a": a,
            "preimage": preimage.hex(),
            "covered_size": covered_size,
            "time": time,
            "signature": sign(key, "activation", window, a, preimage, covered_size, time).hex(),
        }
    )


def receipts_digest(receipts: Iterable[tuple[int, bytes]]) -> tuple[bytes, int]:
    """Digest over (leaf index, signature) in rising order, and their number."""
    groups: list[bytes] = []
    fields: list[Field] = []
    count = 0
    for index, signature in receipts:
        fields += (index, signature)
        count += 1
        if count % GROUP == 0:
            groups.append(enc(RECEIPTS_LIST_TAG, *fields))
            fields = []
    if fields:
        groups.append(enc(RECEIPTS_LIST_TAG, *fields))
    return sha256(enc(RECEIPTS_LIST_TAG, *groups)).digest(), count


def receipts_list(key: PrivateKey, *, window: str, digest: bytes, count: int, time: int) -> bytes:
    """Commit to the receipts that arrived up to ``time``, Unix milliseconds."""
    return canonical_json.dumps(
        {
            "format": "ragaudit/v1/receipts-list",
            "window": window,
            "digest": digest.hex(),
            "count": count,
            "time": time,
            "signature": sign(key, "receipts-list", window, digest, count, time).hex(),
        }
    )


def challenge(
    key: PrivateKey,
    *,
    window: str,
    final_root: bytes,
    final_size: int,
    preimage: bytes,
    listed: dict[str, Any],
    disputed: Sequence[int],
    strata: Sequence[dict[str, Any]],
    deadline: int,
) -> bytes:
    """Challenge the provider to open a sample; ``deadline`` in Unix milliseconds."""
    message: dict[str, Any] = {
        "format": "ragaudit/v1/challenge",
        "window": window,
        "final_root": final_root.hex(),
        "final_size": final_size,
        "preimage": preimage.hex(),
        "receipts_list": listed,
        "disputed": list(disputed),
        "strata": list(strata),
        "deadline": deadline,
    }
    digest = sha256(canonical_json.dumps(message)).digest()
    signature = sign(key, "challenge", window, digest).hex()
    return canonical_json.dumps({**message, "signature": signature})
