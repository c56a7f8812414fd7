"""What was asked in windows with filters and vectors (check 18): each rule broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from judged_windows import assert_caught, judged
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Account
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import QueryKind
from ragaudit.ledger.messages.policy_terms import FILTER_GRAMMAR
from ragaudit.ledger.messages.requests import Openings, Request
from ragaudit.verifier.procedure import Status

BOTH: Final[tuple[QueryKind, ...]] = ("text", "vector")


class OneEntryOff(IntegrityWindow):
    """The query vector differs in one entry, by one, from what the vector sent rounds to."""

    def embed_request(self, request: Request) -> npt.NDArray[np.int16]:
        honest = super().embed_request(request)
        if request.vector:
            at = int(np.argmax(np.abs(honest)))
            honest[at] -= np.sign(honest[at])
        return honest


def test_vectors_need_no_embedder() -> None:
    window = IntegrityWindow(overrides={"query_kinds": ["vector"]})
    script = [event for event in window.script() if event[0] not in {"query", "search"}]
    window.script = lambda: script  # type: ignore[method-assign]
    outcome = judged(window, embedder=None)
    assert outcome.check("embedding").status is Status.PASS


def test_texts_without_an_embedder_are_not_established() -> None:
    outcome = judged(IntegrityWindow(), embedder=None)
    assert outcome.check("embedding").status is Status.NOT_ESTABLISHED
    assert outcome.result == "PASS"


class Unasked(IntegrityWindow):
    """Records commit to questions or filters that the policy does not have."""

    changes: dict[str, Any]

    def open_request(self, account: Account, request: Request) -> Openings:
        openings = super().open_request(account, request)
        return replace(openings, **self.changes) if account.name == "dora" else openings

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        return None if wanted == self.changes["filter"] else super().allowed(record, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        '{"key":"owner","op":"eq","value":"x"}',
        '{"key":"shelf","op":"lt","value":"x"}',
        '{"key":"year","op":"eq","value":"2001"}',
        '{"op":"eq","key":"shelf","value":"left"}',
        "shelf = left",
        "null",
    ],
    ids=["column", "operator", "type", "spelling", "grammar", "null"],
)
def test_filters_are_of_the_grammar(wanted: str) -> None:
    window = Unasked()
    window.changes = {"filter": wanted}
    outcome = judged(window)
    assert outcome.failed == ("embedding",), [(c.id, c.reason) for c in outcome.checks]
    assert "a filter, which the policy does not have" in outcome.check("embedding").reason
    assert outcome.check("selection").needs == ("embedding",)


class ForVectorsAlone(IntegrityWindow):
    """No embedder is committed to, as in windows in which applications embed."""

    def manifest(self) -> EmbedderManifest:
        return EmbedderManifest.of_none(self.dimension)


def test_vectors_need_no_embedder_that_is_committed_to() -> None:
    window = ForVectorsAlone(overrides={"query_kinds": ["vector"]})
    script = [event for event in window.script() if event[0] not in {"query", "search"}]
    window.script = lambda: script  # type: ignore[method-assign]
    outcome = judged(window, embedder=None)
    assert {outcome.check(name).status for name in ("commitments", "embedding")} == {Status.PASS}


class AsksAnything(IntegrityWindow):
    """Requests that the policy does not take; the provider made them itself."""

    def ask(self, *given: Any) -> Any:
        honest = self.policy
        # Under the digest of the window's policy, with the requests of a more liberal one.
        terms = replace(honest.retrieval, query_kinds=BOTH, filter_grammar=FILTER_GRAMMAR)
        self.policy = replace(honest, retrieval=terms)
        vars(self.policy)["canonical"] = honest.canonical
        try:
            return super().ask(*given)
        finally:
            self.policy = honest


def test_a_filter_where_the_policy_has_none() -> None:
    outcome = judged(AsksAnything(overrides={"filter_grammar": "empty"}))
    assert outcome.failed == ("embedding",), [(c.id, c.reason) for c in outcome.checks]
    assert "does not have: filters" in outcome.check("embedding").reason


def test_a_kind_that_the_policy_does_not_have() -> None:
    outcome = judged(AsksAnything(overrides={"query_kinds": ["text"]}))
    assert outcome.failed == ("embedding",), [(c.id, c.reason) for c in outcome.checks]
    assert "a vector" in outcome.check("embedding").reason


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (OneEntryOff, "embedding", "is not what the vector sent rounds to"),
        (ForVectorsAlone, "commitments", "no embedder, and a policy with texts"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[IntegrityWindow], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
