"""What a prover proves and opens of its generation channel, as the verifier's service holds it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from databases import ON_EACH_ENGINE
from generation_channel import (
    QUESTION,
    ask,
    count,
    file_of,
    first_tokens,
    open_channel,
)
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry, ChargeStatement
from ragaudit.circuits.noise import COIN_TAG, noise_key
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.challenge import Challenge, Replay, Response, Votes
from ragaudit.ledger.messages.commitments import content_digest, row_digest, verify_key_opening
from ragaudit.ledger.messages.entries import Charge
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.receipts import GeneratedAnswer, GeneratedFile
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.privacy.sample import charge_stratum_id
from ragaudit.prover import work
from ragaudit.prover.answering.generator import token_mechanism
from ragaudit.prover.errors import ChallengeRejected, VerifierRefused
from ragaudit.prover.index.committed import part
from ragaudit.prover.store import tables
from ragaudit.prover.store.states import State
from ragaudit.prover.window.charges import charge_at
from ragaudit.prover.window.records import entries
from ragaudit.serving.generators import GeneratorUnavailable, NextTokens
from ragaudit.serving.jobs.job import Job
from ragaudit.verifier.service import evidence, windows
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE

GROUP = 2


@dataclass
class Finished:
    """A window whose challenge was answered: three answers, and a charge that was voided."""

    scenario: ProverScenario
    files: list[GeneratedFile]
    held: dict[str, bytes]
    jobs: list[Job]
    shares: list[float]
    proven: list[int]

    @property
    def live(self) -> Any:
        return self.scenario.service.open_windows.get("w1")

    @property
    def logged(self) -> list[Entry]:
        """The charge entries."""
        with self.scenario.service.store.read() as connection:
            return [each for each in entries(connection, "w1") if each.kind == Charge.KIND]

    @property
    def points(self) -> bytes:
        return b"".join(Charge.parse(each.body).charge or b"" for each in self.logged)

    def response(self, index: int) -> Response:
        return Response.parse(self.held[items.response_name(index)], self.live.policy.dimension)

    def replay(self, index: int) -> Replay:
        return Replay.parse(self.held[items.replay_name(index)])


def finish(channel: ProverScenario, monkeypatch: pytest.MonkeyPatch, **terms: Any) -> Finished:
    """Play the window, with these changes of its channel, until its challenge is answered."""
    open_channel(channel, differing_votes=0, group=GROUP, uses=3, **terms)
    files = [file_of(ask(channel, query=f"{QUESTION} {n}")) for n in range(3)]
    assert channel.ask().status_code == 200

    def dead(*_: object) -> Any:
        raise GeneratorUnavailable("dead")

    monkeypatch.setattr(NextTokens, "next_tokens", dead)
    assert ask(channel, query="nobody answers ?").status_code == 503
    # Whatever is proven later does not ask the model again.
    service, clock = channel.service, channel.clock
    jobs, submit = list[Job](), service.runner._executor.submit

    def noted(given: Sequence[Job]) -> None:
        jobs.extend(given)
        submit(given)

    monkeypatch.setattr(service.runner._executor, "submit", noted)
    prepare, proven, shares = service.driver._challenges.prepare, list[int](), list[float]()

    def watched(
        live: Any, positions: Sequence[int], notify: Callable[[float], None], rows: Any
    ) -> None:
        def report(share: float) -> None:
            shares.append(share)
            notify(share)

        proven.extend(positions)
        prepare(live, positions, report, rows)

    service.driver.checkpoint("w1")
    monkeypatch.setattr(service.driver._challenges, "prepare", watched)
    clock.at(channel.policy().end)
    channel.drive(State.CLOSED)
    service.driver.step("w1")
    clock.at(channel.policy().sampling_instant)
    channel.drive(State.CHALLENGED)
    service.driver.step("w1")
    clock.at(channel.policy().release_time // 1000)
    live = service.open_windows.get("w1")
    monkeypatch.setattr(service.driver._challenges, "prepare", prepare)
    for _ in range(2):  # the second time nothing is left
        service.driver._challenges.deliver(live)
    application: Any = channel.verifier.app
    held = evidence.stored(application.state.service.database, windows.of("provider.example", "w1"))
    wanted = (items.RESPONSES, items.BUDGETS, items.REPLAYS, items.CHALLENGE)
    found = {name: held[name] for name in held if name.startswith(wanted)}
    return Finished(channel, files, found, jobs, shares, proven)


def test_the_evidence_holds(channel: ProverScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = finish(channel, monkeypatch)
    logged = finished.logged
    assert len(logged) == 4
    check_sample(finished, logged)
    check_budget(finished)
    check_charges(finished, logged)
    for file in finished.files:
        check_replay(finished, file)
    # The voided one has no answer to be computed again.
    replays = {name for name in finished.held if name.startswith(items.REPLAYS)}
    assert replays == {items.replay_name(each.index) for each in logged[:3]}
    check_once(finished)
    check_intake(finished)
    check_jobs(finished)
    check_progress(finished)


def test_released_sums_follow_from_what_is_opened(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MURAG-ADA: of each entry, also the voided one, counts and coins give the logged sums."""
    edges, enough = [9000, 3000, 0], 4
    bins = {"edges": edges, "epsilon": "1/2", "enough": enough}
    finished = finish(channel, monkeypatch, mechanism="murag-ada", threshold=None, bins=bins)
    for entry in finished.logged:
        body, response = Charge.parse(entry.body), finished.response(entry.index)
        replay = finished.replay(entry.index)
        query = np.array(response.embedding, dtype=np.int64)
        scores = [int(np.array(row.vector[:-4], dtype=np.int64) @ query) for row in replay.rows]
        coins, total, sums = KeyedCoins(coin_key(finished, body, response)), 0, []
        for high, low in pairwise([127 * 127, *edges]):
            total += sum(low < score <= high for score in scores)
            total += int(coins.laplace(Fraction(2)))
            sums.append(total)
            if total > enough:
                break
        assert (body.sums, body.threshold) == (tuple(sums), edges[len(sums) - 1])
        positions = [row.position for row in replay.rows]
        assert core.commit_selection(positions, replay.blinding) == body.charge
    for file in finished.files:
        check_replay(finished, file)
    void = finished.replay(finished.logged[3].index)
    assert (void.answer, void.votes, void.used) == (None, (), ())


def check_progress(finished: Finished) -> None:
    """What the operator sees grows over charges, group by group, and then over records."""
    shares, count = finished.shares, len(finished.proven)
    assert count > 4
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] <= 1
    assert {GROUP / count, 4 / count} <= set(shares)


def check_sample(finished: Finished, logged: Sequence[Entry]) -> None:
    challenge = Challenge.parse(finished.held[items.CHALLENGE])
    strata = {stratum.id: stratum for stratum in challenge.strata}
    assert list(strata)[-2:] == [charge_stratum_id("one"), charge_stratum_id("two")]
    mine = strata[charge_stratum_id("one")]
    assert mine.population is None
    assert list(mine.sample) == [each.index for each in logged]
    # One that asks for less, or for another entry, opens nothing.
    less = replace(mine, sample=mine.sample[:-1])
    other = tuple(less if each is mine else each for each in challenge.strata)
    worker, forged = finished.scenario.service.driver._challenges, replace(challenge, strata=other)
    with pytest.raises(RagauditError):
        worker.check(finished.live, forged)
    # Nor if the verifier signed it.
    with pytest.MonkeyPatch.context() as patched, pytest.raises(ChallengeRejected):
        patched.setattr(Challenge, "authenticate", lambda *_, **__: None)
        worker.check(finished.live, forged)


def check_budget(finished: Finished) -> None:
    live = finished.live
    index = live.index_of("one", 1)
    statement = BudgetStatement.of(
        policy_digest=live.policy.digest,
        window="w1",
        tenant="one",
        version=1,
        index_root=index.root,
        log_root=live.log.entries.head().root_hash,
        rows=index.count,
        uses=3,
        charges=finished.points,
        squared_norm=live.policy.squared_norm,
    )
    core.verify_budget(statement, finished.held[items.budget_name("one")])
    # Nobody asked the other tenant.
    assert items.budget_name("two") not in finished.held


def check_charges(finished: Finished, logged: Sequence[Entry]) -> None:
    live = finished.live
    index = live.index_of("one", 1)
    sums = core.running_sums(finished.points, list(range(len(logged))))
    stated: list[ChargeEntry] = []
    for entry, before in zip(logged, sums, strict=True):
        body, response = Charge.parse(entry.body), finished.response(entry.index)
        verify_key_opening(
            root=live.epochs.tree(1).commit().root,
            epoch=1,
            slot=body.slot,
            counter=body.counter,
            slots=live.policy.slots,
            queries=live.policy.queries_per_account,
            opening=response.key,
        )
        assert (body.threshold, body.charge) == (0, finished.points[32 * len(stated) :][:32])
        stated.append(
            ChargeEntry.of(
                policy_digest=live.policy.digest,
                window="w1",
                tenant="one",
                version=1,
                index_root=index.root,
                seed_root=live.epochs.tree(1).commit().root,
                activation_randomness=live.activation_randomness(body.activation),
                body=entry.body,
                log_index=entry.index,
                query=np.array(response.embedding, dtype=np.int16),
                threshold=0,
                allowed=None,
                charged_before=before,
                charge=body.charge or b"",
            )
        )
    proofs = [finished.response(entry.index).proof for entry in logged]
    assert [bool(proof) for proof in proofs] == [False, True, False, True]
    for start in range(0, len(stated), GROUP):
        group = tuple(stated[start : start + GROUP])
        statement = ChargeStatement(3, index.commitments, group, live.policy.squared_norm)
        core.verify_charges(statement, proofs[start + GROUP - 1])


def check_replay(finished: Finished, file: GeneratedFile) -> None:
    """Recompute an answer from what is opened, as check 30 does."""
    live, body = finished.live, file.public.query
    index, terms = live.index_of("one", 1), live.policy.generation
    place = file.public.charge.index
    replay, response = finished.replay(place), finished.response(place)
    positions = [row.position for row in replay.rows]
    assert core.commit_selection(positions, replay.blinding) == body.charge
    query = np.array(response.embedding, dtype=np.int64)
    scores = {}
    for row in replay.rows:
        vector = np.array([row.vector], dtype=index.rows.dtype)
        blinding = np.frombuffer(row.blinding, dtype=np.uint8).reshape(1, 32)
        assert core.commit_rows(vector, blinding) == part(index.commitments, row.position)
        scores[row.position] = int(np.array(row.vector[:-4], dtype=np.int64) @ query)
    best = sorted(scores, key=lambda at: (-scores[at], at))[: terms.answerer.slots]
    assert [row.position for row in replay.used] == sorted(best)
    texts = {}
    for used in replay.used:
        digest = content_digest(used.content or "", used.attributes)
        assert row_digest(used.salt, used.id, digest) == part(index.row_digests, used.position)
        texts[used.position] = used.content or ""

    class Said:
        def next_tokens(self, _: str, documents: Any, answer: Any) -> list[int | None]:
            votes = replay.votes[len(answer)]
            assert isinstance(votes, Votes)
            # The channel's own voters say the same to the same texts.
            assert [votes.public, *votes.voters] == first_tokens(_, _, documents, answer)  # type: ignore[arg-type]
            return [votes.public, *votes.voters]

    key = coin_key(finished, body, response)
    coins = KeyedCoins(key, drawn=len(body.sums))
    assert isinstance(replay.answer, GeneratedAnswer) and replay.salt_a is not None
    slots = [texts[at] for at in best] + [""] * (terms.answerer.slots - len(best))
    query_text = file.request.query
    found = token_mechanism(terms, terms.answerer).answer(query_text, slots, Said(), coins)
    assert (found.tokens, found.private) == (replay.answer.tokens, replay.answer.private)
    assert replay.answer == file.answer
    assert replay.answer.digest(replay.salt_a) == file.public.answered.generated_digest


def coin_key(finished: Finished, body: Charge, response: Response) -> bytes:
    return noise_key(
        response.key.key,
        window="w1",
        tenant="one",
        version=1,
        pseudonym=body.pseudonym,
        epoch=1,
        slot=body.slot,
        counter=body.counter,
        activation_randomness=finished.live.activation_randomness(body.activation),
        nonce=b"",
        tag=COIN_TAG,
    )


def check_once(finished: Finished) -> None:
    """What is stored is not made again: another proof of the same would be refused."""
    before = count(finished.scenario, tables.evidence)
    worker = finished.scenario.service.driver._challenges
    challenge = Challenge.parse(finished.held[items.CHALLENGE])
    worker.prepare(finished.live, worker.check(finished.live, challenge))
    assert count(finished.scenario, tables.evidence) == before == 4


def check_jobs(finished: Finished) -> None:
    """What leaves the process with a job holds no key, salt or text; blindings go by digest."""
    kinds = {work.BUDGET, work.CHARGES}
    jobs = [job for job in finished.jobs if job.kind in kinds]
    assert {job.kind for job in jobs} == kinds
    service = finished.scenario.service
    window, live = service.windows.get("w1"), finished.live
    secrets = [window.noise_seed, window.log_seed, window.pseudonym_key, QUESTION.encode()]
    with service.store.read() as connection:
        for entry in finished.logged:
            charge = charge_at(connection, "w1", entry.index)
            assert charge is not None
            body, opened = charge.body, charge.opened.openings
            tree = live.epochs.tree(body.epoch)
            secrets += [charge.blinding, tree.key(body.slot, body.counter)]
            secrets += [opened.salt_q, opened.salt_e, opened.salt_f, opened.salt_s]
    tasks = b"".join(job.task + job.name.encode() for job in jobs)
    # The points of the entries are there, so that this looks in the right place.
    assert finished.points in tasks
    for secret in secrets:
        assert secret not in tasks and secret.hex().encode() not in tasks


def check_intake(finished: Finished) -> None:
    """What the verifier's service takes of it, and what it does not."""
    client, index = finished.scenario.service.verifier, finished.logged[0].index
    for call, message in (
        ("challenge/budgets/one", finished.held[items.budget_name("one")]),
        (f"challenge/replays/{index}", finished.held[items.replay_name(index)]),
    ):
        assert put(client, call, message) == 204
        assert put(client, call, b"another") == 409
        # Longer than arguments and answers of the policy can be.
        assert put(client, call, b"[" + b"[]," * 4_000_000 + b"[]]") == 413
    assert put(client, "challenge/budgets/nobody", b"x") == 404
    assert put(client, "challenge/replays/0", b"x") == 404


def put(client: Any, call: str, message: bytes) -> int:
    try:
        client._send("PUT", f"/v1/windows/w1/{call}", message, kind="application/octet-stream")
    except VerifierRefused as error:
        return int(error.status)
    return 204
