"""`ragaudit receipt promise`: what says whether a value of the nonce chain may be revealed."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragaudit.client.cli import app
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.text import rfc3339
from typer.testing import CliRunner

SECOND = 1000
ASKED = {"query": "what is it?", "top_k": 3, "counter": 0}


class Files:
    """An account's files, as `curl` would have left them; a test changes what it is about."""

    def __init__(self, provider: Any, folder: Path) -> None:
        self.provider, self.folder = provider, folder
        provider._register({"anchor": "07" * 32, "dispute_key": "08" * 32})
        self.request: dict[str, Any] = dict(ASKED)
        self.promise: dict[str, Any] = provider._promise(ASKED)
        self.account: dict[str, Any] = provider._account()
        self.made = provider.pending[0].promise.promised.time
        self.asked_at = self.arrived_at = self.made  # Unix milliseconds

    def check(self) -> tuple[int, str]:
        """Run the command; its exit code and what it printed."""
        shown = {
            "promise": self.promise, "request": self.request, "account": self.account,
            "window": self.provider._window(),
        }  # fmt: skip
        for name, value in shown.items():
            (self.folder / f"{name}.json").write_bytes(dumps(value))
        for name, at in (("request", self.asked_at), ("promise", self.arrived_at)):
            os.utime(self.folder / f"{name}.json", ns=(at * 1_000_000, at * 1_000_000))
        options = [
            f"--{name}={self.folder / name}.json" for name in ("request", "account", "window")
        ]
        key = f"--verifier-key={self.provider.policy.keys.verifier.raw.hex()}"
        file = str(self.folder / "promise.json")
        done = CliRunner().invoke(app, ["promise", file, *options, key, "--json"])
        return done.exit_code, " ".join(done.output.split())


@pytest.fixture
def files(
    provider: Any, tmp_path: Path, toy_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> Files:
    monkeypatch.setattr("ragaudit.client.offline.load_embedder", lambda _window: toy_embedder)
    return Files(provider, tmp_path)


def test_it_may_be_revealed_under_an_honest_one(files: Files) -> None:
    code, said = files.check()
    assert code == 0, said
    found = re.fullmatch(r'{"reveal_within_seconds": (\d+)}', said)
    # A life of 60 s, of which 10 are kept free for the claim.
    assert found is not None and 0 < int(found[1]) <= 50


def forged(files: Files) -> str:
    files.promise["signature"] = "00" * 64
    return "signature"


def of_another_request(files: Files) -> str:
    files.request["query"] = "what else is it?"
    return "request"


def of_another_counter(files: Files) -> str:
    files.request["counter"] = 1
    return "request"


def of_another_account(files: Files) -> str:
    files.account |= {"slot": 1, "registration": None}
    return "slot"


def of_an_account_that_the_log_does_not_have(files: Files) -> str:
    files.account["slot"] = 1
    return "registration"


def with_another_embedding(files: Files) -> str:
    openings = files.provider._openings
    files.provider._openings = lambda query: replace(openings("something else"), query=query)
    files.provider.pending.clear()
    files.promise = files.provider._promise(ASKED)
    return "embedding"


def made_after_it_arrived(files: Files) -> str:
    files.asked_at = files.arrived_at = files.made - 5 * SECOND - 1  # of a skew of 5 s
    return "made at"


@pytest.mark.parametrize(
    "change",
    [
        forged, of_another_request, of_another_counter, of_another_account,
        of_an_account_that_the_log_does_not_have, with_another_embedding, made_after_it_arrived,
    ],
)  # fmt: skip
def test_nothing_is_revealed_under_a_false_one(
    files: Files, change: Callable[[Files], str]
) -> None:
    reason = change(files)
    code, said = files.check()
    assert (code, reason in said) == (1, True), said


def test_the_skew_is_allowed_on_either_side(files: Files) -> None:
    files.asked_at, files.arrived_at = files.made + 5 * SECOND, files.made + 6 * SECOND
    assert files.check()[0] == 0
    files.asked_at = files.arrived_at = files.made - 5 * SECOND
    assert files.check()[0] == 0


def test_one_from_before_is_waited_for(files: Files) -> None:
    files.asked_at = files.arrived_at = files.made + 5 * SECOND + 1
    code, said = files.check()
    assert (code, "is pending" in said) == (4, True), said
    # Superseded after its life of 60 s and twice the skew, to the next whole second.
    superseded = files.made + 70 * SECOND + 1
    assert rfc3339(-(-superseded // SECOND) * SECOND) in said


def test_one_that_leaves_no_time_to_claim(files: Files) -> None:
    clock = files.provider.clock
    files.provider.clock = lambda: clock() - 51 * SECOND
    files.provider.pending.clear()
    files.promise = files.provider._promise(ASKED)
    files.asked_at = files.arrived_at = files.provider.pending[0].promise.promised.time
    code, said = files.check()
    assert (code, "no time to claim" in said) == (4, True), said


@pytest.mark.parametrize("name", ["promise", "request", "account"])
def test_a_file_that_is_none_is_malformed(files: Files, name: str) -> None:
    setattr(files, name, [])
    assert files.check()[0] == 2
