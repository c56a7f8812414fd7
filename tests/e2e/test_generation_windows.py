"""A window that generates answers, by services that are processes, up to its verdict."""

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from generation_channel import DYING, WITHIN_TERMS, records, write_model
from generation_windows import bundle, faults, processes, verdict
from keyword_channel import WITHIN_TERMS as BY_KEYWORDS
from keyword_channel import write_keyword_model
from prover_process import ANCHORED, PLAIN, Setting
from ragaudit.client.cli import app
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.messages.entries import Charge, Generated, Void
from ragaudit.ledger.messages.receipts import GeneratedFile, GeneratedKeywords
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.charges import charged_rows
from ragaudit.prover.window.records import entries
from ragaudit.verifier.engines import engine
from ragaudit.verifier.models import embedder_of, service_of
from ragaudit.verifier.recheck import recheck
from typer.testing import CliRunner
from verifier_process import VerifierProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Its language model names other tokens than the committed one when documents are read.
OTHER_VOTES = """
from ragaudit.serving.generators import NextTokens
honest = NextTokens.next_tokens
def next_tokens(self, question, documents, answer):
    public, *votes = honest(self, question, documents, answer)
    return [public, *(5 for _ in votes)]
NextTokens.next_tokens = next_tokens
"""


@pytest.fixture
def setting(tmp_path: Path, model: Transformer, model_url: str) -> Iterator[Setting]:
    environment = write_model(tmp_path / "model", model)
    vocabulary = str(tmp_path / "model" / "vocabulary.json")
    yield from processes(tmp_path, model_url, environment, vocabulary_file=vocabulary)


@pytest.fixture
def keyword_setting(tmp_path: Path, model: Transformer, model_url: str) -> Iterator[Setting]:
    """The same, with a model that is asked for whole answers."""
    environment = write_keyword_model(tmp_path / "model", model)
    yield from processes(tmp_path, model_url, environment)


QUESTION: dict[str, object] = {"query": "treatment of bazeli ?"}
ASKED = [(account, QUESTION) for account in PLAIN]


def play(
    setting: Setting,
    prelude: str = "",
    asked: Sequence[tuple[str, dict[str, object]]] = ASKED,
    window: Mapping[str, object] = MappingProxyType({}),
    then: Callable[[Sequence[GeneratedFile]], None] = lambda _: None,
    **changes: object,
) -> list[GeneratedFile]:
    """Ask from several accounts, until the window is decided; the answers.

    Args:
        then: is called with the answers after the last of them, while the window is open.
    """
    setting.prover.prelude = prelude
    setting.open(**{
        "opens_after_seconds": 10,
        "length_seconds": 25,
        "privacy": "gaussian",
        "retry_seconds": 60,
        "audit": {"mode": "A", "deadline_seconds": 20},
        "generation": {**WITHIN_TERMS, **changes},
        **window,
    })  # fmt: skip
    files = []
    for account, question in asked:
        answer = setting.post(account, "ask", question)
        assert answer.status_code == 200, answer.text
        files.append(GeneratedFile.parse(answer.content))
    then(files)
    setting.prover.wait_for(lambda: setting.prover.state() in ("archived", "audited"), 300)
    return files


def wards(treatment: str) -> list[Document]:
    """The records, by turns of two wards."""
    return [
        replace(each, attributes=attributes_text({"ward": "ab"[n % 2]}, each.id))
        for n, each in enumerate(records(treatment))
    ]


def hand_in(setting: Setting, files: Sequence[GeneratedFile], folder: Path) -> None:
    """Complete, check and submit receipts by the commands; none of them is missing from the log."""
    paths = []
    for number, file in enumerate(files):
        paths.append(folder / f"{number}.json")
        paths[-1].write_bytes(file.encode())
    names = [str(path) for path in paths]
    keys = setting.verifier.keys.public()
    url = f"http://127.0.0.1:{setting.prover.port}"
    prover = ("--prover", url, "--verifier-key", str(keys["verifier"]), "--json")

    def receipt(*arguments: str) -> tuple[int, dict[str, Any]]:
        found = CliRunner().invoke(app, arguments)
        return found.exit_code, json.loads(found.stdout)

    # Until a checkpoint that covers the last of them is cosigned.
    setting.prover.wait_for(lambda: receipt("complete", *names, *prover)[0] == 0, 60)
    for path in names:
        code, shown = receipt("check", path, *prover)
        assert (code, shown["result"]) == (0, "accepted"), shown
        done = {each["name"] for each in shown["checks"] if each["status"] == "done"}
        assert {"signature", "inclusion", "answer digest", "openings"} <= done
    verifier = ("--verifier", setting.verifier.url, "--json")
    assert receipt("submit", *names, *verifier) == (0, {"accepted": len(names), "known": 0})
    assert receipt("submit", *names, *verifier) == (0, {"accepted": 0, "known": len(names)})
    out = folder / "missing.json"
    code, shown = receipt("prove-missing", names[0], "-o", str(out), *prover)
    assert (code, out.exists()) == (4, False), shown
    assert "the entry is in the log" in shown["detail"]


def test_answers_in_words_are_audited_from_the_question_to_the_verdict(
    setting: Setting, tmp_path: Path
) -> None:
    """Two tenants pay, some questions are about a ward, and a sample is proven and replayed.

    The last question is charged by a prover that is killed before it asks the model; nobody asks
    again, so its charge is voided at the end, and stays. An account with an anchor reveals its
    nonce to a prover that is killed before it asks the model: that question is answered at the end.
    """
    step = tmp_path / "step"
    step.write_text("")

    def killed(where: str, account: str, path: str, body: dict[str, object]) -> None:
        step.write_text(where)
        with pytest.raises(httpx.HTTPError):
            setting.post(account, path, body)
        assert setting.prover.process is not None
        assert setting.prover.process.wait() == -signal.SIGKILL
        setting.prover.start()

    def last(_: Sequence[GeneratedFile]) -> None:
        assert setting.chain is not None
        answer = setting.post(ANCHORED, "ask", {**QUESTION, "counter": 0})
        assert answer.status_code == 200, answer.text
        nonce = setting.chain.nonce(0).hex()
        killed("revealed", ANCHORED, "ask/reveal", {"counter": 0, "nonce": nonce})
        killed("charged", "eve", "ask", {"query": "symptom of bazeli ?"})

    setting.add("eve", "two", wards("kolupe"))
    setting.add("fay", "one", wards("mirazo"))
    ward = {"op": "eq", "key": "ward", "value": "a"}
    about: dict[str, object] = {
        **QUESTION,
        "filter": json.dumps(ward, sort_keys=True, separators=(",", ":")),
    }
    asked: list[tuple[str, dict[str, object]]] = [
        ("ada", about), ("eve", about), ("bea", QUESTION), ("fay", about),
    ]  # fmt: skip
    sampling = {"eta": "0.5", "minimum": 1}
    files = play(
        setting,
        DYING.format(step=str(step)),
        asked=asked,
        then=last,
        window={
            "opens_after_seconds": 20,
            "slots": 6,
            "coalition_max": 6,
            "public_columns": {"ward": "string"},
            "filters": True,
            "length_seconds": 50,
            "audit": {
                "mode": "B",
                "beta": "0.2",
                "tenants": sampling,
                "submitters": {"by": "account", **sampling},
                "deadline_seconds": 20,
            },
        },
        prove="sampled",
    )
    found = verdict(setting)
    assert (found.result, faults(found)) == ("PASS", {})
    costs = found.predicate.generation
    assert costs is not None
    # Five accounts asked, and each document paid twice: M eps_q, whoever asks.
    assert (costs["replace_one_null"], costs["replace_one"]) == ("10", "20")
    charged = [file.public.query for file in files]
    assert [(each.tenant, each.number) for each in charged] == [
        ("one", 0), ("two", 0), ("one", 1), ("one", 2),
    ]  # fmt: skip
    # Ward a is spent by a question about it and one about all: its next one finds no row, and the
    # one about all of the account with an anchor finds ward b.
    store = Store.open(setting.settings.store.url)
    with store.read() as connection:
        rows = {
            tenant: [each.size for _, each in charged_rows(connection, "w1", tenant, 0)]
            for tenant in ("one", "two")
        }
        logged = list(entries(connection, "w1"))
    store.close()
    voids = [Void.parse(each.body) for each in logged if each.kind == Void.KIND]
    answers = [Generated.parse(each.body) for each in logged if each.kind == Generated.KIND]
    charges = [each.index for each in logged if each.kind == Charge.KIND]
    assert [each.charge for each in voids] == charges[-1:]
    assert setting.chain is not None
    anchored = [(each.charge, each.nonce) for each in answers if each.nonce is not None]
    assert anchored == [(charges[-2], setting.chain.nonce(0))]
    assert rows == {"one": [6, 12, 0, 6], "two": [6, 12]}
    assert isinstance(setting.verifier, VerifierProcess)
    settings = setting.verifier.path
    path = bundle(setting, tmp_path)
    done = recheck(
        path,
        engine=engine("core"),
        verdict_key=setting.verifier.keys.verdict.public,
        embedder=embedder_of(path, settings),
        generators=service_of(settings),
    )
    assert (done.differences, done.not_repeated) == ((), ())
    # Whoever has no model of their own repeats the rest.
    done = recheck(path, engine=engine("core"), embedder=embedder_of(path, settings))
    assert done.differences == ()
    assert [each.split(":")[0] for each in done.not_repeated] == [
        "check 29 generator",
        "check 30 replay",
    ]


@pytest.mark.nightly
def test_votes_of_another_model_fail(setting: Setting) -> None:
    play(setting, OTHER_VOTES)
    found = verdict(setting)
    assert found.result == "FAIL"
    assert {name for name, status in faults(found).items() if status == "FAIL"} == {"replay"}


@pytest.mark.nightly
def test_under_naive_the_verdict_is_conditional(setting: Setting) -> None:
    play(setting, mechanism="naive", threshold=None, uses=3, epsilon="3", differing_votes=None)
    found = verdict(setting)
    assert (found.result, faults(found)) == ("CONDITIONAL", {"replay": "NOT ESTABLISHED"})
    assert found.predicate.generation is not None
    assert found.predicate.generation["replace_one"] == "9"


def test_under_murag_ada_released_sums_are_audited(setting: Setting, tmp_path: Path) -> None:
    bins = {"edges": [12000, 6000, 0], "epsilon": "1", "enough": 4}
    asked = play(
        setting,
        window={"length_seconds": 50, "merge_delay_seconds": 18, "sampling_after_seconds": 20},
        then=lambda files: hand_in(setting, files, tmp_path),
        mechanism="murag-ada", threshold=None, bins=bins, epsilon_token="2",
    )  # fmt: skip
    found = verdict(setting)
    assert (found.result, faults(found)) == ("PASS", {})
    # Every account submitted its receipt, whose charge and answer the log has.
    assert found.predicate.counts["receipts"] == len(asked) == len(PLAIN)
    costs = found.predicate.generation
    assert costs is not None
    # One count of 1 and two tokens of 2 are one use of 5.
    assert (costs["replace_one_null"], costs["private_tokens"]) == ("10", 2)
    # What was released stands in the receipt.
    for file in asked:
        sums, threshold = file.public.query.sums, file.public.query.threshold
        assert threshold == [12000, 6000, 0][len(sums) - 1]
    assert isinstance(setting.verifier, VerifierProcess)
    settings = setting.verifier.path
    path = bundle(setting, tmp_path)
    done = recheck(
        path,
        engine=engine("core"),
        embedder=embedder_of(path, settings),
        generators=service_of(settings),
    )
    assert (done.differences, done.not_repeated) == ((), ())


def test_answers_by_keywords_are_audited(keyword_setting: Setting, tmp_path: Path) -> None:
    """Voters' whole answers, what was released of them and the final text are computed again."""
    files = play(keyword_setting, **BY_KEYWORDS)
    found = verdict(keyword_setting)
    assert (found.result, faults(found)) == ("PASS", {})
    assert all(isinstance(file.answer, GeneratedKeywords) for file in files)
    costs = found.predicate.generation
    assert costs is not None and costs["answerer"] == "dp-ksa"
    assert isinstance(keyword_setting.verifier, VerifierProcess)
    settings = keyword_setting.verifier.path
    path = bundle(keyword_setting, tmp_path)
    done = recheck(
        path,
        engine=engine("core"),
        embedder=embedder_of(path, settings),
        generators=service_of(settings),
    )
    assert (done.differences, done.not_repeated) == ((), ())
