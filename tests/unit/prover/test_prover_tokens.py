"""Tokens of end users, with the keys that a server shows."""

import json
import logging
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from ragaudit.encoding.errors import NotAuthenticated, UnavailableError
from ragaudit.prover.surface_settings import JwtSettings
from ragaudit.prover.surfaces import tokens
from ragaudit.prover.surfaces.tokens import Tokens

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
    found, client = Login(), httpx.Client
    monkeypatch.setattr(
        httpx,
        "Client",
        lambda **given: client(**{**given, "transport": httpx.MockTransport(found)}),
    )
    found.add("k1")
    return found


def verifier() -> Tokens:
    return Tokens(SETTINGS, lambda: 1000 * NOW)


def test_keys_are_fetched_once_and_again_when_they_are_old(login: Login, time: Time) -> None:
    subject = verifier().subject
    assert login.asked == 0
    assert [subject(login.token("k1")) for _ in range(3)] == ["grace"] * 3
    assert login.asked == 1
    time.now += tokens.KEYS_LAST_SECONDS
    login.add("k2")
    del login.keys["k1"]
    with pytest.raises(NotAuthenticated):
        subject(login.token("k1"))
    assert login.asked == 2


def test_a_new_key_is_found_and_invented_ones_do_not_ask_each_time(
    login: Login, time: Time
) -> None:
    subject = verifier().subject
    subject(login.token("k1"))
    login.add("k2")
    time.now += tokens.PAUSE_SECONDS
    assert subject(login.token("k2")) == "grace" and login.asked == 2
    for n in range(20):
        with pytest.raises(NotAuthenticated, match="unknown key"):
            subject(login.token(f"invented {n}"))
    with pytest.raises(NotAuthenticated, match="not a token"):
        subject(login.token("k1", signer="k2"))
    assert login.asked == 2 and subject(login.token("k1")) == "grace"


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(302, headers={"Location": "http://elsewhere.example"}),
        httpx.Response(200, content=b"{"),
        httpx.Response(200, content=b"\xff"),
        httpx.Response(200, json={"keys": []}),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"keys": [1]}),
        httpx.Response(200, json={"keys": [{"kty": 1, "kid": []}]}),
        httpx.Response(200, json={"keys": 1}),
        httpx.Response(200, content=b"x" * (tokens.MAX_BYTES + 1)),
        httpx.Response(200, content=b"", headers={"Content-Encoding": "gzip"}),
    ],
)
def test_without_keys_nobody_is_anybody(
    login: Login, time: Time, answer: httpx.Response, caplog: pytest.LogCaptureFixture
) -> None:
    login.answer = answer
    subject, token = verifier().subject, login.token("k1")
    with caplog.at_level(logging.WARNING), pytest.raises(UnavailableError, match="cannot be"):
        subject(token)
    assert "http://keys.example" in caplog.text and token not in caplog.text
    # Not each request waits for a server that does not answer.
    with pytest.raises(UnavailableError):
        subject(token)
    assert login.asked == 1
    login.answer, time.now = None, time.now + tokens.PAUSE_SECONDS
    assert subject(token) == "grace"
    # Keys outlast a short failure, and no longer one.
    login.answer, time.now = httpx.Response(500), time.now + tokens.KEYS_LAST_SECONDS - 1
    assert subject(token) == "grace"
    time.now += 1
    with pytest.raises(UnavailableError):
        subject(token)
