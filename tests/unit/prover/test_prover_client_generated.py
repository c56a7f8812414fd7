"""The client library and a real prover: questions in words, checked, claimed, resumed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from generation_channel import (
    QUESTION,
    count,
)
from generation_clients import Crash, Open, crash
from ragaudit.cli.main import app
from ragaudit.client import (
    AnswerRejected,
    GeneratedResult,
    PromiseUnanswered,
    ProviderRefusal,
    StateConflict,
)
from ragaudit.client.asking import Asking
from ragaudit.client.state import StateDirectory
from ragaudit.ledger.messages.entries import Generated
from ragaudit.ledger.messages.receipts import GeneratedAnswer, GeneratedFile
from ragaudit.prover.answering.generation import Generation
from ragaudit.prover.sequencer import Lookup
from ragaudit.prover.store import tables
from ragaudit.prover.window.records import Place, Repeated, find_identical_each
from ragaudit.serving.generators import GeneratorUnavailable, NextTokens
from scenario import ProverScenario
from typer.testing import CliRunner


@pytest.mark.parametrize("account", ["ada", "bob"])
def test_an_answer_in_words_whose_receipt_was_checked(
    opened: Open, channel: ProverScenario, account: str, tmp_path: Path
) -> None:
    client = opened(account)
    result = client.ask(QUESTION)
    receipt = result.receipt
    assert result.text == receipt.file.answer.text
    assert result.remaining == channel.policy().queries_per_account - 1
    assert [each.name for each in receipt.not_done] == ["inclusion", "embedder"]
    assert (receipt.path is None) == (account == "ada")
    # One counter over both kinds of query.
    assert client.search("bread", top_k=2).receipt.counter == 1
    channel.service.driver.checkpoint("w1")
    client.complete(receipt)
    assert receipt.completed
    assert [each.name for each in receipt.not_done] == ["embedder"]


def test_a_repeated_question_has_its_answer_again_and_costs_nothing(opened: Open) -> None:
    """The provider repeats what it answered within `retry_seconds`; that accuses nobody."""
    client = opened("ada")
    first, between = client.search("bread", top_k=2), client.ask(QUESTION)
    again = client.search("bread", top_k=2)
    assert again.receipt.file == first.receipt.file
    assert (again.receipt.counter, between.receipt.counter) == (0, 1)
    assert (again.missed, again.remaining) == (0, between.remaining)
    assert client.ask(QUESTION).receipt.file == between.receipt.file


def test_an_answer_that_is_repeated_for_too_long_is_refused(
    opened: Open, channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider could serve what its index held an hour ago, under a receipt that was accepted."""

    def ever(asked: Sequence[Repeated]) -> dict[Repeated, Place]:
        since_ever = {each: (*each[:3], 0) for each in asked}
        found = find_identical_each(channel.service.store, list(since_ever.values()))
        return {each: found[of] for each, of in since_ever.items() if of in found}

    client = opened("ada")
    client.search("bread", top_k=2)
    monkeypatch.setattr(channel.service.retrieval, "_identical", Lookup(ever))
    channel.clock.now += 1000 * (60 + 4)  # retry_seconds, and less than the skew
    assert client.search("bread", top_k=2).receipt.counter == 0
    channel.clock.now += 1000
    with pytest.raises(AnswerRejected, match="made at"):
        client.search("bread", top_k=2)


def test_files_are_checked_on_the_command_line(
    opened: Open, channel: ProverScenario, tmp_path: Path
) -> None:
    receipt = opened().ask(QUESTION).receipt
    assert receipt.path is not None
    window = tmp_path / "window.json"
    window.write_bytes(channel.api.get("/v1/windows/w1").content)
    account = tmp_path / "account.json"
    headers = channel.headers("bob")
    account.write_bytes(channel.api.get("/v1/windows/w1/account", headers=headers).content)
    promise = receipt.path.parent.parent / "promises" / "0.json"
    common = ["--window", str(window), "--allow-unpinned"]
    more = ["--account", str(account), "--promise", str(promise)]
    found = CliRunner().invoke(app, ["receipt", "check", str(receipt.path), *common, *more])
    assert found.exit_code == 0, found.output
    wrong = GeneratedFile.parse(receipt.path.read_bytes()).to_json()
    wrong["answer"]["text"] = "another answer"
    other = tmp_path / "wrong.json"
    other.write_bytes(GeneratedFile.from_json(wrong).encode())
    found = CliRunner().invoke(app, ["receipt", "check", str(other), *common])
    assert found.exit_code != 0
    assert "answer digest" in found.output


@pytest.mark.parametrize("moment", ["after the promise", "before the answer"])
def test_a_crash_is_survived_with_the_same_promise(
    opened: Open, channel: ProverScenario, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    with monkeypatch.context() as patch:
        name = "_begin" if moment == "after the promise" else "keep_answer"
        patch.setattr(Asking if name == "_begin" else StateDirectory, name, crash)
        with pytest.raises(Crash):
            first.ask(QUESTION)
    first.close()
    resumed = opened().resume()
    assert isinstance(resumed, GeneratedResult)
    assert resumed.receipt.file.request.query == QUESTION
    assert count(channel, tables.charge) == 1


def test_a_promise_that_never_arrived_uses_up_its_counter(
    opened: Open, channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    with monkeypatch.context() as patch:
        patch.setattr(StateDirectory, "keep_promise", crash)
        with pytest.raises(Crash):
            first.ask(QUESTION)
    first.close()
    policy = channel.policy()
    channel.clock.now += 1000 * policy.clock_skew_seconds + 1
    second = opened()
    with pytest.raises(StateConflict, match="is pending") as pending:
        second.ask(QUESTION)
    assert pending.value.next_instant is not None
    channel.clock.at(pending.value.next_instant)
    with pytest.raises(ProviderRefusal, match="no cosigned checkpoint yet") as early:
        second.ask(QUESTION)
    assert (early.value.status, early.value.retry_after) == (425, 1)
    channel.service.driver.checkpoint("w1")
    assert second.ask(QUESTION).receipt.counter == 1
    assert second.ask(f"{QUESTION} 2").receipt.counter == 2


def test_an_answer_that_is_not_the_promised_one_is_claimed(
    opened: Open, channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = opened()
    channel.service.driver.step("w1")
    honest = Generation._file

    def lie(self: Generation, *arguments: Any) -> GeneratedFile:
        file = honest(self, *arguments)
        assert isinstance(file.answer, GeneratedAnswer)
        answer = GeneratedAnswer("another", file.answer.tokens, file.answer.private)
        return GeneratedFile(file.request, answer, file.public, file.private)

    with monkeypatch.context() as patch:
        patch.setattr(Generation, "_file", lie)
        with pytest.raises(AnswerRejected, match="answer digest") as rejected:
            client.ask(QUESTION)
    assert rejected.value.claimed
    assert rejected.value.evidence is not None
    # The answer is still due, and it is the same one.
    assert isinstance(client.resume(), GeneratedResult)


def test_a_revealed_question_without_an_answer_is_claimed_and_answered_at_the_end(
    opened: Open, channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = opened()
    channel.service.driver.step("w1")

    def fail(*_: Any) -> Any:
        raise GeneratorUnavailable("no model now")

    with monkeypatch.context() as patch:
        patch.setattr(NextTokens, "next_tokens", fail)
        with pytest.raises(PromiseUnanswered) as unanswered:
            client.ask(QUESTION)
        assert unanswered.value.claimed
        # Nothing else is asked before.
        with pytest.raises(PromiseUnanswered):
            client.search("bread", top_k=2)
    channel.service.driver.checkpoint("w1")
    channel.hand_over()
    assert count(channel, tables.generated) == 1
    with channel.service.store.read() as connection:
        bodies = connection.execute(tables.entry.select()).all()
    answers = [Generated.parse(each.body) for each in bodies if each.kind == Generated.KIND]
    assert len(answers) == 1
    assert answers[0].nonce is not None


def test_an_answer_is_disputed_and_the_arbiter_sees_that_of_a_sampled_charge(
    opened: Open, channel: ProverScenario
) -> None:
    client = opened()
    receipt = client.ask(QUESTION).receipt
    client.dispute(receipt)
    channel.hand_over()
    channel.draw()
    # Every charge is proven, so that the verifier has the coins of each, and must not see the file.
    assert client.settle(receipt) == {"sampled": True, "step": None}
