"""`ragaudit attack membership` against provers of ours, from its first question to what it signs.

A window whose answers have no noise, or a vote that one document decides, is found out; the same
documents and questions against the private answers are no finding. Both endpoints are asked over
HTTP: the prover's own queries, and OpenAI's chat, behind which answers are generated.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_rag
from generation_channel import CHANNEL, TERMS
from ragaudit.embedders.base import Embedder
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.generation.records import _Names
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.signed_results import MembershipResult, ResultReference
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.states import State
from scenario import WINDOW, ProverScenario
from scope_windows import WINDOW as EXACT
from surface_app import serving
from typer.testing import CliRunner

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

THRESHOLD = "0.8"
"""The specification's table fails above it. Scores that say nothing have an AUC of 1/2 with a
standard deviation of .08 (25 and 25 documents) at most: one test in 10^4 reaches .8, and hardly any
has an interval above it, which a FAIL needs."""
LONG = {"length_seconds": 40_000, "activation_every_seconds": 50_000, "queries_per_account": 600}
WITHOUT_NOISE: Mapping[str, Any] = {**EXACT, "query_kinds": ["text"]}
# Scores of a member for questions that cite it are above the threshold, those of most others below.
WORDS = {"tokens": 2, "uses": 4, "threshold": 8200}
LEAKED_WORDS = {**WORDS, "epsilon": "120", "epsilon_token": "30", "voters": 1}
PRIVATE_WORDS = {**WORDS, "epsilon": "2", "epsilon_token": "1", "voters": 4}
Documents = Sequence[Mapping[str, str]]


def opened(scenario: ProverScenario, members: Documents, **window: Any) -> None:
    """Open a window whose tenant one has the members, and only ada asks."""
    store = StoredDocuments(scenario.service.store)
    store.add("one", [Document(each["id"], each["text"]) for each in members], replace=True)
    scenario.service.create_window("w1", {**window, **LONG})
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)


class Campaign:
    """A test by the command line, in a folder of its own."""

    def __init__(self, folder: Path, members: Documents, others: Documents) -> None:
        self.members = toy_rag.write(folder / "in.jsonl", [dict(each) for each in members])
        self.others = toy_rag.write(folder / "out.jsonl", [dict(each) for each in others])
        self.output, self.key, self.policy = folder / "test", folder / "key", folder / "policy.json"
        self.private = PrivateKey.generate()
        self.sign = folder / "sign.key"
        self.sign.write_text(self.private.seed().hex())
        self.sign.chmod(0o600)

    def run(self, scenario: ProverScenario, *endpoint: str) -> dict[str, Any]:
        """Ask, and return the result, which the page and the signed statement have too."""
        self.key.write_text(scenario.keys["ada"])
        self.key.chmod(0o600)
        policy = scenario.policy().canonical
        self.policy.write_bytes(policy)
        told = CliRunner().invoke(app, [
            "membership", *endpoint, "--members", str(self.members), "--non-members",
            str(self.others), "--output", str(self.output), "--key-file", str(self.key),
            "--sign-key", str(self.sign), "--policy", str(self.policy), "--threshold", THRESHOLD,
            "--yes", "--json",
        ])  # fmt: skip
        assert told.exit_code in (0, 1, 5), (told.output, told.exception)
        found: dict[str, Any] = json.loads(told.stdout)
        assert told.exit_code == {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 5}[found["verdict"]]
        assert json.loads((self.output / "result.json").read_text()) == found
        assert f"Membership test: {found['verdict']}" in (self.output / "report.html").read_text()
        stored = (self.output / "exchanges.jsonl").read_bytes()
        assert stored.count(b"\n") == len(json.loads(told.stdout)["strategies"]) * 3 * 50
        envelope = (self.output / "result.dsse.json").read_bytes()
        signed = MembershipResult.verify(envelope, self.private.public)
        assert signed.verdict == found["verdict"] and signed.plan == found["plan"]
        assert signed.subjects == {
            "exchanges.jsonl": hashlib.sha256(stored).hexdigest(),
            names.POLICY: hashlib.sha256(policy).hexdigest(),
        }
        # As the verifier of this very window takes it, for its verdict to refer to.
        ResultReference.of("membership", envelope, self.private.public, policy)
        return found


@pytest.mark.parametrize("private", [False, True])
def test_retrieval(
    make_scenario: Callable[..., ProverScenario], embedder: Embedder, tmp_path: Path, private: bool
) -> None:
    """Members among 400 rows: with noise for a small epsilon any row comes, hardly ever the own."""
    scenario = make_scenario(embedder=lambda _: embedder)
    every = toy_rag.documents(425, seed=1)
    members, others, filler = every[:25], every[25:50], every[50:]
    terms = {**WINDOW, "sigma": "300"} if private else WITHOUT_NOISE
    opened(scenario, [*members, *filler], **terms)
    campaign = Campaign(tmp_path, members, others)
    with serving(scenario.api.app, lifespan="off") as port:
        url = f"ragaudit:http://127.0.0.1:{port}"
        found = campaign.run(
            scenario, "--endpoint", url, "--window", "w1", "--strategies", "verbatim"
        )
    check(found, private)


@pytest.mark.parametrize("private", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_answers_in_words(
    make_channel: Callable[..., ProverScenario], embedder: Embedder, tmp_path: Path, private: bool,
) -> None:  # fmt: skip
    """One document decides an answer's words, or some vote, with noise."""
    found: list[ProverScenario] = []

    async def pause(seconds: float) -> None:
        found[0].clock.now += round(1000 * seconds)

    found.append(make_channel(pause, embedder=lambda _: embedder))
    every = records(100)
    members, others, filler = every[:25], every[25:50], every[50:]
    channel = {**CHANNEL, **(PRIVATE_WORDS if private else LEAKED_WORDS)}
    terms = {**TERMS, "sigma": "300", "generation": channel}
    opened(found[0], [*members, *filler], **terms)
    campaign = Campaign(tmp_path, members, others)
    with serving(found[0].api.app, lifespan="off") as port:
        url = f"openai:http://127.0.0.1:{port}/v1"
        check(campaign.run(
            found[0], "--endpoint", url, "--model", "records", "--strategies", "citation"
        ), private)  # fmt: skip


def check(found: Mapping[str, Any], private: bool) -> None:
    if private:
        assert found["verdict"] != "FAIL"
    else:
        assert found["verdict"] == "FAIL"
        # By chance with a probability of .001.
        assert found["p_permutation"] == 0.001


def records(count: int) -> list[dict[str, str]]:
    """Exchangeable records in the words that the copying model knows."""
    made = _Names(np.random.default_rng(4))
    return [
        {"id": f"record-{n}", "text": " ; ".join(
            [f"patient {made.fresh()}"] + [
                f"{kind} of {made.fresh()} : {made.fresh()}"
                for kind in ("treatment", "symptom", "treatment")
            ]
        ) + " ."}
        for n in range(count)
    ]  # fmt: skip
