"""A window of generated answers, whose prover is killed at each step of settling its end."""

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import ON_EACH_ENGINE
from generation_channel import CHANNEL, DYING, logged_of, records, write_model
from moved_window import MovedWindow
from prover_process import ANCHORED
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.messages.entries import Charge, Close, Generated, Void
from ragaudit.ledger.messages.receipts import GeneratedFile
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store

pytestmark = [*ON_EACH_ENGINE, pytest.mark.slow, pytest.mark.timeout(900)]

STEPS = {
    "in the last void": (0, 0),
    "charged": (2, 0),
    "in the answer": (2, 0),
    "settled": (2, 1),
}
"""Where the prover dies at the end, and how many voids and answers are durable then."""


class Scene(MovedWindow):
    """A window in words whose prover dies where a file says."""

    def __init__(self, folder: Path, model: Transformer, model_url: str) -> None:
        super().__init__(folder)
        self.step = folder / "step"
        self.step.write_text("")
        store = Store.open(self.setting.settings.store.url)
        StoredDocuments(store).add("one", records(), replace=True)
        store.close()
        self.prover.prelude += DYING.format(step=str(self.step))
        self.prover.environment = {
            "RAGAUDIT_PROVER__GENERATOR__URL": model_url,
            **write_model(folder / "model", model),
        }

    def die(self, name: str, call: Callable[[], Any]) -> None:
        """Do what the prover dies of at a step."""
        self.step.write_text(name)
        call()
        assert self.prover.process is not None
        assert self.prover.process.wait() == -signal.SIGKILL, self.prover.log.read_text()

    def lost(self, call: Callable[[], httpx.Response]) -> None:
        """Make a call that is never answered."""
        with pytest.raises(httpx.HTTPError):
            call()

    def count(self, kind: type[Any]) -> int:
        """How many entries of a kind are durable."""
        return len(logged_of(self.setting, kind))


@pytest.fixture
def scene(tmp_path: Path, model: Transformer, model_url: str) -> Iterator[Scene]:
    with closing(Scene(tmp_path, model, model_url)) as made:
        yield made


def test_killed_at_each_step_of_settling_a_window(scene: Scene) -> None:
    """Charges of nobody's nonce are voided once, a revealed one is answered once, then it ends."""
    # What the terms that a verifier ships with allow.
    terms = {**CHANNEL, "epsilon": "5", "epsilon_token": "5", "answer_delay_seconds": 1}
    scene.begin(privacy="gaussian", epochs=True, generation=terms)
    policy, chain = scene.policy(), scene.setting.chain
    assert chain is not None
    scene.clock.reach(max(policy.start, policy.activation_instants[0]))
    scene.until(lambda: scene.prover.state() == "open")
    for question in ("treatment of bazeli ?", "symptom of bazeli ?"):
        asked = partial(scene.setting.post, "ada", "ask", {"query": question})
        scene.die("charged", partial(scene.lost, asked))
        scene.prover.start()
    promised = scene.setting.post(ANCHORED, "ask", {"query": "treatment of bazeli ?", "counter": 0})
    assert promised.status_code == 200, promised.text
    nonce = {"counter": 0, "nonce": chain.nonce(0).hex()}
    scene.die(
        "revealed",
        partial(scene.lost, partial(scene.setting.post, ANCHORED, "ask/reveal", nonce)),
    )
    scene.clock.reach(policy.end)
    for name, durable in STEPS.items():
        scene.die(name, scene.prover.launch)
        assert (scene.count(Void), scene.count(Generated)) == durable
        assert scene.count(Close) == 0
    scene.prover.launch()
    scene.until(lambda: scene.window().handed_over)

    log, store = scene.setting.log()
    log.audit()
    store.close()
    places = [place for place, _ in logged_of(scene.setting, Charge)]
    assert [void.charge for _, void in logged_of(scene.setting, Void)] == places[:2]
    ((_, answer),) = logged_of(scene.setting, Generated)
    assert (answer.charge, answer.nonce) == (places[2], chain.nonce(0))
    assert scene.count(Close) == 1
    # The account that revealed has its answer, signed over what was logged, once it may leave.
    headers = {"Authorization": f"Bearer {scene.setting.keys[ANCHORED]}"}
    receipt = partial(scene.prover.http.get, f"/v1/receipts/w1.{places[2]}", headers=headers)
    scene.until(lambda: receipt().is_success)
    file = GeneratedFile.parse(receipt().content)
    file.verify_answer_digest()
    assert file.public.answered == answer
