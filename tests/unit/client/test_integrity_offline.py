"""`ragaudit receipt check` of a window without noise, by files alone and with the real group."""

import json
import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit import client as exported
from ragaudit.client import StateConflict, errors, offline
from ragaudit.client.blocking import Client
from ragaudit.client.checks import Facts
from ragaudit.client.cli import app
from ragaudit.client.errors import AnswerRejected
from ragaudit.client.window import Pins, Window
from ragaudit.encoding import canonical_json
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import b64_encode
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Asked
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.challenge import Activation, Countersignature
from ragaudit.ledger.messages.disputes import Dispute
from ragaudit.ledger.messages.entries import Version
from ragaudit.ledger.messages.receipts import PublicReceipt, ReceiptFile
from ragaudit.ledger.messages.shown import ShownOpening, ShownWindow, VersionEntry
from typer.testing import CliRunner

UNDONE = {"inclusion", "body", "embedder"}  # of a file without proof and account


@lru_cache(maxsize=1)
def played() -> tuple[IntegrityWindow, ShownWindow]:
    window = IntegrityWindow()
    window.play()
    _, salt, body = window.entries[0]
    versions = [
        VersionEntry(index, salt, body, window.proof_for(index).encode().decode())
        for index, (kind, salt, body) in enumerate(window.entries)
        if kind == Version.KIND
    ]
    return window, ShownWindow(
        window=window.window,
        state="closed",
        policy=window.policy,
        policy_digest=window.policy.digest,
        countersignature=Countersignature.parse(window.countersignature()),
        opening=ShownOpening(salt, body),
        embedder=window.model.manifest(),
        activations=tuple(
            Activation.from_json(window.activation(a, size))
            for a, size in enumerate(window.covered_sizes(), start=1)
        ),
        versions=tuple(versions),
        epochs=() if window.policy.epochs else None,
    )


def shown(tmp_path: Path) -> Path:
    path = tmp_path / "window.json"
    path.write_bytes(played()[1].encode())
    return path


def opened(tmp_path: Path) -> Window:
    window, _ = played()
    return offline.read_window(shown(tmp_path), Pins(verifier=window.verifier_key.public))


def completed(asked: Asked) -> ReceiptFile:
    window, _ = played()
    file = window.receipt_file(asked)
    public = file.public.with_proofs(window.proof_for(asked.index))
    return ReceiptFile(file.request, file.answer, public, file.private)


def undone(file: ReceiptFile | dict[str, Any], window: Window) -> set[str]:
    value = file if isinstance(file, dict) else file.to_json()
    return {step.name for step in offline.check(value, window, Facts()).not_done}


@pytest.mark.parametrize("name", ["sentence-transformers", "openai-compatible", "unknown"])
def test_an_embedder_that_is_not_here_leaves_its_step_undone(tmp_path: Path, name: str) -> None:
    """A folder or an address is needed for it: a receipt is checked without."""
    window = opened(tmp_path)
    manifest = replace(window.shown.embedder, name=name)
    other = replace(window, shown=replace(window.shown, embedder=manifest))
    assert offline.load_embedder(other) is None


def test_every_receipt_of_the_window_passes(tmp_path: Path) -> None:
    window, _ = played()
    view = opened(tmp_path)
    assert [version.version for _, version in view.view.versions] == [2]
    for asked in window.asked:
        assert undone(window.receipt_file(asked), view) == UNDONE
        assert undone(completed(asked), view) == UNDONE - {"inclusion"}


def test_the_command_takes_files_of_version_2(tmp_path: Path) -> None:
    window, _ = played()
    tied = next(asked for asked in window.asked if len(asked.selected) > asked.record.top_k)
    file = tmp_path / "receipt.json"
    file.write_bytes(completed(tied).encode())
    key = window.verifier_key.public.raw.hex()
    command = ["check", str(file), "--window", str(shown(tmp_path)), "--verifier-key", key]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert (done.exit_code, json.loads(done.stdout)["result"]) == (0, "accepted"), done.output


def test_the_command_says_how_many_documents_were_withdrawn(tmp_path: Path) -> None:
    window, _ = played()
    key = window.verifier_key.public.raw.hex()
    counts = set()
    for asked in window.asked:
        file = tmp_path / "receipt.json"
        file.write_bytes(completed(asked).encode())
        command = ["check", str(file), "--window", str(shown(tmp_path)), "--verifier-key", key]
        found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["withdrawn"]
        # By the number of documents that the answer lacks.
        due = min(asked.record.top_k, len(asked.selected))
        assert found == due - len(completed(asked).answer.documents)
        said = CliRunner().invoke(app, command).output
        assert (f"{found} withdrawn" in said) == (found > 0)
        counts.add(found)
    assert len(counts) > 1


def signed_anew(value: dict[str, Any]) -> dict[str, Any]:
    """The file with parts as they are now, which the provider signs."""
    window, _ = played()
    halves = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
    public = PublicReceipt.from_json(value["public"])
    signed = PublicReceipt(origin=public.origin, index=public.index, salt=public.salt,
        body=public.body, issued=public.issued,
        answer_digest=structure("answer", bytes.fromhex(value["private"]["salt_r"]), *halves),
    ).signed(window.provider_key)  # fmt: skip
    return {**value, "public": signed.to_json()}


def test_a_tied_row_cannot_take_anothers_place(tmp_path: Path) -> None:
    window, _ = played()
    tied = next(asked for asked in window.asked if len(asked.selected) > asked.record.top_k)
    value = window.receipt_file(tied).to_json()
    ties = value["private"]["ties"]
    for proof in (bytes(32) * 13, b"\x01" + bytes(31)):
        forged = {**ties, "proof": b64_encode(proof)}
        changed = {**value, "private": {**value["private"], "ties": forged}}
        with pytest.raises(ReceiptRejected, match="step 8"):
            undone(signed_anew(changed), opened(tmp_path))
    without = {**value, "private": {**value["private"], "ties": None}}
    with pytest.raises(ReceiptRejected, match="step 7"):
        undone(signed_anew(without), opened(tmp_path))


def test_a_version_that_the_log_does_not_hold_is_none(tmp_path: Path) -> None:
    window, reply = played()
    later = next(asked for asked in window.asked if asked.record.version == 2)
    entry = reply.versions[0]
    for index in (entry.index + 1, 0):
        value = reply.to_json()
        value["versions"] = [{**value["versions"][0], "index": index}]
        path = tmp_path / "false.json"
        path.write_bytes(canonical_json.dumps(value))
        with pytest.raises(RagauditError, match=r"leaf|integer"):
            offline.read_window(path, Pins(verifier=window.verifier_key.public))
    value = reply.to_json()
    value["versions"] = []
    path = tmp_path / "old.json"
    path.write_bytes(canonical_json.dumps(value))
    old = offline.read_window(path, Pins(verifier=window.verifier_key.public))
    with pytest.raises(ReceiptRejected, match="version"):
        undone(window.receipt_file(later), old)


# An account that its provider registers: the client holds the dispute key that it gave.

MINE, ANOTHER = (PrivateKey.from_seed(bytes([n]) * 32) for n in (1, 2))


def registered_with(provider: Any, key: PrivateKey | None) -> None:
    """The provider registers the account as plain, as a window with register_accounts does."""
    provider._register({"anchor": None, "dispute_key": key and key.public.raw.hex()})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "dispute.key"
    path.write_text(MINE.seed().hex() + "\n")
    return path


@pytest.fixture
def plain(options: Callable[..., Any], file: Path) -> Callable[..., Client]:
    """Makes clients of a plain account that hold the key."""

    def client(**changes: Any) -> Client:
        given = {"state_dir": None, "anchored": False, "dispute_key": file, **changes}
        return Client("http://provider", "secret-api-key", **options() | given)

    return client


@pytest.mark.parametrize("kept", [False, True])
def test_it_disputes(
    plain: Callable[..., Client], provider: Any, verifier: Any, tmp_path: Path, kept: bool
) -> None:
    registered_with(provider, MINE)
    state: dict[str, Any] = {"state_dir": tmp_path / "state"} if kept else {}
    for attempt in range(2):  # a client of a later process, too
        with plain(**state) as client:
            receipt = client.search(f"what is it, {attempt}?").receipt
            client.dispute(receipt)
            client.submit([receipt])
    assert [call for call, _ in verifier.received] == ["disputes", "statements", "receipts"] * 2
    body = verifier.received[0][1]
    Dispute.from_json(body["disputes"][0]).verify(MINE.public)
    assert body["registration"]["proof"].startswith("c2sp.org/tlog-proof@v1")


@pytest.mark.parametrize(
    ("key", "what"),
    [(None, "without a dispute key: nobody could dispute"), (ANOTHER, "with another dispute key")],
)
def test_a_provider_that_ignores_the_key_is_asked_nothing(
    plain: Callable[..., Client], provider: Any, key: PrivateKey | None, what: str
) -> None:
    registered_with(provider, key)
    with plain() as client, pytest.raises(StateConflict, match=what):
        client.search("what is it?")
    assert not {"query", "promise", "registration"} & set(provider.calls)


def test_nor_one_that_shows_the_key_and_logged_another(
    plain: Callable[..., Client], provider: Any
) -> None:
    registered_with(provider, ANOTHER)
    provider.interfere = lambda call, reply: (
        {**reply, "dispute_key": MINE.public.raw.hex()} if call == "account" else reply
    )
    with plain() as client, pytest.raises(AnswerRejected) as caught:
        client.search("what is it?")
    assert caught.value.where == "registration, dispute_key"
    assert not {"query", "promise"} & set(provider.calls)


def test_who_holds_no_key_may_ask(plain: Callable[..., Client], provider: Any) -> None:
    registered_with(provider, MINE)
    with plain(dispute_key=None) as client:
        receipt = client.search("what is it?").receipt
        with pytest.raises(StateConflict, match="no dispute key"):
            client.dispute(receipt)


def test_a_chain_is_not_registered_twice(
    plain: Callable[..., Client], provider: Any, tmp_path: Path
) -> None:
    """A plain registration with the right key is none of an anchored account."""
    registered_with(provider, MINE)
    with plain(state_dir=tmp_path, anchored=True) as client:  # noqa: SIM117
        with pytest.raises(StateConflict, match="the account is registered"):
            client.search("what is it?")


def test_another_key_than_the_state_directorys(
    plain: Callable[..., Client], provider: Any, tmp_path: Path
) -> None:
    with plain(state_dir=tmp_path / "state", dispute_key=ANOTHER) as client:
        assert client.register().dispute_key == ANOTHER.public.raw
    with plain(state_dir=tmp_path / "state") as client:  # noqa: SIM117
        with pytest.raises(StateConflict, match="it holds another dispute key"):
            client.register()


def test_a_file_that_holds_no_key(plain: Callable[..., Client], file: Path) -> None:
    file.write_text("xy" * 32)
    with pytest.raises(MalformedError, match="no key in it") as caught:
        plain()
    assert "xy" not in str(caught.value)
    with pytest.raises(MalformedError, match="no such file"):
        plain(dispute_key=file.with_name("missing"))


class TestCommands:
    @pytest.fixture(autouse=True)
    def network(
        self, provider: Any, intercept: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every connection ends at the fake provider, which keeps one key of the account."""
        monkeypatch.setenv("RAGAUDIT_API_KEY", provider.api_key)
        self.kept: list[Any] = []

        def handle(request: httpx.Request) -> Any:
            if request.url.path == "/v1/dispute-key":
                self.kept.append((request.headers["authorization"], json.loads(request.content)))
                return httpx.Response(200, json={})
            if request.url.path == "/v1/windows":
                return httpx.Response(200, json=[provider._window()])
            return provider.handle(request)

        intercept(handle)

    def keep(self, file: Path, provider: Any) -> tuple[int, str]:
        pin = provider.policy.keys.verifier.raw.hex()
        options = ["--prover", "http://provider", "--verifier-key", pin]
        result = CliRunner().invoke(app, ["key", str(file), *options])
        return result.exit_code, result.stdout

    def test_the_key_is_given_and_looked_for(self, file: Path, provider: Any) -> None:
        status, said = self.keep(file, provider)
        assert (status, "w1: not registered yet" in said) == (0, True), said
        public = MINE.public.raw.hex()
        assert self.kept == [("Bearer secret-api-key", {"dispute_key": public})]
        registered_with(provider, MINE)
        provider.proofs_ready = False
        status, said = self.keep(file, provider)
        assert status == 0 and "no cosigned checkpoint" in said, said
        provider.proofs_ready = True
        assert self.keep(file, provider) == (
            0, f"the provider keeps {public}\nw1: registered with this key\n",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("key", "what"), [(None, "WITHOUT a dispute key"), (ANOTHER, "ANOTHER dispute key")]
    )
    def test_that_it_was_ignored_shows(
        self, file: Path, provider: Any, key: PrivateKey | None, what: str
    ) -> None:
        registered_with(provider, key)
        status, said = self.keep(file, provider)
        assert status == 5 and what in said, said
        # What is shown beside the log's entry counts for nothing.
        provider.interfere = lambda call, reply: (
            {**reply, "dispute_key": MINE.public.raw.hex()} if call == "account" else reply
        )
        assert self.keep(file, provider)[0] == 1

    @pytest.mark.parametrize("key", [None, MINE])
    def test_a_receipt_that_nobody_can_dispute(
        self, plain: Callable[..., Client], provider: Any, tmp_path: Path, key: PrivateKey | None
    ) -> None:
        registered_with(provider, key)
        with plain(dispute_key=key) as client:
            receipt = client.search("what is it?").receipt
            receipt.complete()
            account = client.account()
        for name, value in (("answer", receipt.file), ("account", account)):
            (tmp_path / f"{name}.json").write_bytes(dumps(value.to_json()))
        options = ["--prover", "http://provider", "--allow-unpinned"]
        known = ["--account", str(tmp_path / "account.json")]
        for more, disputable in (([], None), (known, key is not None)):
            call = ["check", str(tmp_path / "answer.json"), *options, *more]
            result = CliRunner().invoke(app, [*call, "--json"])
            assert (result.exit_code, json.loads(result.stdout)["disputable"]) == (0, disputable)
            warned = "nobody could dispute" in CliRunner().invoke(app, call).stdout
            assert warned is (disputable is False)


# The examples of docs/tenant-developer.md run as they stand; its commands: tests/e2e.

CHAPTER = Path(__file__).parents[3] / "docs" / "tenant-developer.md"
TEXT = CHAPTER.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
KEYS = ["secret-api-key", "another-key"]


@pytest.fixture
def second(provider: Any) -> Any:
    """Another account: alone with its provider, as far as it can see."""
    return type(provider)(now=provider.now, api_key=KEYS[1])


@pytest.fixture
def services(provider: Any, second: Any, verifier: Any, intercept: Callable[..., None]) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.host == "regulator.example":
            service = verifier
        else:
            service = second if KEYS[1] in request.headers["authorization"] else provider
        response: httpx.Response = service.handle(request)
        return response

    intercept(handle)


def run(example: str, provider: Any, folder: Path) -> None:
    names = {
        "api_key": KEYS[0],
        "verifier_key": provider.policy.keys.verifier.raw.hex(),
        "state_dir": folder,
    }
    exec(compile(example, str(CHAPTER), "exec"), names)


@pytest.mark.usefixtures("services")
def test_the_example_of_one_account_runs(
    provider: Any, verifier: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(EXAMPLES[0], provider, tmp_path)
    output = capsys.readouterr().out
    assert "slot 0 of tenant acme" in output
    assert "1 accepted, 5 queries left" in output
    assert [call for call, _ in verifier.received] == ["statements", "receipts"]


@pytest.mark.usefixtures("services")
def test_the_example_of_several_accounts_runs(
    provider: Any,
    verifier: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(EXAMPLES) == 1
    for name, value in {
        "PROVER": "https://rag.example", "VERIFIER": "https://regulator.example", "WINDOW": "w1",
        "VERIFIER_KEY": provider.policy.keys.verifier.raw.hex(), "API_KEYS": " ".join(KEYS),
        "STATE": str(tmp_path),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    runpy.run_path(str(CHAPTER.parents[1] / "examples" / "pool.py"), run_name="__main__")
    assert "4 documents" in capsys.readouterr().out


def test_every_exception_is_exported_and_explained() -> None:
    for name in errors.__all__:
        assert name in exported.__all__
        assert f"| `{name}` |" in TEXT
