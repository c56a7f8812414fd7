"""A stored log to fill: its key, its cosigner, its leaves."""

import hashlib
from typing import Any

from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey

KEY = SigningKey("provider.example/ragaudit/w1", ED25519, PrivateKey.from_seed(b"\x01" * 32))
COSIGNER = SigningKey("cosigner.example/1", COSIGNATURE_V1, PrivateKey.from_seed(b"\x02" * 32))
COSIGNERS = CosignerPolicy((COSIGNER.verifier_key,), 1)


def leaf(number: Any) -> Any:
    return hashlib.sha256(b"leaf %d" % number).digest()


def leaves(count: Any, start: int = 0) -> Any:
    return [leaf(i) for i in range(start, start + count)]


def fill(store: Any, count: Any) -> Any:
    with store.transaction() as connection:
        return store.extend(connection, leaves(count, store.head(connection).size))
