"""A provider that signs any receipt file, whatever stands in it."""

from dataclasses import replace
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.ledger.messages.receipts import PublicReceipt


def resigned(window: Any, value: dict[str, Any]) -> dict[str, Any]:
    """The provider signs whatever stands in a receipt file."""
    parts = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
    digest = structure("answer", bytes.fromhex(value["private"]["salt_r"]), *parts)
    public = PublicReceipt.from_json(value["public"])
    signed = PublicReceipt(
        **{name: getattr(public, name) for name in ("origin", "index", "salt", "body", "issued")},
        answer_digest=digest,
    ).signed(window.provider_key)
    return {**value, "public": replace(signed, proof=public.proof).to_json()}
