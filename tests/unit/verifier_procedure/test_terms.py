"""The verifier's terms: defaults, files, every bound from both sides, and where they apply."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from generation_messages import KEYWORDS, policy_with
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.policy import (
    COUNTERSIGNED,
    END,
    INSTANTS,
    SMALL_TERMS,
    START,
    THIRD_PARTIES,
    third_party,
)
from ragaudit.lab.scenario.third_parties import (
    BeaconWindow,
    CosignedWindow,
    StampedWindow,
    trust_text,
)
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure import run_opening_checks
from ragaudit.verifier.terms import DEFAULT, KNOWN, TERMS, Terms
from typer.testing import CliRunner

SPEC = Path(__file__).parents[3] / "docs" / "spec"

use_cached_table()

DAY = 86_400


def policy(**changes: Any) -> Policy:
    """A policy that keeps the shipped terms, with members changed by path."""
    settings = {
        "slots": 40,
        "claim_margin_seconds": 60,
        "activation_instants": [*INSTANTS[:-1], END + 3600],
        "coalition_max": 10,
        "epsilon_acc": "20",
        "delta_acc": "0.00001",
        "estimator/theta": "0.9",
        "estimator/tau_seconds": 600,
        "estimator/sketch_bits": 256,
        "audit/beta": "0.2",
        "audit/tenants": {"eta": "0.05", "minimum": 10},
        "audit/submitters": {"by": "account", "eta": "0.5", "minimum": 1},
        **changes,
    }
    return Policy.from_json(Window(overrides=settings).policy_json())


BY_TENANT = {"by": "tenant", "eta": "0.5", "minimum": 1}
BOUNDS: list[tuple[str, dict[str, Any]]] = [
    ("most_beta", {"audit/beta": "0.200000000001"}),
    ("most_beta", {"audit/beta": "0.999"}),
    ("most_eta_tenants", {"audit/tenants": {"eta": "0.06", "minimum": 10}}),
    ("least_sample_tenants", {"audit/tenants": {"eta": "0.05", "minimum": 9}}),
    ("most_eta_submitters", {"audit/submitters": {"by": "account", "eta": "0.51", "minimum": 1}}),
    ("least_sample_submitters", {"audit/submitters": {"by": "tenant", "eta": "0.5", "minimum": 0}}),
    ("most_epsilon_acc", {"epsilon_acc": "50"}),
    ("most_delta_acc", {"delta_acc": "0.1"}),
    ("most_delta_policy", {"delta_policy": "0.1"}),
    ("most_top_k", {"top_k_max": 101}),
    ("least_claim_margin_seconds", {"claim_margin_seconds": 59}),
    ("least_coalition_max", {"coalition_max": 9}),
    ("least_theta", {"estimator/theta": "0.49"}),
    ("most_theta", {"estimator/theta": "0.96"}),
    ("least_tau_seconds", {"estimator/tau_seconds": 59}),
    ("least_sketch_bits", {"estimator/sketch_bits": 120, "estimator/hamming_threshold": 1}),
    ("most_embedder_tolerance", {"embedder_tolerance": 65_535}),
    ("most_embedder_tolerance", {"embedder_tolerance": 5}),
    (
        "most_window_seconds",
        {
            "end": START + 93 * DAY,
            "activation_instants": [*INSTANTS[:-1], START + 93 * DAY + 3600],
            "merge_delay_seconds": 600,
        },
    ),
    ("least_sampling_delay_seconds", {"activation_instants": [*INSTANTS[:-1], END + 3599]}),
    ("most_sampling_delay_seconds", {"activation_instants": [*INSTANTS[:-1], END + 7 * DAY + 1]}),
    ("most_deadline_seconds", {"audit/deadline_seconds": 7 * DAY + 1}),
    ("most_clock_skew_seconds", {"clock_skew_seconds": 61}),
    ("most_merge_delay_seconds", {"merge_delay_seconds": 601}),
    ("most_promise_life_seconds", {"promise_life_seconds": 3601}),
    ("most_claim_margin_share", {"claim_margin_seconds": (END - START) // 2 + 1}),
]


def test_the_shipped_terms_take_a_policy_in_earnest() -> None:
    DEFAULT.check(policy())
    DEFAULT.check(policy(slots=4, coalition_max=4))  # a coalition of everybody


def test_every_bound() -> None:
    for term, changes in BOUNDS:
        with pytest.raises(RejectedError) as caught:
            DEFAULT.check(policy(**changes))
        assert caught.value.where == term, changes


def further(demand: str, quorum: str) -> dict[str, Any]:
    """Three further cosigners, two of them in a group of which both must sign."""
    *witnesses, _, _ = trust_text().splitlines()
    assert [line.split()[0] for line in witnesses] == 3 * ["witness"]
    one, two, three = (line.split()[1] for line in witnesses)
    groups = [f"group both 2 {one} {two}", f"group any 1 both {three}"]
    text = "\n".join([*witnesses, *groups, f"quorum {quorum}", ""])
    return {"demand": demand, "trust": TrustPolicy.parse(text.encode()).encode().decode()}


def with_members(kind: type[Window] = Window, **members: Any) -> Policy:
    value = kind().policy_json()
    return Policy.from_json({**value, **members})


def generating(rows_per_document: int = 1, **changes: Any) -> Policy:
    """A policy with a generation channel, with members of its terms changed."""
    return Policy.from_json({**policy_with(**changes), "rows_per_document": rows_per_document})


OF_OTHER_WINDOWS: list[tuple[str, int | str, Policy, int | str, Policy]] = [
    ("least_beacons", 1, BeaconWindow().policy, 1, Window().policy),
    (
        "least_further_cosigners",
        2,
        with_members(CosignedWindow, cosigners=further("required", "both")),
        2,
        with_members(CosignedWindow, cosigners=further("required", "any")),
    ),
    (
        "least_further_cosigners",
        1,
        with_members(CosignedWindow, cosigners=further("required", "any")),
        1,
        with_members(CosignedWindow, cosigners=further("reported", "both")),
    ),
    ("least_beacon_delay_seconds", 0, BeaconWindow().policy, 3600, BeaconWindow().policy),
    ("least_noise", 1, Window().policy, 1, IntegrityWindow().policy),
    ("least_replacement", 1, policy(relation="replace"), 1, policy(relation="null-replace")),
    (
        "most_public_columns",
        2,
        Policy.from_json(policy_with()),
        1,
        Policy.from_json(policy_with()),
    ),
    (
        "least_disclosures",
        1,
        policy(query_text_disclosure="sampled"),
        1,
        policy(query_text_disclosure="none"),
    ),
    (
        "least_strata_by_account",
        1,
        policy(**{"audit/mode": "A", "audit/submitters": {**BY_TENANT}}),
        1,
        policy(**{"audit/mode": "B", "audit/submitters": {**BY_TENANT}}),
    ),
    (
        "least_direction_estimates",
        1,
        Policy.from_json({**policy_with(), "coalition_estimate": "ragaudit/v1/direction"}),
        1,
        Policy.from_json(policy_with()),
    ),
    ("least_time_stamps", 1, StampedWindow().policy, 1, Window().policy),
    (
        # Two documents of two rows, three uses of 2 each.
        "most_generation_epsilon",
        "24",
        generating(rows_per_document=2, epsilon="2", uses=3),
        "23.999",
        generating(rows_per_document=2, epsilon="2", uses=3),
    ),
    (
        "most_generation_delta",
        "0.000007",  # 1/10^6, and twice three uses of as much
        generating(**KEYWORDS),
        "0.000006",
        generating(**KEYWORDS),
    ),
    (
        "least_generation_replays",
        1,
        generating(replay={"differing_votes": 0}),
        1,
        generating(replay=None),
    ),
    ("most_votes", 8 * 5, generating(), 8 * 5 - 1, generating()),
    ("most_votes", 9, generating(**KEYWORDS), 8, generating(**KEYWORDS)),
    (
        "most_differing_votes",
        0,
        generating(replay={"differing_votes": 0}),
        0,
        generating(replay={"differing_votes": 1}),
    ),
    (
        "least_generation_proofs",
        1,
        generating(charges={"prove": "all", "group": 2}),
        1,
        generating(charges={"prove": "sampled", "group": 2}),
    ),
    (
        "least_answer_delay_seconds",
        2,
        generating(answer_delay_seconds=2),
        2,
        generating(answer_delay_seconds=1),
    ),
    ("least_rows_per_document", 3, policy(rows_per_document=3), 3, policy()),
]
"""Bounds on what the shipped terms leave open or other windows have: a bound with a policy that
keeps it, and one that does not keep it."""


def test_every_bound_of_other_windows() -> None:
    for name, kept, keeps, broken, breaks in OF_OTHER_WINDOWS:
        (term,) = (each for each in TERMS if each.name == name)
        term.check(Terms.of({name: kept}).bounds[name], keeps)
        with pytest.raises(RejectedError) as caught:
            term.check(Terms.of({name: broken}).bounds[name], breaks)
        assert caught.value.where == name


def test_accounts_have_time_to_hand_in_whatever_the_terms_say() -> None:
    waiting = {"merge_delay_seconds": 600, "clock_skew_seconds": 60}
    for term, least in ((0, 660), (1, 661), (59, 719), (60, 720), (700, 720), (721, 721)):
        terms = Terms.of({"least_sampling_delay_seconds": term})
        terms.check(policy(**waiting, activation_instants=[*INSTANTS[:-1], END + least]))
        with pytest.raises(RejectedError, match=f"at least {least}") as caught:
            terms.check(policy(**waiting, activation_instants=[*INSTANTS[:-1], END + least - 1]))
        assert caught.value.where == "least_sampling_delay_seconds"


def test_further_cosigners_are_those_that_the_verifier_knows() -> None:
    keys = sorted(str(third_party(name).verifier_key) for name in THIRD_PARTIES)
    for demand in ("required", "reported"):
        named = with_members(CosignedWindow, cosigners=further(demand, "any"))
        (known,) = (each for each in KNOWN if each.name == "further_cosigners")
        known.check(keys, named)
        known.check((), Window().policy)
        for missing in keys:
            with pytest.raises(RejectedError) as caught:
                known.check([key for key in keys if key != missing], named)
            assert caught.value.where == "further_cosigners"
            assert missing in caught.value.what
    terms = Terms.of({"further_cosigners": keys})
    assert Terms.parse(terms.canonical) == terms
    assert tuple(keys) == terms.known["further_cosigners"]


def test_every_term_is_tested() -> None:
    tested = [name for name, *_ in (*BOUNDS, *OF_OTHER_WINDOWS)]
    assert {term.name for term in TERMS if term.of is not None} == set(tested)


def test_terms_are_read_strictly(tmp_path: Path) -> None:
    assert Terms.parse(DEFAULT.canonical) == DEFAULT
    assert DEFAULT.digest == structure("terms", DEFAULT.canonical)
    for bad in (
        {"unknown": 1},
        {"most_beta": "0.51"},
        {"most_beta": 0.1},
        {"most_beta": "1e-1"},
        {"most_embedder_tolerance": 257},
        {"most_embedder_tolerance": "64"},
        {"least_sketch_bits": True},
        {"least_claimed_anchored_share": "1.1"},
        {"further_cosigners": "one"},
        {"known_models": ["00"]},
        {"further_cosigners": [1]},
        {"further_cosigners": ["one"]},
        {"further_cosigners": 2 * [str(third_party("one").verifier_key)]},
        {"further_cosigners": 1001 * [str(third_party("one").verifier_key)]},
        {"format": "ragaudit/v2/terms"},
        {"format": 2},
    ):
        with pytest.raises(MalformedError):
            Terms.of(bad)
    for data in (b"{}", b"[]", b"1", DEFAULT.canonical + b" "):
        with pytest.raises(MalformedError):
            Terms.parse(data)
    with pytest.raises(MalformedError):
        Terms.load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("most_beta = ")
    with pytest.raises(MalformedError):
        Terms.load(tmp_path / "bad.toml")


def test_files_and_the_command(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('most_beta = "0.05"\nleast_coalition_max = 20\n')
    (tmp_path / "mine.json").write_text('{"most_beta": "0.05", "least_coalition_max": 20}')
    mine = Terms.load(tmp_path / "mine.toml")
    assert mine == Terms.load(tmp_path / "mine.json")
    assert mine.bounds["most_beta"] == Fraction(1, 20)
    done = CliRunner().invoke(app, ["terms", str(tmp_path / "mine.toml")])
    assert done.exit_code == 0
    (tmp_path / "printed.toml").write_text(done.output)
    assert Terms.load(tmp_path / "printed.toml") == mine
    assert mine.digest.hex() in done.output
    done = CliRunner().invoke(app, ["terms"])
    (tmp_path / "printed.toml").write_text(done.output)
    assert Terms.load(tmp_path / "printed.toml") == DEFAULT
    assert CliRunner().invoke(app, ["terms", str(tmp_path / "none")]).exit_code == 2


def test_a_policy_that_breaks_the_terms_is_refused_and_not_countersigned() -> None:
    window = Window(overrides={"embedder_tolerance": 65_535})
    window.open()
    outcome = run_opening_checks(
        window.evidence_of_opening(), engine=engine("core"), now=1000 * COUNTERSIGNED
    )
    assert outcome.result == "REFUSED"
    assert outcome.terms == SMALL_TERMS.digest.hex()
    check = outcome.check("policy")
    assert "most_embedder_tolerance" in check.reason


def test_the_terms_of_the_audit_are_the_countersigned_ones() -> None:
    window = Window()
    items = window.items()
    assert audit(items, window).terms == SMALL_TERMS.digest.hex()
    looser = Terms.of({**SMALL_TERMS.to_json(), "most_epsilon_acc": "1000"})
    assert_caught(window, "policy", "other terms than", {**items, names.TERMS: looser.canonical})
    missing = {name: data for name, data in items.items() if name != names.TERMS}
    assert audit(missing, window).failed == ("policy",)


def test_the_terms_may_demand_a_share_of_anchored_records() -> None:
    demanding = Terms.of({**SMALL_TERMS.to_json(), "least_claimed_anchored_share": "0.5"})
    window = Window(terms=demanding)
    assert audit(window.items(), window).result == "PASS"  # four of eight showed their chain

    class Unshown(Window):
        def statements(self) -> list[dict[str, Any]]:
            return super().statements()[:1]

    unshown = Unshown(terms=demanding)
    assert_caught(unshown, "nonces", "claimed anchored share of 1/2")
    assert canonical_json.loads(demanding.canonical)["least_claimed_anchored_share"] == "0.5"


def test_terms_are_those_of_the_specification() -> None:
    told = json.loads((SPEC / "terms.json").read_text(encoding="utf-8"))
    listed: dict[str, Any] = {each.name: ([], "at most 1,000") for each in KNOWN}
    bounds = {term.name: (term.default, (term.low, term.high)) for term in TERMS}

    def number(text: str) -> Fraction:
        base, _, power = text.partition("^")
        return Fraction(base) ** int(power or 1)

    stated: dict[str, Any] = {}
    for name, entry in told.items():
        low, _, high = entry["may_be"].partition("..")
        assert entry["bounds"]
        stated[name] = (entry["shipped"], (number(low), number(high)) if high else low)
    assert stated == {**bounds, **listed}
