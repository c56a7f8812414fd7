"""A run: lawful requests first, then every probe and oracle of every pair of tenants."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError, UnavailableError
from ragaudit.lab.attacks.scope import judging
from ragaudit.lab.attacks.scope.exchange import Answer, Request
from ragaudit.lab.attacks.scope.probes import Oracle, Probe, Write
from ragaudit.lab.attacks.scope.report import Finding, Report, Tried
from ragaudit.lab.attacks.scope.stores.store import Store

__all__ = ["Options", "Plan", "run"]


_TESTS: tuple[tuple[judging.Kind, Callable[..., judging.Separation | None]], ...] = (
    ("existence", judging.separation),
    ("timing", judging.timing),
)


_PATIENCE = 3
"""How often a request is sent again that came too early (429)."""
_LONGEST_WAIT = 10.0


@dataclass(frozen=True)
class Options:
    """How a run goes.

    Attributes:
        seed: of the order of requests, and of what is drawn for them.
        rounds: how often an oracle asks for each value; twice that, where times accuse.
        error: at most this probability that any oracle of the run accuses a store whose answers
            do not depend on what others have.
        pause: seconds before each request.
        only: names of probes, oracles and writes; all if empty.
        writes: whether writes are tried too.
    """

    seed: int = 0
    rounds: int = 5
    error: float = 0.01
    pause: float = 0.0
    only: frozenset[str] = frozenset()
    writes: bool = False


@dataclass(frozen=True)
class Pair:
    """What one tenant tries against another."""

    attacker: str
    victim: str
    probes: tuple[Probe, ...] = field(repr=False)
    oracles: tuple[Oracle, ...] = field(repr=False)
    writes: tuple[Write, ...] = field(repr=False)


class Plan:
    """All that a run will send, known before it starts."""

    def __init__(self, store: Store, options: Options, *, plant: bool) -> None:
        """Draw it up.

        Args:
            store: opened.
            plant: whether canaries are planted before and removed afterwards.

        Raises:
            MalformedError: no pair of tenants can be tested, or a name is of no probe.
        """
        self.store = store
        self.options = options
        self.plant = plant
        keys, canaries = store.scene.keys, store.scene.canaries
        names = [
            (one, other)
            for one in store.target.tenants if one in keys
            for other in store.target.tenants if other != one and other in canaries
        ]  # fmt: skip
        if not names:
            raise MalformedError(
                "nobody to look for: no tenant but the one with a key has canaries",
                where="canaries",
                expected="those of another tenant",
            )
        self._known: set[str] = set()
        self.pairs = [self._pair(*pair) for pair in names]
        if unknown := sorted(options.only - self._known):
            raise MalformedError(
                f"no probe {unknown[0]!r}", where="--only", expected=", ".join(sorted(self._known))
            )

    @property
    def requests(self) -> int:
        """How many it sends at most."""
        values = {name: len(given) for name, given in self.store.scene.canaries.items()}
        probes = sum(one.requests for pair in self.pairs for one in pair.probes)
        writes = sum(one.requests for pair in self.pairs for one in pair.writes)
        oracles = sum(
            2 * len(pair.oracles) * values[pair.victim] * self.options.rounds for pair in self.pairs
        )
        planted = sum(
            len(self.store.plant(name)) + len(self.store.remove(name)) for name in self.planters
        )
        return probes + writes + oracles + planted + len(self.controlled)

    @property
    def planters(self) -> list[str]:
        """Return the tenants whose canaries the run plants."""
        return [name for name in self.controlled if self.plant]

    @property
    def controlled(self) -> list[str]:
        """Return the tenants that can show that their own canaries are there."""
        return sorted(self.store.scene.keys & self.store.scene.canaries.keys())

    def _pair(self, attacker: str, victim: str) -> Pair:
        only = self.options.only
        probes = self.store.probes(attacker, victim)
        oracles = self.store.oracles(attacker, victim)
        writes = self.store.writes(attacker, victim) if self.options.writes else []
        self._known |= {one.name for one in probes} | {one.name for one in oracles}
        self._known |= {one.name for one in writes}
        # What sends ids comes last: from then on an answer that has them may repeat them.
        probes.sort(key=lambda one: self._holds(one, victim))
        return Pair(
            attacker,
            victim,
            tuple(one for one in probes if not only or one.name in only),
            tuple(one for one in oracles if not only or one.name in only),
            tuple(one for one in writes if not only or one.name in only),
        )

    def _holds(self, probe: Probe, victim: str) -> bool:
        markers = [name for one in self.store.scene.canaries[victim] for name in one.markers()]
        return any(
            request.holds(marker)
            for steps in probe.attempts for request in steps for marker in markers
        )  # fmt: skip


def run(plan: Plan, progress: Callable[[int], None] = lambda _count: None) -> Report:
    """Try everything and return the report.

    Args:
        progress: called with the number of requests that were sent since the last call.

    Raises:
        UnavailableError: the store does not answer a lawful request.
        RefusedError: it declines a tenant's key.
        RejectedError: a tenant does not see its own canaries: silence would mean nothing.
    """
    runner = _Runner(plan, progress)
    started = time.time()
    try:
        for tenant in plan.planters:
            runner.planted(tenant)
        for tenant in plan.controlled:
            runner.control(tenant)
        tried = [one for pair in plan.pairs for one in runner.pair(pair)]
        # Last: what a write has changed and nobody restored would mislead what only reads.
        tried += [runner.write(pair, one) for pair in plan.pairs for one in pair.writes]
    finally:
        for tenant in plan.planters:
            runner.removed(tenant)
    target = plan.store.target
    return Report(
        store=target.store,
        url=target.url,
        seed=plan.options.seed,
        error=plan.options.error,
        started=int(started),
        requests=runner.sent,
        tenants=tuple(target.tenants),
        controlled=tuple(plan.controlled),
        tried=tuple(tried),
    )


def _all_judged(answers: Mapping[str, Sequence[Answer]]) -> bool:
    return all(one.judged for given in answers.values() for one in given)


class _Runner:
    def __init__(self, plan: Plan, progress: Callable[[int], None]) -> None:
        self.plan = plan
        self.store = plan.store
        self.sent = 0
        self._progress = progress
        self._order = np.random.default_rng([plan.options.seed, 1])
        self._said: dict[str, set[str]] = {}

    def planted(self, tenant: str) -> None:
        for request in self.store.plant(tenant):
            self._lawful(request, f"tenants.{tenant}.key_file", "planting canaries")

    def removed(self, tenant: str) -> None:
        for request in self.store.remove(tenant):
            self._send(request)

    def control(self, tenant: str) -> None:
        answer = self._lawful(
            self.store.control(tenant), f"tenants.{tenant}.key_file", "a lawful question"
        )
        own = [marker for one in self.store.scene.planted(tenant) for marker in one.markers()]
        if not any(marker in answer.text for marker in own):
            raise RejectedError(
                "its own key does not find its canaries, so that nothing could be found",
                where=f"tenants.{tenant}",
                expected="the canaries planted in its collection (--plant, or your own ingestion)",
            )

    def pair(self, pair: Pair) -> Iterator[Tried]:
        for probe in pair.probes:
            yield self._probe(pair, probe)
        for oracle in pair.oracles:
            yield self._oracle(pair, oracle)

    def _lawful(self, request: Request, where: str, what: str) -> Answer:
        answer = self._send(request)
        if answer.status in ("401", "403", "28P01", "28000"):
            raise RefusedError(
                f"{what} is declined ({answer.status})",
                where=where,
                expected="the tenant's own key",
            )
        if not answer.succeeded:
            raise UnavailableError(
                f"{what} fails: {answer.status or answer.text}",
                where="url",
                expected="a store that answers its tenants",
            )
        return answer

    def _probe(self, pair: Pair, probe: Probe) -> Tried:
        if any(step.by not in self.store.scene.keys for steps in probe.attempts for step in steps):
            return Tried.skipped(pair.attacker, pair.victim, probe, "needs the victim's key")
        statuses: Counter[str] = Counter()
        findings: dict[str, Finding] = {}
        for steps in probe.attempts:
            for request, answer in self._steps(steps):
                if request.by != pair.attacker:
                    continue
                statuses[answer.status or "no answer"] += 1
                found = self._found(pair, request, answer)
                if (name := judging.named(request, answer, probe.names)) is not None:
                    found.append(("collection", name))
                for kind, evidence in found:
                    if kind in findings:
                        findings[kind] = replace(findings[kind], times=findings[kind].times + 1)
                    else:
                        findings[kind] = self._finding(pair, probe, kind, evidence, request, answer)
        return Tried.of(pair.attacker, pair.victim, probe, statuses, list(findings.values()))

    def write(self, pair: Pair, write: Write) -> Tried:
        if pair.victim not in self.store.scene.keys:
            return Tried.skipped(pair.attacker, pair.victim, write, "needs the victim's key")
        statuses: Counter[str] = Counter()
        findings: dict[str, Finding] = {}
        unread = ""
        for attempt in write.attempts:
            before, answer, after = (
                self._send(one) for one in (attempt.read, attempt.request, attempt.read)
            )
            for request in attempt.undo:
                self._send(request)
            statuses[answer.status or "no answer"] += 1
            found = self._found(pair, attempt.request, answer)
            if not (before.succeeded and after.succeeded and attempt.loses in before.text):
                unread = "the victim does not read its own row"
            elif attempt.shows in after.text and attempt.shows not in before.text:
                found.append(("integrity", attempt.shows))
            elif attempt.loses and attempt.loses not in after.text:
                found.append(("integrity", f"{pair.victim} does not find {attempt.loses} any more"))
            for kind, evidence in found:
                shown = after if kind == "integrity" else answer
                new = self._finding(pair, write, kind, evidence, attempt.request, shown)
                known = findings.get(kind)
                findings[kind] = replace(known, times=known.times + 1) if known else new
        done = Tried.of(pair.attacker, pair.victim, write, statuses, list(findings.values()))
        return done if findings or not unread else replace(done, unjudged=unread)

    def _steps(self, steps: Sequence[Request]) -> Iterator[tuple[Request, Answer]]:
        etag = ""
        for step in steps:
            request = step
            if "{etag}" in step.headers.values():
                if not etag:
                    return
                headers = {
                    name: value.replace("{etag}", etag) for name, value in step.headers.items()
                }
                request = replace(step, headers=headers)
            answer = self._send(request)
            etag = answer.etag
            yield request, answer

    def _found(
        self, pair: Pair, request: Request, answer: Answer
    ) -> list[tuple[judging.Kind, str]]:
        canaries = self.store.scene.canaries[pair.victim]
        said = self._said.setdefault(pair.attacker, set())
        found: dict[judging.Kind, str] = {}
        for leak in judging.leaks(request, answer, canaries, said):
            found.setdefault(leak.kind, leak.evidence)
        said.update(marker for one in canaries for marker in one.markers() if request.holds(marker))
        if answer.status == "304":
            found["existence"] = "304: the answer of the other tenant's question has not changed"
        return list(found.items())

    def _oracle(self, pair: Pair, oracle: Oracle) -> Tried:
        canaries = self.store.scene.canaries[pair.victim]
        values = {getattr(one, oracle.by): one.planted for one in canaries}
        planted = [value for value, there in values.items() if there]
        statuses: Counter[str] = Counter()
        findings: dict[str, Finding] = {}
        answers = self._asked(pair, oracle, list(values), statuses, findings)
        request, shown = oracle.ask(planted[0]), answers[planted[0]][0]
        tests = 2 * sum(len(each.oracles) for each in self.plan.pairs)
        allowed = self.plan.options.error / tests
        for kind, test in _TESTS:
            # What the answers say anyway, their times need not tell again.
            if findings or not _all_judged(answers):
                break
            found = test(answers, planted)
            if found is None or found.p_value > allowed:
                continue
            if kind == "timing":
                # A busy machine or network rarely accuses twice: asked anew, it must tell again.
                second = self._asked(pair, oracle, list(values), statuses, findings)
                again = test(second, planted) if _all_judged(second) else None
                if findings or again is None or again.p_value > allowed:
                    continue
                found = max(found, again, key=lambda one: one.p_value)
            finding = self._finding(pair, oracle, kind, found.evidence, request, shown)
            findings[kind] = replace(finding, p_value=found.p_value)
        return Tried.of(pair.attacker, pair.victim, oracle, statuses, list(findings.values()))

    def _asked(
        self, pair: Pair, oracle: Oracle, values: Sequence[str], statuses: Counter[str],
        findings: dict[str, Finding],
    ) -> dict[str, list[Answer]]:  # fmt: skip
        """Ask for every value, in random order, as often as there are rounds.

        Args:
            statuses, findings: are added to.
        """
        turns = [value for value in values for _ in range(self.plan.options.rounds)]
        answers: dict[str, list[Answer]] = {value: [] for value in values}
        for place in self._order.permutation(len(turns)):
            value = turns[place]
            request = oracle.ask(value)
            answer = self._send(request)
            answers[value].append(answer)
            statuses[answer.status or "no answer"] += 1
            for kind, evidence in self._found(pair, request, answer):
                findings.setdefault(
                    kind, self._finding(pair, oracle, kind, evidence, request, answer)
                )
        return answers

    def _finding(
        self, pair: Pair, by: Probe | Oracle | Write, kind: judging.Kind, evidence: str,
        request: Request, answer: Answer,
    ) -> Finding:  # fmt: skip
        return Finding(
            probe=by.name,
            family=by.family,
            idea=by.idea,
            kind=kind,
            attacker=pair.attacker,
            victim=pair.victim,
            evidence=evidence,
            request=request,
            answer=answer,
        )

    def _send(self, request: Request) -> Answer:
        if self.plan.options.pause:
            time.sleep(self.plan.options.pause)
        answer = self.store.scene.client.send(request)
        for _ in range(_PATIENCE):
            if answer.status != "429":
                break
            time.sleep(min(answer.wait, _LONGEST_WAIT))
            self.sent += 1
            answer = self.store.scene.client.send(request)
        self.sent += 1
        self._progress(1)
        return answer
