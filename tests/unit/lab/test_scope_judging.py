"""What counts as a leak, and with which error."""

from math import comb

import numpy as np
import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.attacks.scope import judging
from ragaudit.lab.attacks.scope.exchange import Answer, Request, Secrets
from ragaudit.lab.attacks.scope.probes import Canary, conditions, draw_canaries, name_variants, near

CANARIES = draw_canaries(["acme"], 24)
PLANTED = [one.id for one in CANARIES if one.planted]
REQUEST = Request("globex", "POST", "/get", '{"limit": 1}')


def answers(
    said: dict[str, str], seconds: dict[str, float] | None = None
) -> dict[str, list[Answer]]:
    return {
        one.id: [Answer("200", said[one.id], seconds=(seconds or {}).get(one.id, 0.0))] * 3
        for one in CANARIES
    }


def kinds(request: Request, text: str, said: tuple[str, ...] = ()) -> set[str]:
    return {leak.kind for leak in judging.leaks(request, Answer("200", text), CANARIES, said)}


def test_half_of_the_canaries_are_planted() -> None:
    assert len(CANARIES) == 20 and len(PLANTED) == 10
    texts = {text for one in CANARIES for text in (one.id, one.marker, one.tag)}
    assert len(texts) == 60 and min(map(len, texts)) >= 32


def test_each_marker_is_a_leak_of_its_kind() -> None:
    canary = CANARIES[0]
    assert kinds(REQUEST, f"x{canary.marker}y") == {"content"}
    assert kinds(REQUEST, f'{{"a": "{canary.tag}"}}') == {"metadata"}
    assert kinds(REQUEST, f'["{canary.id}"]') == {"id"}
    assert kinds(REQUEST, canary.text) == {"content"}
    assert kinds(REQUEST, "Ragaudit canary document of the tenant acme") == set()


def test_an_answer_that_repeats_the_request_is_no_leak() -> None:
    canary = CANARIES[0]
    asked = Request("globex", "GET", f"/points/{canary.id}")
    assert kinds(asked, f"no such point {canary.id}") == set()
    assert kinds(asked, f"{canary.id}: {canary.marker}") == {"content"}
    assert kinds(REQUEST, f"asked before: {canary.id}", (canary.id,)) == set()


def test_vectors_are_found_in_any_form_and_not_invented() -> None:
    canary = CANARIES[3]
    assert canary.vector is not None
    half = np.asarray(canary.vector, dtype=np.float16).astype(float).tolist()
    assert kinds(REQUEST, f'{{"e": [[{half}]]}}') == {"vector"}
    text = str([float(np.float32(x)) for x in canary.vector])
    assert kinds(REQUEST, f'[["{text}"]]') == {"vector"}
    question = near(canary, np.random.default_rng(0))
    assert kinds(REQUEST, str(question)) == set()
    assert float(np.dot(question, canary.vector)) > 0.9


def test_answers_that_tell_what_exists() -> None:
    said = {one.id: f'{{"n": {int(one.planted)}, "x": "same"}}' for one in CANARIES}
    found = judging.separation(answers(said), PLANTED)
    assert found is not None and found.evidence.startswith("body.n")
    assert found.p_value == 2 / comb(20, 10)


def test_answers_that_repeat_the_value_tell_nothing() -> None:
    said = {one.id: f'{{"error": "no {one.id}"}}' for one in CANARIES}
    assert judging.separation(answers(said), PLANTED) is None


def test_answers_that_split_otherwise_tell_nothing() -> None:
    others = {one.id: str(place % 2) for place, one in enumerate(CANARIES)}
    assert judging.separation(answers(others), PLANTED) is None
    # All but one: what exists is then not always told.
    said = {one.id: str(one.planted) for one in CANARIES} | {PLANTED[0]: "False"}
    assert judging.separation(answers(said), PLANTED) is None


def test_every_way_to_split_in_halves_counts_against_a_finding() -> None:
    other = {one.id: place % 2 for place, one in enumerate(CANARIES)}
    said = {one.id: f'{{"a": {other[one.id]}, "b": {int(one.planted)}}}' for one in CANARIES}
    found = judging.separation(answers(said), PLANTED)
    assert found is not None and found.p_value == 2 * 2 / comb(20, 10)


def test_an_answer_that_changes_tells_nothing() -> None:
    changing = {one.id: [Answer("200", str(number)) for number in range(3)] for one in CANARIES}
    assert judging.separation(changing, PLANTED) is None


def test_timing_is_an_exact_permutation_test() -> None:
    said = {one.id: "{}" for one in CANARIES}
    slower = {one.id: 0.001 * place + one.planted for place, one in enumerate(CANARIES)}
    found = judging.timing(answers(said, slower), PLANTED)
    assert found is not None and found.p_value == pytest.approx(2 / comb(20, 10))
    assert "more" in found.evidence
    same = judging.timing(answers(said, {one.id: 0.001 for one in CANARIES}), PLANTED)
    assert same is not None and same.p_value == 1


def test_timing_accuses_no_more_often_than_stated() -> None:
    """Of 100 stores that do not tell, at the level .05: more than 14 have a chance below 1e-3
    (binomial)."""
    generator = np.random.default_rng(7)
    accused = 0
    for _ in range(100):
        # Heavy tails and a drift, both of which a test of means would stumble over.
        times = generator.standard_cauchy(20) ** 2 + np.arange(20)
        planted = set(generator.permutation(20)[:10].tolist())
        names = [one.id for one in CANARIES]
        found = judging.timing(
            {
                name: [Answer("200", "", seconds=float(t))]
                for name, t in zip(names, times, strict=True)
            },
            [name for place, name in enumerate(names) if place in planted],
        )
        assert found is not None
        accused += found.p_value <= 0.05
    assert accused <= 14


def test_lost_answers_are_no_times() -> None:
    given = answers({one.id: "{}" for one in CANARIES})
    given[PLANTED[0]] = [Answer("", "no answer")]
    assert judging.timing(given, PLANTED) is None


def test_variants_are_distinct_and_never_the_name_itself() -> None:
    variants = name_variants("handbook")
    assert len(set(variants)) == len(variants) > 25 and "handbook" not in variants
    assert all(one.isascii() and " " not in one for one in variants)
    assert {"HANDBOOK", "%68%61%6e%64%62%6f%6f%6b", "handbook%00"} <= set(variants)


def test_filters_name_both_tenants() -> None:
    given = conditions("tenant", "acme", "globex")
    assert len(given) == 12 and all(given.values())


def test_keys_are_left_out_in_every_spelling() -> None:
    secrets = Secrets({"acme": 'k"e/y'})
    for form in ('k"e/y', 'k\\"e/y', "k%22e%2Fy"):
        assert secrets.redacted(f"x {form} z") == "x <key of acme> z"


def test_too_few_dimensions_could_be_guessed() -> None:
    with pytest.raises(MalformedError, match="dimension"):
        draw_canaries(["acme"], 4)
    assert all(
        isinstance(one, Canary) and one.vector is None for one in draw_canaries(["acme"], None)
    )
