"""An account that its provider registers: the client holds the dispute key that it gave."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client import StateConflict
from ragaudit.client.blocking import Client
from ragaudit.client.cli import app
from ragaudit.client.errors import AnswerRejected
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.disputes import Dispute
from typer.testing import CliRunner

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
