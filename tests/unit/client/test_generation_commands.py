"""`ragaudit receipt` with generated answers: completed, submitted, proven missing; step 11."""

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from generation_scene import (
    ANSWERED,
    CHARGED,
    SIZE,
    GenerationScene,
    generation_scene,
    log_of,
    signed,
)
from ragaudit.client import blocking, checks, offline
from ragaudit.client.checks import Facts
from ragaudit.client.cli import app
from ragaudit.client.log_commands import PublishedLog, of_record, read_checkpoint
from ragaudit.client.verifier import Holder
from ragaudit.client.window import Window
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import (
    MalformedError,
    RefusedError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, Note, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.disputes import Dispute, file_digest
from ragaudit.ledger.messages.receipt_check import StepResult
from ragaudit.ledger.messages.receipts import GeneratedFile, digest_of
from receipt_scene import COSIGNER, LOG, OPERATIONS, PROVIDER, key
from typer.testing import CliRunner, Result

RUNNER = CliRunner()
UNPINNED = ("--allow-unpinned", "--json")
FURTHER = SigningKey("third.example/cosigner", COSIGNATURE_V1, key(40))
TRUST = f"witness third {FURTHER.verifier_key}\nquorum third\n"
VERIFIER_PATH = "/v1/windows/w1"


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> GenerationScene:
    """The window of a question that was answered by keywords, whoever asks for it."""
    made = generation_scene()
    target: Any = SimpleNamespace(name="w1", view=made.view)

    def load(*_arguments: object) -> Window:
        window: Window = target
        return window

    monkeypatch.setattr(offline.Source, "of_receipt", load)
    return made


class Spoken:
    """A service that answers as it is told, by path, and remembers what it was given."""

    def __init__(self, replies: dict[str, Any]) -> None:
        self.replies = replies
        self.given: list[tuple[str, Any]] = []

    async def request(self, _method: str, path: str, body: Any = None) -> Any:
        self.given.append((path, body))
        if path not in self.replies:
            raise RefusedError("nothing there")
        return self.replies[path]

    async def get(self, path: str) -> Any:
        return await self.request("GET", path)

    async def post(self, path: str, body: Any, *, repeatable: bool) -> Any:
        assert repeatable
        return await self.request("POST", path, body)

    def value(self, _path: str, data: Any) -> Any:
        return data

    get_text = get


def speak(monkeypatch: pytest.MonkeyPatch, replies: dict[str, Any]) -> Spoken:
    service = Spoken(replies)
    monkeypatch.setattr(blocking, "call", lambda _url, work: asyncio.run(work(service)))
    return service


@pytest.fixture
def proofs(scene: GenerationScene, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the provider has of proofs, by path."""
    shown = {proof_at(entry.index): entry.proof for _, entry in scene.file().public.entries}
    return speak(monkeypatch, shown).replies


def proof_at(index: int) -> str:
    return f"/v1/windows/w1/receipts/{index}/proof"


def written(path: Path, scene: GenerationScene, proven: tuple[bool, bool]) -> Path:
    path.write_bytes(replace(scene, proven=proven).file().encode())
    return path


def completed(path: Path, *options: str) -> Result:
    return RUNNER.invoke(app, ["complete", str(path), "--prover", "http://p", *UNPINNED, *options])


@pytest.mark.parametrize("proven", [(False, False), (True, False), (False, True)])
def test_both_proofs_of_an_answer_are_added_to_its_file(
    scene: GenerationScene, proofs: dict[str, Any], proven: tuple[bool, bool], tmp_path: Path
) -> None:
    path = written(tmp_path / "answer.json", scene, proven)
    result = completed(path)
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"completed": 1})
    file = GeneratedFile.parse(path.read_bytes())
    assert file == scene.file()
    assert [step.status for step in scene.check(file=file)] == ["done"] * 7
    # There is nothing left to do, and proofs with as many lines are no better ones.
    for again in ((), ("--again",)):
        assert json.loads(completed(path, *again).stdout) == {"completed": 0}


def test_while_a_proof_is_outstanding_the_file_stays_as_it_is(
    scene: GenerationScene, proofs: dict[str, Any], tmp_path: Path
) -> None:
    path = written(tmp_path / "answer.json", scene, (False, False))
    before = path.read_bytes()
    del proofs[proof_at(ANSWERED)]
    assert completed(path).exit_code == 4
    assert path.read_bytes() == before


def test_a_false_proof_is_not_added(
    scene: GenerationScene, proofs: dict[str, Any], tmp_path: Path
) -> None:
    path = written(tmp_path / "answer.json", scene, (False, False))
    before = path.read_bytes()
    other = replace(scene, nonce=bytes(32)).file().public.answer
    proofs[proof_at(ANSWERED)] = str(other.proof)
    result = completed(path)
    assert (result.exit_code, "inclusion" in result.stdout) == (1, True)
    assert path.read_bytes() == before


class Published:
    """A published log that is this tree."""

    def __init__(self, tree: MemoryTree) -> None:
        self.tree = tree

    def checkpoint(self) -> bytes:
        return signed(self.tree).encode()

    def hashes(self, size: int) -> MemoryTree:
        assert size == self.tree.size
        return self.tree


def proven_missing(
    scene: GenerationScene, without: int | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Result, Path]:
    """Prove from a log that has the entries of the scene but for one."""
    leaves = {
        entry.index: entry.leaf_data(kind)
        for kind, entry in scene.receipt().entries if entry.index != without
    }  # fmt: skip
    published = Published(log_of(leaves))
    monkeypatch.setattr(PublishedLog, "at", lambda _where: published)
    path, out = written(folder / "answer.json", scene, (False, False)), folder / "missing.json"
    arguments = ["prove-missing", str(path), "--log", "any", "-o", str(out), *UNPINNED]
    return RUNNER.invoke(app, arguments), out


@pytest.mark.parametrize("index", [3, 5])
def test_an_entry_that_the_log_lacks_is_a_proof_of_its_own(
    scene: GenerationScene, index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, out = proven_missing(scene, index, tmp_path, monkeypatch)
    assert result.exit_code == 0, result.output
    shown = {"index": index, "size": SIZE, "shown": "another leaf"}
    assert json.loads(result.stdout) == {"origin": scene.view.policy.origin, **shown}
    # Question and answer stay with the account.
    for secret in (b"what is it", b"mirazo"):
        assert secret not in out.read_bytes()
    policy = tmp_path / "policy.json"
    policy.write_bytes(scene.view.policy.canonical)
    arguments = ["verify-missing", str(out), "--policy", str(policy)]
    verified = RUNNER.invoke(app, arguments)
    kind = {3: "charge", 5: "answer"}[index]
    assert verified.exit_code == 0, verified.output
    assert f"signed a receipt for the {kind} entry {index} of" in verified.stdout


def test_entries_that_are_logged_are_not_proven_missing(
    scene: GenerationScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, out = proven_missing(scene, None, tmp_path, monkeypatch)
    assert (result.exit_code, out.exists()) == (4, False)
    assert "the entry is in the log" in result.stdout


def test_public_halves_of_both_channels_are_submitted_together(
    scene: GenerationScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public part goes, and nothing of question or answer."""
    path = f"{VERIFIER_PATH}/receipts?provider=provider.example"
    verifier = speak(monkeypatch, {path: {"accepted": 2, "known": 0}})
    whole = written(tmp_path / "answer.json", scene, (True, True))
    half = tmp_path / "half.json"
    half.write_bytes(scene.receipt().encode())
    arguments = ["submit", str(whole), str(half), "--verifier", "http://v", "--json"]
    result = RUNNER.invoke(app, arguments)
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"accepted": 2, "known": 0})
    ((_, body),) = verifier.given
    assert body["receipts"] == [scene.file().public.to_json(), scene.receipt().to_json()]
    assert "answers/*.json" in RUNNER.invoke(app, ["submit", "--help"]).stdout.replace("\n", "")


def test_it_is_disputed_and_settled_as_an_answer_of_documents_is(
    scene: GenerationScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account: Any = SimpleNamespace(pseudonym=scene.file().public.pseudonym)
    monkeypatch.setattr(offline, "read_holder", lambda *_: Holder(key(9), account, None))
    disputes, of = f"{VERIFIER_PATH}/disputes", "?provider=provider.example"
    replies = {
        f"{disputes}{of}": {},
        f"{disputes}/{CHARGED}{of}": {"sampled": False, "step": None},
        f"{disputes}/{CHARGED}/file{of}": {"sampled": False, "step": 4},
    }
    verifier = speak(monkeypatch, replies)
    path = written(tmp_path / "answer.json", scene, (True, True))
    result = RUNNER.invoke(app, ["dispute", str(path), "--verifier", "http://v"])
    assert (result.exit_code, result.stdout) == (0, f"entry {CHARGED} is disputed\n")
    ((_, body),) = verifier.given
    due = Dispute.issue(
        key(9), pseudonym=account.pseudonym, receipt_file=scene.file().to_json()
    ).to_json()
    assert body["disputes"] == [due]
    result = RUNNER.invoke(app, ["settle", str(path), "--verifier", "http://v"])
    assert (result.exit_code, result.stdout) == (0, "upheld: step 4 fails\n")


def test_the_quorum_is_that_of_both_proofs(scene: GenerationScene, tmp_path: Path) -> None:
    trust = tmp_path / "trust"
    vkeys = LOG.verifier_key, COSIGNER.verifier_key
    trust.write_text(f"log {vkeys[0]}\nwitness w {vkeys[1]}\nquorum w\n")
    path = written(tmp_path / "answer.json", scene, (True, True))
    arguments = ["quorum", str(path), "--trust", str(trust), "--json"]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    # One of them without the cosigner's line is one without the quorum.
    whole = json.loads(path.read_bytes())
    proof = whole["public"]["charge"]["proof"]
    whole["public"]["charge"]["proof"] = proof[: proof.rstrip("\n").rindex("\n") + 1]
    path.write_bytes(canonical_json.dumps(whole))
    assert RUNNER.invoke(app, arguments).exit_code == 5
    # The entries are in this log, and the receipt says that they are in another one.
    whole = scene.file().to_json()
    path.write_bytes(canonical_json.dumps({**whole, "public": {**whole["public"], "origin": "x"}}))
    refused = RUNNER.invoke(app, arguments)
    assert (refused.exit_code, "of another log" in refused.stdout) == (1, True)
    written(path, scene, (False, True))
    assert RUNNER.invoke(app, arguments).exit_code == 3


def test_what_is_stamped_is_the_checkpoint_of_the_answer(
    scene: GenerationScene, tmp_path: Path
) -> None:
    path = written(tmp_path / "answer.json", scene, (True, True))
    assert read_checkpoint(path).head.size == SIZE
    written(path, scene, (True, False))
    with pytest.raises(UnavailableError, match="outstanding"):
        read_checkpoint(path)


def test_a_dispute_names_charge_and_file_whatever_proofs_there_are(scene: GenerationScene) -> None:
    file = scene.file()
    made = Dispute.issue(key(9), pseudonym=file.public.pseudonym, receipt_file=file.to_json())
    assert (made.index, made.answer_digest) == (CHARGED, file.public.answer_digest)
    bare = replace(file, public=file.public.with_proofs(None, None))
    assert file_digest(bare.to_json()) == file_digest(file.to_json()) == made.file_digest
    # Without proofs it is the form that the specification has.
    packed = enc("ragaudit/v1/receipt/file", canonical_json.dumps(bare.to_json()))
    assert made.file_digest == hashlib.sha256(packed).digest()


def test_another_form_under_the_providers_signature_is_a_false_answer(
    scene: GenerationScene,
) -> None:
    """Not a bad file: the account has something to dispute."""
    value = scene.file().to_json()
    value["answer"] = {**value["answer"], "more": 1}
    window: Any = SimpleNamespace(name="w1", view=scene.view, pinned=True, shown=None)
    with pytest.raises(MalformedError, match="more"):
        offline.check(value, window, Facts())
    parts = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
    digest = digest_of((parts[0], parts[1], parts[2]), scene.private.salt_a)
    signed = replace(scene.file().public, answer_digest=digest).signed(PROVIDER)
    with pytest.raises(ReceiptRejected, match="more") as caught:
        offline.check({**value, "public": signed.to_json()}, window, Facts())
    assert caught.value.where.startswith("step 4 ")


def test_no_account_index_counts_an_answer_in_words(scene: GenerationScene, tmp_path: Path) -> None:
    path = written(tmp_path / "answer.json", scene, (True, True))
    with pytest.raises(UnsupportedError, match="alone an account index counts"):
        of_record(path)
    # A file that calls itself one of a record, around such a half, is none either.
    value = {**scene.file().to_json(), "format": "ragaudit/v1/receipt"}
    path.write_bytes(canonical_json.dumps(value))
    with pytest.raises(UnsupportedError, match="alone an account index counts"):
        of_record(path)


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scene's sketch is a toy's."""
    monkeypatch.setattr(checks, "CoreOperations", lambda: OPERATIONS)


def cosigned(scene: GenerationScene, *times: int | None) -> GeneratedFile:
    """The file, charge and answer proven under a note with a further line of that time."""
    file = scene.file()
    found: list[TlogProof] = []
    for text, time in zip(file.public.proofs, times, strict=True):
        assert text is not None
        proof = TlogProof.parse(text.encode())
        note = parse_note(proof.checkpoint)
        more = [] if time is None else [cosign(note.text, FURTHER, time)]
        found.append(replace(proof, checkpoint=note.with_signatures(more).encode()))
    return replace(file, public=file.public.with_proofs(*found))


def steps_of(scene: GenerationScene, file: GeneratedFile) -> list[StepResult]:
    window: Any = SimpleNamespace(name="w1", view=scene.view, pinned=True, shown=None)
    return list(offline.check(file.to_json(), window, Facts()).checks)


@pytest.fixture(params=["required", "reported"])
def demand(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_quorum_stands_behind_both_from_the_later_time_on(demand: str) -> None:
    scene = generation_scene(cosigners=(demand, TRUST))
    last = steps_of(scene, cosigned(scene, 1300, 1250))[-1]
    assert (last.number, last.name, last.status) == (11, "cosigners", "done")
    assert last.detail.endswith("since 1970-01-01T00:21:40Z"), last.detail


@pytest.mark.parametrize("times", [(None, None), (1300, None), (None, 1300)])
def test_without_it_behind_one_of_them_nobody_is_accused(
    demand: str, times: tuple[int | None, int | None]
) -> None:
    scene = generation_scene(cosigners=(demand, TRUST))
    last = steps_of(scene, cosigned(scene, *times))[-1]
    due = "not done" if demand == "required" else "done"
    assert (last.number, last.status) == (11, due)
    assert "fetched later" in last.detail


def test_while_a_proof_is_outstanding_it_is_not_done(demand: str) -> None:
    scene = generation_scene(cosigners=(demand, TRUST))
    last = steps_of(scene, replace(scene, proven=(True, False)).file())[-1]
    assert (last.number, last.status) == (11, "not done")


def test_a_false_line_is_rejected(demand: str) -> None:
    scene = generation_scene(cosigners=(demand, TRUST))
    honest = cosigned(scene, 1300, 1300)
    proof = TlogProof.parse(str(honest.public.answer.proof).encode())
    note = parse_note(proof.checkpoint)
    other = cosign(f"{scene.view.policy.origin}\n9\n", FURTHER, 1300)
    lines = (*note.signatures[:-1], other)
    false = replace(proof, checkpoint=Note(note.text, lines).encode())
    charge = TlogProof.parse(str(honest.public.charge.proof).encode())
    with pytest.raises(RejectedError, match="cosign") as caught:
        steps_of(scene, replace(honest, public=honest.public.with_proofs(charge, false)))
    assert caught.value.where.startswith("step 11")


def test_a_policy_that_names_nobody_has_no_such_step() -> None:
    scene = generation_scene()
    assert [step.number for step in steps_of(scene, scene.file())] == list(range(8))
