"""The four signed messages of the verifier (docs/spec/08-services.md §8.4), canonical JSON."""

from hashlib import sha256
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey, sign


def countersignature(
    key: PrivateKey,
    *,
    window: str,
    policy: bytes,
    opening: bytes,
    terms: bytes,
    anchor: bytes,
    time: int,
) -> bytes:
    """Countersign an opening; digests of 32 bytes, time in Unix milliseconds."""
    fields = (window, policy, opening, terms, anchor, time)
    return canonical_json.dumps(
        {
            "format": "ragaudit/v1/countersignature",
            "window": window,
            "policy_digest": policy.hex(),
            "opening_digest": opening.hex(),
            "terms_digest": terms.hex(),
            "activation_anchor": anchor.hex(),
            "time": time,
            "signature": sign(key, "countersignature", *fields).hex(),
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


def challenge(key: PrivateKey, content: dict[str, Any]) -> bytes:
    """Challenge the provider to open a sample.

    Args:
        content: every member but ``format`` and ``signature``.
    """
    message = {"format": "ragaudit/v1/challenge", **content}
    digest = sha256(canonical_json.dumps(message)).digest()
    signature = sign(key, "challenge", content["window"], digest).hex()
    return canonical_json.dumps({**message, "signature": signature})
