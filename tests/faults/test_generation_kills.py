"""A window of both channels whose prover is killed at random, up to its verdict."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from generation_channel import WITHIN_TERMS, logged_of, records, write_model
from generation_windows import faults, verdict
from moved_window import MovedWindow
from prover_process import ANCHORED, PATIENCE, PLAIN, Setting
from ragaudit.lab.generation.serving import MODEL
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.messages.entries import Charge, Generated, Record, Void
from ragaudit.ledger.messages.receipts import GeneratedFile
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.charges import charged_rows

# Kills at each step are tested on both engines; here it is what an operator of several runs.
pytestmark = [
    pytest.mark.usefixtures("on_each_engine"),
    pytest.mark.parametrize("engine_name", ["postgresql"]),
    pytest.mark.nightly,
    pytest.mark.timeout(900),
]

QUESTIONS = 10  # of each account, by turns of the two channels
KILLS, LATE_KILLS = 5, 4  # while questions are asked, and while the window ends and is proven


@pytest.fixture
def scene(tmp_path: Path, model: Transformer, model_url: str) -> Iterator[MovedWindow]:
    """A prover and a verifier that both have the model."""
    environment = write_model(tmp_path / "model", model)
    vocabulary = str(tmp_path / "model" / "vocabulary.json")
    generator = {"url": model_url, "models": [MODEL], "vocabulary_file": vocabulary}
    made = MovedWindow(tmp_path, generator=generator)
    with closing(Store.open(made.setting.settings.store.url)) as store:
        StoredDocuments(store).add("one", records(), replace=True)
    made.prover.environment = {"RAGAUDIT_PROVER__GENERATOR__URL": model_url, **environment}
    try:
        yield made
    finally:
        made.close()


class Asking(threading.Thread):
    """An account that goes on asking, documents and words by turns, as its library does."""

    def __init__(self, setting: Setting, account: str) -> None:
        super().__init__()
        self.setting, self.account = setting, account
        self.records: list[dict[str, Any]] = []
        self.files: list[GeneratedFile] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        for number in range(QUESTIONS):
            while not self.wrong and not self.asked(number):
                time.sleep(PATIENCE)

    def asked(self, number: int) -> bool:
        """Ask a question, or once more; return whether it is answered."""
        try:
            answer = self.answer(number)
        except httpx.HTTPError:
            return False
        if answer.status_code == 200 and number % 2:
            self.files.append(GeneratedFile.parse(answer.content))
        elif answer.status_code == 200:
            self.records.append(answer.json()["public"])
        elif answer.status_code < 500:
            self.wrong.append(answer.text)
        return answer.status_code == 200

    def answer(self, number: int) -> httpx.Response:
        body: dict[str, Any] = {"query": f"treatment of bazeli {number} ?"}
        promise, reveal, path = ("ask", "ask/reveal", "ask") if number % 2 else (
            "promise", "reveal", "query",
        )  # fmt: skip
        if not number % 2:
            body |= {"top_k": 3, "filter": ""}
        if self.account != ANCHORED:
            return self.setting.post(self.account, path, body)
        promised = self.setting.post(self.account, promise, {**body, "counter": number})
        # After a kill the answer may be logged already: then only the nonce is asked for again.
        if promised.status_code not in {200, 409}:
            return promised
        assert self.setting.chain is not None
        nonce = self.setting.chain.nonce(number).hex()
        return self.setting.post(self.account, reveal, {"counter": number, "nonce": nonce})


def test_killed_at_random_in_both_channels(scene: MovedWindow) -> None:
    scene.begin(
        privacy="gaussian",
        retry_seconds=600,
        generation={**WITHIN_TERMS, "answer_delay_seconds": 1},
    )
    setting, policy = scene.setting, scene.policy()
    scene.clock.reach(max(policy.start, policy.activation_instants[0]))
    scene.until(lambda: scene.prover.state() == "open")
    threads = [Asking(setting, account) for account in (*PLAIN, ANCHORED)]
    for thread in threads:
        thread.start()
    moments = random.Random(20_261_129)

    def kill(times: int) -> None:
        for _ in range(times):
            time.sleep(moments.uniform(0.05, 3))
            scene.prover.kill()
            scene.prover.start()

    kill(KILLS)
    for thread in threads:
        thread.join()
    assert [thread.wrong for thread in threads] == [[]] * 4
    late = threading.Thread(target=kill, args=[LATE_KILLS])
    late.start()
    scene.finish()
    late.join()

    log, store = setting.log()
    log.audit()
    with store.read() as connection:
        rows = [each for _, each in charged_rows(connection, "w1", "one", 0)]
    store.close()
    charges, answers = (logged_of(setting, kind) for kind in (Charge, Generated))
    # One entry for each question and one answer for each charge, whenever the process died.
    assert logged_of(setting, Void) == []
    assert [charge.number for _, charge in charges] == list(range(len(threads) * QUESTIONS // 2))
    files = [file for thread in threads for file in thread.files]
    assert {file.public.charge.index for file in files} == {place for place, _ in charges}
    assert sorted(answer.charge for _, answer in answers) == [place for place, _ in charges]
    bodies = [*(body for _, body in charges), *(body for _, body in logged_of(setting, Record))]
    used = Counter((body.pseudonym, body.counter) for body in bodies)
    assert set(used.values()) == {1}
    assert Counter(who for who, _ in used) == dict.fromkeys((who for who, _ in used), QUESTIONS)
    assert max(Counter(int(row) for each in rows for row in each).values()) == WITHIN_TERMS["uses"]
    found = verdict(setting)
    assert faults(found) == {}, found
