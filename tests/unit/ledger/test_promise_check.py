"""The check of a promise before its nonce is revealed."""

from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.digests import salted
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import check_promise
from ragaudit.ledger.messages.requests import Request, embedding_digest
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


@for_each(
    "change",
    [
        {"policy_digest": bytes(32)}, {"window": "w2"}, {"tenant": "zeta"}, {"version": 2},
        {"rows": 7}, {"top_k": 2}, {"epoch": 2}, {"slot": 0}, {"counter": 3}, {"activation": 1},
        {"pseudonym": bytes(32)}, {"time": 999_999}, {"query_digest": bytes(32)},
        {"embedding_digest": bytes(32)}, {"sketch_digest": bytes(32)}, {"filter_digest": bytes(32)},
    ],
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


@pytest.mark.parametrize(
    ("openings", "message"),
    [
        ({"embedding": (127, 127, 0, 0)}, "norm above the bound"),
        ({"embedding": (1, 2, 3)}, "3 entries"),
        ({"sketch": bytes(8)}, "not the sketch"),
    ],
    ids=["norm", "length", "sketch"],
)
def test_a_promise_that_opens_as_it_says_to_what_it_must_not(
    openings: dict[str, Any], message: str
) -> None:
    """Every digest fits; the nonce would be revealed for a query that no rule allows."""
    honest = promise_of({})
    held = replace(honest.openings, **openings)
    change: dict[str, Any] = {
        "embedding_digest": embedding_digest(held.salt_e, held.embedding),
        "sketch_digest": salted(held.salt_s, held.sketch),
    }
    body = replace(honest.promised, **change).encode()
    other = Promise.issue(
        PROVIDER, origin=LOG.name, body=body, request=honest.request, openings=held
    )
    with pytest.raises(ReceiptRejected, match=message):
        checked(other, embed=None)


def test_a_promise_with_an_embedding_of_another_text() -> None:
    with pytest.raises(ReceiptRejected, match="off by"):
        checked(promise_of({}), embed=lambda texts: [[0, 0, 0, 127]] * len(texts))
