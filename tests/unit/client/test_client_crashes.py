"""The client after a crash, against a silent provider, and with another state directory."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client.asking import Asking
from ragaudit.client.blocking import Client
from ragaudit.client.errors import (
    AnswerRejected,
    PromiseUnanswered,
    ServiceUnreachable,
    StateConflict,
)
from ragaudit.client.results import SearchResult
from ragaudit.client.session import system_clock
from ragaudit.client.state import PendingPromise, StateDirectory, write_durably
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import UnavailableError
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.promises import Promise

Open = Callable[..., Client]


# Crashes


class Crash(BaseException):
    """The client's process ends here."""


def crash(*_: Any, **__: Any) -> Any:
    raise Crash


@pytest.mark.parametrize("moment", ["before the promise", "after the promise", "before the answer"])
def test_a_crash_is_survived_with_the_same_promise_and_nonce(
    opened: Open, provider: Any, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    first.search("question 0")
    with monkeypatch.context() as patch:
        if moment == "before the promise":
            patch.setattr(StateDirectory, "keep_promise", crash)
        elif moment == "after the promise":
            patch.setattr(Asking, "_begin", crash)
        else:
            patch.setattr(StateDirectory, "keep_answer", crash)
        with pytest.raises(Crash):
            first.search("question 1")
    first.close()
    promised = provider.pending[1].promise
    second = opened()
    resumed = second.resume()
    assert (resumed is None) == (moment == "before the promise")
    result = resumed or second.search("question 1")
    assert isinstance(result, SearchResult)
    assert result.receipt.counter == 1
    assert result.receipt.file.request.query == "question 1"
    assert result.receipt.file.public.query.promised() == promised.promised
    assert second.search("question 2").receipt.counter == 2
    assert provider.counter == 3


def test_search_finishes_the_pending_promise_first(
    opened: Open, provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    first.register()
    with monkeypatch.context() as patch:
        patch.setattr(Asking, "_begin", crash)
        with pytest.raises(Crash):
            first.search("question 0")
    first.close()
    second = opened()
    assert second.search("question 1").receipt.counter == 1
    assert [each.request.query for each in second.receipts()] == ["question 0", "question 1"]


def test_the_promise_is_durable_before_the_nonce_is_sent(opened: Open, provider: Any) -> None:
    client = opened()
    client.register()
    seen = []

    def look(call: str, reply: Any) -> Any:
        if call == "reveal":
            (path,) = client.asynchronous._session.state.directory.glob("promise.json")  # type: ignore[union-attr]
            seen.append(loads(path.read_bytes())["promise"])
        return reply

    provider.interfere = look
    client.search("what is it?")
    assert seen == [provider.pending[0].promise.to_json()]


def test_the_seed_is_durable_before_the_anchor_is_sent(
    opened: Open, provider: Any, tmp_path: Path
) -> None:
    seen: list[Path] = []

    def look(call: str, reply: Any) -> Any:
        if call == "registration":
            seen.extend((tmp_path / "state").rglob("registration.json"))
        return reply

    provider.interfere = look
    opened().register()
    assert len(seen) == 1


# Providers that do not answer


def silent(call_name: str) -> Callable[[str, Any], Any]:
    def interfere(call: str, reply: Any) -> Any:
        if call == call_name:
            raise httpx.ReadTimeout("no answer")
        return reply

    return interfere


def test_an_unanswered_promise_goes_to_the_verifier(
    opened: Open, provider: Any, verifier: Any
) -> None:
    client = opened()
    client.register()
    provider.interfere = silent("reveal")
    with pytest.raises(PromiseUnanswered, match="the verifier has the claim") as caught:
        client.search("what is it?")
    assert caught.value.claimed
    (call, claim), *_ = verifier.received
    assert call == "claims"
    assert Promise.from_json(claim["promise"]) == provider.pending[0].promise
    assert bytes.fromhex(claim["nonce"]) == provider.pending[0].nonce
    provider.interfere = lambda _call, reply: reply
    result = client.resume()
    assert result is not None
    assert result.receipt.file.request.query == "what is it?"


def test_a_refusal_after_the_nonce_is_a_claim_too(
    opened: Open, provider: Any, verifier: Any
) -> None:
    client = opened()
    client.register()
    closed = httpx.Response(409, json={"title": "Closed"})
    provider.interfere = lambda call, reply: closed if call == "reveal" else reply
    with pytest.raises(PromiseUnanswered):
        client.search("what is it?")
    assert verifier.received[0][0] == "claims"


def test_a_claim_that_nobody_takes_is_said_to_be_so(
    opened: Open, provider: Any, verifier: Any
) -> None:
    verifier.refuses = True
    client = opened()
    client.register()
    provider.interfere = silent("reveal")
    with pytest.raises(PromiseUnanswered, match="did not take the claim") as caught:
        client.search("what is it?")
    assert not caught.value.claimed


def test_a_registration_that_the_provider_kept_back_is_shown_with_the_claim(
    opened: Open, provider: Any, verifier: Any
) -> None:
    """Also when the provider says nothing more: the client keeps its registration."""
    client = opened()
    client.register()
    provider.interfere = silent("reveal")
    with pytest.raises(PromiseUnanswered, match="the verifier has the claim"):
        client.search("what is it?")
    calls = [call for call, _ in verifier.received]
    assert calls == ["claims"]
    shown = verifier.received[0][1]["registration"]
    assert set(shown) == {"index", "salt", "body", "proof"}
    assert Registration.parse(bytes.fromhex(shown["body"])).window == "w1"


def test_no_reply_to_a_plain_query_is_not_repeated(opened: Open, provider: Any) -> None:
    client = opened(anchored=False)
    client.register()
    provider.interfere = silent("query")
    with pytest.raises(ServiceUnreachable):
        client.search("what is it?")
    assert provider.calls.count("query") == 1


def test_a_proof_that_is_not_due_yet_is_no_rejection(opened: Open, provider: Any) -> None:
    receipt = opened().search("what is it?").receipt
    provider.proofs_ready = False
    with pytest.raises(ServiceUnreachable, match="no inclusion proof yet"):
        receipt.complete(timeout_seconds=0)


def test_an_overdue_proof_is_a_lie_only_if_the_record_is_under_a_cosigned_checkpoint(
    opened: Open, provider: Any, verifier: Any
) -> None:
    ahead = 0
    client = opened(clock=lambda: time.time_ns() // 10**6 + ahead)
    receipt = client.search("what is it?").receipt
    provider.proofs_ready = False
    ahead = 11_000
    with pytest.raises(ServiceUnreachable):  # the verifier has cosigned nothing yet
        receipt.complete(timeout_seconds=0)
    verifier.cosigned = provider.head()
    with pytest.raises(AnswerRejected, match="merge delay") as caught:
        receipt.complete(timeout_seconds=0)
    assert caught.value.evidence is not None
    verifier.refuses_all = True
    with pytest.raises(ServiceUnreachable):  # a verifier that is away is nobody's lie
        receipt.complete(timeout_seconds=0)


# State directories


def test_a_restored_directory_is_noticed(opened: Open, tmp_path: Path) -> None:
    import shutil

    client = opened()
    client.search("question 0")
    client.close()
    shutil.copytree(tmp_path / "state", tmp_path / "backup")
    client = opened()
    client.search("question 1")
    client.close()
    with pytest.raises(StateConflict, match="logged 2 records, this client 1"):
        opened(state_dir=tmp_path / "backup").search("question 1 again")


def test_another_directory_cannot_take_over(opened: Open, tmp_path: Path) -> None:
    opened().search("question 0")
    with pytest.raises(StateConflict, match="no keys for it"):
        opened(state_dir=tmp_path / "other").search("question 1")


def test_a_plain_account_cannot_become_anchored(opened: Open) -> None:
    opened(anchored=False).search("question 0")
    with pytest.raises(StateConflict, match="registered"):
        opened().search("question 1")


def test_an_anchored_account_cannot_become_plain(opened: Open) -> None:
    opened().search("question 0")
    with pytest.raises(StateConflict, match="registered with"):
        opened(anchored=False).search("question 1")


def test_answers_that_a_plain_client_missed_are_counted(opened: Open) -> None:
    one, two = opened(anchored=False), opened(anchored=False)
    assert one.search("question 0").missed == 0
    two.search("question 1")
    two.search("question 2")
    assert one.search("question 3").missed == 2


def test_an_answer_that_a_plain_client_had_is_no_false_one(
    options: Callable[..., dict[str, Any]], provider: Any, verifier: Any, tmp_path: Path
) -> None:
    """Also before it was started anew: a provider repeats an answer for a while (spec 8.6)."""
    replies: list[Any] = []

    def repeating(call: str, reply: Any) -> Any:
        replies.extend([reply] if call == "query" else [])
        return replies[0] if call == "query" else reply

    def plain(folder: Path | None) -> Client:
        given = options(
            state_dir=folder, anchored=True, clock=lambda: system_clock() + verifier.ahead
        )
        return Client("http://provider", provider.api_key, **{**given, "anchored": False})

    provider.interfere = repeating
    with plain(tmp_path / "plain") as client:
        first = client.search("what is it?").receipt
        assert client.search("what is it?").receipt.file == first.file
        first.complete()
    assert first.path is not None
    kept = first.path.read_bytes()
    verifier.ahead = 2_000  # and every clock but that of the first answer; less than the skew
    with plain(tmp_path / "plain") as client:
        assert client.search("what is it?").receipt.path == first.path
    # The receipt that is kept stays complete.
    assert first.path.read_bytes() == kept
    verifier.ahead = 60_000
    for folder in (
        None,
        tmp_path / "plain",
    ):  # this policy lets nobody repeat an answer for so long
        with plain(folder) as client, pytest.raises(AnswerRejected, match="made at"):
            client.search("what is it?")


# Client state survives crashes at any moment and is used by one client at a time.

PSEUDONYM = bytes(range(32))
PROMISE = PendingPromise(0, {"query": "q"}, {"body": "00"})


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    with closing(StateDirectory(tmp_path / "state")) as directory:
        yield directory


def reopened(state: StateDirectory) -> StateDirectory:
    state.close()
    return StateDirectory(state.directory)


def test_keys_are_kept_and_secret(state: StateDirectory) -> None:
    assert state.keys() is None
    keys = state.make_keys("p/ragaudit/w", PSEUDONYM, length=40)
    assert keys.seed is not None
    assert len(keys.seed) == 32
    secrets = (keys.seed, keys.dispute_key.seed())
    for secret in secrets:
        assert secret.hex() not in repr(keys)
        assert repr(secret) not in repr(keys)
    again = reopened(state)
    assert again.keys() == keys
    again.close()
    path = state.directory / "registration.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = loads(path.read_bytes())
    assert (kept["seed"], kept["dispute_seed"]) == tuple(each.hex() for each in secrets)


def test_a_plain_account_has_a_dispute_key_alone(state: StateDirectory) -> None:
    keys = state.make_keys("p/ragaudit/w", PSEUDONYM, length=0)
    assert keys.seed is None
    again = reopened(state)
    assert again.keys() == keys
    again.close()


def test_keys_are_never_replaced(state: StateDirectory) -> None:
    state.make_keys("p/ragaudit/w", PSEUDONYM, length=40)
    with pytest.raises(StateConflict, match="has keys already"):
        state.make_keys("p/ragaudit/w", PSEUDONYM, length=40)


def test_every_seed_is_fresh(tmp_path: Path) -> None:
    seeds = set()
    for number in range(5):
        state = StateDirectory(tmp_path / str(number))
        keys = state.make_keys("o", PSEUDONYM, length=3)
        seeds |= {keys.seed, keys.dispute_key.seed()}
        state.close()
    assert len(seeds) == 10


def test_promise_then_answer(state: StateDirectory) -> None:
    state.keep_promise(PROMISE)
    again = reopened(state)
    assert again.pending() == PROMISE
    again.keep_promise(PROMISE)  # the same once more is a retry
    path = again.keep_answer(0, b"receipt")
    assert path.read_bytes() == b"receipt"
    assert loads((state.directory / "promises" / "0.json").read_bytes()) == PROMISE.promise
    assert again.pending() is None
    assert again.next_counter() == 1
    again.close()


def test_at_most_one_promise(state: StateDirectory) -> None:
    state.keep_promise(PROMISE)
    with pytest.raises(StateConflict, match="awaits its answer"):
        state.keep_promise(PendingPromise(0, {"query": "other"}, {"body": "01"}))


def test_a_crash_between_answer_and_removal_changes_nothing(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.keep_promise(PROMISE)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        state.keep_answer(0, b"receipt")
    assert (state.directory / "promise.json").exists()
    again = reopened(state)
    assert again.pending() is None
    assert again.next_counter() == 1
    again.close()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_durably(path, b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail) if step == "fsync" else patch.setattr(
            Path, "replace", fail
        )
        with pytest.raises(UnavailableError, match="no space"):
            write_durably(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_the_file_and_its_folder_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_durably(tmp_path / "file", b"data")
    assert len(flushed) == 2
    assert flushed[0].startswith(str(tmp_path / ".file."))
    assert flushed[1] == str(tmp_path)


def test_one_client_at_a_time(state: StateDirectory) -> None:
    with pytest.raises(StateConflict, match="another client"):
        StateDirectory(state.directory)
    reopened(state).close()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format":"other"}', b"[1]", b'{"a": 1}'])
def test_damaged_files_are_refused(state: StateDirectory, content: bytes) -> None:
    (state.directory / "registration.json").write_bytes(content)
    with pytest.raises(StateConflict):
        state.keys()


def test_rejected_answers_are_kept_apart(state: StateDirectory) -> None:
    first = state.keep_rejected(3, b"{bad")
    second = state.keep_rejected(3, b"{bad")
    assert first != second
    assert state.next_counter() == 0
