"""A coalition that adapts and hides, against services whose policy estimates by direction."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import scores
from ragaudit.embedders.base import embed_quantised
from ragaudit.lab.reproduce.attacks_top_k import hit_probability
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.scenario import Conclusion, Scenario
from ragaudit.lab.scenario.services import SETTINGS, WINDOW, Offer, documents
from ragaudit.privacy.coalition import Record, estimate, estimate_direction
from ragaudit.prover.service import Components
from ragaudit.prover.settings import EstimatorSettings, WindowSettings
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.recheck import recheck

pytestmark = pytest.mark.slow

SIGMA = "2"
RATE, LEVEL, PLANNED = 8, 0.25, 2
START, LEAST, MOST = 0.8, 0.75, 0.85
"""Cosines of probe and target: two accounts' probes have at most .72, below theta."""
DIRECTED = WindowSettings(
    privacy="gaussian",
    query_kinds=("text", "vector"),
    coalition_estimate="direction",
    **SETTINGS.model_dump(exclude_unset=True)
    | {
        "sigma": SIGMA, "epsilon_acc": None, "queries_per_account": RATE,
        "estimator": EstimatorSettings(theta="0.9", tau_seconds=10, sketch_bits=512),
    },
)  # fmt: skip
TARGET = "document 7 of acme"
HUNTERS = ("bob", "carol", "dora", "erin")


class Hunts(Scenario):
    """Four accounts look for the probe that finds a document in a quarter of its answers.

    Each one turns its probe by what those before it saw (bisection, as in Figure 4), in a direction
    of its own and at another time: no two of them ask alike. alice asks honestly, about anything.
    """

    offer = Offer(DIRECTED, documents)
    roster = tuple((name, "acme", False) for name in ("alice", *HUNTERS))
    bundle = b""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Components())
        vectors = HashEmbedder().embed([TARGET, *HUNTERS]).astype(float)
        basis = np.linalg.qr(vectors.T)[0].T
        self.target = basis[0] * np.sign(basis[0] @ vectors[0])
        self.aside = dict(zip(HUNTERS, basis[1:], strict=True))
        self.turn = START
        self.turns: list[float] = []
        self.shares: list[float] = []

    def before_second(self, at: int) -> None:
        self.clock.at(at + 1)
        for number in range(3):
            self.ask("alice", f"question {number} of alice", 3)
        self.hunt("bob", at + 2)
        self._register("dora")
        self._register("erin")
        self.hunt("carol", at + 16)

    def after_second(self, at: int) -> None:
        self.hunt("dora", at + 2)
        self.hunt("erin", at + 16)

    @property
    def worth(self) -> float:
        """Accounts that ask nothing but the target."""
        return sum(turn**2 for turn in self.turns)

    def probe(self, turn: float, name: str) -> npt.NDArray[np.float64]:
        """Return a unit vector float64[64] at a cosine to the target, in the account's own way."""
        found: npt.NDArray[np.float64] = (
            turn * self.target + math.sqrt(1 - turn**2) * self.aside[name]
        )
        return found

    def hunt(self, name: str, at: int) -> None:
        """Ask all of an account's questions, and turn the next one's probe by the answers."""
        self.clock.at(at)
        account = self.accounts[name]
        for _ in range(RATE):
            account.ask([float(entry) for entry in self.probe(self.turn, name)], 3)
        self.prover.checkpoint()
        self.turns.append(self.turn)
        self.shares.append(float(np.mean([found(receipt) for receipt in account.receipts])))
        self.turn = min(MOST, max(LEAST, self.turn - 0.5 * (self.shares[-1] - LEVEL)))

    def _conclusion(self) -> Conclusion:
        conclusion = super()._conclusion()
        token = (self.folder / "verifier" / "secrets" / "auditor-token").read_text().strip()
        with self.http("verifier") as verifier:
            reply = verifier.post(
                f"/v1/windows/{WINDOW}/bundle/confidential",
                json={"reader": "a test", "reason": "to check again"},
                headers={"Authorization": f"Bearer {token}"},
            )  # fmt: skip
        self.bundle = reply.raise_for_status().content
        return conclusion


def found(receipt: Any) -> bool:
    return any(each.id == "acme-7" for each in receipt.file.answer.documents)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hunts, Conclusion]:
    hunts = Hunts(tmp_path_factory.mktemp("hunts"))
    return hunts, hunts.run()


def test_hits_follow_their_law_whoever_adapts(played: tuple[Hunts, Conclusion]) -> None:
    """32 questions, within 5 standard errors: each probe's chance is that of the rows it meets."""
    hunts, conclusion = played
    assert conclusion.complaints == ()
    assert conclusion.outcome.counts["records"] == 3 + len(HUNTERS) * RATE
    rows = embed_quantised(HashEmbedder(), [each.content for each in documents("acme")])
    chances = []
    for turn, name in zip(hunts.turns, HUNTERS, strict=True):
        asked = quantise_rows(hunts.probe(turn, name)[np.newaxis])[0].astype(np.int16)
        chances.append(hit_probability(scores(rows, asked), 7, 3, float(SIGMA)))
    # A row that nobody looks for is among the best three of twenty in .15 of the answers.
    assert min(chances) > 0.2
    hits, error = RATE * sum(hunts.shares), math.sqrt(RATE * sum(p * (1 - p) for p in chances))
    assert abs(hits - RATE * sum(chances)) < 5 * error


def test_the_verdict_states_the_coalition_by_the_policys_estimate(
    played: tuple[Hunts, Conclusion],
) -> None:
    """Provider and verifier agree on it; by the other estimate nobody acts together."""
    hunts, conclusion = played
    outcome = conclusion.outcome
    others = {check.id: check.status for check in outcome.checks if check.status != Status.PASS}
    assert others == {"coalition": Status.EXCEEDED} and outcome.result == "EXCEEDED"
    stated = outcome.predicate(time=0).coalition
    assert stated["claimed"] == stated["estimated"] and stated["max"] == PLANNED
    # Of four accounts none counts for more than one. The coalition is worth at least 4 times .75².
    assert PLANNED < hunts.worth <= stated["estimated"] <= len(HUNTERS)
    assert "about one direction" in outcome.check("coalition").evidence[0]
    files = [r.file for account in hunts.accounts.values() for r in account.receipts]
    records = [
        Record(f.public.query.pseudonym, f.public.query.time, f.private.openings.sketch)
        for f in files
    ]
    policy = hunts.prover.policy
    assert estimate_direction(records, limit=RATE).k_hat == stated["estimated"]
    # Of six pairs none is linked: fewer than 1 in 10^6 sketches of 512 bits are so far off.
    alike = estimate(records, tau=policy.link_time, threshold=policy.estimator.hamming_threshold)
    assert alike.k_hat == 1


def test_the_estimate_is_recomputed_from_the_bundle(
    played: tuple[Hunts, Conclusion], tmp_path: Path
) -> None:
    hunts, _ = played
    (tmp_path / "bundle.zip").write_bytes(hunts.bundle)
    done = recheck(
        tmp_path / "bundle.zip",
        engine=engine("core"),
        embedder=HashEmbedder().installed(),
    )
    assert done.differences == () and done.complete
    assert done.verdict.predicate.coalition == done.outcome.predicate(time=0).coalition
