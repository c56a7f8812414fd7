"""Every step of the receipt check fails for its own reason, and any changed byte is noticed."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import WindowView, check_inclusion
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.requests import Answer, embedding_digest
from receipt_scene import (
    LOG,
    OPERATIONS,
    PROVIDER,
    ROWS,
    _scenes,
    changed,
    key,
    policy,
    scene,
    tlog_proof,
    toy_embed,
)

NAMES = [
    "signature", "inclusion", "body", "answer_digest", "openings", "selection", "rows",
    "commitments", "embedder", "nonce",
]  # fmt: skip

# Honest receipts


@pytest.mark.parametrize("anchored", [True, False])
def test_an_honest_receipt_passes_every_step(anchored: bool) -> None:
    steps = scene(anchored).check()
    assert [step.number for step in steps] == list(range(1, 11))
    assert [step.name.replace(" ", "_") for step in steps] == NAMES
    assert all(step.status == "done" for step in steps), steps


def test_the_file_is_accepted_as_json_too() -> None:
    assert scene().check(file=scene().file().to_json()) == scene().check()


def test_an_empty_selection_is_possible() -> None:
    empty = scene().with_private(selected=(), rows=())
    commitment = OPERATIONS.commit_selection((), empty.private.selection_blinding)
    empty = replace(empty, answer=Answer(())).with_record(selection_commitment=commitment)
    assert empty.check()[5].status == "done"


@pytest.mark.parametrize(
    ("step", "changes"),
    [(9, {"embed": None}), (10, {"anchor": None}), (10, {"promise": None}), (3, {"account": None})],
)
def test_what_is_not_at_hand_is_reported_as_not_done(step: int, changes: dict[str, Any]) -> None:
    steps = scene().check(**changes)
    assert [each.number for each in steps if each.status == "not done"] == [step]
    assert steps[step - 1].detail


def test_without_released_activations_the_activation_is_not_known() -> None:
    unknown = replace(scene(), view=WindowView(policy(), scene().view.opening))
    assert unknown.check()[2].status == "not done"


# Step by step


def test_signature_of_another_key() -> None:
    file = scene().file()
    other = PublicReceipt(origin=file.public.origin, index=file.public.index, salt=file.public.salt,
        body=file.public.body, issued=file.public.issued, answer_digest=file.public.answer_digest,
    ).signed(key(8))  # fmt: skip
    scene().fails(
        1, "signature", file=replace(file, public=replace(other, proof=file.public.proof))
    )


def test_signature_for_another_log() -> None:
    file = scene().file()
    public = replace(file.public, origin="provider.example/ragaudit/w2")
    scene().fails(1, "another log", file=replace(file, public=public))


@pytest.mark.parametrize("name", ["index", "issued"])
def test_signature_covers_place_and_time(name: str) -> None:
    file = scene().file()
    public = replace(file.public, **{name: getattr(file.public, name) + 1})
    scene().fails(1, "signature", file=replace(file, public=public))


def test_a_missing_proof_is_outstanding() -> None:
    assert replace(scene(), proof=False).check()[1].status == "not done"


def test_inclusion_of_another_leaf() -> None:
    file = scene().file()
    proof = tlog_proof(b"another leaf", file.public.index)
    scene().fails(2, "another root", file=replace(file, public=file.public.with_proofs(proof)))


def test_inclusion_at_another_index() -> None:
    file = scene().file()
    proof = tlog_proof(file.public.leaves[0][2], file.public.index + 1)
    scene().fails(2, "another index", file=replace(file, public=file.public.with_proofs(proof)))


def test_inclusion_under_another_cosigner() -> None:
    file = scene().file()
    other = SigningKey("other.example/cosigner", COSIGNATURE_V1, key(9))
    proof = tlog_proof(file.public.leaves[0][2], file.public.index, other)
    scene().fails(2, "cosigned by 0", file=replace(file, public=file.public.with_proofs(proof)))


def test_inclusion_can_be_checked_alone_when_a_receipt_is_completed() -> None:
    public = scene().file().public
    assert check_inclusion(public, scene().view) == scene().check()[1]
    for other in (
        replace(public, proof=None),
        replace(public, salt=bytes(32)),
        public.with_proofs(tlog_proof(b"another leaf", public.index)),
    ):
        with pytest.raises(ReceiptRejected, match="step 2"):
            check_inclusion(other, scene().view)


@for_each(
    ("change", "message"),
    [
        ({"policy_digest": bytes(32)}, "policy"),
        ({"window": "w2"}, "window"),
        ({"version": 2}, "version"),
        ({"rows": ROWS + 1}, "rows"),
        ({"epoch": 2}, "epoch"),
        ({"top_k": 2}, "top_k"),
        ({"counter": 3}, "counter"),
        ({"counter": 8}, "counter"),
        ({"tenant": "zeta"}, "tenant"),
        ({"tenant": "none"}, "no such tenant"),
        ({"pseudonym": bytes(32)}, "pseudonym"),
        ({"slot": 2}, "slot"),
        ({"slot": 4}, "slot"),
        ({"activation": 1}, "activation"),
        ({"activation": 3}, "activation"),
        ({"time": 999_999}, "time"),
        ({"time": 2_000_000}, "time"),
    ],
)
def test_body_of_another_account_window_or_request(change: dict[str, Any], message: str) -> None:
    scene().with_record(**change).fails(3, message)


def test_a_slot_that_the_policy_does_not_have() -> None:
    """Also where nothing is known of the account."""
    beyond = scene().view.policy.slots
    scene().with_record(slot=beyond).fails(3, f"slot {beyond}", account=None, promise=None)


def test_what_the_policy_bounds_is_bounded_for_an_unknown_account_too() -> None:
    """A verifier that judges a dispute knows less of the account than the account does."""
    unknown = {"account": None, "promise": None}
    eighth = replace(scene(), request=replace(scene().request, counter=8), promise=None)
    eighth.with_record(counter=8).fails(3, "counter 8", **unknown)
    scene().with_record(counter=3).fails(3, "counter: 3", **unknown)
    scene().with_record(activation=3).fails(3, "activation 3", **unknown)


def test_body_with_more_than_the_policys_rows() -> None:
    asked = replace(scene(), request=replace(scene().request, top_k=4), promise=None)
    asked.with_record(top_k=4).fails(3, "K = 4")


def test_body_with_a_nonce_that_the_request_does_not_expect() -> None:
    plain = replace(scene(), request=replace(scene().request, counter=None), promise=None)
    plain.fails(3, "nonce")
    scene().with_record(nonce=None).fails(3, "nonce")


def test_body_before_the_registration_is_activated() -> None:
    late = replace(scene(), account=replace(scene().account, registration_index=3))
    late.fails(3, "not activated")


def test_another_answer_than_signed() -> None:
    file = scene().file()
    other = Answer(file.answer.documents[:1])
    scene().fails(4, "another answer", file=replace(file, answer=other))
    request = replace(file.request, query="what else?")
    scene().fails(4, "another answer", file=replace(file, request=request))


@pytest.mark.parametrize("name", ["salt_q", "salt_e", "salt_f", "salt_s"])
def test_openings_with_another_salt(name: str) -> None:
    openings = replace(scene().private.openings, **{name: bytes(32)})  # type: ignore[arg-type]
    scene().with_private(openings=openings).fails(5, "does not open")


def test_openings_of_another_query() -> None:
    openings = replace(scene().private.openings, query="what else?")
    scene().with_private(openings=openings).fails(5, "another query")


@pytest.mark.parametrize(
    ("embedding", "message"),
    [((127, 1, 0, 0), "norm above"), ((1, 2, 3), "3 entries"), ((120, 0, 30, 1), "sketch")],
)
def test_openings_of_an_embedding_that_must_not_be(
    embedding: tuple[int, ...], message: str
) -> None:
    openings = replace(scene().private.openings, embedding=embedding)
    digest = embedding_digest(openings.salt_e, embedding)
    changed = scene().with_private(openings=openings)
    changed.with_record(embedding_digest=digest).fails(5, message)


def test_openings_of_another_sketch() -> None:
    openings = replace(scene().private.openings, sketch=bytes(8))
    digest = salted(openings.salt_s, bytes(8))
    changed = scene().with_private(openings=openings)
    changed.with_record(sketch_digest=digest).fails(5, "sketch")


def test_selection_of_other_rows() -> None:
    scene().with_private(selected=(1, 5)).fails(6, "selection commitment")
    scene().with_private(selected=(1,)).fails(6, "selection commitment")
    scene().with_private(selection_blinding=bytes(32)).fails(6, "selection commitment")


def test_selection_of_more_than_asked() -> None:
    scene().with_private(selected=(0, 1, 2, 4)).fails(6, "4 rows")


def test_selection_beyond_the_index() -> None:
    scene().with_private(selected=(1, ROWS)).fails(6, "position 6")


def test_rows_other_than_the_selected() -> None:
    scene().with_private(rows=scene().private.rows[:1]).fails(7, "1 rows served")
    scene().with_private(rows=scene().private.rows[::-1]).fails(7, "not the selected")


@pytest.mark.parametrize("change", [{"content": "forged"}, {"id": "other"}])
def test_documents_other_than_the_rows(change: dict[str, str]) -> None:
    first, second = scene().answer.documents
    forged = Answer((replace(first, **change), second))  # type: ignore[arg-type]
    replace(scene(), answer=forged).fails(7, "not the receipt's rows")


@for_each(
    ("change", "message"),
    [
        ({"salt": bytes(32)}, "row of C_idx"),
        ({"blinding": bytes(32)}, "not the committed"),
        ({"vector": (0, 0, 0, 126), "squares": (15, 5, 1, 1)}, "another norm"),
        ({"vector": (127, 0, 0, 0), "squares": (0, 0, 0, 0)}, "not the committed"),
        ({"vector": (0, 0, 0), "squares": (127, 0, 0, 0)}, "3 entries"),
        ({"squares": (127, 0, 0, 1)}, "another norm"),
    ],
)
def test_rows_that_are_not_the_committed_ones(change: dict[str, Any], message: str) -> None:
    scene().with_row(**change).fails(8, message)


def test_a_row_with_a_commitment_of_its_own() -> None:
    row = scene().private.rows[0]
    vector, squares = (127, 0, 0, 0), (0, 0, 0, 0)
    made = OPERATIONS.commit_row((*vector, *squares), row.blinding)
    scene().with_row(vector=vector, squares=squares, commitment=made).fails(8, "row of C_idx")


def test_a_row_with_another_path() -> None:
    scene().with_row(path=scene().private.rows[1].path).fails(8, "inclusion proof")


def test_content_that_is_not_of_its_row() -> None:
    first, second = scene().answer.documents
    forged = replace(scene(), answer=Answer((replace(first, content="forged"), second)))
    forged.with_row(content="forged").fails(8, "row of C_idx")


def test_embeddings_outside_the_tolerance() -> None:
    def other(texts: Sequence[str]) -> list[list[int]]:
        return [
            [vector[0] - 1, vector[1] + 1, vector[2] + 1, vector[3]] for vector in toy_embed(texts)
        ]

    scene().fails(9, "off by 3", embed=other)


def test_embeddings_inside_the_tolerance() -> None:
    def near(texts: Sequence[str]) -> list[list[int]]:
        return [[vector[0] - 1, vector[1] + 1, *vector[2:]] for vector in toy_embed(texts)]

    assert scene().check(embed=near)[8].status == "done"


def test_an_embedder_of_another_dimension() -> None:
    scene().fails(9, "4 entries", embed=lambda texts: [[1]] * len(texts))


def test_a_nonce_that_is_not_of_the_chain() -> None:
    scene().with_record(nonce=bytes(32)).fails(10, "not the chain's nonce", promise=None)


def test_no_nonce_for_an_anchored_account() -> None:
    scene(anchored=False).fails(10, "anchored", anchor=scene().anchor)


@pytest.mark.parametrize(
    "change", [{"time": 1_200_001}, {"activation": 2, "query_digest": bytes(32)}]
)
def test_a_record_that_contradicts_its_promise(change: dict[str, Any]) -> None:
    promise = scene().promise
    assert promise is not None
    body = replace(scene().record.promised(), **change).encode()
    other = Promise.issue(
        PROVIDER, origin=LOG.name, body=body, request=promise.request, openings=promise.openings
    )
    scene().fails(10, "contradicts", promise=other)


def test_a_promise_of_another_request() -> None:
    """Its signature is over the body: the request in it is what the account must compare."""
    promise = scene().promise
    assert promise is not None
    other = replace(promise, request=replace(promise.request, query="another question"))
    scene().fails(10, "another request than promised", promise=other)


# Whole files


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [each for name in value for each in leaves(value[name], (*path, name))]
    if isinstance(value, list):
        return [each for i, item in enumerate(value) for each in leaves(item, (*path, i))]
    return [path]


FILE = _scenes()[True].file().to_json()
PATHS = leaves(FILE)


@for_each("path", PATHS)
def test_no_member_of_the_file_can_change(path: tuple[Any, ...]) -> None:
    file = copy.deepcopy(FILE)
    place = file
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = changed(place[path[-1]])
    with pytest.raises((ReceiptRejected, MalformedError, UnsupportedError)):
        scene().check(file=file)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_bit_of_the_signed_bytes_can_change(data: st.DataObject) -> None:
    file = copy.deepcopy(FILE)
    half, name = data.draw(
        st.sampled_from([("public", "body"), ("public", "signature"), ("public", "salt"),
                         ("private", "selection_blinding"), ("private", "salt_r")])
    )  # fmt: skip
    value = bytearray.fromhex(file[half][name])
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    value[bit // 8] ^= 1 << bit % 8
    file[half][name] = value.hex()
    with pytest.raises((ReceiptRejected, MalformedError)):
        scene().check(file=file)
