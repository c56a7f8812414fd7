"""The generation channel of a prover that is killed: a charge stands, and is never made twice."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import ON_EACH_ENGINE
from generation_channel import CHANNEL, DYING, model, model_url, records, write_model
from keyword_channel import WITHIN_TERMS as BY_KEYWORDS
from keyword_channel import write_keyword_model
from prover_process import Setting
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.messages.charges import Charge, Generated
from ragaudit.ledger.messages.generated import GeneratedFile
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.charges import charged_rows
from ragaudit.prover.window.records import entries

__all__ = ["model", "model_url"]

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


def ask(setting: Setting, question: str) -> httpx.Response:
    return setting.post("ada", "ask", {"query": question})


def die(setting: Setting, question: str) -> None:
    """Ask a prover that is killed by it."""
    with pytest.raises(httpx.HTTPError):
        ask(setting, question)
    assert setting.prover.process is not None
    assert setting.prover.process.wait() == -signal.SIGKILL


def kinds(setting: Setting) -> dict[str, list[Any]]:
    """The bodies of the channel's entries with their places, by kind."""
    store = Store.open(setting.settings.store.url)
    with store.read() as connection:
        logged = list(entries(connection, "w1"))
    store.close()
    found: dict[str, list[Any]] = {}
    for kind in (Charge, Generated):
        of_kind = [each for each in logged if each.kind == kind.KIND]
        found[kind.KIND] = [(each.index, kind.parse(each.body)) for each in of_kind]
    return found


@pytest.mark.timeout(600)
def test_killed_between_charge_and_answer(setting: Setting, step: Path, answerer: str) -> None:
    # What the terms that a verifier ships with allow; what is answered does not matter here.
    terms = {**CHANNEL, "epsilon": "5", "epsilon_token": "5", "answer_delay_seconds": 1}
    if answerer == "dp-ksa":
        terms |= BY_KEYWORDS
    setting.open(
        opens_after_seconds=10,
        length_seconds=600,
        privacy="gaussian",
        epochs=True,
        retry_seconds=600,
        generation=terms,
    )
    files = []
    for number, name in enumerate(("in the charge", "charged", "in the answer", "answered")):
        step.write_text(name)
        die(setting, f"question {number} ?")
        setting.prover.start()
        answer = ask(setting, f"question {number} ?")
        assert answer.status_code == 200, answer.text
        files.append(GeneratedFile.parse(answer.content))
    # Nobody asks this one again.
    step.write_text("charged")
    die(setting, "the last question ?")

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
