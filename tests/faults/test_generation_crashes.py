"""The generation channel of a prover that is killed: a charge stands, and is never made twice."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import ON_EACH_ENGINE
from generation_channel import CHANNEL, DYING, logged_of, records, write_model
from keyword_channel import WITHIN_TERMS as BY_KEYWORDS
from keyword_channel import write_keyword_model
from prover_process import ANCHORED, PATIENCE, Setting
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.messages.entries import Charge, Generated, Void
from ragaudit.ledger.messages.missing import VoidedCharge
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import GeneratedFile
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.charges import charged_rows

pytestmark = [*ON_EACH_ENGINE, pytest.mark.slow]


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step"
    path.write_text("")
    return path


@pytest.fixture(params=["dp-rag", "dp-ksa"])
def answerer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def setting(
    tmp_path: Path, step: Path, model: Transformer, model_url: str, answerer: str
) -> Iterator[Setting]:
    write = write_model if answerer == "dp-rag" else write_keyword_model
    made = Setting(tmp_path)
    store = Store.open(made.settings.store.url)
    StoredDocuments(store).add("one", records(), replace=True)
    store.close()
    made.prover.prelude = DYING.format(step=str(step))
    made.prover.environment = {
        "RAGAUDIT_PROVER__GENERATOR__URL": model_url,
        **write(tmp_path / "model", model),
    }
    yield made
    made.stop()


def open_window(setting: Setting, more: dict[str, Any], **overrides: Any) -> None:
    # What the terms that a verifier ships with allow; what is answered does not matter here.
    terms = {**CHANNEL, "epsilon": "5", "epsilon_token": "5", "answer_delay_seconds": 1}
    setting.open(
        opens_after_seconds=10,
        length_seconds=600,
        privacy="gaussian",
        epochs=True,
        retry_seconds=600,
        generation={**terms, **more},
        **overrides,
    )


def ask(setting: Setting, question: str) -> httpx.Response:
    return setting.post("ada", "ask", {"query": question})


def die(setting: Setting, call: Callable[[], httpx.Response]) -> None:
    """Call a prover that is killed by it."""
    with pytest.raises(httpx.HTTPError):
        call()
    assert setting.prover.process is not None
    assert setting.prover.process.wait() == -signal.SIGKILL


def kinds(setting: Setting) -> dict[str, list[Any]]:
    """The bodies of the channel's entries with their places, by kind."""
    return {kind.KIND: logged_of(setting, kind) for kind in (Charge, Generated, Void)}


@pytest.mark.timeout(600)
def test_killed_between_charge_and_answer(setting: Setting, step: Path, answerer: str) -> None:
    open_window(setting, BY_KEYWORDS if answerer == "dp-ksa" else {})
    files = []
    for number, name in enumerate(("in the charge", "charged", "in the answer", "answered")):
        step.write_text(name)
        die(setting, partial(ask, setting, f"question {number} ?"))
        setting.prover.start()
        answer = ask(setting, f"question {number} ?")
        assert answer.status_code == 200, answer.text
        files.append(GeneratedFile.parse(answer.content))
    # Nobody asks this one again.
    step.write_text("charged")
    die(setting, partial(ask, setting, "the last question ?"))

    log, store = setting.log()
    log.audit()
    with store.read() as connection:
        rows = [each for _, each in charged_rows(connection, "w1", "one", 0)]
    store.close()
    logged = kinds(setting)
    places = [place for place, _ in logged[Charge.KIND]]
    charges = [charge for _, charge in logged[Charge.KIND]]
    # One charge for each question, whenever the process died, and no counter left out.
    assert [charge.number for charge in charges] == list(range(5))
    assert [charge.counter for charge in charges] == list(range(5))
    assert [file.public.charge.index for file in files] == places[:4]
    assert [answer.charge for _, answer in logged[Generated.KIND]] == places[:4]
    assert len(rows) == 5
    assert max(Counter(int(row) for each in rows for row in each).values()) == CHANNEL["uses"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("answerer", ["dp-rag"], indirect=True)
def test_killed_between_promise_nonce_and_answer(setting: Setting, step: Path) -> None:
    """An anchored account calls again after each kill, as its library does."""
    open_window(setting, {})
    chain = setting.chain
    assert chain is not None
    promises, files = [], []

    def survived(name: str, wanted: bool, call: Callable[[], httpx.Response]) -> bytes:
        if wanted:
            step.write_text(name)
            die(setting, call)
            setting.prover.start()
        answer = call()
        assert answer.status_code == 200, answer.text
        return answer.content

    steps = ("in the promise", "promised", "in the nonce", "revealed", "in the answer", "answered")
    for counter, name in enumerate(steps):
        asked = {"query": f"question {counter} ?", "counter": counter}
        revealed = {"counter": counter, "nonce": chain.nonce(counter).hex()}
        early = counter < 2
        promise = partial(setting.post, ANCHORED, "ask", asked)
        promises.append(Promise.parse(survived(name, early, promise)))
        # What was logged before the nonce came is what is promised, each time.
        assert kinds(setting)[Charge.KIND][-1][1] == promises[-1].promised
        reveal = partial(setting.post, ANCHORED, "ask/reveal", revealed)
        files.append(GeneratedFile.parse(survived(name, not early, reveal)))
        assert GeneratedFile.parse(reveal().content) == files[-1]

    log, store = setting.log()
    log.audit()
    with store.read() as connection:
        rows = [each for _, each in charged_rows(connection, "w1", "one", 0)]
    store.close()
    logged = kinds(setting)
    charges, answers = logged[Charge.KIND], logged[Generated.KIND]
    # One charge and one answer for each question, in turn, whenever the process died.
    assert [charge for _, charge in charges] == [promise.promised for promise in promises]
    assert [charge.counter for _, charge in charges] == list(range(len(steps)))
    assert [answer.charge for _, answer in answers] == [place for place, _ in charges]
    assert [answer for _, answer in answers] == [file.public.answered for file in files]
    assert [answer.nonce for _, answer in answers] == [chain.nonce(n) for n in range(len(steps))]
    times = [body.time for _, body in sorted([*charges, *answers], key=lambda one: one[0])]
    assert times == sorted(times)
    assert max(Counter(int(row) for each in rows for row in each).values()) == CHANNEL["uses"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("answerer", ["dp-rag"], indirect=True)
def test_killed_in_the_void_of_a_promise_that_nobody_revealed(setting: Setting, step: Path) -> None:
    """An anchored account asks on: the charge is voided once, and its counter is used up."""
    open_window(setting, {}, promise_life_seconds=2)
    promises, shown = [], []
    for counter, name in enumerate(("in the void", "voided")):
        asked = {"query": f"question {counter} ?", "counter": counter}
        call = partial(setting.post, ANCHORED, "ask", asked)
        promise = call()
        assert promise.status_code == 200, promise.text
        promises.append(Promise.parse(promise.content))
        step.write_text(name)

        def until_void(
            call: Callable[[], httpx.Response] = call, promise: httpx.Response = promise
        ) -> httpx.Response:
            # Until its time is over for everybody, the account is shown the promise again.
            while (again := call()).content == promise.content:
                time.sleep(PATIENCE)
            raise AssertionError(again.text)

        die(setting, until_void)
        voids = [void.charge for _, void in kinds(setting)[Void.KIND]]
        # One that was not committed is not there; one that was is shown by the next process.
        assert len(voids) == counter + (name == "voided")
        setting.prover.start()
        setting.prover.wait_for(lambda call=call: call().status_code == 409, 120)
        shown.append(VoidedCharge.from_json(call().json()["voided"]))
    going_on = setting.post(ANCHORED, "ask", {"query": "the last question ?", "counter": 2})
    assert going_on.status_code == 200, going_on.text

    log, store = setting.log()
    log.audit()
    store.close()
    logged = kinds(setting)
    charges, voids_logged = logged[Charge.KIND], logged[Void.KIND]
    assert [charge for _, charge in charges[:2]] == [promise.promised for promise in promises]
    assert [charge.counter for _, charge in charges] == [0, 1, 2]
    assert logged[Generated.KIND] == []
    # One void for each charge, whenever the process died: the one that the account was shown.
    assert [void.charge for _, void in voids_logged] == [place for place, _ in charges[:2]]
    assert [(one.void.index, one.voided) for one in shown] == voids_logged
