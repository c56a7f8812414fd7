"""Terms of policies, and what other formats say in their windows."""

import math
import struct
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from for_each import for_each
from integrity_scene import COLUMNS, DELETED, NOISE, digest_of, index, policy_value
from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.tagged import enc
from ragaudit.lab.scenario.third_parties import trust_text
from ragaudit.ledger.errors import MalformedPolicy, MalformedRecord, ReceiptRejected
from ragaudit.ledger.log.notes import COSIGNATURE_V1, VerifierKey
from ragaudit.ledger.messages.challenge import NO_KEY, Response
from ragaudit.ledger.messages.columns import NULL_ROW, PublicColumn
from ragaudit.ledger.messages.commitments import IndexCommitment, KeyOpening
from ragaudit.ledger.messages.entries import Opening, Record, TenantOpening, Version
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.handover import check_index_lengths
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.policy_terms import DIRECTION, NOISE_MEMBERS
from ragaudit.ledger.messages.promises import Claim, Promise
from ragaudit.ledger.messages.requests import (
    Openings,
    Question,
    Request,
    embedding_digest,
    float32_bytes,
)
from ragaudit.ledger.messages.schedules import VersionSchedule
from receipt_scene import PROVIDER


def noised(**changes: Any) -> dict[str, Any]:
    return policy_value(**{**NOISE, **changes})


def test_a_window_without_noise() -> None:
    policy = Policy.from_json(policy_value())
    assert (policy.noised, policy.noise) == (False, None)
    assert (policy.norm_bound, policy.squared_norm) == (4095, 4095**2)
    assert Policy.parse(policy.encode()) == policy
    terms = policy.retrieval
    assert terms.public_columns[0] == PublicColumn("lang", "string")
    assert (terms.filters, terms.query_kinds, terms.versions) == (True, ("text", "vector"), True)
    assert (terms.metric, terms.largest_norm, terms.retry_seconds) == ("cosine", None, 60)


@for_each("name", NOISE_MEMBERS)
def test_terms_of_noise_raise_where_there_is_none(name: str) -> None:
    with pytest.raises(UnsupportedError, match="no noise"):
        getattr(Policy.from_json(policy_value()), name)
    assert getattr(Policy.from_json(noised()), name) == NOISE[name]


@for_each("name", [*NOISE_MEMBERS, "sampler", "experiment_seed"])
def test_without_noise_nothing_is_said_of_it(name: str) -> None:
    said = {**NOISE, "experiment_seed": "seed"}[name]
    with pytest.raises((MalformedError, UnsupportedError)):
        Policy.from_json(policy_value(**{name: said}))


def test_with_noise_it_is_said() -> None:
    for nothing in (dict.fromkeys(NOISE_MEMBERS), {"sampler": None}):
        with pytest.raises((MalformedError, UnsupportedError), match=r"epsilon_acc|sampler"):
            Policy.from_json(noised(**nothing))


def test_a_noised_window() -> None:
    policy = Policy.from_json(noised(experiment_seed="seed"))
    assert (policy.noised, policy.norm_bound, policy.experiment_seed) == (True, 127, "seed")
    assert policy.noise == policy.noise_terms


@for_each(
    "change",
    [
        {"norm_bound": 128},
        {"largest_norm": "1"}, {"metric": "inner-product"}, {"metric": "l2", "largest_norm": "2"},
        {"filter_grammar": "sql"}, {"filter_grammar": None},
        {"query_kinds": ["vector", "text"]}, {"query_kinds": ["text", "text"]},
        {"account_index": False},
        {"coalition_estimate": "alike"},
        {"coalition_estimate": "ragaudit/v2/direction"},
    ],
)  # fmt: skip
def test_malformed_policies(change: dict[str, Any]) -> None:
    with pytest.raises((MalformedError, UnsupportedError)):
        Policy.from_json(policy_value(**change))


def test_an_estimate_by_direction_is_named_or_not() -> None:
    """An unknown estimate is refused, and so is any where there is no noise."""
    named = Policy.from_json(noised(coalition_estimate=DIRECTION))
    without = Policy.from_json(noised())
    assert named.by_direction and not without.by_direction
    assert b"coalition_estimate" not in without.canonical
    for unknown in (
        noised(coalition_estimate="ragaudit/v2/direction"),
        policy_value(coalition_estimate=DIRECTION),
    ):
        with pytest.raises(UnsupportedError, match="not supported"):
            Policy.from_json(unknown)


def test_an_account_index_is_asked_for_or_not_mentioned() -> None:
    assert Policy.from_json(policy_value(account_index=True)).account_index
    without = Policy.from_json(policy_value())
    assert not without.account_index and b"account_index" not in without.canonical


def owned(rows: Any = None, key: Any = None, **changes: Any) -> dict[str, Any]:
    tenants = [{**each, "owner_key": key} for each in policy_value()["tenants"]]
    return policy_value(**{"owners": {"rows": rows}, "tenants": tenants, **changes})


ROWS = {"beta": "0.01", "eta": "0.001", "minimum": 20}


def test_owners_check_documents_or_are_not_mentioned() -> None:
    key = PrivateKey.from_seed(bytes(31) + b"o").public
    policy, plain = Policy.from_json(owned(ROWS, key.raw.hex())), Policy.from_json(owned())
    terms = policy.owners
    assert terms is not None and terms.rows is not None and terms.rows.to_json() == ROWS
    assert policy.tenants[policy_value()["tenants"][0]["id"]] == key
    assert plain.owners is not None and plain.owners.rows is None
    assert set(plain.tenants.values()) == {None}
    without = Policy.from_json(policy_value())
    assert without.owners is None and b"owners" not in without.canonical


@for_each(
    "value",
    [
        owned(key=policy_value()["keys"]["provider"]), owned(key=policy_value()["keys"]["verdict"]),
    ],
)  # fmt: skip
def test_other_terms_of_owners_are_malformed(value: dict[str, Any]) -> None:
    with pytest.raises(MalformedPolicy):
        Policy.from_json(value)


def test_an_owners_key_without_owners_is_not_supported() -> None:
    key = PrivateKey.from_seed(bytes(31) + b"o").public.raw.hex()
    value = owned(key=key)
    del value["owners"]
    with pytest.raises(UnsupportedError, match="owners' keys"):
        Policy.from_json(value)


def test_a_policy_names_further_cosigners() -> None:
    asked = {"demand": "required", "trust": trust_text()}
    policy = Policy.from_json(policy_value(cosigners=asked))
    terms = policy.cosigners
    assert terms is not None and terms.required and terms.to_json() == asked
    assert [each.name for each in terms.trust.cosigners] == ["one", "two", "three"]
    assert Policy.from_json(policy_value()).cosigners is None


def test_what_further_cosigners_may_be() -> None:
    own = PrivateKey.from_seed(b"a" * 32).public
    text, keys = trust_text(), {**policy_value()["keys"], "arbiter": own.raw.hex()}
    arbiter = VerifierKey("a", COSIGNATURE_V1, own)
    quorum = "quorum them\n"
    for trust in (
        "", text[:-1], f"# ours\n{text}", text.replace("one ", "one  ", 1),
        text.replace("\nwitness", " https://one.example\nwitness", 1),
        f"log {keys['log']}\n{text}", text.replace(quorum, "quorum none\n"),
        text.replace("them 2", "them 4"), f"witness v {keys['cosigner']}\nquorum v\n", 7,
        f"witness a {arbiter}\nquorum a\n",
    ):  # fmt: skip
        with pytest.raises(MalformedPolicy) as caught:
            asked = {"demand": "required", "trust": trust}
            Policy.from_json(policy_value(cosigners=asked, keys=keys))
        assert caught.value.where == "cosigners.trust"
    for member in (None, {}, {"demand": "all", "trust": text}, {"trust": text}):
        with pytest.raises(MalformedPolicy):
            Policy.from_json(policy_value(cosigners=member))


def test_the_larger_norm_is_for_windows_without_noise() -> None:
    assert Policy.from_json(policy_value(norm_bound=127)).squared_norm == 16129
    with pytest.raises(MalformedPolicy, match="another value"):
        Policy.from_json(noised(norm_bound=4095))


def test_inner_products_name_the_largest_norm() -> None:
    policy = Policy.from_json(policy_value(metric="inner-product", largest_norm="12.5"))
    assert policy.retrieval.largest_norm == "12.5"


@pytest.mark.parametrize("asked", ["what is it?", float32_bytes([0.5] * 3072)])
def test_a_promise_says_once_what_was_asked(asked: str | bytes) -> None:
    window = Policy.from_json(noised(dimension=3072))
    leaf = {"op": "eq", "key": "lang", "value": "en"}
    text = Filter.from_json(leaf, window.retrieval.public_columns)
    request = Request.of(window, asked, 3, counter=0, filter=text.text)
    openings = Openings(
        query=request.query, vector=request.vector, kind=request.kind, salt_q=bytes(32),
        embedding=(2,) * 3072, salt_e=bytes(32), filter=text.text, salt_f=bytes(32),
        sketch=bytes(8), salt_s=bytes(32),
    )  # fmt: skip
    record = Record(
        policy_digest=window.digest, window="w1", tenant="acme", version=1, rows=9, top_k=3,
        filter_digest=salted(bytes(32), text.text), pseudonym=bytes(32), epoch=1, slot=0,
        counter=0, activation=1, time=1_200_000, nonce=None,
        query_digest=salted(bytes(32), openings.question.data),
        embedding_digest=embedding_digest(bytes(32), openings.embedding),
        sketch_digest=salted(bytes(32), bytes(8)), selection_commitment=None,
    )  # fmt: skip
    promise = Promise.issue(
        PROVIDER, origin=window.origin, body=record.encode(), request=request, openings=openings
    )
    promise.verify(PROVIDER.public)
    assert Promise.parse(promise.encode()) == promise
    assert not {"kind", "query", "vector", "filter"} & promise.to_json().keys()
    # At most 32 KiB, also with the longest vector.
    assert Claim(promise, bytes(32)).encode_within(1)
    for wrong in ({"query": "x"}, {"filter": ""}, {"kind": "text"}):
        with pytest.raises(MalformedError):
            Promise.from_json({**promise.to_json(), **wrong})
    with pytest.raises(ReceiptRejected, match="query"):
        other = Request.of(window, "something else", 3, counter=0, filter=text.text)
        questioned = replace(openings, query="something else", vector=b"", kind="text")
        Promise.issue(
            PROVIDER, origin=window.origin, body=record.encode(), request=other, openings=questioned
        ).verify(PROVIDER.public)


# Digests and bodies


def test_questions_are_digested_under_their_kind() -> None:
    window = Policy.from_json(policy_value())
    text, vector = (Request.of(window, asked, 2).question for asked in ("abcd" * 4, b"abcd" * 4))
    assert text.data != vector.data
    for question in (text, vector):
        assert Question.parse(question.data, window) == question
    wrong = [
        enc("ragaudit/v1/query", kind, asked)
        for kind, asked in (
            ("voice", b"abcd"), ("text", b"x" * 8193), ("text", b""), ("vector", b"abc"),
            ("vector", b"abcd" * 3), ("vector", struct.pack("<4f", 1, 1, 1, math.nan)),
        )
    ]  # fmt: skip
    for data in (b"", b"abcd", text.data + b"x", *wrong):
        with pytest.raises(MalformedError):
            Question.parse(data, window)


def test_the_opening_commits_to_keys_of_noise_where_there_is_noise() -> None:
    tenants = (TenantOpening("acme", 9, bytes(32), bytes(32)),)
    without = Opening(bytes(32), bytes(32), b"", tenants)
    assert Opening.parse(without.encode()) == without
    without.check_terms(noised=False, owned=False)
    replace(without, seed_root=bytes(32)).check_terms(noised=True, owned=False)
    for opening, due in ((without, True), (replace(without, seed_root=bytes(32)), False)):
        with pytest.raises(MalformedRecord, match="seed"):
            opening.check_terms(noised=due, owned=False)
    with pytest.raises(MalformedRecord):
        Opening(bytes(32), bytes(32), b"", (replace(tenants[0], version=2),))


def response(**changes: Any) -> Response:
    members: dict[str, Any] = {
        "index": 1, "key": NO_KEY, "salt_q": bytes(32), "query": b"q", "salt_e": bytes(32),
        "embedding": (1, 2, 3, 4), "salt_f": bytes(32), "filter": b"", "salt_s": bytes(32),
        "sketch": b"s", "proof": b"p",
    }  # fmt: skip
    return Response(**{**members, **changes})


def test_a_response_without_noise_opens_no_key() -> None:
    opened = response(query=b"q" * 16_000, filter=b"f" * 16_384)
    assert Response.parse(opened.encode(), 4, noised=False) == opened
    with pytest.raises(MalformedError):
        Response.parse(opened.encode(), 4, noised=True)
    with pytest.raises(MalformedError):
        Response.parse(response(query=b"q" * 16_449).encode(), 4, noised=False)
    key = KeyOpening(bytes(32), (), ())
    with pytest.raises(MalformedError):
        Response.parse(response(key=key).encode(), 4, noised=False)
    with pytest.raises(MalformedError):
        Response.parse(response(filter=b"f" * 16_385).encode(), 4, noised=False)


def test_versions_follow_each_other() -> None:
    window = Policy.from_json(policy_value())
    tenants = (TenantOpening("acme", 9, bytes(32), bytes(32)),)
    opening = Opening(window.digest, bytes(32), b"", tenants)
    second = Version("w1", "acme", 2, 9, bytes(32), bytes(32), 1)

    def schedule(*entries: tuple[int, Version], policy: Policy = window) -> VersionSchedule:
        return VersionSchedule.of(policy, opening, entries, (2, 6))

    found = schedule((5, replace(second, version=3, rows=10)), (2, second))
    assert [(v.index.version, v.entry, v.activation) for v in found.versions] == [
        (1, 0, 1), (2, 2, 2), (3, 5, 2),
    ]  # fmt: skip
    assert found.in_force("acme", 1_499_999).index.version == 1
    assert found.in_force("acme", 1_500_000).index.version == 3  # both begin at this instant
    assert schedule((2, second), (7, replace(second, version=3))).versions[-1].activation is None
    for tenant, time in (("zeta", 1_500_000), ("acme", 899_999)):
        with pytest.raises(ReceiptRejected, match="no version"):
            found.in_force(tenant, time)
    wrong: dict[str, Any]
    for wrong in (
        {"version": 3}, {"rows": 8}, {"tenant": "zeta"}, {"window": "w2"},
    ):  # fmt: skip
        with pytest.raises(MalformedRecord):
            schedule((2, replace(second, **wrong)))
    without = Policy.from_json(policy_value(versions=False))
    with pytest.raises(MalformedRecord, match="a version"):
        schedule((2, second), policy=without)


def test_an_index_with_columns_is_checked_against_the_policy() -> None:
    window = Policy.from_json(policy_value())
    rows, opened = index(1)
    commitment = IndexCommitment(
        "w1", "acme", 1, 4, b"".join(row.commitment for row in rows),
        b"".join(map(digest_of, rows)), b"", tuple(row.columns for row in rows),
    )  # fmt: skip
    assert commitment.root == opened.index_root
    assert IndexCommitment.parse(commitment.encode()) == commitment
    assert commitment.column_values(window) == COLUMNS
    assert commitment.opening().index_root == opened.index_root
    data, plain = commitment.encode(), replace(commitment, columns=()).encode()
    check_index_lengths(BytesIO(data), len(data), columns_allowed=True)
    check_index_lengths(BytesIO(plain), len(plain))
    with pytest.raises(MalformedRecord):
        check_index_lengths(BytesIO(data), len(data))
    for columns in (("{}",) * len(rows), commitment.columns[1:]):
        with pytest.raises(MalformedRecord):
            replace(commitment, columns=columns)
    undeclared = replace(commitment, columns=('{"secret":1}', *commitment.columns[1:]))
    with pytest.raises(MalformedRecord, match="undeclared"):
        undeclared.column_values(window)
    assert replace(commitment, columns=()).column_values(window) == [{}] * len(rows)


def test_only_later_versions_without_noise_say_which_rows_are_null_rows() -> None:
    rows, _ = index(2)
    texts = [NULL_ROW if row.position in DELETED else row.columns for row in rows]
    later = IndexCommitment(
        "w1", "acme", 2, 4, b"".join(row.commitment for row in rows),
        b"".join(map(digest_of, rows)), b"", tuple(texts),
    )  # fmt: skip
    window = Policy.from_json(policy_value())
    assert window.marks_null_rows
    found = later.column_values(window)
    assert [at for at, values in enumerate(found) if values is None] == sorted(DELETED)
    with pytest.raises(MalformedRecord, match="a null row"):
        replace(later, version=1).column_values(window)
    # Under noise it would show which of the rows with no document were deleted.
    private = Policy.from_json(noised())
    assert not private.marks_null_rows
    with pytest.raises(MalformedRecord, match="a null row"):
        later.column_values(private)
