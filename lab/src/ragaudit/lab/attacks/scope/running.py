"""A run: lawful requests first, then every probe and oracle of every pair of tenants."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from ragaudit.encoding.commands import NotJudged
from ragaudit.encoding.errors import MalformedError, RefusedError, UnavailableError
from ragaudit.lab.attacks.scope import judging
from ragaudit.lab.attacks.scope.exchange import Answer, Request, created_by
from ragaudit.lab.attacks.scope.probes import (
    NO_TAG,
    TURNS,
    Attempt,
    Census,
    Oracle,
    Probe,
    Tested,
    Write,
)
from ragaudit.lab.attacks.scope.report import Finding, Report, Tried
from ragaudit.lab.attacks.scope.stores.store import Store


@dataclass(frozen=True)
class Options:
    """How a run goes.

    Attributes:
        seed: of the order of requests, and of what is drawn for them.
        rounds: how often an oracle asks for each value; twice that, where times accuse.
        error: at most this probability that any oracle of the run accuses a store whose answers
            do not depend on what others have.
        pause: seconds before each request.
        only: names of probes, oracles, censuses and writes; all if empty.
        writes: whether writes are tried too.
    """

    seed: int = 0
    rounds: int = 5
    error: float = 0.01
    pause: float = 0.0
    only: frozenset[str] = frozenset()
    writes: bool = False


@dataclass(frozen=True)
class Patience:
    """How long planted rows are waited for: a prover in front of a store takes them up later.

    Attributes:
        seconds: at most, for each tenant.
        told: is told of each wait, in words.
        sleep: for so many seconds.
    """

    seconds: float
    told: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Pair:
    """What one tenant tries against another."""

    attacker: str
    victim: str
    probes: tuple[Probe, ...] = field(repr=False)
    oracles: tuple[Oracle, ...] = field(repr=False)
    censuses: tuple[Census, ...] = field(repr=False)
    writes: tuple[Write, ...] = field(repr=False)

    @property
    def counted(self) -> list[Probe | Census | Write]:
        """Return what knows how many requests it sends; an oracle depends on the canaries."""
        return [*self.probes, *self.censuses, *self.writes]


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
        sent = sum(
            one.requests
            for pair in self.pairs for one in pair.counted
        )  # fmt: skip
        # Each may be followed by a lawful question, whether the key is still answered.
        asked = sum(
            len(pair.probes) + len(pair.oracles) + len(pair.writes)
            for pair in self.pairs if pair.attacker in self.controlled
        )  # fmt: skip
        oracles = sum(
            2 * len(pair.oracles) * values[pair.victim] * self.options.rounds for pair in self.pairs
        )
        planted = sum(
            len(self.store.plant(name)) + len(self.store.remove(name)) for name in self.planters
        )
        return sent + asked + oracles + planted + len(self.controlled)

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
        # A census has the victim add a row of its own.
        censuses = self.store.censuses(attacker, victim) if self.plant else []
        writes = self.store.writes(attacker, victim) if self.options.writes else []
        every: list[Tested] = [*probes, *oracles, *censuses, *writes]
        self._known |= {one.name for one in every}
        # What sends ids comes last: from then on an answer that has them may repeat them.
        probes.sort(key=lambda one: self._holds(one, victim))
        return Pair(
            attacker,
            victim,
            tuple(one for one in probes if not only or one.name in only),
            tuple(one for one in oracles if not only or one.name in only),
            tuple(one for one in censuses if not only or one.name in only),
            tuple(one for one in writes if not only or one.name in only),
        )

    def _holds(self, probe: Probe, victim: str) -> bool:
        markers = [name for one in self.store.scene.canaries[victim] for name in one.markers()]
        return any(
            request.holds(marker)
            for steps in probe.attempts for request in steps for marker in markers
        )  # fmt: skip


_TESTS: tuple[tuple[judging.Kind, Callable[..., judging.Separation | None]], ...] = (
    ("existence", judging.separation),
    ("timing", judging.timing),
)


_PATIENCE = 3
"""How often a request is sent again that came too early (429)."""
_LONGEST_WAIT = 10.0
_BETWEEN_LOOKS = 5.0


def run(
    plan: Plan,
    progress: Callable[[int], None] = lambda _count: None,
    patience: Patience | None = None,
) -> Report:
    """Try everything and return the report.

    Args:
        progress: called with the number of requests that were sent since the last call.
        patience: with rows that were planted and are not found at once; none if None.

    Raises:
        UnavailableError: the store does not answer a lawful request.
        RefusedError: it declines a tenant's key.
        NotJudged: a tenant does not see its own canaries: silence would mean nothing.
    """
    runner = _Runner(plan, progress)
    started = time.time()
    try:
        for tenant in plan.planters:
            runner.planted(tenant)
        for tenant in plan.controlled:
            runner.control(tenant, patience if tenant in plan.planters else None)
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


@dataclass
class _Noted:
    """What came of one probe, as it comes."""

    pair: Pair
    by: Tested
    statuses: Counter[str] = field(default_factory=Counter)
    findings: dict[judging.Kind, Finding] = field(default_factory=dict)
    unjudged: set[str] = field(default_factory=set)
    succeeded: bool = False

    def add(
        self, request: Request, answer: Answer, found: Sequence[tuple[judging.Kind, str]], *,
        counted: bool = True,
    ) -> None:  # fmt: skip
        """Note an answer to the attacker, and what it gives away.

        Args:
            counted: false for an answer of the victim's, or one that was noted before.
        """
        if counted:
            self.statuses[answer.status or "no answer"] += 1
            self.unjudged.add(answer.unjudged)
            self.succeeded |= answer.succeeded
        for kind, evidence in found:
            if known := self.findings.get(kind):
                self.findings[kind] = replace(known, times=known.times + 1)
            else:
                self.findings[kind] = self._finding(kind, evidence, request, answer)

    def tested(
        self, kind: judging.Kind, found: judging.Separation, request: Request, answer: Answer
    ) -> None:
        """Note what a test has found."""
        finding = self._finding(kind, found.evidence, request, answer)
        self.findings[kind] = replace(finding, p_value=found.p_value)

    def tried(self) -> Tried:
        """Return it."""
        return Tried.of(
            self.pair.attacker, self.pair.victim, self.by, self.statuses,
            list(self.findings.values()), self.unjudged,
        )  # fmt: skip

    def _finding(
        self, kind: judging.Kind, evidence: str, request: Request, answer: Answer
    ) -> Finding:
        by, pair = self.by, self.pair
        return Finding(
            by.name, by.family, by.idea, kind, pair.attacker, pair.victim, evidence, request, answer
        )


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

    def control(self, tenant: str, patience: Patience | None) -> None:
        left = 0.0 if patience is None else patience.seconds
        while not self._finds_own(tenant, self._lawfully_asked(tenant)):
            if patience is not None and left > 0:
                pause = min(_BETWEEN_LOOKS, left)
                patience.told(
                    f"{tenant} does not find what was planted yet; a prover takes it up with its "
                    f"next version: waiting, {left:.0f} s at most"
                )
                patience.sleep(pause)
                left -= pause
                continue
            raise NotJudged(
                "its own key does not find its canaries, so that nothing could be found",
                where=f"tenants.{tenant}",
                expected="the canaries planted in its collection (--plant, or your own ingestion)",
            )

    def _lawfully_asked(self, tenant: str) -> Answer:
        where = f"tenants.{tenant}.key_file"
        return self._lawful(self.store.control(tenant), where, "a lawful question")

    def _finds_own(self, tenant: str, answer: Answer) -> bool:
        own = [marker for one in self.store.scene.planted(tenant) for marker in one.markers()]
        return any(marker in answer.text for marker in own)

    def pair(self, pair: Pair) -> Iterator[Tried]:
        for probe in pair.probes:
            yield self._probe(pair, probe)
        for oracle in pair.oracles:
            yield self._oracle(pair, oracle)
        for census in pair.censuses:
            yield self._census(pair, census)

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
        noted = _Noted(pair, probe)
        for steps in probe.attempts:
            any_tag = False
            for request, answer in self._steps(steps):
                if request.by != pair.attacker:
                    continue
                found = self._found(pair, request, answer)
                if (name := judging.named(request, answer, probe.names)) is not None:
                    found.append(("collection", name))
                if answer.status == "304":
                    any_tag |= NO_TAG in request.headers.values()
                    if not any_tag:
                        found.append(("existence", "304: the other tenant's answer is the same"))
                noted.add(request, answer, found)
        return self._ended(noted)

    def write(self, pair: Pair, write: Write) -> Tried:
        if pair.victim not in self.store.scene.keys:
            return Tried.skipped(pair.attacker, pair.victim, write, "needs the victim's key")
        noted = _Noted(pair, write)
        for attempt in write.attempts:
            made = self._set_up(attempt)
            if not made.succeeded:
                if made.judged and attempt is write.attempts[0]:
                    why = "the victim may make none of its own to try it on"
                    return Tried.skipped(pair.attacker, pair.victim, write, why)
                noted.unjudged.add("the victim could not make one to try it on")
                break
            created = created_by(made)
            request, read = attempt.request.about(created), attempt.read.about(created)
            before, answer, after = (self._send(one) for one in (read, request, read))
            for undo in attempt.undo:
                self._send(undo.about(created))
            noted.add(request, answer, self._found(pair, request, answer))
            kind = judging.changed(attempt, before, answer, after)
            if kind is None:
                noted.unjudged.add("the victim does not read its own row")
            elif kind:
                shown = answer if attempt.proves else after
                noted.add(request, shown, [("integrity", kind)], counted=False)
        return self._ended(noted)

    def _set_up(self, attempt: Attempt) -> Answer:
        """The answer to the last thing that the victim does first; a good one if that is nothing.

        Whatever is made, the victim must read under the id that is to be tried: else that may be
        the id of something that others have, or none at all.
        """
        answer = Answer("200", "")
        for request in attempt.setup:
            answer = self._send(request)
        if answer.succeeded and attempt.names_created:
            shown = self._send(attempt.read.about(created_by(answer) or "ragaudit-nothing"))
            if not (shown.succeeded and attempt.loses in shown.text):
                return Answer("404", shown.text)
        return answer

    def _ended(self, noted: "_Noted") -> Tried:
        """What came of it. Where nothing was answered, a lawful question must be: a key, or an
        address, that is locked out after so many odd requests is told nothing of any hole."""
        tenant = noted.pair.attacker
        if not (noted.findings or noted.succeeded) and tenant in self.plan.controlled:
            answer = self._send(self.store.control(tenant))
            if not (answer.succeeded and self._finds_own(tenant, answer)):
                status = answer.status or "no answer"
                noted.unjudged.add(f"a lawful question is not answered afterwards ({status})")
        return noted.tried()

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
        said.update(judging.said_by(request, canaries))
        return list(found.items())

    def _oracle(self, pair: Pair, oracle: Oracle) -> Tried:
        canaries = self.store.scene.canaries[pair.victim]
        values = {getattr(one, oracle.by): one.planted for one in canaries}
        planted = [value for value, there in values.items() if there]
        noted = _Noted(pair, oracle)
        answers = self._asked(noted, oracle, list(values))
        request, shown = oracle.ask(planted[0]), answers[planted[0]][0]
        allowed = self._allowed
        for kind, test in _TESTS:
            # What the answers say anyway, their times need not tell again.
            if noted.findings or not _all_judged(answers):
                break
            found = test(answers, planted)
            if found is None or found.p_value > allowed:
                continue
            if kind == "timing":
                # A busy machine or network rarely accuses twice: asked anew, it must tell again.
                second = self._asked(noted, oracle, list(values))
                again = test(second, planted) if _all_judged(second) else None
                if noted.findings or again is None or again.p_value > allowed:
                    continue
                found = max(found, again, key=lambda one: one.p_value)
            noted.tested(kind, found, request, shown)
        return self._ended(noted)

    @property
    def _allowed(self) -> float:
        """The error of each test."""
        pairs = self.plan.pairs
        tests = sum(2 * len(each.oracles) + len(each.censuses) for each in pairs)
        return self.plan.options.error / tests

    def _census(self, pair: Pair, census: Census) -> Tried:
        if pair.victim not in self.store.scene.keys:
            return Tried.skipped(pair.attacker, pair.victim, census, "needs the victim's key")
        noted = _Noted(pair, census)
        turns = [f"turn-{number}" for number in range(TURNS)]
        more = {turns[place] for place in self._order.permutation(TURNS)[: TURNS // 2]}
        answers: dict[str, list[Answer]] = {}
        try:
            for turn in turns:
                if not self._send(census.add if turn in more else census.remove).succeeded:
                    noted.unjudged.add("the victim cannot add a row")
                    return noted.tried()
                answer = self._send(census.ask)
                answers[turn] = [answer]
                noted.add(census.ask, answer, self._found(pair, census.ask, answer))
        finally:
            self._send(census.remove)
        planted = [turn for turn in turns if turn in more]
        found = judging.separation(answers, planted) if _all_judged(answers) else None
        if found is not None and found.p_value <= self._allowed:
            noted.tested("existence", found, census.ask, answers[planted[0]][0])
        return self._ended(noted)

    def _asked(
        self, noted: "_Noted", oracle: Oracle, values: Sequence[str]
    ) -> dict[str, list[Answer]]:
        """Ask for every value, in random order, as often as there are rounds."""
        turns = [value for value in values for _ in range(self.plan.options.rounds)]
        answers: dict[str, list[Answer]] = {value: [] for value in values}
        for place in self._order.permutation(len(turns)):
            value = turns[place]
            request = oracle.ask(value)
            answer = self._send(request)
            answers[value].append(answer)
            noted.add(request, answer, self._found(noted.pair, request, answer))
        return answers

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
