"""One window of the demonstration, from its creation to its verdict."""

import time
from collections.abc import Callable
from typing import Any

from ragaudit.cli.processes import ServiceFailed
from ragaudit.lab.demo.operator import Auditor, Operator
from ragaudit.lab.demo.plan import Plan, WindowPlan, measure_pace
from ragaudit.lab.demo.traffic import Traffic
from rich.progress import Progress

__all__ = ["WindowRun"]

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
