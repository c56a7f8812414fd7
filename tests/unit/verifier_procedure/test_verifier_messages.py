"""The verifier's signed messages, as the service writes them and the procedure reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.verifier.procedure.messages import (
    Activation,
    Challenge,
    Clock,
    Countersignature,
    ReceiptsList,
    receipts_digest,
)
from ragaudit.verifier.service import statements

KEY = PrivateKey.from_seed(b"k" * 32)
OTHER = PrivateKey.from_seed(b"o" * 32)
LISTED = statements.receipts_list(KEY, window="w", digest=b"d" * 32, count=2, time=5)

MESSAGES: dict[str, tuple[bytes, Any]] = {
    "countersignature": (
        statements.countersignature(
            KEY,
            window="w",
            policy=b"p" * 32,
            opening=b"o" * 32,
            terms=b"t" * 32,
            anchor=b"a" * 32,
            time=7,
        ),
        Countersignature.parse,
    ),
    "activation": (
        statements.activation(KEY, window="w", a=1, preimage=b"n" * 32, covered_size=3, time=7),
        lambda data: Activation.of(canonical_json.loads(data)),
    ),
    "receipts-list": (LISTED, lambda data: ReceiptsList.of(canonical_json.loads(data))),
    "challenge": (
        statements.challenge(
            KEY,
            {
                "window": "w",
                "final_root": "ab" * 32,
                "final_size": 9,
                "preimage": "cd" * 32,
                "receipts_list": canonical_json.loads(LISTED),
                "strata": [
                    {"id": "tenant:t", "population": None, "sample": [1, 2]},
                    {"id": "account:00", "population": [1], "sample": [1]},
                ],
                "deadline": 99,
            },
        ),
        Challenge.parse,
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_the_service_signs_is_read_and_verified(kind: str) -> None:
    data, parse = MESSAGES[kind]
    message = parse(data)
    message.verify(KEY.public)
    with pytest.raises(SignatureRejected):
        message.verify(OTHER.public)


@pytest.mark.parametrize("kind", MESSAGES)
def test_every_member_is_signed_and_none_is_optional(kind: str) -> None:
    data, parse = MESSAGES[kind]
    value = canonical_json.loads(data)
    for name in value:
        less = {key: each for key, each in value.items() if key != name}
        for changed in (
            less,
            {**less, "other": 1},
            {**value, name: None},
            {**value, name: []},
            {**value, name: "x"},
            {**value, name: -1},
            {**value, name: True},
        ):
            if changed == value:
                continue
            with pytest.raises((MalformedError, SignatureRejected)):
                parse(canonical_json.dumps(changed)).verify(KEY.public)
    with pytest.raises(MalformedError):
        parse(canonical_json.dumps({**value, "more": 1}))
    for other in (b"[]", b"null", b"{}", b"", data + b" "):
        with pytest.raises(MalformedError):
            parse(other)


@pytest.mark.parametrize(
    "strata",
    [
        [{}],
        [1],
        [{"id": "a", "population": None}],
        [{"id": "a", "population": None, "sample": [-1]}],
        [{"id": "a", "population": [True], "sample": []}],
        [{"id": 1, "population": None, "sample": []}],
        [{"id": "a", "population": None, "sample": [], "more": 1}],
    ],
)
def test_strata_of_another_form(strata: Any) -> None:
    value = canonical_json.loads(MESSAGES["challenge"][0])
    with pytest.raises(MalformedError):
        Challenge.parse(canonical_json.dumps({**value, "strata": strata}))


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(min_size=32, max_size=32)), max_size=5))
def test_the_digest_of_receipts_does_not_depend_on_their_order(
    receipts: list[tuple[int, bytes]],
) -> None:
    assert receipts_digest(receipts) == receipts_digest(reversed(receipts))


def test_the_digest_of_receipts_distinguishes_groups() -> None:
    many = [(i, bytes(32)) for i in range(2001)]
    digests = {receipts_digest(many[:n]) for n in (0, 1, 999, 1000, 1001, 2000, 2001)}
    assert len(digests) == 7


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"responses": {}, "close": 1, "records": 1},
        {"responses": {}, "claims": {}, "close": 1},
        {"responses": {}, "claims": {}, "close": "1", "records": 1},
        {"responses": {"01": 1}, "claims": {}, "close": 1, "records": 1},
        {"responses": {"x": 1}, "claims": {}, "close": 1, "records": 1},
        {"responses": {"1": True}, "claims": {}, "close": 1, "records": 1},
        {"responses": {}, "claims": {"ab": 1}, "close": 1, "records": 1},
        {"responses": {}, "claims": {"ab" * 32: "1"}, "close": 1, "records": 1},
        {"responses": {"1": 1}, "claims": {}, "close": 1, "records": 1, "more": 1},
    ],
)
def test_clocks_of_another_form(value: Any) -> None:
    with pytest.raises(MalformedError):
        Clock.parse(canonical_json.dumps(value))


def test_a_clock() -> None:
    claimed = {"ab" * 32: 7}
    value = {"responses": {"0": 5, "12": 6}, "claims": claimed, "close": None, "records": 4}
    clock = Clock.parse(canonical_json.dumps(value))
    assert dict(clock.responses) == {0: 5, 12: 6}
    assert dict(clock.claims) == {b"\xab" * 32: 7}
    assert (clock.close, clock.records) == (None, 4)
