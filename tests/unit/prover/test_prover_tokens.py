"""Tokens of end users, with the keys that a server shows."""

import json
import logging
import math
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi.testclient import TestClient
from ragaudit import http
from ragaudit.encoding.errors import NotAuthenticated, UnavailableError
from ragaudit.prover.settings import JwtSettings
from ragaudit.prover.surfaces import tokens
from ragaudit.prover.surfaces.tokens import Tokens
from raw_server import dripping
from surface_app import MemoryPort, surface_app
from surface_calls import ask

NOW = 1_800_000_000
SETTINGS = JwtSettings(
    issuer="https://login.example", audience="rag", jwks_url="http://keys.example"
)


class Login:
    """A server of keys: which it shows, and how often it was asked."""

    def __init__(self) -> None:
        self.keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.asked = 0
        self.answer: httpx.Response | None = None

    def token(self, name: str, signer: str = "") -> str:
        claims = {"sub": "grace", "iss": "https://login.example", "aud": "rag", "exp": NOW + 60}
        key = self.keys.get(signer or name) or ec.generate_private_key(ec.SECP256R1())
        return jwt.encode(claims, key, "ES256", headers={"kid": name})

    def add(self, name: str) -> None:
        self.keys[name] = ec.generate_private_key(ec.SECP256R1())

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.answer is not None:
            return self.answer
        shown: list[dict[str, Any]] = []
        for name, key in self.keys.items():
            public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
            shown.append({**public, "kid": name, "use": "sig"})
        return httpx.Response(200, json={"keys": shown})


class Time:
    """A clock that the test sets."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(tokens, "time", clock)
    return clock


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> Login:
    found = Login()
    monkeypatch.setattr(http, "_BoundedTransport", lambda *_: httpx.MockTransport(found))
    found.add("k1")
    return found


def verifier() -> Tokens:
    return Tokens(SETTINGS, lambda: 1000 * NOW)


def test_keys_that_are_there_are_used_without_asking(login: Login, time: Time) -> None:
    made = verifier()
    with pytest.raises(UnavailableError, match="being fetched") as waiting:
        made.subject(login.token("k1"))
    assert login.asked == 0 and waiting.value.retry_after == 1
    made.check()
    assert [made.subject(login.token("k1")) for _ in range(3)] == ["grace"] * 3
    assert login.asked == 1
    login.add("k2")
    old = login.token("k1")
    del login.keys["k1"]
    made.check()
    with pytest.raises(NotAuthenticated, match="unknown key"):
        made.subject(old)
    assert made.subject(login.token("k2")) == "grace"


def test_a_missing_key_may_be_a_new_one_until_it_was_looked_for(login: Login, time: Time) -> None:
    made = verifier()
    made.check()
    for age, error in ((0.0, NotAuthenticated), (tokens.PAUSE_SECONDS, UnavailableError)):
        time.now += age
        for n in range(3):
            with pytest.raises(error):
                made.subject(login.token(f"invented {n}"))
    with pytest.raises(NotAuthenticated, match="not a token"):
        made.subject(login.token("k1", signer="k2"))
    assert login.asked == 1 and made.subject(login.token("k1")) == "grace"


def test_keys_are_fetched_beside_at_the_start_and_when_one_is_missing(
    login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "PAUSE_SECONDS", 0.01)
    made = verifier()

    def comes(token: str) -> bool:
        for _ in range(1000):
            with suppress(UnavailableError, NotAuthenticated):
                return made.subject(token) == "grace"
            sleep(0.01)
        return False

    with made.running():
        assert comes(login.token("k1"))
        login.add("k2")
        assert comes(login.token("k2"))


def test_without_keys_nobody_is_anybody(
    login: Login, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    token = login.token("k1")
    for name, answer in {
        "refused": httpx.Response(500),
        "redirected": httpx.Response(302, headers={"Location": "http://elsewhere.example"}),
        "no JSON": httpx.Response(200, content=b"{"),
        "no text": httpx.Response(200, content=b"\xff"),
        "no keys": httpx.Response(200, json={"keys": []}),
        "a list": httpx.Response(200, json=[]),
        "keys that are numbers": httpx.Response(200, json={"keys": [1]}),
        "a key of no kind": httpx.Response(200, json={"keys": [{"kty": 1, "kid": []}]}),
        "keys that are a number": httpx.Response(200, json={"keys": 1}),
        "too long": httpx.Response(200, content=b"x" * (tokens.MAX_BYTES + 1)),
        "packed": httpx.Response(200, content=b"", headers={"Content-Encoding": "gzip"}),
    }.items():
        made = verifier()
        login.answer = answer
        caplog.clear()
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(UnavailableError, match="cannot be fetched"),
        ):
            made.check()
        assert "http://keys.example" in caplog.text and token not in caplog.text, name
        with pytest.raises(UnavailableError):
            made.subject(token)
        login.answer = None
        made.check()
        # The last good keys outlast a failure, and no long one.
        login.answer = answer
        with pytest.raises(UnavailableError):
            made.check()
        time.now += tokens.KEYS_TRUSTED_SECONDS - 1
        assert made.subject(token) == "grace", name
        time.now += 1
        with pytest.raises(UnavailableError):
            made.subject(token)


def test_a_server_that_drips_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FETCH_SECONDS", 0.05)
    with dripping() as (url, asked):
        made = Tokens(SETTINGS.model_copy(update={"jwks_url": url}), lambda: 1000 * NOW)
        token = Login().token("k1")
        with made.running():
            assert asked.wait(10), "nobody asked for the keys"
            since = monotonic()
            for _ in range(20):
                with pytest.raises(UnavailableError):
                    made.subject(token)
        assert monotonic() - since < 0.5, "a token waited for the server of keys"
        # One deadline for the whole answer, however slowly its head arrives.
        since = monotonic()
        with pytest.raises(UnavailableError, match="cannot be fetched"):
            made.check()
        assert monotonic() - since < 5


def test_other_callers_are_answered_while_the_server_of_keys_drips() -> None:
    jwt_settings = {"issuer": "https://login.example", "audience": "rag"}
    with dripping() as (url, asked):
        settings = JwtSettings.model_validate({**jwt_settings, "jwks_url": url})
        made = Tokens(settings, lambda: 1000 * NOW)
        delegation = {"accounts": ["ada"], "jwt": settings.model_dump()}
        with TestClient(surface_app(MemoryPort(), tokens=made, delegation=delegation)) as api:
            assert asked.wait(10), "nobody asked for the keys"
            token, since = Login().token("k1"), monotonic()
            for more, status in (({}, 200), ({"Ragaudit-User-Token": token}, 503), ({}, 200)):
                answer = ask(api, "openai", {"Authorization": "Bearer key-acme", **more})
                assert answer.status_code == status, answer.text
                assert (status == 503) == ("Retry-After" in answer.headers)
            assert monotonic() - since < 2, "a request waited for the server of keys"


def test_times_are_finite_numbers(login: Login) -> None:
    made = verifier()
    made.check()
    good = {"sub": "grace", "iss": "https://login.example", "aud": "rag", "exp": NOW + 60}

    def subject(**changes: Any) -> str:
        claims = {**good, **changes}
        # Spelt by hand: what a library would not write, a stranger does.
        payload = json.dumps(claims).replace("Infinity", "1e999").encode()
        header = {"alg": "ES256", "kid": "k1"}
        return made.subject(jwt.PyJWS().encode(payload, login.keys["k1"], "ES256", header))

    good_times: list[Any] = [NOW + 60, NOW + 60.5, 10**400]
    for time in good_times:
        assert subject(exp=time) == "grace", time
    ends: list[Any] = [math.inf, math.nan, True, None, "never", [NOW], {}]
    for time in ends:
        with pytest.raises(NotAuthenticated):
            subject(exp=time)
    begins: list[Any] = [-math.inf, math.inf, math.nan, False, "now", 10**400]
    for time in begins:
        with pytest.raises(NotAuthenticated):
            subject(nbf=time)
    assert subject(nbf=-(10**400)) == "grace"
