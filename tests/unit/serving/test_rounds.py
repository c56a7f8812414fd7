"""Sources of rounds: HTTP, folders, files; each bounded, verified, and asked in turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from ragaudit.encoding.errors import MalformedSettings, RejectedError, UnavailableError
from ragaudit.lab.scenario.third_parties import CHAIN, OTHER
from ragaudit.ledger.messages.beacon import QUICKNET, BeaconRound
from ragaudit.serving.rounds import BeaconSettings, RoundFinder
from round_api import RoundApi

NUMBER = 1234
GOOD = CHAIN.round(NUMBER)


@pytest.fixture
def api() -> Iterator[RoundApi]:
    made = RoundApi(GOOD.encode())
    yield made
    made.close()


@pytest.fixture
def finder(tmp_path: Path) -> Iterator[Callable[..., RoundFinder]]:
    made: list[RoundFinder] = []
    (tmp_path / "chain.json").write_text(json.dumps(CHAIN.info()))

    def make(*sources: object, **more: Any) -> RoundFinder:
        section = BeaconSettings(
            sources=tuple(map(str, sources)), chain_file=tmp_path / "chain.json", **more
        )
        made.append(RoundFinder(section))
        return made[-1]

    yield make
    for each in made:
        each.close()


def found(finder: RoundFinder, number: int = NUMBER) -> BeaconRound | None:
    finder.find(CHAIN.chain, number)
    finder.wait()
    return finder.find(CHAIN.chain, number)


def failures(finder: RoundFinder) -> dict[str, str]:
    return dict(finder._failures)


def test_a_round_of_the_api(api: RoundApi, finder: Callable[..., RoundFinder]) -> None:
    made = finder(api.url + "/")
    assert made.chain == CHAIN.chain
    assert found(made) == GOOD
    assert api.paths == [f"/{CHAIN.chain.hash.hex()}/public/{NUMBER}"]
    assert found(made) == GOOD and len(api.paths) == 1  # kept
    made.check(1000 * CHAIN.chain.time(NUMBER + 11))


@pytest.mark.parametrize(
    ("status", "headers", "body", "why"),
    [
        (404, {}, b"", "it answered 404"),
        (302, {"Location": "http://127.0.0.1:1/"}, b"", "it answered 302"),
        (200, {}, b"{}", "missing member"),
        (200, {}, b" " * 5000, "too long"),
        (200, {}, CHAIN.round(NUMBER + 1).encode(), f"round {NUMBER + 1} of the beacon"),
        (200, {}, OTHER.round(NUMBER).encode(), "signature does not verify"),
        (200, {"Content-Length": "9"}, b"{", "not JSON"),
    ],
)
def test_what_is_no_round_is_named_and_the_next_source_asked(
    api: RoundApi, finder: Callable[..., RoundFinder], tmp_path: Path, status: int,
    headers: dict[str, str], body: bytes, why: str,
) -> None:  # fmt: skip
    api.answer = lambda: (status, headers, body)
    (tmp_path / f"{NUMBER}.json").write_bytes(GOOD.encode())
    made = finder(api.url, tmp_path)
    assert found(made) == GOOD
    assert why in failures(made)[api.url] and str(tmp_path) not in failures(made)
    with pytest.raises(UnavailableError) as error:
        made.check(1000 * CHAIN.chain.time(NUMBER + 11))
    assert api.url in error.value.where


def test_nobody_answers(finder: Callable[..., RoundFinder], api: RoundApi) -> None:
    made = finder("http://127.0.0.1:1", api.url, timeout_seconds=1)
    assert found(made) == GOOD
    assert "cannot be read" in failures(made)["http://127.0.0.1:1"]


def test_files_and_folders(finder: Callable[..., RoundFinder], tmp_path: Path) -> None:
    lines = tmp_path / "rounds.jsonl"
    lines.write_bytes(b"\n".join(CHAIN.round(n).encode() for n in (NUMBER - 1, NUMBER)))
    made = finder(tmp_path / "nothing", lines)
    assert found(made) == GOOD
    assert found(made, NUMBER + 1) is None
    assert "no such round" in failures(made)[str(lines)]


def test_a_source_is_asked_again_after_a_while(
    finder: Callable[..., RoundFinder], tmp_path: Path
) -> None:
    made = finder(tmp_path, every_seconds=3600)
    assert found(made) is None
    (tmp_path / f"{NUMBER}.json").write_bytes(GOOD.encode())
    assert found(made) is None
    made._again.clear()  # an hour later
    assert found(made) == GOOD


def test_what_is_offered_is_verified(finder: Callable[..., RoundFinder]) -> None:
    made = finder()
    with pytest.raises(RejectedError, match="does not verify"):
        made.offer(CHAIN.chain, OTHER.round(NUMBER))
    made.offer(CHAIN.chain, GOOD)
    assert found(made) == GOOD
    assert made.find(OTHER.chain, NUMBER) is None


def test_settings(tmp_path: Path) -> None:
    assert BeaconSettings().chain() == QUICKNET
    read = BeaconSettings(sources=("rounds", "https://api.drand.sh"), chain_file=Path("c.json"))
    moved = read.beside(tmp_path)
    assert moved.sources == (str(tmp_path / "rounds"), "https://api.drand.sh")
    for source in ("ftp://x/", "http://user:word@x/", "file:///x"):
        with pytest.raises(ValidationError):
            BeaconSettings(sources=(source,))
    with pytest.raises(MalformedSettings, match="cannot read"):
        moved.chain()
    (tmp_path / "c.json").write_text("{}")
    with pytest.raises(MalformedSettings, match="missing member"):
        moved.chain()
    with pytest.raises(MalformedSettings, match="no certificates"):
        RoundFinder(BeaconSettings(ca_file=tmp_path / "c.json"))
