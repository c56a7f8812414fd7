"""The seven steps of a generated answer, each rejection at its step (spec 11.10)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from generation_messages import ANSWER
from generation_scene import ANSWERED, CHARGED, WORDS, GenerationScene, generation_scene
from ragaudit.ledger.messages.receipt_check import AccountView
from ragaudit.ledger.messages.receipts import (
    GeneratedAnswer,
    GeneratedFile,
    GeneratedKeywords,
    GenerationRequest,
)
from receipt_scene import key, salt

SCENES = [
    generation_scene(keywords=keywords, anchored=anchored)
    for keywords in (True, False)
    for anchored in (True, False)
]


@for_each("scene", SCENES)
def test_an_honest_answer_passes_every_step(scene: GenerationScene) -> None:
    assert [step.status for step in scene.check()] == ["done"] * 7


@for_each("scene", SCENES)
@for_each("proven", [(False, True), (True, False), (False, False)])
def test_one_outstanding_proof_leaves_the_inclusion_open(
    scene: GenerationScene, proven: tuple[bool, bool]
) -> None:
    steps = replace(scene, proven=proven).check()
    assert [step.number for step in steps if step.status == "not done"] == [2]


def test_what_is_not_known_is_not_done() -> None:
    scene = generation_scene(anchored=True)
    nobody = AccountView()
    steps = scene.check(anchor=None, promise=None, embed=None, account=nobody)
    assert [step.number for step in steps if step.status == "not done"] == [3, 6, 7]
    steps = scene.check(promise=None)
    assert [(step.number, step.detail) for step in steps if step.detail] == [
        (7, "the promise is not known here")
    ]


KEYWORDS, JOINED, TOKENS = (
    generation_scene(), generation_scene(final="keywords"), generation_scene(keywords=False),
)  # fmt: skip
BY_TOKENS = GeneratedAnswer(ANSWER.text, ANSWER.tokens, ANSWER.private)


@for_each(
    ("scene", "answer", "message"),
    [
        (KEYWORDS, BY_TOKENS, "another answerer.*one of keywords"),
        (TOKENS, WORDS, "another answerer.*one of tokens"),
        (KEYWORDS, GeneratedKeywords("", ("b", "c", "d", "e")), "4 keywords.*at most 3"),
        (KEYWORDS, GeneratedKeywords("", ("mirazo", "the")), "the stop word 'the'"),
        # What no model writes is the words alone: anything beside them would be a channel.
        (JOINED, WORDS, "not the released words"),
        (JOINED, GeneratedKeywords("mirazo  night", WORDS.keywords), "not the released words"),
        (JOINED, GeneratedKeywords("?", None), "not the released words"),
        (TOKENS, GeneratedAnswer("", (0,) * 9, 0), "9 tokens.*at most 8"),
        (TOKENS, GeneratedAnswer("", (0, 3), 0), "token 3.*below 3"),
        (TOKENS, GeneratedAnswer("", (2, 0), 0), "tokens behind the end"),
        (TOKENS, GeneratedAnswer("", (0,) * 4, 4), "4 private tokens.*at most 3"),
    ],
)
def test_an_answer_that_the_policys_answerer_cannot_give_fails_step_4(
    scene: GenerationScene, answer: Any, message: str
) -> None:
    replace(scene, answer=answer).fails(4, message)


@for_each(
    ("scene", "answer"),
    [
        (KEYWORDS, GeneratedKeywords("nothing is known of it", None)),
        (KEYWORDS, GeneratedKeywords("", ())),
        (JOINED, GeneratedKeywords("", None)),
        (JOINED, GeneratedKeywords("mirazo", ("mirazo",))),
        (TOKENS, GeneratedAnswer("", (2,), 1)),
        (TOKENS, GeneratedAnswer("aaaaaaaa", (0,) * 8, 3)),
    ],
)
def test_whatever_it_can_give_passes(scene: GenerationScene, answer: Any) -> None:
    assert replace(scene, answer=answer).check()[3].status == "done"


def changed_charge(**changes: Any) -> Callable[[GenerationScene], GenerationScene]:
    return lambda scene: replace(scene, charge=replace(scene.charge, **changes), promise=None)


def changed_view(**changes: Any) -> Callable[[GenerationScene], GenerationScene]:
    return lambda scene: replace(scene, account=replace(scene.account, **changes))


@for_each("keywords", [True, False])
@for_each(
    ("lie", "step", "message"),
    [
        (changed_charge(threshold=8999), 3, "threshold"),
        (changed_charge(policy_digest=salt(1)), 3, "policy"),
        (changed_charge(rows=5), 3, "rows"),
        (changed_charge(epoch=2), 3, "epoch"),
        (changed_charge(counter=8), 3, "counter"),
        (changed_charge(slot=99), 3, "slot"),
        (changed_charge(activation=1), 3, "activation"),
        (changed_charge(time=2_000_000), 3, "outside the window"),
        (changed_view(pseudonym=salt(56)), 3, "pseudonym"),
        (lambda scene: replace(scene, nonce=None), 3, "a nonce, or none"),
        (changed_charge(query_digest=salt(1)), 5, "query"),
        (changed_charge(filter_digest=salt(1)), 5, "filter"),
        (changed_charge(embedding_digest=salt(1)), 5, "embedding"),
        (changed_charge(sketch_digest=salt(1)), 5, "sketch"),
        (lambda scene: replace(scene, nonce=salt(1)), 7, "nonce"),
        (lambda scene: replace(scene, request=replace(scene.request, query="else?")), 5, "query"),
    ],
)  # fmt: skip
def test_a_false_charge_fails_its_step(
    lie: Callable[[GenerationScene], GenerationScene], step: int, message: str, keywords: bool
) -> None:
    lie(generation_scene(keywords=keywords, anchored=True)).fails(step, message)


@pytest.mark.parametrize(
    ("lie", "place", "message"),
    [
        ({"window": "w2"}, ANSWERED, "window of the answer"),
        ({"tenant": "other"}, ANSWERED, "tenant of the answer"),
        ({"charge": CHARGED - 1}, ANSWERED, "charge of the answer"),
        ({"time": 1_000_000}, ANSWERED, "before its charge"),
        ({}, CHARGED, "before its charge"),
    ],
)
def test_an_answer_to_something_else_fails_step_3_and_is_read(
    lie: dict[str, Any], place: int, message: str
) -> None:
    """The provider signed it: a half that nobody reads would accuse nobody."""
    scene, file = KEYWORDS, KEYWORDS.bare()
    body = replace(file.public.answered, **lie).encode()
    answer = replace(file.public.answer, index=place, body=body)
    file = scene.signed(replace(file, public=replace(file.public, answer=answer)))
    assert GeneratedFile.from_json(file.to_json()) == file
    scene.fails(3, message, file=file)


@pytest.mark.parametrize("keywords", [True, False])
def test_the_promise_is_kept_whole(keywords: bool) -> None:
    scene = generation_scene(keywords=keywords, anchored=True)
    later = replace(scene.charge, charge=salt(22))
    replace(scene, charge=later).fails(7, "contradicts the promise")
    assert scene.promise is not None
    other = replace(scene.promise, request=GenerationRequest("else?", "", 2))
    scene.fails(7, "another request than promised", promise=other)
    plain = generation_scene(keywords=keywords)
    plain.fails(7, "no nonce", anchor=scene.anchor)


def test_signature_proof_digest_and_embedding_are_the_providers() -> None:
    scene = generation_scene()
    file = scene.file()
    forged = replace(file, public=replace(file.public, signature=bytes(64)))
    scene.fails(1, "signature", file=forged)
    elsewhere = replace(file, public=replace(file.public, origin="other.example/log"))
    scene.fails(1, "origin", file=elsewhere)
    swapped = replace(file.public.charge, proof=file.public.answer.proof)
    scene.fails(2, "another index", file=replace(file, public=replace(file.public, charge=swapped)))
    other = replace(file, answer=GeneratedKeywords("else", WORDS.keywords))
    scene.fails(4, "another answer was signed", file=other)
    scene.fails(4, "answer digest", file=scene.signed(other))
    others = replace(file.private, openings=replace(file.private.openings, salt_q=salt(99)))
    scene.fails(4, "another answer was signed", file=replace(file, private=others))
    scene.fails(5, "query", file=scene.signed(replace(file, private=others)))
    scene.fails(6, "embedding off", embed=lambda texts: [(1, 1, 1, 1)] * len(texts))


def test_only_the_policys_provider_signs() -> None:
    scene = generation_scene()
    public = scene.receipt()
    resigned = replace(public, issued=1).signed(key(99))
    file = replace(scene.file(), public=resigned)
    scene.fails(1, "signature", file=file)
