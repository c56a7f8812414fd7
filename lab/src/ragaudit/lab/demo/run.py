"""The demonstration from set-up to verdict, with an honest provider or a cheating one."""

import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragaudit.cli.processes import ServiceFailed, ServiceProcess
from ragaudit.embedders import registry
from ragaudit.embedders.base import embed_quantised
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import RagauditError, UnsupportedError
from ragaudit.lab.demo.plan import (
    SIGMAS,
    TOP_K,
    Plan,
    UtilityRow,
    WindowPlan,
    make_plan,
    measure_pace,
    utility_table,
)
from ragaudit.lab.demo.services import Auditor, Operator, Services, prepare
from ragaudit.lab.demo.traffic import Traffic, quiet_clients
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from ragaudit.lab.attacks.cheat import Cheat


def cheats() -> "list[Cheat]":
    """Return all cheats that end in a verdict, in the order of their families."""
    from ragaudit.lab.attacks.catalogue import CATALOGUE  # noqa: PLC0415 - imports every cheat

    return [each for each in CATALOGUE if each.checks]


def is_service(cheat: "Cheat") -> bool:
    """Return whether a running service can stage a cheat with ordinary accounts.

    Others need accounts that misbehave with the provider, or evidence made by hand.
    """
    from ragaudit.lab.attacks.cheat import ServiceCheat  # noqa: PLC0415
    from ragaudit.lab.scenario.scenario import Scenario  # noqa: PLC0415

    return isinstance(cheat, ServiceCheat) and cheat.scenario is Scenario


def find(name: str) -> "Cheat":
    """Return the cheat of a name.

    Args:
        name: of the catalogue.

    Raises:
        UnsupportedError: there is none that ends in a verdict.
    """
    for each in cheats():
        if each.name == name:
            return each
    raise UnsupportedError(
        f"no cheating provider {name!r}", where="--cheat", expected="see --cheat list"
    )


_POLL_SECONDS = 0.25
_COMMIT_SECONDS = 120.0
_STANDING_SECONDS = 60.0  # that an audit may show no progress behind the deadline
_COSIGN_SECONDS = 2.0  # until a registration is under a cosigned checkpoint
_ANSWER_SECONDS = 3.0  # what an account needs before the end to ask once more
_REGISTERING = ("countersigned", "activated", "open")


class WindowRun:
    """Drives one window; `refused` says that it never opened."""

    def __init__(
        self, operator: Operator, auditor: Auditor, traffic: Traffic, plan: Plan,
        window: WindowPlan, bars: Progress,
    ) -> None:  # fmt: skip
        self.window = window
        self.refused = False
        self.policy: dict[str, Any] = {}
        self._operator = operator
        self._auditor = auditor
        self._traffic = traffic
        self._plan = plan
        self._bars = bars

    def create(self) -> None:
        """Create the window and return when it is countersigned, or refused.

        Raises:
            ServiceFailed: it is neither in time.
        """
        name = self.window.name
        self._operator.create_window(self.window, measure_pace())
        task = self._bars.add_task(f"{name}: committing to indexes", total=100)
        deadline = time.monotonic() + _COMMIT_SECONDS
        while True:
            status = self._operator.status(name)
            if status["state"] in (*_REGISTERING, "refused"):
                break
            if busy := status["busy"]:
                what = f"{name}: {busy['with']}"
                self._bars.update(task, description=what, completed=busy["percent"])
            if time.monotonic() > deadline:
                raise ServiceFailed(f"still {status['state']}", where=f"window {name}")
            time.sleep(_POLL_SECONDS)
        self.refused = status["state"] == "refused"
        self.policy = self._operator.window(name)["policy"]
        said = "refused" if self.refused else "countersigned"
        self._bars.update(task, description=f"{name}: committed and {said}", completed=100)

    def answer_questions(self) -> None:
        """Register the accounts, wait for the start, ask everything."""
        if self.refused:
            return
        name, total = self.window.name, self._plan.questions(self.window.name)
        asking = [each for each in self._plan.accounts if each.questions.get(name)]
        task = self._bars.add_task(f"{name}: registering accounts", total=len(asking))
        self._traffic.register(name, lambda: self._bars.advance(task))
        self._await_start(time.time())
        task = self._bars.add_task(f"{name}: questions, receipts checked", total=total)
        last = self.policy["end"] - self.policy["claim_margin_seconds"] - _ANSWER_SECONDS
        self._traffic.ask(name, lambda: self._bars.advance(task), until=last)

    def await_verdict(self, check_alive: Callable[[], None]) -> dict[str, Any]:
        """Return the predicate of the signed verdict.

        Args:
            check_alive: raises if a service ended; called at each turn.

        Raises:
            ServiceFailed: the deadline passed and the audit stands still, or a service ended.
        """
        name = self.window.name
        task = self._bars.add_task(f"{name}: waiting for the end", total=None)
        last = self._deadline() + _STANDING_SECONDS
        settled, where = False, dict[str, Any]()
        while (verdict := self._auditor.verdict(name)) is None:
            check_alive()
            if not settled and self._auditor.status(name)["state"] == "challenged":
                self._traffic.settle(name)
                settled = True
            before, where = where, self._where()
            if where != before:
                # However slow the machine is: an audit that goes on is waited for.
                last = max(last, time.time() + _STANDING_SECONDS)
            if time.time() > last:
                state = self._auditor.status(name)
                raise ServiceFailed(f"no verdict; {state['state']}", where=f"window {name}")
            self._bars.update(task, **where)
            time.sleep(_POLL_SECONDS)
        shown = f"{name}: verdict {verdict['result']}"
        self._bars.update(task, description=shown, total=1, completed=1)
        return verdict

    def shown(self) -> dict[str, Any]:
        """Return what the provider shows of the window now."""
        return self._operator.window(self.window.name)

    def _await_start(self, registered: float) -> None:
        """Return when the window is open and the accounts' registrations are activated.

        The start is the first activation instant. On a busy machine registering may have taken
        longer than until then; the next instant activates who came late.
        """
        name, instants = self.window.name, self.policy["activation_instants"]
        own = next(n for n, at in enumerate(instants) if at > registered + _COSIGN_SECONDS)
        start = instants[own]
        if own == len(instants) - 1:
            raise ServiceFailed(
                "registering took longer than the window",
                where=f"window {name}",
                expected="a machine that is less busy",
            )
        wait = max(0.0, start - time.time())
        task = self._bars.add_task(f"{name}: waiting for the start", total=round(wait))
        while len(self._operator.window(name)["activations"]) <= own:
            if time.time() > start + _COMMIT_SECONDS:
                raise ServiceFailed("did not open", where=f"window {name}")
            left = max(0.0, start - time.time())
            self._bars.update(task, completed=round(wait - left))
            time.sleep(_POLL_SECONDS)
        while self._operator.status(name)["state"] != "open":
            if time.time() > start + _COMMIT_SECONDS:
                raise ServiceFailed("did not open", where=f"window {name}")
            time.sleep(_POLL_SECONDS)
        self._bars.update(task, completed=round(wait))

    def _deadline(self) -> float:
        if self.refused:
            return time.time()
        sampling: int = self.policy["activation_instants"][-1]
        deadline: int = self.policy["audit"]["deadline_seconds"]
        return sampling + deadline

    def _where(self) -> dict[str, Any]:
        """What is going on, for the bar."""
        name, now = self.window.name, time.time()
        end, sampling = self.policy["end"], self.policy["activation_instants"][-1]
        if now < end:
            return {"description": f"{name}: until the end, {end - now:.0f} s"}
        if now < sampling:
            left = sampling - now
            return {"description": f"{name}: until the sampling instant, {left:.0f} s"}
        status = self._auditor.status(name)
        if status["state"] == "challenged":
            counts = status["counts"]
            return {
                "description": f"{name}: proofs of sampled records",
                "completed": counts["responses"],
                "total": counts["sampled"],
            }
        progress = self._auditor.progress(name)
        return {
            "description": f"{name}: auditing, {progress['step'] or progress['state']}",
            "completed": progress["done"],
            "total": progress["total"] or None,
        }


_RECALL_QUESTIONS = 60
_FILES = {
    "verdict.json": "verdict",
    "report.html": "report.html",
    "report.txt": "report.txt",
    "bundle-public.zip": "bundle",
}


@dataclass(frozen=True)
class Options:
    """What the caller chose.

    Attributes:
        sigma: instead of the calibrated one.
        cheat: name of a cheating provider, or None for an honest one.
        seed: experiment seed, which makes the verdicts worthless.
        keep: folder for evidence and the services' data; a new one for evidence otherwise.
    """

    sigma: str | None = None
    cheat: str | None = None
    seed: str | None = None
    keep: Path | None = None


Planner = Callable[[Options], Plan]


@dataclass
class Report:
    """What came of it.

    Attributes:
        evidence: folder with a sub-folder of files per window.
        verdicts: window -> predicate of its signed verdict.
        policies: window -> its policy.
        windows: window -> what the provider shows of it.
        recheck: command lines that reproduce the verdicts offline.
        seconds: wall clock of the whole demonstration.
    """

    evidence: Path
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    traffic: Traffic | None = None
    utility: list[UtilityRow] = field(default_factory=list)
    recheck: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Demo:
    """One run. Every process it starts has ended when `run` returns or raises."""

    def __init__(self, options: Options, console: Console, planner: Planner | None = None) -> None:
        """``planner`` makes another plan than the demonstration's own."""
        self._options = options
        self._planner = planner or _planned
        self._console = console
        self._processes: list[ServiceProcess] = []
        self._countersigned = threading.Event()
        self._bars = progress_bars(console)

    def run(self) -> Report:
        """Run everything.

        Raises:
            ServiceFailed: a service did not start, ended, or did not finish in time; the
                message shows the end of its log.
        """
        begun = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(quiet_clients())
            work, evidence = folders(stack, self._options.keep)
            report = Report(evidence)
            stack.enter_context(self._bars)
            try:
                self._run(stack, work, report)
            except RagauditError as error:
                for process in self._processes:
                    process.check_alive()  # a service that ended explains more
                if isinstance(error, ServiceFailed) and "\n" in error.what:
                    raise  # it shows a log already
                tails = "\n".join(f"{p.name}:\n{p.tail(12)}" for p in self._processes)
                raise ServiceFailed(f"{error}\n{tails}", where="demo") from error
        report.seconds = time.monotonic() - begun
        return report

    def _run(self, stack: ExitStack, work: Path, report: Report) -> None:
        pool = stack.enter_context(ThreadPoolExecutor(4))
        services, plan = self._set_up(stack, pool, work)
        operator = Operator(services.prover_url, services.operator_token)
        auditor = Auditor(services.verifier_url, services.auditor_token)
        stack.callback(operator.close)
        stack.callback(auditor.close)
        keys = {
            each.name: operator.create_account(each.tenant, each.name) for each in plan.accounts
        }
        cheat = self._options.cheat
        traffic = report.traffic = Traffic(
            plan,
            prover=services.prover_url,
            verifier=services.verifier_url,
            verifier_key=auditor.keys().verifier.raw.hex(),
            keys=keys,
            work=work,
            disputing=cheat is None or bool(getattr(find(cheat), "disputes", False)),
        )
        stack.callback(traffic.stop)
        asked = threading.Event()
        runs: list[Future[None]] = []
        for number, window in enumerate(plan.windows):
            run = WindowRun(operator, auditor, traffic, plan, window, self._bars)
            runs.append(pool.submit(self._drive, run, report, asked, first=number == 0))
        utility = pool.submit(self._utility, plan, asked)
        try:
            for each in runs:
                each.result()
            report.utility = utility.result()
        finally:
            asked.set()  # whoever waits for it may end
        self._download(auditor, report)

    def _set_up(
        self, stack: ExitStack, pool: ThreadPoolExecutor, work: Path
    ) -> tuple[Services, Plan]:
        """Start both services; the plan is made meanwhile."""
        planning = pool.submit(self._planner, self._options)
        with self._busy("setting up two services"):
            services = prepare(work, pool)
        with self._busy("reading and embedding documentation"):
            plan = planning.result()
        passages = sum(map(len, plan.corpus.values()))
        with self._busy(f"starting services, loading {passages} passages"):
            loading = pool.submit(services.ingest, plan.corpus)
            self._processes.append(services.start_verifier(stack))
            self._processes.append(services.start_prover(stack, self._options.cheat))
            loading.result()
        return services, plan

    def _drive(
        self, run: WindowRun, report: Report, asked: threading.Event, *, first: bool
    ) -> None:
        """Run one window; the others are created once the first is countersigned."""
        name = run.window.name
        try:
            if first:
                run.create()
                self._countersigned.set()
                run.answer_questions()
                asked.set()
            else:
                self._countersigned.wait()
                run.create()
                run.answer_questions()
            verdict = run.await_verdict(self._check_alive)
            report.verdicts[name] = verdict
            report.policies[name] = run.policy
            report.windows[name] = run.shown()
        finally:
            if first:
                self._countersigned.set()
                asked.set()

    def _utility(self, plan: Plan, asked: threading.Event) -> list[UtilityRow]:
        """The table of sigma, recall and epsilon, while the windows wait for their end."""
        asked.wait()
        queries = {
            tenant: embed_quantised(plan.embedder, questions)
            for tenant, questions in plan.sample_questions(_RECALL_QUESTIONS).items()
        }
        task = self._bars.add_task("recall against exact search", total=1.0)
        return utility_table(
            [*SIGMAS, plan.sigma()],
            plan.indexes,
            queries,
            TOP_K,
            plan.claim,
            lambda share: self._bars.update(task, completed=share),
        )

    def _download(self, auditor: Auditor, report: Report) -> None:
        """Fetch the evidence of every window and say how to re-check it."""
        for window in report.verdicts:
            folder = report.evidence / window
            report.recheck.append(download(auditor, window, folder))

    def _check_alive(self) -> None:
        for process in self._processes:
            process.check_alive()

    @contextmanager
    def _busy(self, what: str) -> Iterator[None]:
        """A bar without a known end, completed when the block ends."""
        task = self._bars.add_task(what, total=None)
        yield
        self._bars.update(task, total=1, completed=1)


def _planned(options: Options) -> Plan:
    plan = make_plan(registry.load(), sigma=options.sigma, seed=options.seed)
    # A cheat shows in one window as well as in three.
    return plan if options.cheat is None else replace(plan, windows=plan.windows[:1])


def folders(stack: ExitStack, keep: Path | None) -> tuple[Path, Path]:
    """Return folders for the services' data and for the evidence.

    Args:
        stack: removes what is temporary.
        keep: an empty or new folder for both; None for temporary data.

    Raises:
        ServiceFailed: the folder is not empty.
    """
    if keep is None:
        temporary = tempfile.TemporaryDirectory(prefix="ragaudit-demo-", ignore_cleanup_errors=True)
        evidence = Path(tempfile.mkdtemp(prefix="ragaudit-evidence-"))
        return Path(stack.enter_context(temporary)), evidence
    work = keep.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if any(work.iterdir()):
        raise ServiceFailed(
            "the folder is not empty", where=str(work), expected="an empty or new folder"
        )
    return work, work / "evidence"


def download(auditor: Auditor, window: str, folder: Path) -> str:
    """Fetch a window's verdict, reports and bundles; return the command that checks it again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, what in _FILES.items():
        (folder / name).write_bytes(auditor.download(window, what))
    whole = auditor.open_evidence(window, "to check every proof again")
    bundle = folder / "bundle.zip"
    bundle.write_bytes(whole)
    words = ["ragaudit", "verifier", "recheck", str(bundle), "--verdict-key"]
    return shlex.join([*words, auditor.keys().verdict.raw.hex()])


def progress_bars(console: Console) -> Progress:
    """Return the bars of what is going on."""
    columns = (TextColumn("{task.description:<44}"), BarColumn(14), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console)
