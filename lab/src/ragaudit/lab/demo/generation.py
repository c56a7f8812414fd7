"""`ragaudit demo --words`: a generation window, asked by a coalition of all accounts."""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ragaudit.cli.corpus import Passage
from ragaudit.cli.processes import ServiceProcess
from ragaudit.client.blocking import Client, run
from ragaudit.client.transport import Service
from ragaudit.embedders import registry
from ragaudit.encoding.console import Console
from ragaudit.lab.demo.plan import AccountPlan, Claim, Plan, WindowPlan
from ragaudit.lab.demo.run import WindowRun, download, folders, progress_bars
from ragaudit.lab.demo.services import Auditor, Operator, Services, prepare, start_service
from ragaudit.lab.demo.traffic import Traffic, quiet_clients
from ragaudit.lab.generation.records import Question, corpus
from ragaudit.lab.generation.serving import MODEL, manifest
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.lab.generation.vocabulary import CONTENT
from ragaudit.lab.generation.voters import VOCABULARY
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GeneratedFile
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.charges import charged_rows

WINDOW, TENANT = "demo-words", "clinic"
ACCOUNTS, OWN_QUESTIONS = 8, 4
"""Each account asks some questions of its own, and one that all accounts ask."""
USES, VOTERS = 2, 40
EPSILON, TOKEN = "10", "5/2"
"""Of a question, and of a private token: over all answers M times the first."""
THRESHOLD = 9200
"""Scores of a disease's records are above it, those of most others below."""
_FAMILIES, _SEED = 6, 0
_ASK_SECONDS = 120.0


@dataclass(frozen=True)
class Told:
    """An answer, as its account got it.

    Attributes:
        together: whether it is the question that all accounts ask.
        right: whether the answer has the name that most records say.
        private: tokens that were drawn from votes about documents.
    """

    account: str
    question: Question
    together: bool
    text: str
    right: bool
    private: int


@dataclass
class GenerationReport:
    """What came of it.

    Attributes:
        evidence: folder of the window's files.
        told: in the order of their charges.
        submitted: how many of their receipts the verifier took.
        uses: how many documents paid how often, for the operator's eyes.
        verdict: predicate of the signed verdict.
        recheck: command line that reproduces the verdict offline.
        seconds: wall clock of the whole.
    """

    evidence: Path
    told: list[Told] = field(default_factory=list)
    submitted: int = 0
    uses: dict[int, int] = field(default_factory=dict)
    verdict: dict[str, Any] = field(default_factory=dict)
    recheck: str = ""
    seconds: float = 0.0

    @property
    def found(self) -> str:
        """What the audit says of the receipts: check 13."""
        reasons = [each["reason"] for each in self.verdict["checks"] if each["id"] == "receipts"]
        return str(reasons[0]) if reasons else "not checked"

    def to_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "seconds": round(self.seconds, 1),
            "evidence": str(self.evidence),
            "verdict": self.verdict,
            "answers": [
                {
                    "account": each.account,
                    "question": each.question.text,
                    "support": each.question.support,
                    "together": each.together,
                    "answer": each.text,
                    "right": each.right,
                    "private": each.private,
                }
                for each in self.told
            ],
            "receipts": {"submitted": self.submitted, "found": self.found},
            "documents_by_uses": {str(uses): count for uses, count in sorted(self.uses.items())},
            "recheck": self.recheck,
        }


class GenerationTraffic(Traffic):
    """Accounts that ask questions, check the receipts of what they are told, and submit them.

    Attributes:
        submitted: how many receipts the verifier took.
    """

    def __init__(self, plan: Plan, questions: Mapping[str, Question], **about: Any) -> None:
        """``questions``: by their texts; the others as of `Traffic`."""
        super().__init__(plan, **about)
        self._questions = questions
        self._prover = about["prover"]
        self._told: list[tuple[int, Told]] = []
        self.submitted = 0
        self._guard = threading.Lock()

    @property
    def told(self) -> list[Told]:
        """The answers, in the order of their charges."""
        return [each for _, each in sorted(self._told, key=lambda pair: pair[0])]

    def ask(self, window: str, progress: Callable[[], object], *, until: float) -> None:
        """Ask every question, of all accounts at once; arguments as of `Traffic.ask`."""

        def one(account: AccountPlan) -> None:
            files: list[GeneratedFile] = []
            key = self._keys[account.name]
            service = Service(self._prover, api_key=key, timeout_seconds=_ASK_SECONDS)
            shown = run(service.get(f"/v1/windows/{window}"))["policy"]
            provider = Policy.from_json(shown).keys.provider
            try:
                for text in account.questions[window]:
                    if time.time() < until:
                        path, body = f"/v1/windows/{window}/ask", {"query": text}
                        reply = run(service.request("POST", path, body, repeatable=True))
                        file = GeneratedFile.parse(reply)
                        file.public.verify(provider)
                        file.verify_answer_digest()
                        file.verify_openings()
                        self._note(account.name, file)
                        files.append(file)
                    progress()
            finally:
                run(service.aclose())
            # Signed for with the dispute key, so that the verifier keeps them whoever submits more.
            with self._client(account, window) as client:
                self._attempt(account, window, client, partial(self._give, client, files))

        self._each(window, one)

    def settle(self, window: str) -> None:
        """Dispute nothing."""

    def _give(self, client: Client, files: Sequence[GeneratedFile]) -> None:
        reply = client.submit(files)
        with self._guard:
            self.submitted += reply.accepted + reply.known

    def _note(self, account: str, file: GeneratedFile) -> None:
        question, answer = self._questions[file.request.query], file.answer
        text = "".join(answer.text.split())
        told = Told(
            account,
            question,
            question == next(iter(self._questions.values())),
            answer.text.strip(),
            question.answer in text,
            answer.private,
        )
        with self._guard:
            self._told.append((file.public.charge.index, told))


class GenerationDemo:
    """One run; see `run`.

    Args:
        keep: folder for evidence and the services' data; a new one for evidence otherwise.
        console: of the bars.
    """

    def __init__(self, keep: Path | None, console: Console) -> None:
        self._keep = keep
        self._bars = progress_bars(console)
        self._processes: list[ServiceProcess] = []

    def run(self) -> GenerationReport:
        """Play the window and return what came of it.

        Raises:
            ServiceFailed: a service did not start, ended, or did not finish in time.
        """
        begun = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(quiet_clients())
            work, evidence = folders(stack, self._keep)
            report = GenerationReport(evidence / WINDOW)
            stack.enter_context(self._bars)
            self._run(stack, work, report)
        report.seconds = time.monotonic() - begun
        return report

    def _run(self, stack: ExitStack, work: Path, report: GenerationReport) -> None:
        pool = stack.enter_context(ThreadPoolExecutor(2))
        task = self._bars.add_task("a language model, two services, invented records", total=None)
        services, plan, questions = self._set_up(stack, pool, work)
        self._bars.update(task, total=1, completed=1)
        operator = Operator(services.prover_url, services.operator_token)
        auditor = Auditor(services.verifier_url, services.auditor_token)
        stack.callback(operator.close)
        stack.callback(auditor.close)
        traffic = GenerationTraffic(
            plan,
            questions,
            prover=services.prover_url,
            verifier=services.verifier_url,
            verifier_key=auditor.keys().verifier.raw.hex(),
            keys={each.name: operator.create_account(TENANT, each.name) for each in plan.accounts},
            work=work,
        )
        window = WindowRun(operator, auditor, traffic, plan, plan.windows[0], self._bars)
        window.create()
        window.answer_questions()
        report.verdict = window.await_verdict(self._check_alive)
        report.told, report.submitted = traffic.told, traffic.submitted
        report.uses = _uses(services, len(plan.corpus[TENANT]))
        report.recheck = download(auditor, WINDOW, report.evidence)

    def _set_up(
        self, stack: ExitStack, pool: ThreadPoolExecutor, work: Path
    ) -> tuple[Services, Plan, dict[str, Question]]:
        model = start_service(
            stack,
            "model",
            [sys.executable, "-m", "ragaudit.lab.generation.serving"],
            work,
            lambda port: {"RAGAUDIT_MODEL_PORT": str(port)},
        )
        folder = work / "model"
        folder.mkdir()
        (folder / "manifest.json").write_bytes(manifest(Transformer.load()).encode())
        (folder / "vocabulary.json").write_text(json.dumps(list(VOCABULARY.tokens)))
        services = prepare(work, pool, _environment(model.url, folder))
        plan, questions = _plan()
        services.ingest(plan.corpus)
        self._processes = [
            model, services.start_verifier(stack), services.start_prover(stack, None)
        ]  # fmt: skip
        return services, plan, questions

    def _check_alive(self) -> None:
        for process in self._processes:
            process.check_alive()


def _environment(url: str, folder: Path) -> dict[str, str]:
    """Both parties have the model, each at an address of its own choosing."""
    prover, verifier = "RAGAUDIT_PROVER__GENERATOR__", "RAGAUDIT_VERIFIER__GENERATOR__"
    return {
        f"{prover}URL": f"{url}/v1",
        f"{prover}MANIFEST_FILE": str(folder / "manifest.json"),
        f"{prover}VOCABULARY_FILE": str(folder / "vocabulary.json"),
        f"{prover}BATCH": str(VOTERS),
        f"{prover}QUESTIONS": str(ACCOUNTS),
        f"{verifier}URL": f"{url}/v1",
        f"{verifier}MODELS": json.dumps([MODEL]),
        f"{verifier}VOCABULARY_FILE": str(folder / "vocabulary.json"),
        f"{verifier}BATCH": str(VOTERS),
    }


def _plan() -> tuple[Plan, dict[str, Question]]:
    """The records, who asks what, and the window; the first question is everybody's."""
    made = corpus(np.random.default_rng(_SEED), _FAMILIES, ACCOUNTS * OWN_QUESTIONS + 1)
    shared, *others = sorted(made.questions, key=lambda each: each.support != 40)
    shares = [others[place::ACCOUNTS] for place in range(ACCOUNTS)]
    accounts = [
        AccountPlan(
            f"{TENANT}-{number}", TENANT, anchored=False, crashes=False, submits=True,
            disputes=False, questions={WINDOW: [shared.text, *(each.text for each in share)]},
        )
        for number, share in enumerate(shares, start=1)
    ]  # fmt: skip
    terms = {
        "privacy": "gaussian",
        "sigma": "300",
        "epsilon_acc": None,
        "queries_per_account": 40,
        "slots": 16,
        "coalition_max": 2,
        "claim_margin_seconds": 2,
        "retry_seconds": 60,
        "estimator": {"sketch_bits": 512, "tau_seconds": 600},
        "generation": {
            "epsilon": EPSILON,
            "epsilon_token": TOKEN,
            "voters": VOTERS,
            "tokens": CONTENT + 1,
            "uses": USES,
            "threshold": THRESHOLD,
            "prove": "all",
            "differing_votes": 0,
            "answer_delay_seconds": 2,
            "reuse": False,
        },
    }
    plan = Plan(
        corpus={TENANT: [Passage(f"record-{n}", text) for n, text in enumerate(made.texts)]},
        indexes={},
        accounts=accounts,
        windows=[WindowPlan(WINDOW, "A", 16, 45, 6, terms)],
        claim=Claim("null-replace", 40, 2, "0.000001", "0.00001"),
        embedder=registry.load(),
    )
    return plan, {each.text: each for each in (shared, *others)}


def _uses(services: Services, documents: int) -> dict[int, int]:
    """How many documents paid how often, from the prover's own database."""
    store = Store.open(load_settings(services.prover_settings).store.url)
    try:
        with store.read() as connection:
            rows = [row for _, row in charged_rows(connection, WINDOW, TENANT, 0)]
    finally:
        store.close()
    paid = Counter(int(row) for each in rows for row in each)
    found = Counter(paid.values())
    found[0] = documents - len(paid)
    return dict(found)
