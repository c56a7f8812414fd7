"""Everything of one account, for a reason that is kept: whole, nobody else's, and no secret."""

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from finished_windows import QUESTION, Finished
from generation_channel import QUESTION as IN_WORDS
from generation_channel import (
    ask,
    file_of,
    open_channel,
)
from ragaudit.encoding.errors import NotFound, RejectedError
from ragaudit.ledger.messages.accounts import PROVIDER, AccountRecords, Line, read_lines
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.ledger.messages.custody import EvidenceAccess
from ragaudit.ledger.messages.entries import Charge, Generated, Record, Void
from ragaudit.prover.command.cli import app
from ragaudit.prover.errors import UnknownAccount, UnknownWindow
from ragaudit.prover.lifecycle import retention
from ragaudit.prover.lifecycle.retention import Export, accesses_of
from ragaudit.prover.store import tables
from ragaudit.verifier.later_statements import Judged
from scenario import ProverScenario
from sqlalchemy import select
from typer.testing import CliRunner

pytestmark = ON_EACH_ENGINE

SAID = AccessBody("B. Ito", "request of the account")


def export(scenario: ProverScenario, account: str = "ada", *windows: str) -> list[Any]:
    file = io.BytesIO()
    writer(scenario).write(account, windows, SAID, file)
    file.seek(0)
    return list(read_lines(file))


def writer(scenario: ProverScenario) -> Export:
    service = scenario.service
    return Export(service.store, service.retention.key, scenario.clock)


def accesses(scenario: ProverScenario, window: str = "w1") -> list[EvidenceAccess]:
    with scenario.service.store.read() as connection:
        return accesses_of(connection, window)


def of(found: list[Any], kind: str) -> list[Any]:
    return [each.value for each in found if isinstance(each, Line) and each.kind == kind]


def kinds(found: list[Any]) -> list[str]:
    return [each["kind"] for each in of(found, "entry")]


def test_records_questions_and_answers(finished: Finished) -> None:
    scenario = finished.scenario
    found = export(scenario)
    pseudonym = found[0].pseudonym
    assert found[0] == AccountRecords(PROVIDER, "provider.example", "w1", pseudonym)
    assert kinds(found) == ["registration", "record"]
    record = Record.parse(bytes.fromhex(of(found, "entry")[1]["body"]))
    assert record.pseudonym == pseudonym
    (opened,) = of(found, "opened")
    file = json.loads(finished.get(f"/v1/receipts/{finished.receipt}", "ada").content)
    assert opened["request"] == file["request"] and QUESTION in opened["request"]["query"]
    assert opened["openings"] == {
        name: value for name, value in file["private"].items() if name in opened["openings"]
    }
    assert [row["content"] for row in opened["answer"]["rows"]] == [
        document["content"] for document in file["answer"]["documents"]
    ]
    assert not of(found, "promise")
    # An anchored account's record has the promise and the nonce that it revealed.
    bob = export(scenario, "bob")
    assert kinds(bob) == ["registration", "record"] and bob[0].pseudonym != pseudonym
    (promise,) = of(bob, "promise")
    assert promise["nonce"] == scenario.chains["bob"].nonce(0).hex()
    assert kinds(export(scenario, "cyd")) == ["registration"]


def test_questions_answered_in_words(channel: ProverScenario) -> None:
    open_channel(channel)
    first = file_of(ask(channel))
    assert channel.post(
        "/v1/windows/w1/query", "ada", {"query": "bread", "top_k": 2, "filter": ""}
    ).status_code == 200  # fmt: skip
    assert ask(channel, "bob", counter=0).status_code == 200
    found = export(channel)
    assert sorted(kinds(found)) == ["answer", "charge", "record", "registration"]
    (opened,) = [each for each in of(found, "opened") if each["index"] == first.public.charge.index]
    assert opened["request"]["query"] == IN_WORDS
    assert opened["answer"] == first.answer.to_json()
    answer = next(each for each in of(found, "entry") if each["kind"] == "answer")
    body = Generated.parse(bytes.fromhex(answer["body"]))
    assert first.answer.digest(bytes.fromhex(opened["salt"])) == body.generated_digest
    # One that leaves later is not there yet: when it was ready may tell of rows.
    channel.clock.now = first.public.issued - 1000
    early = export(channel)
    assert sorted(kinds(early)) == ["charge", "record", "registration"]
    assert all(each["salt"] is None for each in of(early, "opened"))
    # Bob's nonce never came: his charge is his, and after the window its void, too.
    bob = export(channel, "bob")
    assert kinds(bob) == ["registration", "charge"]
    charge = Charge.parse(bytes.fromhex(of(bob, "entry")[1]["body"]))
    assert charge.pseudonym == bob[0].pseudonym
    assert [each["nonce"] for each in of(bob, "promise")] == [None]
    channel.service.driver.checkpoint("w1")
    channel.clock.at(channel.policy().end)
    for _ in range(3):
        channel.service.driver.step("w1")
    assert kinds(export(channel, "bob")) == ["registration", "charge", Void.KIND]


def test_no_secret_is_in_it(channel: ProverScenario) -> None:
    open_channel(channel)
    assert file_of(ask(channel)).public.issued
    assert channel.ask().status_code in {200, 400, 422}
    file = io.BytesIO()
    writer(channel).write("ada", (), SAID, file)
    with channel.service.store.read() as connection:
        secrets = [
            *connection.execute(select(tables.charge.c.blinding)).scalars(),
            *connection.execute(select(tables.window.c.noise_seed, tables.window.c.log_seed)).one(),
            *connection.execute(select(tables.window.c.pseudonym_key)).scalars(),
        ]
    assert len(secrets) == 4
    assert not [each for each in secrets if bytes(each).hex().encode() in file.getvalue()]
    for name in (b"rows_charged", b"selected", b"selection_blinding", b"made_of", b"votes"):
        assert name not in file.getvalue()


def test_who_and_why_is_durable_before_the_first_line(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = finished.scenario

    def dies(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(AccountRecords, "lines", dies)
        with pytest.raises(KeyboardInterrupt):
            export(scenario)
    head, *_ = export(scenario)
    scenario.clock.now -= 60_000  # a clock that was set back shortens no list
    export(scenario, "bob")
    found = accesses(scenario)
    assert [each.what for each in found[:2]] == [f"account/{head.pseudonym.hex()}"] * 2
    assert {(each.reader, each.reason) for each in found} == {(SAID.reader, SAID.reason)}
    key = finished.retention.key.public
    EvidenceAccess.verify_all(found, key, origin="provider.example/ragaudit/w1")
    with pytest.raises(RejectedError):
        EvidenceAccess.verify_all(found[1:], key, origin="provider.example/ragaudit/w1")
    status = scenario.api.get("/v1/operator/windows/w1", headers=scenario.operator).json()
    assert status["accesses"] == len(found) == 3


def test_what_is_not_there_opens_nothing(finished: Finished) -> None:
    scenario = finished.scenario
    with pytest.raises(UnknownAccount, match="no such account"):
        export(scenario, "dan")
    with pytest.raises(UnknownWindow, match="no such window"):
        export(scenario, "ada", "w1", "w9")
    scenario.service.accounts.add("one", "dan")
    with pytest.raises(NotFound, match="no records of dan"):
        export(scenario, "dan", "w1")
    with pytest.raises(NotFound, match="no window has records of dan"):
        export(scenario, "dan")
    assert accesses(scenario) == []


def test_what_was_deleted_is_exported_no_more_and_its_list_stays(
    finished: Finished, tmp_path: Path
) -> None:
    scenario = finished.scenario
    export(scenario)
    finished.delete()
    with pytest.raises(NotFound, match="deleted at"):
        export(scenario, "ada", "w1")
    with pytest.raises(NotFound, match="no window has records of ada"):
        export(scenario)
    key = scenario.service.verifier.keys().verdict
    judged = Judged.read(finished.bundle(tmp_path), key)
    judged.verify_accesses(accesses(scenario), 1, by_provider=True)
    with pytest.raises(RejectedError):
        judged.verify_accesses(accesses(scenario), 1)
    with pytest.raises(RejectedError, match="1 accesses"):
        judged.verify_accesses(accesses(scenario), 2, by_provider=True)


def test_a_deletion_meanwhile_leaves_half_a_file_that_says_so(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, file = finished.scenario, io.BytesIO()
    honest = Export._rows

    def deleted(self: Export, *arguments: Any) -> Any:
        finished.delete()
        return honest(self, *arguments)

    monkeypatch.setattr(Export, "_rows", deleted)
    with pytest.raises(NotFound, match="deleted at"):
        writer(scenario).write("ada", (), SAID, file)


def test_rows_are_read_some_at_a_time(
    scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.open()
    for number in range(5):
        assert scenario.ask(query=f"bread {number}").status_code == 200
    assert scenario.ask("cyd").status_code == 200
    whole = export(scenario)
    assert kinds(whole) == ["registration", *["record"] * 5]
    reads, store = 0, scenario.service.store
    honest = store.read

    def counted() -> Any:
        nonlocal reads
        reads += 1
        return honest()

    monkeypatch.setattr(retention, "_BATCH", 2)
    assert export(scenario) == whole
    found, *_ = writer(scenario)._found("ada", ())
    monkeypatch.setattr(store, "read", counted)
    lines = writer(scenario).lines("w1", found[1])
    taken = []
    for line in lines:
        taken.append((line.kind, reads))
        if line.kind == "opened":
            # Of the k-th record no more was read than the pairs up to its own.
            records = sum(kind == "opened" for kind, _ in taken)
            assert reads == 1 + (records + 1) // 2


def test_the_commands(finished: Finished, tmp_path: Path) -> None:
    scenario, file = finished.scenario, tmp_path / "ada.jsonl"
    settings = ("--settings", str(scenario.folder / "prover/prover.yaml"))

    def run(*words: object, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["account", *map(str, words), *settings])
        assert done.exit_code == code, (done.exit_code, done.output, done.exception)
        return done.output

    said = ("--reader", "B. Ito", "--reason", "complaint 17")
    out = ("--output", file)
    assert json.loads(run("export", "ada", *said, *out, "--json"))["windows"] == ["w1"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with file.open("rb") as opened:
        head, *found = read_lines(opened)
    assert isinstance(head, AccountRecords)
    assert kinds(found) == ["registration", "record"]
    listed = json.loads(run("accesses", "w1", "--json"))
    assert [EvidenceAccess.from_json(each) for each in listed] == accesses(scenario)
    assert "complaint 17" in run("accesses", "w1")

    new = tmp_path / "new.jsonl"
    assert "the file exists" in run("export", "ada", *said, *out, code=4)
    blank = ("--reader", "B. Ito", "--reason", " ", "--output", new)
    assert "nothing is said" in run("export", "ada", *blank, code=2)
    run("export", "ada", "--reader", "B. Ito", "--output", new, code=2)
    to = (*said, "--output", new)
    assert "no such account" in run("export", "dan", *to, code=4)
    assert "no such window" in run("export", "ada", "--window", "w9", *to, code=4)
    assert "no such window" in run("accesses", "w9", code=4)
    missing = ("--output", tmp_path / "none" / "ada.jsonl")
    assert "cannot be written" in run("export", "ada", *said, *missing, code=2)
    assert not new.exists() and len(accesses(scenario)) == 1
