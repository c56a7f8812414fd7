"""Rules of windows without noise, with filters and versions: each is broken once, and caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from judged_windows import assert_caught, judged
from procedure_cases import ms, use_cached_table
from ragaudit.lab.scenario.integrity import IntegrityWindow, PrivateWindow, Row
from ragaudit.lab.scenario.opening import Account, Event
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.entries import Epoch, Opening, Record, Registration, Version
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome, Status, run_opening_checks
from ragaudit.verifier.procedure.indexes import verify_argument

use_cached_table()


def test_an_honest_window_with_noise_claims_both() -> None:
    window = PrivateWindow()
    outcome = judged(window)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert (outcome.claims.integrity, outcome.claims.privacy) == ("PASS", "PASS")
    filtered = [asked for asked in window.asked if asked.openings.filter]
    assert filtered
    # Nobody can count what nothing marks.
    assert "null_rows" not in outcome.counts
    assert all("null" not in index.columns for index in window.later.values())
    assert {asked.record.version for asked in window.asked} == {1, 2}


@pytest.mark.slow
def test_both_engines_agree_on_windows_of_version_2() -> None:
    for window in (PrivateWindow(), IntegrityWindow()):
        items = window.items()
        outcomes = [judged(window, items, engine=engine(name)) for name in ("core", "reference")]
        first, second = [[(c.id, c.status) for c in each.checks] for each in outcomes]
        assert first == second


# --- privacy is never had for less --------------------------------------------------------------


def test_a_window_with_noise_claims_no_privacy_without_integrity() -> None:
    class Unfiltered(PrivateWindow):
        def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
            return None

    outcome = judged(Unfiltered())
    assert outcome.failed == ("selection",)
    assert (outcome.claims.integrity, outcome.claims.privacy) == ("FAIL", "FAIL")


def test_noise_that_was_left_out_fails_privacy_and_selection() -> None:
    class Noiseless(PrivateWindow):
        def noised_choice(
            self,
            exact: npt.NDArray[np.int64],
            noise: npt.NDArray[np.int64],
            allowed: Any,
            top_k: int,
        ) -> tuple[int, ...]:
            return super().noised_choice(exact, np.zeros_like(noise), allowed, top_k)

    outcome = judged(Noiseless())
    assert outcome.failed == ("selection",)
    assert outcome.claims.privacy == "FAIL"


def test_a_filter_does_not_reach_the_noise() -> None:
    """Noise is drawn for all N rows: of the allowed ones alone it would be other noise."""

    class DrawnForTheAllowed(PrivateWindow):
        def noised_choice(
            self,
            exact: npt.NDArray[np.int64],
            noise: npt.NDArray[np.int64],
            allowed: Any,
            top_k: int,
        ) -> tuple[int, ...]:
            moved = noise.copy()
            if allowed is not None:
                moved[list(allowed)] = noise[: len(allowed)]
            return super().noised_choice(exact, moved, allowed, top_k)

    assert_caught(DrawnForTheAllowed(), "selection", "does not hold")


def test_a_policy_without_noise_gives_no_privacy_whatever_is_shown() -> None:
    window = IntegrityWindow()
    items = window.items()
    for name in sorted(items):
        outcome = judged(window, {**items, name: b"{}"})
        if name == names.POLICY:
            assert (outcome.result, outcome.claims.privacy) == ("FAIL", "FAIL")
            continue
        assert outcome.claims.privacy == "NOT CLAIMED"


def test_checks_of_noise_say_that_they_do_not_apply() -> None:
    outcome = judged(IntegrityWindow())
    unapplied = {c.id for c in outcome.checks if c.status is Status.NOT_APPLICABLE}
    assert unapplied == {"accounting", "promises", "seed", "coalition", "epsilon"}
    assert outcome.epsilon is None
    assert set(outcome.coalition.values()) == {None}


def test_filters_are_evaluated_on_the_columns_of_the_records_version() -> None:
    """The deleted row passed in version 1 and has no columns in version 2."""
    right = canonical_text({"op": "eq", "key": "shelf", "value": "right"})

    class Later(IntegrityWindow):
        def script(self) -> list[Event]:
            *before, last = super().script()
            return [*before, ("search", "alice", "document 6 of acme", 3, 80, right), last]

    window = Later()
    outcome = judged(window)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    asked = window.asked[-1]
    assert asked.record.version == 2
    first, second = (window.allowed(replace(asked.record, version=v), right) for v in (1, 2))
    assert first != second


# --- 1 to 4: before the window ------------------------------------------------------------------


def opening_of(window: IntegrityWindow) -> Outcome:
    window.open()
    evidence = Evidence.of(window.opening_items())
    return run_opening_checks(evidence, engine=engine("core"), now=ms(-30), pins=window.pins)


def test_an_opening_without_noise_is_not_refused() -> None:
    outcome = opening_of(IntegrityWindow())
    assert outcome.result is None
    assert outcome.check("accounting").status is Status.NOT_APPLICABLE


def test_terms_that_are_not_about_noise_hold_without_it() -> None:
    window = IntegrityWindow(overrides={"clock_skew_seconds": 4000})
    outcome = opening_of(window)
    assert outcome.result == "REFUSED"
    assert outcome.failed == ("policy",)
    assert (outcome.claims.integrity, outcome.claims.privacy) == ("REFUSED", "NOT CLAIMED")


class CommitsToKeys(IntegrityWindow):
    """A seed commitment in a window that has no noise."""

    def build_opening(self) -> Opening:
        return replace(super().build_opening(), seed_root=b"s" * 32)


class CommitsToNoKeys(PrivateWindow):
    """No seed commitment in a window that has noise."""

    def build_opening(self) -> Opening:
        return replace(super().build_opening(), seed_root=b"")


def test_keys_are_committed_to_if_there_is_noise() -> None:
    assert_caught(CommitsToKeys(), "commitments", "if, and only if")
    assert "commitments" in judged(CommitsToNoKeys()).failed


class ShowsWhatWasDeleted(PrivateWindow):
    """The last version marks its null rows, although there is noise; nothing is asked of it."""

    def script(self) -> list[Event]:
        return [*super().script(), ("version", "beta", 90), ("checkpoint", 91)]

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        if (tenant, version) == ("beta", 2):
            rows[4] = replace(rows[4], deleted=True, marked=True)
        return rows


class UndeclaredColumn(IntegrityWindow):
    """Rows with a column that the policy does not declare."""

    def build_version(self, tenant: str, version: int) -> Any:
        built = super().build_version(tenant, version)
        if (tenant, version) != ("beta", 1):
            return built
        columns = [text.replace("shelf", "owner") for text in built.columns]
        held = built.commitment
        forged = IndexCommitment(
            held.window, held.tenant, held.version, held.dimension, held.commitments,
            held.row_digests, held.proof, tuple(columns),
        )  # fmt: skip
        return replace(built, commitment=forged)


def test_columns_are_the_declared_ones() -> None:
    outcome = judged(UndeclaredColumn())
    assert outcome.failed == ("commitments",)
    assert "undeclared" in outcome.check("commitments").reason


def test_a_version_that_the_log_lacks_is_no_evidence() -> None:
    window = IntegrityWindow()
    items = window.items()
    items[names.index_name("beta", 7)] = items[names.index_name("beta")]
    assert_caught(window, "commitments", "of a version that the log does not have", items)


def test_an_index_too_large_for_its_bound_is_refused() -> None:
    window = IntegrityWindow()
    window.open()
    held = window.indices["acme"].commitment

    class Counted(IndexCommitment):
        @property
        def rows(self) -> int:
            return 10**8

    large = Counted(
        held.window, held.tenant, 1, held.dimension, held.commitments, held.row_digests, held.proof,
        held.columns,
    )  # fmt: skip
    # N² B² (d+4) is above 2^82 at B = 4095 from 34 million rows of 32 entries on, at 127 far later.
    with pytest.raises(Exception, match="too many for this bound"):
        verify_argument(large, window.policy, engine("core"))
    verify_argument(held, window.policy, engine("core"))


# --- 5, 9, 11: the log --------------------------------------------------------------------------


class ClaimsCoalition(IntegrityWindow):
    """A coalition is claimed where nobody estimates one."""

    def estimate(self) -> int:
        return 2


class AltersVersion(IntegrityWindow):
    """The version entry says something else than it should."""

    change: Callable[[Version], Version]

    def announce(self, entry: Version) -> None:
        super().announce(self.change(entry))

    def in_force(self, tenant: str, time: int) -> int:
        return 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 3}, "does not follow"),
        ({"rows": 19}, "does not follow"),
        ({"tenant": "gamma"}, "another window or tenant"),
        ({"window": "w2"}, "another window or tenant"),
    ],
)
def test_versions_follow_each_other(changes: dict[str, Any], reason: str) -> None:
    window = AltersVersion()
    window.change = lambda entry: replace(entry, **changes)
    outcome = judged(window)
    assert outcome.failed == ("schedule",), [(c.id, c.reason) for c in outcome.checks]
    assert reason in outcome.check("schedule").reason


def test_the_time_of_a_version_is_confirmed() -> None:
    window = AltersVersion()
    window.change = lambda entry: replace(entry, time=ms(1))
    outcome = judged(window)
    assert outcome.failed == ("schedule",)
    said = outcome.check("schedule")
    assert any("version entry" in text for text in (said.reason, *said.evidence))


def test_a_policy_may_have_no_later_versions() -> None:
    window = IntegrityWindow(overrides={"versions": False})
    outcome = judged(window)
    assert "schedule" in outcome.failed
    assert "a version entry after the opening" in " ".join(
        [outcome.check("schedule").reason, *outcome.check("schedule").evidence]
    )


class StartsAnEpoch(IntegrityWindow):
    """A seed epoch where there are no seeds."""

    def script(self) -> list[Event]:
        return [*super().script()[:4], ("epoch", 0), *super().script()[4:]]

    def epoch(self, time: int) -> None:
        self.append(
            "epoch", Epoch(self.window, 2, "restore", b"", b"", 0, bytes(32), ms(time)).encode()
        )


class Early(IntegrityWindow):
    """A record names the activation of its account although its version has a later one."""

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, activation=1) if record.version == 2 else record


class Anchored(IntegrityWindow):
    """An account with a chain of nonces where there is no noise."""

    def alter_registration(self, account: Account, body: Registration) -> Registration:
        return replace(body, anchor=b"a" * 32) if account.name == "carol" else body


class Nonced(IntegrityWindow):
    """A record with a nonce where there is no noise."""

    def serve(self, *given: Any) -> Any:
        asked = super().serve(*given)
        if asked.account.name != "dora":
            return asked
        record = replace(asked.record, nonce=b"n" * 32)
        return replace(asked, record=record, body=self.encode_record(record))


class HandsOverAnotherSketch(IntegrityWindow):
    """A sketch in the handover is not the committed one."""

    def handover(self) -> bytes:
        index = self.asked[2].index
        salt, sketch = self.sketches[index]
        self.sketches[index] = (salt, bytes(len(sketch)))
        return super().handover()


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (ShowsWhatWasDeleted, "commitments", "a null row"),
        (ClaimsCoalition, "log", "claims a coalition of 2"),
        (StartsAnEpoch, "schedule", "an epoch entry"),
        (Early, "schedule", "activation 1"),
        (Anchored, "nonces", "an anchor in a window without noise"),
        (Nonced, "nonces", "a nonce in a window without noise"),
        (HandsOverAnotherSketch, "log", "another sketch"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[IntegrityWindow], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
