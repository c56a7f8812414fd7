"""The check of a promise before its nonce is revealed."""

from dataclasses import replace
from typing import Any

import pytest
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import check_promise
from ragaudit.ledger.messages.requests import Request
from receipt_scene import LOG, OPERATIONS, PROVIDER, scene, toy_embed

# Promises


def promise_of(change: dict[str, Any], request: Request | None = None) -> Promise:
    record = replace(scene().record.promised(), **change)
    return Promise.issue(
        PROVIDER,
        origin=LOG.name,
        body=record.encode(),
        request=request or scene().request,
        openings=scene().private.openings,
    )


def checked(promise: Promise, **changes: Any) -> None:
    arguments: dict[str, Any] = {"account": scene().account, "embed": toy_embed, **changes}
    check_promise(promise, scene().request, scene().view, OPERATIONS, **arguments)


def test_an_honest_promise_passes() -> None:
    checked(promise_of({}))
    checked(promise_of({}), embed=None)


@pytest.mark.parametrize(
    "change",
    [
        {"policy_digest": bytes(32)}, {"window": "w2"}, {"tenant": "zeta"}, {"version": 2},
        {"rows": 7}, {"top_k": 2}, {"epoch": 2}, {"slot": 0}, {"counter": 3}, {"activation": 1},
        {"pseudonym": bytes(32)}, {"time": 999_999}, {"query_digest": bytes(32)},
        {"embedding_digest": bytes(32)}, {"sketch_digest": bytes(32)}, {"filter_digest": bytes(32)},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_a_promise_that_is_false_in_one_field(change: dict[str, Any]) -> None:
    with pytest.raises(ReceiptRejected, match="promise"):
        checked(promise_of(change))


def test_a_promise_for_another_request() -> None:
    with pytest.raises(ReceiptRejected, match="another request"):
        checked(promise_of({}, replace(scene().request, query="what else?")))


def test_a_promise_that_is_not_signed_by_the_provider() -> None:
    promise = promise_of({})
    with pytest.raises(ReceiptRejected, match="signature"):
        checked(replace(promise, signature=bytes(64)))
    with pytest.raises(ReceiptRejected, match="another log"):
        checked(replace(promise, origin="provider.example/ragaudit/w2"))


def test_a_promise_with_an_embedding_of_another_text() -> None:
    with pytest.raises(ReceiptRejected, match="off by"):
        checked(promise_of({}), embed=lambda texts: [[0, 0, 0, 127]] * len(texts))
