"""Confidential evidence over HTTP: nobody opens it unseen, and an account's part is whole."""

import io
import json
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import pytest
from procedure_cases import use_cached_table
from ragaudit.lab.scenario.policy import COUNTERSIGNED
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.accounts import (
    VERIFIER,
    AccountRecords,
    Line,
    read_lines,
)
from ragaudit.ledger.messages.custody import EvidenceAccess
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.handover import Entry, read_handover
from ragaudit.verifier import accounts, keys
from ragaudit.verifier.bundle import read_archive
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.service import remote
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.evidence import stored
from ragaudit.verifier.service.remote import Remote
from service_audit import decide
from service_window import ServiceWindow
from typer.testing import CliRunner
from verifier_service_harness import VerifierScenario, problem_of

SAID = {"reader": "A. Ito", "reason": "complaint 17"}
Judged = tuple[VerifierScenario, ServiceWindow]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """An honest window with its verdict; tests add accesses to it."""
    use_cached_table()
    folder = tmp_path_factory.mktemp("verifier")
    with VerifierScenario(folder, None, Clock(1000 * (COUNTERSIGNED - 60))).running() as scenario:
        window = ServiceWindow(scenario)
        window.play()
        window.submit()
        window.hand_over()
        window.reach_sampling()
        window.respond()
        decide(scenario, window)
        yield scenario, window


def token(scenario: VerifierScenario) -> str:
    return keys.read_token(scenario.settings.secrets / keys.TOKEN)


def post(judged: Judged, path: str, body: object = None) -> Any:
    scenario, window = judged
    return scenario.client.post(
        f"/v1/windows/{window.window}/{path}",
        headers={"Authorization": f"Bearer {token(scenario)}"},
        json=SAID if body is None else body,
    )


def accesses(judged: Judged) -> list[EvidenceAccess]:
    scenario, window = judged
    answer = scenario.client.get(
        f"/v1/windows/{window.window}/accesses",
        headers={"Authorization": f"Bearer {token(scenario)}"},
    )
    assert answer.status_code == 200, answer.text
    return [EvidenceAccess.from_json(each) for each in answer.json()]


def counted(judged: Judged) -> int:
    scenario, window = judged
    found = scenario.client.get(f"/v1/windows/{window.window}").json()["counts"]["accesses"]
    assert isinstance(found, int)
    return found


def records(judged: Judged) -> dict[str, list[int]]:
    """Indices of the records of each account, by pseudonym, as the provider logged them."""
    found: dict[str, list[int]] = {}
    for record in judged[1].logged():
        found.setdefault(record.pseudonym.hex(), []).append(record.index)
    return found


def test_opening_is_recorded_signed_and_counted(judged: Judged) -> None:
    scenario, window = judged
    before = accesses(judged)
    assert post(judged, "bundle/confidential").status_code == 200
    after = accesses(judged)
    assert after[:-1] == before
    assert (after[-1].what, after[-1].reader, after[-1].reason) == ("bundle", *SAID.values())
    assert after[-1].time == scenario.service.database.now()
    origin = window.origin
    EvidenceAccess.verify_all(after, scenario.keys.statement.public, origin=origin)
    assert counted(judged) == len(after)


@pytest.mark.parametrize(
    "body", [{}, {"reader": "A. Ito"}, {**SAID, "reason": " "}, {**SAID, "reader": ""}, [], "x"]
)
@pytest.mark.parametrize("path", ["bundle/confidential", "accounts/" + "ab" * 32])
def test_without_a_reason_nothing_is_opened(judged: Judged, path: str, body: object) -> None:
    before = counted(judged)
    problem_of(post(judged, path, body), 400, "malformed-request")
    assert counted(judged) == before


def test_getting_the_bundle_opens_nothing(judged: Judged) -> None:
    scenario, window = judged
    path = f"/v1/windows/{window.window}/bundle/confidential"
    headers = {"Authorization": f"Bearer {token(scenario)}"}
    assert scenario.client.get(path, headers=headers).status_code == 405


def test_accesses_are_no_evidence(judged: Judged) -> None:
    first = post(judged, "bundle/confidential").content
    assert first == post(judged, "bundle/confidential").content


def test_an_accounts_part_is_whole_and_nobody_elses(judged: Judged) -> None:
    owned = records(judged)
    assert len(owned) > 1
    items = {}
    for pseudonym, indices in owned.items():
        answer = post(judged, f"accounts/{pseudonym}")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/jsonl"
        head, *rest = read_lines(answer.content.splitlines(keepends=True))
        found = [each for each in rest if isinstance(each, Line)]
        assert head == AccountRecords(
            VERIFIER, judged[1].policy.provider, judged[1].window, bytes.fromhex(pseudonym)
        )
        entries = [each.value for each in found if each.kind == "entry"]
        registration, *logged = entries
        assert registration["kind"] == "registration"
        assert [record["index"] for record in logged] == indices
        bodies = [Record.parse(bytes.fromhex(record["body"])) for record in logged]
        assert {body.pseudonym.hex() for body in bodies} == {pseudonym}
        assert all(record["sketch"] and record["salt_s"] for record in logged)
        receipts = {each.value["index"] for each in found if each.kind == "receipt"}
        assert receipts <= {*indices}
        items.update({each.value["name"]: each.value["digest"] for each in found
                      if each.kind == "item"})  # fmt: skip
        assert accesses(judged)[-1].what == f"account/{pseudonym}"
    archive = read_archive(io.BytesIO(post(judged, "bundle/confidential").content))
    names = [name for name in archive.evidence if name.startswith("confidential/responses/")]
    # Named, and not shown: whoever has an answer must not be given the key of its noise.
    assert items == {name: archive.digests[name] for name in names} and items


def test_an_account_is_read_a_line_at_a_time(
    judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, window = judged
    whole = stored(scenario.service.database, Origin(window.origin))
    pseudonym = window.logged()[0].pseudonym
    taken, honest = 0, read_handover

    def counting(file: BinaryIO) -> Iterator[Entry]:
        nonlocal taken
        for entry in honest(file):
            taken += 1
            yield entry

    monkeypatch.setattr(accounts, "read_handover", counting)
    lines = accounts.account_records(whole, "p.example", window.window, pseudonym)
    assert taken == 0  # its registration was found, which comes first
    found = read_lines(lines)
    while not (isinstance(line := next(found), Line) and line.value["kind"] == Record.KIND):
        assert taken == 0
    assert 0 < taken < len(window.logged())
    list(found)
    assert taken >= len(window.logged())


def test_an_account_that_nobody_knows_is_not_found(judged: Judged) -> None:
    before = counted(judged)
    problem_of(post(judged, "accounts/" + "ab" * 32), 404, "not-found")
    problem_of(post(judged, "accounts/AB"), 400, "malformed-request")
    assert counted(judged) == before


class Here:
    """The command's service, in this process."""

    def __init__(self, judged: Judged) -> None:
        self.scenario = judged[0]

    def handle(self, request: httpx.Request) -> httpx.Response:
        answer = self.scenario.client.request(
            request.method,
            request.url.raw_path.decode(),
            headers=dict(request.headers),
            content=request.read(),
        )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@pytest.fixture
def run(judged: Judged, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    transport = httpx.MockTransport(Here(judged).handle)
    monkeypatch.setattr(remote, "Remote", partial(Remote, transport=transport))
    secret = tmp_path / "token"
    secret.write_text(token(judged[0]))
    secret.chmod(0o600)

    def invoke(name: str, *words: object, code: int = 0) -> str:
        options = ["--url", "http://verifier.example", "--token-file", str(secret)]
        shown = [name, judged[1].window, *map(str, words), *options]
        result = CliRunner().invoke(app, ["evidence", *shown])
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return result.output

    return invoke


def test_the_commands(judged: Judged, run: Any, tmp_path: Path) -> None:
    said = ("--reader", "B. Ito", "--reason", "request of the account")
    whole, part = tmp_path / "all.zip", tmp_path / "account.jsonl"
    run("open", *said, "--output", whole)
    assert read_archive(io.BytesIO(whole.read_bytes())).part == "all"
    assert stat.S_IMODE(whole.stat().st_mode) == 0o600
    pseudonym = judged[1].logged()[0].pseudonym.hex()
    run("account", pseudonym, *said, "--output", part)
    with part.open("rb") as file:
        head = next(read_lines(file))
    assert isinstance(head, AccountRecords) and head.pseudonym.hex() == pseudonym
    assert stat.S_IMODE(part.stat().st_mode) == 0o600
    lines = run("accesses").splitlines()
    assert lines[-1].endswith(f"account/{pseudonym} B. Ito: request of the account")
    assert len(json.loads(run("accesses", "--json"))) == len(lines) == counted(judged)


def test_a_list_of_accesses_is_checked_offline(judged: Judged, run: Any, tmp_path: Path) -> None:
    scenario, window = judged
    for _ in range(2):
        post(judged, "bundle/confidential")
    listed, bundle = tmp_path / "accesses.json", tmp_path / "bundle.zip"
    listed.write_text(run("accesses", "--json"))
    public = scenario.client.get(f"/v1/windows/{window.window}/bundle")
    bundle.write_bytes(public.content)
    key, shown = scenario.keys.verdict.public.raw.hex(), counted(judged)

    def check(code: int, expected: int = shown) -> str:
        words = [str(listed), str(bundle), "--verdict-key", key, "--shown", str(expected)]
        done = CliRunner().invoke(app, ["evidence", "verify-accesses", *words])
        assert done.exit_code == code, done.output
        return done.output

    assert check(0).startswith(f"{shown} accesses")
    assert f"{shown + 1}" in check(1, shown + 1)
    whole = json.loads(listed.read_text())
    # One is taken out, where only the count tells, and where the next one does; one is changed.
    listed.write_text(json.dumps(whole[:-1]))
    check(1)
    listed.write_text(json.dumps([*whole[:-2], whole[-1]]))
    check(1, shown - 1)
    listed.write_text(json.dumps([{**whole[0], "reader": "nobody"}, *whole[1:]]))
    check(1)
    listed.write_text("{}")
    check(2)


def test_the_commands_open_nothing_that_they_cannot_write(
    judged: Judged, run: Any, tmp_path: Path
) -> None:
    said = ("--reader", "B. Ito", "--reason", "complaint 17")
    kept = tmp_path / "kept"
    kept.write_text("mine")
    before = counted(judged)
    assert "the file exists" in run("open", *said, "--output", kept, code=4)
    assert kept.read_text() == "mine"
    missing = tmp_path / "none" / "all.zip"
    assert "cannot be written" in run("open", *said, "--output", missing, code=2)
    blank = ("--reader", "B. Ito", "--reason", " ")
    assert "nothing is said" in run("open", *blank, "--output", tmp_path / "new", code=2)
    unknown = ("account", "ab" * 32, *said, "--output", tmp_path / "new")
    assert "no such account" in run(*unknown, code=4)
    assert not (tmp_path / "new").exists()
    assert counted(judged) == before


def test_a_part_that_breaks_off_is_not_kept(
    judged: Judged, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = AccountRecords.lines

    def broken(head: AccountRecords, found: Any) -> Iterator[bytes]:
        yield from list(honest(head, found))[:-1]

    monkeypatch.setattr(AccountRecords, "lines", broken)
    said, part = ("--reader", "B. Ito", "--reason", "complaint 17"), tmp_path / "account.jsonl"
    pseudonym = judged[1].logged()[0].pseudonym.hex()
    assert "cut off" in run("account", pseudonym, *said, "--output", part, code=2)
    assert not part.exists()
