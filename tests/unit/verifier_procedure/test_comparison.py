"""No signed member goes unread: it is computed again and compared, or listed as not repeated."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from procedure_cases import audit, use_cached_table
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cheats.policy import beside
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.verdict import Claims
from ragaudit.verifier.bundle import Part
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome, Status, run
from ragaudit.verifier.recheck import Comparison, Recheck

use_cached_table()

KEY = PrivateKey.from_seed(b"k" * 32)
TIME = 1_900_000_500_000
Predicate = dict[str, Any]
Path = tuple[str | int, ...]


@lru_cache(maxsize=1)
def played() -> tuple[Evidence, Outcome, Outcome]:
    """Evidence, and what its whole and its public part give."""
    window = Window(mode="B")
    # Another window at the same time: what both cost is a member like any other.
    items = {**window.items(), names.OVERLAPS: beside(window, window.policy)}
    evidence = Evidence.of(items)
    public = run(evidence.public(), engine=engine("core"), part="public", pins=window.pins)
    return evidence, audit(items, window), public


def signed() -> Predicate:
    value: Predicate = json.loads(json.dumps(played()[1].predicate(time=TIME).to_json()))
    return value


def compare(predicate: Predicate, part: Part, **changes: Any) -> Recheck:
    evidence, whole, public = played()
    held = evidence if part == "all" else evidence.public()
    digests = evidence.digests()
    envelope = verdicts.sign_statement(verdicts.statement(digests, predicate), KEY)
    answered = sum(name.startswith(names.RESPONSES) for name in digests)
    arguments: dict[str, Any] = {
        "verdict": verdicts.Verdict.verify(envelope, KEY.public),
        "outcome": whole if part == "all" else public,
        "part": part,
        "proofs": (answered if part == "all" else 0, answered),
        "policy": Policy.parse(evidence[names.POLICY]),
        "clock": Clock.parse(evidence[names.CLOCK]),
        "embedder": part == "all",
        "generator": False,
    }
    return Comparison(**{**arguments, **changes}).run(held.digests())


def settled(predicate: Predicate) -> Predicate:
    """The predicate with the claims and the result that its checks give."""
    statuses = {check["id"]: Status(check["status"]) for check in predicate["checks"]}
    claims = Claims.of(statuses, voids=predicate["counts"].get("voids"))
    return {**predicate, "claims": claims.to_json(), "result": claims.result}


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every place of a JSON value that holds no other; empty containers too."""
    inner: Any = None
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    if not inner:
        yield path, value
        return
    for key, each in inner:
        yield from leaves(each, (*path, key))


def altered(predicate: Predicate, path: Path, value: object) -> Predicate:
    found = copy.deepcopy(predicate)
    at: Any = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


def other(value: object) -> object:
    """A value of the same type that is another one."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value + "1"
        case list():
            return [*value, "x"]
    return 7


# Nobody can compute these again; a re-check says so.
WORDS = {"reason", "evidence"}
ALONE = {("engine",), ("time",)}


def judged(path: Path, predicate: Predicate) -> Recheck | None:
    """The comparison of a predicate altered at a place, None where that is no verdict."""
    if path[0] == "claims" or path[:1] in ALONE or WORDS & set(path):
        return None
    if path[-1] in {"result", "status"}:
        return None
    return compare(altered(predicate, path, other(dict(leaves(predicate))[path])), "all")


@pytest.mark.parametrize("name", sorted(WORDS))
def test_words_that_read_otherwise_are_shown(name: str) -> None:
    """A verifier could write into a report what nobody checked."""
    value = signed()
    written = "every answer was read by two people"
    value["checks"][3][name] = written if name == "reason" else [written]
    found = compare(value, "all")
    assert found.differences == ()
    (note,) = (each for each in found.notes if written in each)
    assert note.startswith(f"the {name} of check 4 index-proof reads otherwise")


def test_an_honest_verdict_has_no_difference() -> None:
    whole, public = compare(signed(), "all"), compare(signed(), "public")
    assert whole.differences == public.differences == ()
    assert whole.not_repeated == ()
    assert whole.checks == (21, 21)
    assert any("the verifier's word alone" in note for note in whole.notes)


def test_every_member_is_compared_when_everything_is_at_hand() -> None:
    predicate = signed()
    looked_at = 0
    for path, _ in leaves(predicate):
        found = judged(path, predicate)
        if found is not None:
            looked_at += 1
            assert found.differences, path
    assert looked_at > 150


# Of the public part: what it cannot tell, and the line that says so.
LISTED: dict[str, str] = {
    "sampling": "sampling: which records each stratum holds",
    "coalition": "coalition: the estimate",
    "counts": "counts: ",
}


def test_every_member_is_compared_or_listed_when_only_the_public_part_is_at_hand() -> None:
    predicate = signed()
    compared = 0
    for path, value in leaves(predicate):
        if path[0] == "claims" or path[:1] in ALONE or WORDS & set(path):
            continue
        if path[-1] in {"result", "status"}:
            continue
        found = compare(altered(predicate, path, other(value)), "public")
        if found.differences:
            compared += 1
            continue
        listed = " ".join(found.not_repeated)
        if path[0] == "counts":
            (line,) = (each for each in found.not_repeated if each.startswith("counts: "))
            assert str(path[1]) in line
        elif path[0] == "epsilon":
            assert path[1] in {"all_records", "realised"}, path
            assert "all_records, realised" in listed
        else:
            assert LISTED[str(path[0])] in listed, path
    assert compared > 120


@pytest.mark.parametrize("part", ["public", "all"])
def test_the_result_follows_from_the_signed_statuses(part: Part) -> None:
    """From either part: no verdict says PASS over a check that it says failed, or was not run."""
    for position in range(21):
        for status in ("FAIL", "NOT RUN", "EXCEEDED"):
            false = altered(signed(), ("checks", position, "status"), status)
            with pytest.raises(verdicts.MalformedVerdict, match="follow from the"):
                compare(false, part)


@pytest.mark.parametrize("part", ["public", "all"])
@pytest.mark.parametrize("result", ["FAIL", "EXCEEDED"])
def test_no_honest_provider_is_failed_without_a_failed_check(part: Part, result: str) -> None:
    with pytest.raises(verdicts.MalformedVerdict, match="result that does not follow"):
        compare(altered(signed(), ("result",), result), part)


def test_the_difference_that_matters_most_comes_first() -> None:
    false = altered(signed(), ("assumptions", 0), "trust us")
    false = altered(false, ("counts", "accounts"), 5)
    false = altered(false, ("epsilon", "renyi", "epsilon"), "0.1")
    false = altered(false, ("epsilon", "headline", "epsilon"), "0.1")
    false = altered(false, ("window",), "w2")
    false = settled(altered(false, ("checks", 6, "status"), "FAIL"))
    kinds = [each.split(":")[0] for each in compare(false, "all").differences]
    assert list(dict.fromkeys(kinds)) == [
        "result", "check 7 registrations", "window", "epsilon", "counts", "assumptions",
    ]  # fmt: skip
    epsilon = [each for each in compare(false, "all").differences if each.startswith("epsilon")]
    assert epsilon[0].startswith('epsilon: headline: epsilon: signed "0.1", recomputed "')


def without(texts: list[str]) -> list[str]:
    return texts[1:]


def reversed_(texts: list[str]) -> list[str]:
    return texts[::-1]


def twice(texts: list[str]) -> list[str]:
    return [*texts, texts[0]]


@pytest.mark.parametrize("part", ["public", "all"])
@pytest.mark.parametrize("member", ["not_covered", "assumptions"])
@pytest.mark.parametrize(
    ("change", "said"),
    [(without, "leaves out"), (reversed_, "out of order"), (twice, "repeated or out of order")],
)
def test_disclaimers(
    part: Part, member: str, change: Callable[[list[str]], list[str]], said: str
) -> None:
    predicate = signed()
    found = compare(altered(predicate, (member,), change(predicate[member])), part)
    assert found.differences
    assert all(each.startswith(f"{member}: ") and said in each for each in found.differences)


@pytest.mark.parametrize("part", ["public", "all"])
def test_a_verdict_is_signed_after_what_it_speaks_of(part: Part) -> None:
    evidence = played()[0]
    clock = Clock.parse(evidence[names.CLOCK])
    last = max(*clock.responses.values(), 1000 * Policy.parse(evidence[names.POLICY]).end)
    assert compare(altered(signed(), ("time",), last), part).differences == ()
    early = compare(altered(signed(), ("time",), last - 1), part)
    assert early.differences[0].startswith("time: signed at 20")
    later = replace(clock, claims={b"i" * 32: last + 1})
    early = compare(altered(signed(), ("time",), last), part, clock=later)
    assert early.differences[0].startswith("time: signed at 20")


# --- numbers that the public part bounds ----------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "queries", "said"),
    [
        ("all_records", 3, "counts 3 queries, the log allows 4 to 8"),
        ("all_records", 9, "counts 9 queries, the log allows 4 to 8"),
        ("realised", 9, "counts 9 queries, the log allows 0 to 8"),
    ],
)
def test_counts_that_no_log_of_this_size_allows(member: str, queries: int, said: str) -> None:
    found = compare(altered(signed(), ("epsilon", member, "queries"), queries), "public")
    assert any(said in each for each in found.differences)


def test_an_epsilon_that_is_not_that_of_its_own_count() -> None:
    found = compare(altered(signed(), ("epsilon", "all_records", "epsilon"), "0.1"), "public")
    assert found.differences[0].startswith('epsilon: all_records: epsilon: signed "0.1"')


@pytest.mark.parametrize(("estimated", "claimed"), [(2, 1), (1, 2), (3, 3)])
def test_an_estimate_that_its_own_check_contradicts(estimated: int, claimed: int) -> None:
    false = altered(signed(), ("coalition", "estimated"), estimated)
    found = compare(altered(false, ("coalition", "claimed"), claimed), "public")
    assert any(f"{estimated} estimated" in each for each in found.differences)


def test_strata_that_do_not_follow_from_their_sizes() -> None:
    """From the public part: names in order, all records, and every number of each stratum."""
    strata = signed()["sampling"]["strata"]
    assert len(strata) > 2
    for position, stratum in enumerate(strata):
        for member, value in stratum.items():
            false = altered(signed(), ("sampling", "strata", position, member), other(value))
            found = compare(false, "public").differences
            of_submitted = position > 1 and member in {"id", "population"}
            assert found or of_submitted, (position, member)
    fewer = altered(signed(), ("sampling", "strata"), strata[1:])
    assert any("do not begin with" in each for each in compare(fewer, "public").differences)
    foreign = altered(signed(), ("sampling", "strata", 2, "id"), "receipts:acme")
    assert any("submitted records" in each for each in compare(foreign, "public").differences)
    for member in ("mode", "beta"):
        false = altered(signed(), ("sampling", member), "0.9")
        assert compare(false, "public").differences[0].startswith(f"sampling: {member}")


def test_counts_that_do_not_add_up() -> None:
    found = compare(altered(signed(), ("counts", "records_plain"), 7), "public")
    assert found.differences == ("counts: 8 records, but 4 + 7 of kinds",)


# --- whom a re-check must not accuse --------------------------------------------------------------


def status(predicate: Predicate, check_id: str, value: str) -> Predicate:
    for check in predicate["checks"]:
        if check["id"] == check_id:
            check["status"] = value
    return predicate


def test_a_fault_that_only_the_confidential_part_shows_is_not_denied() -> None:
    """V found a body that is none: its log check failed, and who needs the log was not run."""
    predicate = signed()
    opening = {"policy", "accounting", "commitments", "index-proof", "refusals"}
    for check in predicate["checks"]:
        if check["id"] not in opening:
            check["status"] = "FAIL" if check["id"] == "log" else "NOT RUN"
    predicate["epsilon"] = {}
    predicate["sampling"] = {"mode": "", "strata": []}
    predicate["counts"] = dict.fromkeys(predicate["counts"])
    predicate["counts"]["receipts"] = signed()["counts"]["receipts"]
    predicate["coalition"] = {"claimed": None, "estimated": None, "max": 2}
    absent = ("What plain accounts", "Whose chain")
    texts = [each for each in predicate["not_covered"] if not each.startswith(absent)]
    predicate["not_covered"] = texts
    predicate = settled(predicate)
    found = compare(predicate, "public")
    assert found.differences == ()
    listed = " ".join(found.not_repeated)
    parts = ("check 5 log", "check 7 registrations", "epsilon", "counts: accounts", "coalition")
    for part in parts:
        assert part in listed
    assert compare(predicate, "all").differences


def test_a_fault_in_the_public_part_is_not_excused_by_the_log() -> None:
    predicate = settled(status(status(signed(), "log", "FAIL"), "policy", "FAIL"))
    found = compare(predicate, "public")
    assert [each.split(":")[0] for each in found.differences] == ["check 1 policy"]


def outcome_with(check_id: str, value: Status) -> Outcome:
    whole = played()[1]
    checks = tuple(replace(c, status=value) if c.id == check_id else c for c in whole.checks)
    return replace(whole, checks=checks, result=None)


@pytest.mark.parametrize("said", ["PASS", "FAIL"])
def test_without_the_embedder_nobody_is_accused_of_texts(said: str) -> None:
    predicate = settled(status(signed(), "embedding", said))
    again = outcome_with("embedding", Status.NOT_ESTABLISHED)
    found = compare(predicate, "all", outcome=again, embedder=False)
    assert found.differences == ()
    assert found.not_repeated == (
        "check 18 embedding: the committed embedder is not at hand to compare texts and vectors",
    )
    # With the embedder, or where it would not help, it is a difference.
    assert compare(predicate, "all", outcome=again).differences
    failed = outcome_with("embedding", Status.FAIL)
    differs = compare(predicate, "all", outcome=failed, embedder=False).differences
    assert bool(differs) == (said == "PASS")


def test_a_part_of_the_proofs_refutes_and_does_not_confirm() -> None:
    failed = settled(status(signed(), "selection", "FAIL"))
    again = replace(played()[1], result=None)
    found = compare(failed, "all", outcome=again, proofs=(1, 6))
    assert found.differences == ()
    assert "check 19 selection: 1 of 6 sampled records" in found.not_repeated
    false = outcome_with("selection", Status.FAIL)
    refuted = compare(signed(), "all", outcome=false, proofs=(1, 6))
    assert refuted.differences[0].startswith("check 19 selection: signed PASS, recomputed FAIL")


def test_a_reason_that_reads_otherwise_is_shown() -> None:
    found = compare(altered(signed(), ("checks", 0, "reason"), "because I say so"), "public")
    assert found.differences == ()
    assert any("reads otherwise" in note and "because I say so" in note for note in found.notes)
