"""Whose key a token is, from memory: what died counts for nobody a second after its next use."""

import asyncio
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.keys import token_digest
from ragaudit.prover.store import accounts
from ragaudit.prover.store.accounts import OPERATOR, Caller, CallersKeys
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE
ADA = Caller("account", "ada")


class Seconds:
    """A steady clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr(accounts, "monotonic", clock)
    return clock


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many digests each reading of the accounts looks up, None for all."""
    honest, found = accounts.Accounts.key_digests, []

    def key_digests(self: accounts.Accounts, among: Any = None) -> dict[bytes, str]:
        found.append(None if among is None else len(among))
        return honest(self, among)

    monkeypatch.setattr(accounts.Accounts, "key_digests", key_digests)
    return found


def keys_of(scenario: ProverScenario) -> CallersKeys:
    service = scenario.service
    return CallersKeys(service.accounts, service.owners, token_digest("operator"))


async def looked_up(keys: CallersKeys) -> None:
    if keys._looking is not None:
        await keys._looking


def test_a_key_that_died_names_nobody_any_more(
    scenario: ProverScenario, seconds: Seconds, read: list[int | None]
) -> None:
    service = scenario.service
    tenant = service.accounts.named("ada").tenant
    ada, bob, owner = scenario.keys["ada"], scenario.keys["bob"], service.owners.give_key(tenant)

    async def play() -> None:
        keys = keys_of(scenario)
        assert [await keys.caller(each) for each in (ada, owner, "operator")] == [
            ADA, Caller("owner", tenant), OPERATOR,
        ]  # fmt: skip
        fresh = service.accounts.rotate_key("ada")
        service.owners.revoke_key(tenant)
        assert keys.known(token_digest(ada)) == ADA  # for a second at most
        seconds.now += accounts.REFRESH_SECONDS
        dead = [token_digest(each) for each in (ada, owner)]
        living = [token_digest(each) for each in (bob, "operator")]
        for digest in (*dead, *living):
            assert keys.known(digest) is not None
        await looked_up(keys)
        assert [keys.known(digest) for digest in dead] == [None, None]
        assert None not in [keys.known(digest) for digest in living]
        assert read == [None, 3]  # the operator's is in no table
        assert await keys.caller(fresh) == ADA
        assert await keys.caller(ada) is None

    asyncio.run(play())


def test_keys_in_use_are_looked_up_once_a_second(
    scenario: ProverScenario, seconds: Seconds, read: list[int | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(accounts, "_MOST_LOOKED_UP", 1)

    async def play() -> None:
        keys = keys_of(scenario)
        for _ in range(20):
            seconds.now += 0.3
            for name in ("ada", "bob"):
                assert await keys.caller(scenario.keys[name])
                assert await keys.caller("guessed") is None
            await looked_up(keys)

    asyncio.run(play())
    # Of 6 seconds, in statements of one digest each; guessed tokens read all once a second.
    assert read.count(1) == 2 * 5
    assert read.count(None) == 5


def test_what_cannot_be_looked_up_is_not_dead(
    scenario: ProverScenario, seconds: Seconds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: Any) -> Any:
        raise StoreUnavailable("no answer", where="store")

    async def play() -> None:
        keys = keys_of(scenario)
        await keys.caller(scenario.keys["ada"])
        monkeypatch.setattr(accounts.Accounts, "key_digests", unavailable)
        for _ in range(2):
            seconds.now += accounts.REFRESH_SECONDS
            assert keys.known(token_digest(scenario.keys["ada"])) == ADA
            await looked_up(keys)

    asyncio.run(play())
