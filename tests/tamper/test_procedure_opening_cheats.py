"""Cheats before the window (checks 1 to 4): each fails its owner, and passes without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cheats.policy import CountersignedLate, RunsAnotherPolicy
from ragaudit.lab.scenario.accounts import TenantIndex
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.policy import COUNTERSIGNED, INSTANTS
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Opening
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Pins, Status, run_opening_checks

use_cached_table()


def refused(window: Window, owner: str, reason: str, **changes: bytes) -> None:
    """The same defect, found before the countersignature, is a refusal."""
    fresh = type(window)(overrides=window.overrides)
    fresh.open()
    items = {**fresh.opening_items(), **changes}
    outcome = run_opening_checks(
        Evidence.of(items), engine=engine("core"), now=1000 * COUNTERSIGNED, pins=fresh.pins
    )
    assert outcome.result == "REFUSED"
    assert outcome.failed == (owner,)
    assert reason in outcome.check(owner).reason


# --- 1: policy ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"top_k_max": 20}, "top_k_max is 20"),
        ({"estimator/hamming_threshold": 12}, "hamming_threshold is 12"),
        # 1/2 of 64 bits would be 21.33: one too many is as wrong as ten.
        ({"estimator/theta": "0.5", "estimator/hamming_threshold": 22}, "hamming_threshold is 22"),
    ],
)
def test_policies_that_do_not_fit_what_they_govern(overrides: dict[str, Any], reason: str) -> None:
    # A wide threshold links everybody; that is another check's.
    window = Window(overrides={**overrides, "coalition_max": 4})
    assert_caught(window.items(), window, "policy", reason)
    refused(window, "policy", reason)


def test_a_countersignature_at_the_first_instant_is_too_late() -> None:
    window = CountersignedLate()
    window.at = INSTANTS[0]
    assert_caught(window.items(), window, "policy", "too late")


def test_the_countersignature_of_another_policy() -> None:
    window = RunsAnotherPolicy()
    assert_caught(window.items(), window, "policy", "names another window or policy")


def test_a_countersignature_that_the_verifier_did_not_make() -> None:
    window = Window()
    items = window.items()
    value = canonical_json.loads(items[names.COUNTERSIGNATURE])
    value["time"] += 1
    items[names.COUNTERSIGNATURE] = canonical_json.dumps(value)
    assert_caught(items, window, "policy", "does not verify")


@pytest.mark.parametrize("role", ["provider", "cosigner", "verifier", "verdict"])
def test_keys_other_than_the_pinned_ones(role: str) -> None:
    window = Window()
    other: Any = PrivateKey.from_seed(b"x" * 32).public
    if role == "cosigner":
        other = replace(window.cosigner_key.verifier_key, public=other)
    pins = replace(window.pins, **{role: other})
    assert_caught(window.items(), window, "policy", f"another {role} key", pins=pins)


def test_a_policy_that_is_none_leaves_nothing_to_check() -> None:
    window = Window()
    items = {**window.items(), names.POLICY: b"{}"}
    outcome = audit(items, window)
    assert outcome.failed == ("policy",)
    assert all(c.needs == ("policy",) for c in outcome.checks if c.id != "policy")
    assert outcome.result == "FAIL"
    del items[names.POLICY]
    assert "missing" in audit(items, window, pins=Pins()).check("policy").reason


# --- 2: accounting ------------------------------------------------------------------------


def test_noise_that_does_not_give_what_is_promised() -> None:
    window = Window(overrides={"epsilon_acc": "1"})
    assert_caught(window.items(), window, "accounting", "does not give epsilon 1 ")
    refused(window, "accounting", "does not give")


class Sparing(Window):
    """Enough noise for one account, none to speak of for two."""

    sigma = "0.667"


def test_a_coalition_without_a_finite_epsilon() -> None:
    window = Sparing(overrides={"epsilon_acc": "60"})
    outcome = assert_caught(window.items(), window, "accounting", "no finite epsilon")
    assert outcome.check("epsilon").status is Status.NOT_RUN
    refused(window, "accounting", "no finite epsilon")


# --- 3: commitments -----------------------------------------------------------------------


class AltersOpening(Window):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.change: dict[str, Any] = {}

    def build_opening(self) -> Opening:
        return replace(super().build_opening(), **self.change)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"policy_digest": b"p" * 32}, "another policy"),
        ({"embedder_digest": b"e" * 32}, "another embedder"),
    ],
)
def test_an_opening_about_something_else(change: dict[str, Any], reason: str) -> None:
    window = AltersOpening()
    window.change = change
    assert_caught(window.items(), window, "commitments", reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rows": 21}, "20 rows uploaded, 21 in the opening"),
        ({"index_root": b"r" * 32}, "root is not the opening's"),
        ({"proof_digest": b"d" * 32}, "proof is not the opening's"),
    ],
)
def test_an_opening_of_another_index(change: dict[str, Any], reason: str) -> None:
    class OtherIndex(Window):
        def build_opening(self) -> Opening:
            honest = super().build_opening()
            first = replace(honest.tenants[0], **change)
            return replace(honest, tenants=(first, *honest.tenants[1:]))

        def alter_record(self, account: Any, record: Any) -> Any:
            rows = change.get("rows", record.rows)
            return replace(record, rows=rows) if account.tenant == "acme" else record

    window = OtherIndex()
    assert_caught(window.items(), window, "commitments", reason)


def test_an_opening_without_one_of_the_tenants() -> None:
    class Forgets(Window):
        def build_opening(self) -> Opening:
            honest = super().build_opening()
            return replace(honest, tenants=honest.tenants[:1])

    window = Forgets()
    assert_caught(window.items(), window, "commitments", "tenants are not the policy's")


def test_an_index_of_another_dimension() -> None:
    class Narrow(Window):
        def build_index(self, tenant: str) -> TenantIndex:
            index = super().build_index(tenant)
            if tenant == "acme":
                index.commitment = replace(index.commitment, dimension=7)
            return index

    window = Narrow()
    assert_caught(window.items(), window, "commitments", "index of acme: of ")


def test_another_index_is_uploaded_after_the_countersignature() -> None:
    window = Window()
    items = window.items()
    other = Window(seed=2)
    other.open()
    items[names.index_name("acme")] = other.indices["acme"].commitment.encode()
    assert_caught(items, window, "commitments", "root is not the opening's")


def test_another_opening_is_logged_than_was_countersigned() -> None:
    class Switches(Window):
        def play(self) -> None:
            super().play()
            self.countersigned = self.entries[0]

        def opening_items(self) -> dict[str, bytes]:
            items = super().opening_items()
            value = canonical_json.loads(items[names.OPENING])
            return {
                **items,
                names.OPENING: canonical_json.dumps({**value, "salt": "ab" * 32}),
            }

    window = Switches()
    assert_caught(window.items(), window, "commitments", "another opening|countersigned opening")


def test_another_embedder_manifest() -> None:
    window = Window()
    items = {**window.items(), names.EMBEDDER: HashEmbedder(8, "other").manifest().encode()}
    assert_caught(items, window, "commitments", "another embedder manifest")
    items[names.EMBEDDER] = b"[]"
    assert_caught(items, window, "commitments", "not an embedder's manifest")


def test_the_log_was_not_empty() -> None:
    window = Window()
    items = {**window.items(), names.EMPTY_CHECKPOINT: window.sign_head(window.tree).encode()}
    assert_caught(items, window, "commitments", "of a log of 14 entries")


def test_the_empty_log_is_signed_by_somebody_else() -> None:
    window = Window()
    key = SigningKey(window.origin, ED25519, PrivateKey.from_seed(b"f" * 32))
    forged = window.sign_head(MemoryTree(), key).encode()
    items = {**window.items(), names.EMPTY_CHECKPOINT: forged}
    assert_caught(items, window, "commitments", "no signature of this key")


# --- 4: index argument --------------------------------------------------------------------


class LongRow(Window):
    """One row weighs more than B: its document moves scores by more than is accounted for."""

    def completed(self, tenant: str) -> np.ndarray[Any, np.dtype[np.int8]]:
        rows = super().completed(tenant)
        if tenant == "acme":
            rows[3, :] = 0
            rows[3, 0] = rows[3, 1] = 100
        return rows


def test_a_row_that_is_too_long() -> None:
    window = LongRow()
    outcome = assert_caught(window.items(), window, "index-proof", "index of acme")
    assert outcome.check("selection").needs == ("index-proof",)
    refused(window, "index-proof", "index of acme")


class CopiedProof(Window):
    """beta's argument is a copy of acme's."""

    first: bytes | None = None

    def prove_index(self, *arguments: Any) -> bytes:
        if self.first is None:
            self.first = super().prove_index(*arguments)
        return self.first


def test_the_argument_of_another_index() -> None:
    window = CopiedProof()
    assert_caught(window.items(), window, "index-proof", "index of beta")
