"""`ragaudit receipt`: exit codes, one line per check, public parts only."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from ragaudit.client.blocking import Client
from ragaudit.client.cli import app
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.disputes import (
    Dispute,
    DisputeStatus,
    Finding,
    HolderStatement,
    file_digest,
)
from ragaudit.ledger.messages.receipts import PublicReceipt, ReceiptFile
from typer.testing import CliRunner


class Judge:
    """An arbiter that says what it is told to, signed."""

    def __init__(self) -> None:
        self.key = PrivateKey.from_seed(bytes([7]) * 32)  # that the policy names
        self.changes: dict[str, Any] = {}
        self.cases: list[Any] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/v1/findings")
        assert "authorization" not in request.headers
        case = json.loads(request.content)
        self.cases.append(case)
        public = {**case["file"]["public"], "proof": None}
        digests = {
            "answer_digest": bytes.fromhex(public["answer_digest"]),
            "file_digest": file_digest(case["file"]),
        }
        fields = {"origin": public["origin"], "index": public["index"], "step": 8, "time": 1}
        finding = Finding(**{**fields, **digests, **self.changes}).signed(self.key)
        return httpx.Response(200, json={"finding": finding.to_json(), "public": public})


RUNNER = CliRunner()
FURTHER = SigningKey("further.example", COSIGNATURE_V1, PrivateKey.from_seed(b"\x51" * 32))
UNPINNED = "--allow-unpinned"
ONLINE = ("--prover", "http://provider")
VERIFIER = ("--verifier", "http://verifier")


pytestmark = pytest.mark.usefixtures("network")


@pytest.fixture
def receipt(tmp_path: Path) -> Iterator[Path]:
    """A receipt file of an anchored account, completed."""
    with Client(
        "http://provider", "secret-api-key", window="w1", state_dir=tmp_path,
        verifier_url="http://verifier", allow_unpinned=True,
    ) as client:  # fmt: skip
        result = client.search("what is it?", 3)
        result.receipt.complete()
        assert result.receipt.path is not None
        yield result.receipt.path


def check(receipt: Path, *options: str) -> tuple[int, Any]:
    """Run the check, unpinned where no pin is among the options."""
    if not {"--verifier-key", "--policy"} & {*options}:
        options = (*options, UNPINNED)
    result = RUNNER.invoke(app, ["check", str(receipt), *options, "--json"])
    return result.exit_code, json.loads(result.stdout)


def rejected(receipt: Path, words: str, *options: str) -> None:
    code, report = check(receipt, *ONLINE, *options)
    assert (code, report["result"]) == (1, "rejected")
    assert words in report["error"]


def undone(report: Any) -> set[str]:
    return {each["name"] for each in report["checks"] if each["status"] == "not done"}


def test_an_honest_receipt_is_accepted(receipt: Path, provider: Any) -> None:
    key = provider.policy.keys.verifier.raw.hex()
    code, report = check(receipt, *ONLINE, "--verifier-key", key)
    assert (code, report["result"], len(report["checks"])) == (0, "accepted", 11)
    assert undone(report) == {"body", "embedder", "nonce"}


def test_a_check_wants_a_pin(receipt: Path) -> None:
    done = RUNNER.invoke(app, ["check", str(receipt), *ONLINE])
    assert done.exit_code == 2
    assert "nothing is pinned" in done.output and "--allow-unpinned" in done.output


def test_the_policy_is_a_pin_too(receipt: Path, provider: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_bytes(provider.policy.canonical + b"\n")
    code, report = check(receipt, *ONLINE, "--policy", str(policy))
    assert (code, report["checks"][0]["status"]) == (0, "done")
    policy.write_bytes(dumps({**provider.policy.to_json(), "sigma": "0.5"}))
    code, report = check(receipt, *ONLINE, "--policy", str(policy))
    # Another policy than the window's is no lie of anybody.
    assert (code, report["result"]) == (2, "not judged")
    assert "policy digest" in report["error"]


def test_strict_wants_every_check(
    receipt: Path, provider: Any, toy_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = receipt.parents[1]
    known = [*ONLINE, "--verifier-key", provider.policy.keys.verifier.raw.hex(), "--strict"]
    code, report = check(receipt, *known)
    assert (code, report["result"]) == (5, "accepted")
    known += ["--account", str(folder / "account.json")]
    known += ["--promise", str(folder / "promises" / receipt.name)]
    code, report = check(receipt, *known)
    assert (code, undone(report)) == (5, {"embedder"})
    monkeypatch.setattr("ragaudit.client.offline.load_embedder", lambda _window: toy_embedder)
    code, report = check(receipt, *known)
    assert code == 0
    assert {each["status"] for each in report["checks"]} == {"done"}


def test_another_accounts_receipt_is_rejected(receipt: Path, provider: Any) -> None:
    account = receipt.parents[1] / "account.json"
    account.write_bytes(dumps({**json.loads(account.read_bytes()), "slot": 1}))
    rejected(receipt, "slot", "--account", str(account))


def test_an_anchor_is_named_once(receipt: Path) -> None:
    account = str(receipt.parents[1] / "account.json")
    code, report = check(receipt, *ONLINE, "--account", account, "--anchor", "00" * 32)
    assert (code, report["result"]) == (2, "not judged")


def test_a_forged_receipt_is_rejected_with_its_step(receipt: Path) -> None:
    file = json.loads(receipt.read_bytes())
    file["answer"]["documents"][0]["content"] = "forged"
    receipt.write_bytes(dumps(file))
    rejected(receipt, "step 4")
    shown = RUNNER.invoke(app, ["check", str(receipt), UNPINNED, *ONLINE])
    assert shown.exit_code == 1 and "step 4" in shown.stderr


def test_a_table_is_printed_without_json(receipt: Path) -> None:
    shown = RUNNER.invoke(app, ["check", str(receipt), UNPINNED, *ONLINE])
    assert shown.exit_code == 0
    assert "commitments" in shown.stdout and "No check failed" in shown.stdout


def test_a_name_in_brackets_styles_nothing(receipt: Path) -> None:
    odd = receipt.rename(receipt.with_name("[green]r[x].json"))
    shown = RUNNER.invoke(app, ["check", str(odd), UNPINNED, *ONLINE])
    assert shown.exit_code == 0 and "[green]r[x].json" in shown.stdout.replace("\n", "")


@pytest.mark.parametrize("options", [[], [*ONLINE, "--window", "x"]])
def test_one_source_of_the_window_is_needed(receipt: Path, options: list[str]) -> None:
    code, report = check(receipt, *options)
    assert code == 2 and "--window or --prover" in report["error"]


def not_judged(path: Path, code: int, *options: str) -> str:
    """Run a check that judges nothing: no REJECTED anywhere, and the exit code of the fault."""
    options = options or ONLINE
    found, report = check(path, *options)
    assert (found, report["result"]) == (code, "not judged")
    shown = RUNNER.invoke(app, ["check", str(path), UNPINNED, *options])
    assert shown.exit_code == code
    assert "REJECTED" not in shown.output
    return str(report["error"])


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"not json", b"\xff", None])
def test_what_is_no_receipt_is_not_rejected(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "file.json"
    if content is not None:
        path.write_bytes(content)
    assert ("no such file" in not_judged(path, 2)) == (content is None)


def test_a_copy_that_was_formatted_anew_is_not_rejected(receipt: Path) -> None:
    receipt.write_text(json.dumps(json.loads(receipt.read_bytes()), indent=2))
    assert "as the service sent it" in not_judged(receipt, 2)


@pytest.mark.parametrize("signed", [False, True])
def test_an_answer_in_no_order_is_rejected_only_if_the_provider_signed_it(
    receipt: Path, provider: Any, signed: bool
) -> None:
    """The account broke the first file; the second one differs in who did it."""
    file = json.loads(receipt.read_bytes())
    file["answer"]["documents"].reverse()
    receipt.write_bytes(dumps(provider.signed_anew(file) if signed else file))
    if signed:
        rejected(receipt, "not rising")
    else:
        not_judged(receipt, 2)


def without_countersignature(_call: str, reply: Any) -> Any:
    """As it is while the verifier is away."""
    return {**reply, "countersignature": None}


@pytest.mark.parametrize(
    ("interfere", "code", "problem"),
    [
        (Mock(side_effect=httpx.ConnectError("nobody listens")), 3, "no reply"),
        (lambda *_: httpx.Response(404, json={"title": "Unknown window"}), 4, ""),
        (without_countersignature, 4, "not countersigned"),
    ],
    ids=["dead", "declines", "not countersigned"],
)
def test_a_service_without_the_window_rejects_nothing(
    receipt: Path, provider: Any, interfere: Any, code: int, problem: str
) -> None:
    provider.interfere = interfere
    assert problem in not_judged(receipt, code)


def test_another_file_than_a_window_is_not_rejected(receipt: Path) -> None:
    not_judged(receipt, 2, "--window", str(receipt))
    not_judged(receipt, 2, "--window", "absent.json")


def test_a_receipt_is_completed_in_its_file(
    opened: Callable[..., Client], provider: Any, tmp_path: Path
) -> None:
    with opened(anchored=False) as client:
        file = client.search("what is it?").receipt.file
    path = tmp_path / "answer.json"
    path.write_bytes(file.encode())
    arguments = ["complete", str(path), *ONLINE]
    provider.proofs_ready = False
    unpinned = RUNNER.invoke(app, arguments)
    assert (unpinned.exit_code, "nothing is pinned" in unpinned.output) == (2, True)
    arguments.append(UNPINNED)
    assert RUNNER.invoke(app, arguments).exit_code == 4
    provider.proofs_ready = True
    done = RUNNER.invoke(app, [*arguments, "--json"])
    assert json.loads(done.stdout) == {"completed": 1}
    code, report = check(path, *ONLINE)
    assert (code, report["checks"][2]["status"]) == (0, "done")
    assert "0 completed" in RUNNER.invoke(app, arguments).stdout
    assert ReceiptFile.parse(path.read_bytes()).answer == file.answer


def submitted(*arguments: str | Path) -> str:
    result = RUNNER.invoke(app, ["submit", *map(str, arguments), *VERIFIER])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_submit_sends_the_public_half_alone(receipt: Path, verifier: Any) -> None:
    assert json.loads(submitted(receipt, "--json")) == {"accepted": 1, "known": 0}
    public = json.loads(receipt.read_bytes())["public"]
    assert verifier.received == [("receipts", {"receipts": [public]})]


def test_a_public_half_alone_can_be_submitted(receipt: Path, verifier: Any, tmp_path: Path) -> None:
    half = tmp_path / "public.json"
    half.write_bytes(dumps(json.loads(receipt.read_bytes())["public"]))
    assert "1 accepted" in submitted(half)
    assert len(verifier.received) == 1


def test_submit_signs_for_the_accounts_own_receipts(
    receipt: Path, verifier: Any, tmp_path: Path
) -> None:
    public = json.loads(receipt.read_bytes())["public"]
    record = replace(PublicReceipt.from_json(public).query, pseudonym=bytes(32))
    foreign = tmp_path / "public.json"
    foreign.write_bytes(dumps({**public, "body": record.encode().hex()}))
    folder = receipt.parents[1]
    output = submitted(foreign, receipt, "--state", folder, "--json")
    assert json.loads(output) == {"accepted": 2, "known": 0}
    assert [call for call, _ in verifier.received] == ["statements", "receipts", "receipts"]
    _, signed, unsigned = (body for _, body in verifier.received)
    assert set(unsigned) == {"receipts"}
    assert signed["receipts"] == [public]
    holder = HolderStatement.from_json(signed["holder"])
    seed = json.loads((folder / "registration.json").read_bytes())["dispute_seed"]
    holder.verify(PrivateKey.from_seed(bytes.fromhex(seed)).public)
    holder.verify_documents([public])
    assert signed["registration"]["index"] == 1


def disputed(receipt: Path, *options: str) -> Any:
    return RUNNER.invoke(app, ["dispute", str(receipt), *VERIFIER, *options])


def test_a_dispute_names_the_file_by_digest(
    receipt: Path, verifier: Any, provider: Any, tmp_path: Path
) -> None:
    folder = receipt.parents[1]
    done = disputed(receipt, "--state", str(folder))
    assert done.exit_code == 0, done.output
    ((call, body),) = verifier.received
    made = Dispute.from_json(body["disputes"][0])
    assert (call, made.index) == ("disputes", 2)
    assert made.file_digest == file_digest(json.loads(receipt.read_bytes()))
    assert body["registration"]["index"] == 1
    assert "what is it" not in json.dumps(body)
    key = tmp_path / "dispute.key"
    key.write_text(json.loads((folder / "registration.json").read_bytes())["dispute_seed"] + "\n")
    options = ["--key", str(key), "--account", str(folder / "account.json")]
    assert disputed(receipt, *options).exit_code == 0
    assert verifier.received[1] == verifier.received[0]


def test_a_dispute_needs_the_key_of_the_registration(
    receipt: Path, verifier: Any, tmp_path: Path
) -> None:
    folder, key = receipt.parents[1], tmp_path / "other.key"
    key.write_text("07" * 32)
    account = str(folder / "account.json")
    for options in (
        [],
        ["--key", str(key)],
        ["--key", str(key), "--account", account],
        ["--key", account, "--account", account],
        ["--state", str(folder), "--key", str(key), "--account", account],
        ["--state", str(tmp_path)],
    ):
        done = disputed(receipt, *options)
        assert done.exit_code == 2, (options, done.output)
        assert "07" * 32 not in done.output
    assert verifier.received == []


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        ({"sampled": True, "step": None}, "take it to the arbiter"),
        ({"sampled": False, "step": 8}, "upheld: step 8"),
        ({"sampled": False, "step": 0}, "dismissed"),
    ],
)
def test_a_disputed_file_is_shown_unless_it_was_sampled(
    receipt: Path, verifier: Any, standing: dict[str, Any], said: str
) -> None:
    verifier.standing = standing
    arguments = ["settle", str(receipt), *VERIFIER]
    done = RUNNER.invoke(app, arguments)
    assert (done.exit_code, said in done.output) == (0, True), done.output
    assert bool(verifier.received) == (not standing["sampled"])
    assert json.loads(RUNNER.invoke(app, [*arguments, "--json"]).stdout) == standing


@pytest.fixture
def judge(provider: Any, verifier: Any, intercept: Callable[..., None]) -> Judge:
    """The arbiter of the provider's policy, at http://judge."""
    found = Judge()
    services = {"judge": found, "verifier": verifier, "provider": provider}
    intercept(lambda request: services[request.url.host].handle(request))
    return found


def settled(receipt: Path, *options: str) -> Any:
    arguments = ["settle", str(receipt), *VERIFIER, UNPINNED]
    arbiter = ["--arbiter", "http://judge", *ONLINE]
    return RUNNER.invoke(app, [*arguments, *arbiter, *options])


@pytest.mark.parametrize("before", [None, 0])
def test_a_sampled_file_goes_to_the_arbiter_and_its_finding_to_the_verifier(
    judge: Judge, receipt: Path, verifier: Any, before: int | None
) -> None:
    """Also where a dispute was dismissed: it may be about another file of the same query."""
    verifier.standing = DisputeStatus(sampled=True, step=before).to_json()
    done = settled(receipt)
    assert (done.exit_code, done.stdout) == (0, "upheld: step 8 fails\n"), done.output
    file = json.loads(receipt.read_bytes())
    assert [case["file"] for case in judge.cases] == [file]
    ((call, told),) = verifier.received
    assert (call, set(told)) == ("findings", {"finding", "public"})
    assert file["private"]["salt_r"] not in json.dumps(told)


def test_what_the_verifier_can_judge_does_not_go_to_the_arbiter(
    judge: Judge, receipt: Path, verifier: Any
) -> None:
    for standing in ({"sampled": False, "step": 0}, {"sampled": True, "step": 8}):
        verifier.standing = standing
        assert settled(receipt).exit_code == 0
    assert judge.cases == []


@pytest.mark.parametrize(
    "change",
    [{"file_digest": bytes(32)}, {"origin": "provider.example/ragaudit/w2"}, "another key"],
)
def test_what_is_no_finding_of_the_arbiter_is_not_passed_on(
    judge: Judge, receipt: Path, verifier: Any, change: Any
) -> None:
    verifier.standing = DisputeStatus(sampled=True, step=None).to_json()
    if change == "another key":
        judge.key = PrivateKey.generate()
    else:
        judge.changes = change
    assert settled(receipt).exit_code not in (0, 1)
    assert verifier.received == []


def lines(path: Path) -> list[str]:
    proof = ReceiptFile.parse(path.read_bytes()).public.proof
    note = parse_checkpoint(TlogProof.parse(str(proof).encode()).checkpoint).note
    return [line.name for line in note.signatures]


def completed(path: Path, *options: str) -> int:
    words = ["complete", str(path), "--prover", "http://provider", "--allow-unpinned", "--json"]
    result = RUNNER.invoke(app, [*words, *options])
    return int(json.loads(result.stdout)["completed"])


def test_more_cosignatures_replace_fewer_and_never_the_other_way(
    opened: Callable[..., Client], provider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(anchored=False) as client:
        file = client.search("what is it?").receipt.file
    path = tmp_path / "answer.json"
    path.write_bytes(file.encode())
    assert completed(path) == 1
    before = path.read_bytes()
    assert completed(path) == completed(path, "--again") == 0
    plain = provider.proof

    def cosigned(index: int) -> str:
        proof = TlogProof.parse(plain(index).encode())
        note = parse_checkpoint(proof.checkpoint).note
        more = note.with_signatures([cosign(note.text, FURTHER, 1_800_000_000)])
        return TlogProof(proof.index, proof.path, more.encode()).encode().decode()

    monkeypatch.setattr(provider, "proof", cosigned)
    assert completed(path) == 0
    assert path.read_bytes() == before
    assert completed(path, "--again") == 1
    assert lines(path)[-1] == FURTHER.name
    monkeypatch.setattr(provider, "proof", plain)
    assert completed(path, "--again") == 0
    assert lines(path)[-1] == FURTHER.name
