"""Accounts dispute generated answers of a prover that is a process, up to the verdict."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from generation_channel import WITHIN_TERMS, served, write_model
from generation_windows import bundle, faults, processes, verdict
from prover_process import ANCHORED, PLAIN, Setting
from ragaudit.client import AnswerRejected, Client
from ragaudit.encoding.options import public_key
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.serving.clock import system_clock
from ragaudit.verifier.arbiter import Arbiter, create_app
from ragaudit.verifier.bundle import open_bundle
from ragaudit.verifier.engines import engine
from ragaudit.verifier.models import committed_generator, embedder_of, service_of
from ragaudit.verifier.procedure.checks import CHECKS, run
from ragaudit.verifier.procedure.framework import Outcome
from verifier_process import VerifierProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

QUESTION, CHARGED = "treatment of bazeli ?", "symptom of bazeli ?"

# Two accounts are told another text than was logged, a third one's question is not the charged one.
LYING = f"""
from dataclasses import replace
from ragaudit.prover.answering.generation import Generation
from ragaudit.prover.answering.charging import Charging
charged, file = Charging.take, Generation._file
def another_question(self, live, account, request):
    if account.name == "bea":
        request = replace(request, query={CHARGED!r})
    return charged(self, live, account, request)
def another_text(self, origin, charge, answer):
    if charge.account in ("ada", "dan"):
        answer = replace(answer, answer=replace(answer.answer, text="another text"))
    if charge.account == "bea":
        opened = charge.opened
        charge = replace(charge, opened=replace(
            opened,
            request=replace(opened.request, query={QUESTION!r}),
            openings=replace(opened.openings, query={QUESTION!r}),
        ))
    return file(self, origin, charge, answer)
Charging.take, Generation._file = another_question, another_text
"""
PRELUDES = {"honest": "", "lying": LYING}

Lies = Mapping[str, tuple[int, str]]
LIES: Mapping[str, Lies] = {
    "honest": {},
    "lying": {
        "ada": (4, "answer digest"),
        "bea": (5, "openings"),
        "dan": (4, "answer digest"),
    },
}
ACCOUNTS = (*PLAIN, ANCHORED)

SAMPLING = {"eta": "0.5", "minimum": 1}


@dataclass(frozen=True)
class Played:
    """A window whose accounts dispute what they were told.

    Attributes:
        found: what became of each dispute, by account.
        without: what an audit without check 15 finds in the same evidence.
    """

    found: dict[str, Mapping[str, Any]]
    verdict: Verdict
    without: Outcome


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, model: Transformer, model_url: str
) -> dict[str, Played]:
    """Both windows at once: most of the time they wait for instants."""

    def one(name: str) -> Played:
        folder = tmp_path_factory.mktemp(name)
        arbiter = Arbiter.create(folder / "arbiter")
        environment = write_model(folder / "model", model)
        vocabulary = str(folder / "model" / "vocabulary.json")
        named = arbiter.public.raw.hex()
        serving = contextmanager(processes)
        with serving(folder, model_url, environment, named, vocabulary_file=vocabulary) as setting:
            setting.prover.prelude = PRELUDES[name]
            return play(setting, arbiter, folder, lies=LIES[name])

    with ThreadPoolExecutor(len(PRELUDES)) as pool:
        return dict(zip(PRELUDES, pool.map(one, PRELUDES), strict=True))


def client(setting: Setting, account: str, folder: Path) -> Client:
    return Client(
        f"http://127.0.0.1:{setting.prover.port}",
        setting.keys[account],
        verifier_url=setting.verifier.url,
        verifier_key=str(setting.verifier.keys.public()["verifier"]),
        state_dir=folder / "state" / account,
        anchored=account == ANCHORED,
    )


def open_window(setting: Setting, clients: dict[str, Client]) -> None:
    """Half of the charges are drawn: their files are the arbiter's to judge, the others V's."""
    setting.prover.start()
    setting.create(
        length_seconds=25,
        merge_delay_seconds=8,
        sampling_after_seconds=10,
        privacy="gaussian",
        retry_seconds=60,
        audit={
            "mode": "B",
            "beta": "0.2",
            "tenants": SAMPLING,
            "submitters": {"by": "account", **SAMPLING},
            "deadline_seconds": 60,
        },
        generation={**WITHIN_TERMS, "prove": "sampled"},
    )
    for each in clients.values():
        each.register()
    setting.prover.wait_for(lambda: setting.prover.state() == "open")


def told(client: Client, lie: tuple[int, str] | None) -> Any:
    """The file of an answer; what is false in it, its account finds."""
    if lie is None:
        return client.ask(QUESTION).receipt.file.to_json()
    with pytest.raises(AnswerRejected) as rejected:
        client.ask(QUESTION)
    assert rejected.value.where == "step {} ({})".format(*lie)
    return rejected.value.received


def drawn(setting: Setting, index: int) -> bool:
    url = f"{setting.verifier.url}/v1/windows/w1/disputes/{index}"
    return httpx.get(url, trust_env=False).is_success


def play(setting: Setting, arbiter: Arbiter, folder: Path, lies: Lies) -> Played:
    """Ask, dispute, settle when the sample is drawn, and wait for the verdict."""
    assert isinstance(setting.verifier, VerifierProcess)
    verifier = public_key(str(setting.verifier.keys.public()["verifier"]))
    judge = create_app(arbiter, verifier, engine("core"), system_clock)
    with ExitStack() as stack:
        judging = stack.enter_context(served(judge)).removesuffix("/v1")
        clients = {name: stack.enter_context(client(setting, name, folder)) for name in ACCOUNTS}
        open_window(setting, clients)
        files = {name: told(each, lies.get(name)) for name, each in clients.items()}
        for name, each in clients.items():
            each.dispute(files[name])
        places = [file["public"]["charge"]["index"] for file in files.values()]
        setting.prover.wait_for(lambda: drawn(setting, places[0]))
        found = {name: each.settle(files[name], judging) for name, each in clients.items()}
    setting.prover.wait_for(lambda: setting.prover.state() in ("archived", "audited"))
    settings = setting.verifier.path
    path = bundle(setting, folder)
    with (
        open_bundle(path) as kept,
        committed_generator(kept.evidence, service_of(settings)) as generator,
    ):
        without = run(
            kept.evidence,
            engine=engine("core"),
            checks=tuple(each for each in CHECKS if each.id != "disputes"),
            embedder=embedder_of(path, settings),
            generator=generator,
        )
    return Played(found, verdict(setting), without)


@pytest.mark.parametrize("name", PRELUDES)
def test_disputed_answers_are_judged_as_what_they_are(played: dict[str, Played], name: str) -> None:
    """What is false is upheld and fails the window; what is true is dismissed, beside it too."""
    found, lies, signed = played[name].found, LIES[name], played[name].verdict
    steps = {account: each["step"] for account, each in found.items()}
    assert steps == {account: lies.get(account, (0, ""))[0] for account in ACCOUNTS}
    # The files of the charges that were drawn were the arbiter's to judge.
    assert sorted(each["sampled"] for each in found.values()) == [False, False, True, True]
    assert faults(signed) == ({"disputes": "FAIL"} if lies else {})
    assert signed.result == ("FAIL" if lies else "PASS")
    (check,) = (each for each in signed.predicate.checks if each.id == "disputes")
    said = (check.reason, *check.evidence)
    for step, _ in lies.values():
        # Of a file that the arbiter judged the verifier knows the step alone.
        assert any(f"step {step}" in text for text in said), said


@pytest.mark.parametrize("name", PRELUDES)
def test_nothing_else_sees_it(played: dict[str, Played], name: str) -> None:
    assert played[name].without.result == "PASS"
