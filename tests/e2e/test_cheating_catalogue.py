"""The catalogue is complete, its words are right, and its commands run it."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any

import pytest
from procedure_cases import use_cached_table
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks import (
    CATALOGUE,
    Cheat,
    ConstructedCheat,
    Intrusion,
    ServiceCheat,
    find,
    run,
)
from ragaudit.lab.attacks.cheat import BEFORE_THE_WINDOW, FAMILIES
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.attacks.serve import main, service_cheat
from ragaudit.prover.answering.query import Stages
from ragaudit.prover.service import Components
from ragaudit.verifier.procedure import CHECKS
from typer import Typer
from typer.testing import CliRunner

BEHAVIOURS = {
    "SEED": {
        "equal keys for all slots": "equal-keys-for-all-slots",
        "opened key not in C_seed": "key-not-in-c-seed",
    },
    "REGISTRATION": {
        "two pseudonyms on one slot": "two-accounts-on-one-slot",
        "one account in two tenants": "one-account-in-two-tenants",
        "activation older than the registration": "activation-older-than-the-registration",
        "activation older than version or epoch": "activation-older-than-the-opening",
        "unscheduled epoch": "unscheduled-epoch",
        "unscheduled index version": "unscheduled-index-version",
        "anchored by the provider": "anchored-by-the-provider",
    },
    "COUNTER": {
        "gap": "counter-gap",
        "repeat": "counter-repeat",
        "over r": "over-the-budget",
    },
    "NONCE": {
        "not in the client's chain": "nonce-not-in-the-chain",
        "a promise not kept": "promise-not-kept",
        "two promises for one nonce": "two-promises-for-one-nonce",
        "garbage after a reveal": "garbage-after-a-reveal",
        "an old answer after a reveal": "an-old-answer-after-a-reveal",
        "a reply held back after a reveal": "a-reply-that-never-ends",
        "intake flooded": "intake-flooded",
        "claims crowded out by answered ones": "claims-crowded-out",
        "promise dated ahead": "promise-dated-ahead",
        "promise dated back": "back-dated-promise",
        "promise too near to the end": "last-promise-before-the-end",
        "counters reused after a restore": "counters-reused-after-a-restore",
    },
    "SELECTION": {
        "select then noise": "select-then-noise",
        "noise only on the winners": "noise-only-on-the-winners",
        "half the sigma": "half-the-sigma",
        "one selected row swapped": "one-row-swapped",
        "a row-dependent threshold": "row-dependent-threshold",
        "a tie kept": "tie-kept",
        "a tie broken by the score": "tie-broken-by-the-score",
        "K+1 rows": "one-row-too-many",
        "ties dropped without a tie": "ties-dropped-without-a-tie",
        "K not the request's": "k-not-the-requests",
        "filter not the request's": "filter-not-the-requests",
        "no noise, and its answers disputed": "noiseless-and-disputed",
        "the same in mode B": "noiseless-and-disputed-in-mode-b",
    },
    "NOISE": {"another sampler": "another-sampler"},
    "GENERATION": {
        "a document charged M+1 times": "exhausted-documents-charged",
        "a negative charge": "budget-given-back",
        "a charge vector with a 2": "charged-twice-at-once",
        "the budget argument over a subset": "budgets-of-a-subset",
        "a relevant live row left out": "relevant-document-uncharged",
        "a row at the threshold charged": "charged-at-the-threshold",
        "a disallowed row charged": "disallowed-documents-charged",
        "the threshold moved after the question": "threshold-moved",
        "charges reordered": "charges-out-of-order",
        "the charge argument of another entry": "charge-argument-of-another-entry",
        "a state that skips an entry": "earlier-charge-skipped",
        "coins of a key made up later": "coins-of-another-key",
        "an answer before its charge": "answered-before-charged",
        "an answer dated back": "answer-dated-back",
        "answers drawn twice for one charge": "answered-twice",
        "a charge without answer or void": "charge-unanswered",
        "coins of a nonce that nobody revealed": "answer-with-another-nonce",
        "an answer held back until a later nonce": "answered-after-the-next-charge",
        "a charge voided with its coins in view": "revealed-charge-voided",
        "a promised charge at another place": "charge-of-another-place",
        "a promised charge of other rows": "charge-of-other-rows",
        "probes of another model": "probes-of-another-model",
        "an uncharged row used": "uncharged-document-used",
        "slots chosen by content": "slots-by-content",
        "voters by rank": "voters-by-rank",
        "the exponential mechanism over observed tokens": "observed-tokens-only",
        "votes of another model": "votes-of-another-model",
        "an answer that no vote gives": "answer-of-no-vote",
        "no charge entry sampled": "charges-unsampled",
        "sums not those of the coins": "counts-without-noise",
        "the same of a void": "counts-of-a-void-without-noise",
        "sums of another question": "sums-of-another-question",
        "reading stopped a bin early": "reading-stopped-early",
        "reading stopped a bin late": "reading-stopped-late",
        "a threshold not the released bin's": "threshold-of-another-bin",
        "a counted row left uncharged": "counted-document-uncharged",
    },
    "INDEX": {
        "row of norm 128": "row-of-norm-128",
        "entry that wraps the field": "entry-that-wraps-the-field",
        "offset hidden in the mask": "offset-hidden-in-the-mask",
        "squares that do not complete the row": "squares-do-not-complete",
        "a row outside the committed ones": "row-outside-the-committed-ones",
        "a commitment to another row": "commitment-to-another-row",
    },
    "CONTAINMENT": {
        "another tenant's index": "another-tenants-index",
        "another tenant's index in the proof": "proof-over-another-tenants-index",
        "a stale index version": "stale-index-version",
    },
    "EMBEDDING": {
        "not the digest's": "embedding-not-the-digests",
        "norm over B": "embedding-of-norm-over-b",
        "off the opened text": "embedding-off-the-text",
        "sketch not of e": "sketch-not-of-the-embedding",
    },
    "INTEGRITY": {
        "another tenant's index": "exact-from-another-tenants-index",
        "a better row left out": "better-row-left-out",
        "approximate search sold as exact": "approximate-search-sold-as-exact",
        "tied rows left out of T": "ties-left-out-of-the-selection",
        "a filter applied that was not asked": "filter-applied-unasked",
        "a filter not applied that was asked": "filter-not-applied",
        "a filter on other columns": "filter-on-other-columns",
        "a vector quantised otherwise": "vector-quantised-otherwise",
        "a record that no log has": "record-that-no-log-has",
        "a score misstated": "score-misstated",
        "changed text served": "changed-text-served",
        "columns not the leaf's": "columns-not-the-leafs",
        "a withdrawn row served": "withdrawn-row-served",
        "a filter in the account's name": "filter-in-the-accounts-name",
        "a record not counted": "record-left-uncounted",
        "an account not counted": "account-left-uncounted",
        "accounts not in order": "accounts-out-of-order",
        "an account counted twice": "account-counted-twice",
        "no account index": "account-index-missing",
        "end kept from further cosigners": "end-unseen-by-third-parties",
        "log shown late to further cosigners": "log-shown-late-to-third-parties",
        "end cosigned when the sample is known": "end-cosigned-after-the-sample",
        "one cosigner sold as a quorum": "quorum-of-one",
        "another log shown to further cosigners": "third-parties-saw-another-log",
        "end stamped when the sample is known": "end-stamped-after-the-sample",
        "nothing stamped before the end": "opening-stamped-at-the-end",
        "stamps of nobody's authority": "stamped-by-itself",
        "the stamp of another checkpoint": "another-thing-stamped",
        "the beacon's round of another instant": "round-of-another-instant",
        "a later round for the sample": "later-round",
        "a round that nobody signed": "forged-round",
        "a round of another chain": "round-of-another-chain",
        "releases without the beacon": "beacon-left-out",
        "an activation released before its round": "released-before-the-round",
        "a sample drawn before its round": "drawn-before-the-round",
        "noise without the beacon": "noise-without-the-beacon",
        "a sample without the beacon": "sample-without-the-beacon",
        "an answer before the round of its noise": "answered-before-the-round",
        "the best row kept back": "best-row-kept-back",
        "the best row passed over by a service": "best-row-passed-over",
        "filters ignored by a service": "filters-ignored",
        "vectors cut by a service": "vectors-cut",
        "a score flattered by a service": "score-flattered",
        "changed text served by a service": "exact-and-edited",
        "another tenant's index served by a service": "exact-and-another-tenants",
    },
    "VERSION": {
        "a stale version, named": "stale-version-named",
        "a stale version, searched": "stale-version-searched",
        "a version used early": "version-used-early",
        "a version used before its entry": "version-used-before-its-entry",
        "no version announced": "index-changed-unseen",
        "a stale version scored by a service": "stale-version-scored",
        "fewer rows delivered by a service": "fewer-rows-delivered",
        "a null row served": "null-row-served",
        "null rows searched": "null-rows-searched",
        "a row searched that is marked as deleted": "marked-row-searched",
        "a row hidden by the mark from the start": "null-row-in-a-new-index",
        "a null row served that is not marked": "unmarked-null-row-served",
        "the argument of another version": "argument-of-the-version-before",
        "a version that nobody gets": "version-that-nobody-gets",
    },
    "EPOCH": {
        "the old seed after an epoch": "old-seed-after-an-epoch",
        "answers between restore and instant": "answers-between-restore-and-instant",
        "an epoch without activation": "epoch-without-activation",
        "counters used again in an epoch": "counters-anew-in-an-epoch",
        "an epoch that hides records": "epoch-that-hides-records",
        "two epochs at once": "two-epochs-at-once",
        "keys of the epoch before": "key-of-the-epoch-before",
    },
    "RECEIPT": {
        "answer differs from the committed selection": "answer-differs-from-the-selection",
        "content not of its row": "content-not-of-its-row",
        "rows ordered by score": "rows-ordered-by-score",
        "filter committed that was not asked for": "filter-that-was-not-asked-for",
        "the intake of disputes flooded": "disputes-flooded",
    },
    "LOG": {
        "leaf dropped after its receipt": "leaf-dropped-after-its-receipt",
        "receipts crowded out by true ones": "receipts-crowded-out",
        "rewritten": "leaf-rewritten-after-its-receipt",
        "rewritten after the cosignature": "leaf-rewritten-after-the-cosignature",
        "two checkpoints of one size": "two-checkpoints-of-one-size",
        "made up after the end": "record-made-up-after-the-end",
    },
    "POLICY": {
        "late": "late-policy",
        "countersigned late": "countersigned-late",
        "altered": "policy-altered-after-the-countersignature",
        "altered in the opening": "opening-of-an-altered-policy",
        "continues another log": "continues-another-log",
        "log key of another window": "log-key-of-another-window",
        "K_max >= N": "k-max-not-below-n",
        "sigma too small for the claim": "sigma-too-small-for-the-claim",
        "no finite epsilon": "no-finite-epsilon",
        "a tolerance that accepts every vector": "tolerance-that-accepts-every-vector",
        "samples of one": "samples-of-one",
        "a promise that is none": "promise-that-is-none",
    },
    "SAMPLING": {
        "no answer": "no-answer",
        "late answer": "late-answer",
        "root cosigned after the sampling instant": "root-cosigned-after-the-sampling-instant",
        "nonce not the committed one": "sampling-nonce-not-the-committed-one",
    },
    "PROOF": {
        "replayed for another record": "proof-replayed",
        "one flipped bit": "proof-with-a-flipped-bit",
        "non-canonical point": "non-canonical-point",
        "non-canonical scalar": "non-canonical-scalar",
        "another transcript context": "another-transcript-context",
    },
    "COALITION": {
        "k-hat below the recomputed cluster": "coalition-understated",
        "pulled apart in time": "coalition-pulled-apart-in-time",
        "by another estimate": "coalition-by-another-estimate",
    },
    "VERIFIER": {
        "noise for an index commitment": "noise-stored-as-an-index",
        "the same in its form": "store-filled-before-the-opening",
        "the same in refused windows": "store-filled-with-refused-windows",
        "windows registered without end": "windows-without-end",
        "windows refused without end": "refused-windows-without-end",
        "a handover of more than the log": "handover-of-more-than-the-log",
        "a flooded handover": "handover-flooded",
        "another provider's window name": "name-of-anothers-window-taken",
        "another provider's index": "index-for-anothers-window",
    },
}

runner = CliRunner()


def test_every_behaviour_has_its_entry_and_every_entry_its_behaviour() -> None:
    assert tuple(BEHAVIOURS) == FAMILIES
    listed = {(family, name) for family, names in BEHAVIOURS.items() for name in names.values()}
    assert listed == {(each.family, each.name) for each in CATALOGUE}
    assert len({each.name for each in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("cheat", CATALOGUE, ids=lambda cheat: cheat.name)
def test_an_entry_says_what_there_is_to_say(cheat: Cheat) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cheat.name)
    assert cheat.description.endswith(".")
    assert cheat.reason
    order = [check.id for check in CHECKS]
    assert list(cheat.checks) == sorted(cheat.checks, key=order.index)
    assert bool(cheat.checks) != isinstance(cheat, Intrusion)
    if cheat.refused:
        assert set(cheat.checks) <= BEFORE_THE_WINDOW
    if isinstance(cheat, ServiceCheat):
        assert cheat.staging == "service"
        honest = Components()
        changed = cheat.components(honest)
        for name, part in cheat.parts.items():
            assert getattr(changed, name) is part
            assert _is_part(part, getattr(honest, name))
    elif isinstance(cheat, Intrusion):
        assert cheat.staging == "intrusion"
        assert all(callable(getattr(guard.owner, guard.name)) for guard in cheat.guards)
    else:
        assert isinstance(cheat, ConstructedCheat)
        assert cheat.staging == "constructed"
        assert cheat.why


def _is_part(part: Any, honest: Any) -> bool:
    """Whether it fits in the place of the honest part: of stages, one and no other is replaced."""
    if not isinstance(part, Stages):
        return issubclass(part, honest)
    classes = [(getattr(part, each.name), getattr(honest, each.name)) for each in fields(part)]
    replaced = [(stage, of) for stage, of in classes if stage is not of]
    return len(replaced) == 1 and all(issubclass(stage, of) for stage, of in replaced)


def test_a_service_cheat_overrides_little() -> None:
    """One component each, but for broken promises: it takes two to forget one."""
    several = [c.name for c in CATALOGUE if isinstance(c, ServiceCheat) and len(c.parts) != 1]
    assert sorted(several) == [
        "a-reply-that-never-ends",
        "an-old-answer-after-a-reveal",
        "claims-crowded-out",
        "garbage-after-a-reveal",
        "intake-flooded",
        "promise-not-kept",
    ]


def test_every_check_but_two_catches_a_cheat_of_the_catalogue() -> None:
    """Refusals and epsilon have no cheat in the list; the procedure's own tests have."""
    caught = {name for each in CATALOGUE for name in each.checks}
    assert {check.id for check in CHECKS} - caught == {"log", "refusals", "epsilon"}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no cheat 'x'"):
        find("x")
    with pytest.raises(UnsupportedError, match="no service stages this cheat"):
        service_cheat("counter-repeat")
    with pytest.raises(UnsupportedError, match="staging intrusion"):
        run("handover-flooded")
    assert service_cheat("half-the-sigma").family == "SELECTION"


def test_run_stages_a_cheat_of_either_kind() -> None:
    use_cached_table()
    assert run("counter-repeat").failed == ("counters",)
    assert run("sigma-too-small-for-the-claim").result == "REFUSED"


def test_the_command_lists() -> None:
    plain = runner.invoke(app, ["list"])
    assert plain.exit_code == 0
    lines = plain.stdout.splitlines()
    assert len(lines) == len(CATALOGUE)
    assert lines[0].split() == [
        "SEED", "equal-keys-for-all-slots", "service", "FAIL", "by", "seed",
    ]  # fmt: skip
    listed = json.loads(runner.invoke(app, ["list", "--json"]).stdout)
    assert [each["name"] for each in listed] == [each.name for each in CATALOGUE]
    assert {each["staging"] for each in listed} == {"service", "constructed", "intrusion"}
    assert lines[-1].split()[-4:] == ["REPELLED", "by", "the", "service"]


def test_the_command_runs() -> None:
    use_cached_table()
    done = runner.invoke(app, ["run", "tie-kept"])
    assert done.exit_code == 0
    assert done.stdout.rstrip().endswith("FAIL")
    value = json.loads(runner.invoke(app, ["run", "counter-repeat", "--json"]).stdout)
    assert value["result"] == "FAIL"
    assert value["caught"] is True
    assert [c["id"] for c in value["checks"] if c["status"] == "FAIL"] == ["counters"]
    plain = runner.invoke(app, ["run", "noise-stored-as-an-index"])
    assert plain.exit_code == 0
    assert plain.stdout.rstrip().endswith("REPELLED")
    value = json.loads(runner.invoke(app, ["run", "windows-without-end", "--json"]).stdout)
    assert (value["result"], value["caught"]) == ("REPELLED", True)
    assert value["cheat"]["reason"] in value["said"]
    unknown = runner.invoke(app, ["run", "x"])
    assert unknown.exit_code == 2
    assert "no cheat 'x'" in unknown.stderr


def test_the_cheating_service_lists_and_refuses() -> None:
    serve = Typer()
    serve.command()(main)
    assert "half-the-sigma" in runner.invoke(serve, ["list"]).stdout
    for name, why in (("counter-repeat", "no service stages this cheat"), ("x", "no cheat 'x'")):
        refused = runner.invoke(serve, [name])
        assert refused.exit_code == 2
        assert why in refused.stderr
    missing = runner.invoke(serve, ["half-the-sigma", "--config", "/nonexistent/prover.yaml"])
    assert missing.exit_code == 2
    assert "cannot read" in missing.stderr


def test_the_command_group_is_an_entry_point() -> None:
    found = {each.name: each.value for each in entry_points(group="ragaudit.commands")}
    assert found["attack"] == "ragaudit.lab.attacks.cli:app"
