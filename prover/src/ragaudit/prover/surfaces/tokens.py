"""Tokens of end users (JWT, RFC 7519), verified with the keys that the settings name."""

import logging
import math
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httpx
import jwt
from ragaudit.encoding.errors import (
    MalformedRequest,
    MalformedSettings,
    NotAuthenticated,
    UnavailableError,
)
from ragaudit.prover.surface_settings import JwtSettings
from ragaudit.prover.surfaces.wire import read_json
from ragaudit.serving.bounded_http import BoundedHttp, OddAnswer, trusted_authorities

FETCH_SECONDS = 5.0
KEYS_LAST_SECONDS = 300.0
# A token may name any key: no more often is the server asked for one that nobody knows.
PAUSE_SECONDS = 10.0
MAX_BYTES = 2**20
_ODD = (ValueError, TypeError, MalformedRequest, jwt.PyJWTError)

_log = logging.getLogger(__name__)


class Tokens:
    """Verifies tokens. Safe to use from several threads."""

    def __init__(self, settings: JwtSettings, clock: Callable[[], int]) -> None:
        """Read the file of the keys, where it is one.

        Args:
            clock: Unix milliseconds.

        Raises:
            MalformedSettings: the file is missing or holds no keys.
        """
        self._settings = settings
        self._clock = clock
        self._keys = _FileKeys(settings) if settings.jwks_url is None else _UrlKeys(settings)

    def check(self) -> None:
        """Check that the keys can be had; UnavailableError if they cannot."""
        self._keys.check()

    def subject(self, token: str) -> str:
        """Return the end user that a token names.

        Raises:
            NotAuthenticated: not signed by one of the keys, for somebody else, expired, or it
                names nobody.
            UnavailableError: the keys cannot be fetched.
        """
        claims = self._claims(token)
        self._check_times(claims)
        subject = claims.get(self._settings.claim)
        if not isinstance(subject, str) or not subject:
            raise _rejected(f"no {self._settings.claim}")
        return subject

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                self._keys.find(jwt.get_unverified_header(token).get("kid")),
                algorithms=list(self._settings.algorithms),
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options={
                    "require": ["exp", "iss", "aud"],
                    # With the prover's clock, below: its times are the log's.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise _rejected("not a token that the settings allow") from None

    def _check_times(self, claims: dict[str, Any]) -> None:
        now, leeway = self._clock() / 1000, self._settings.leeway_seconds
        expires, begins = claims["exp"], claims.get("nbf", 0)
        if not all(type(time) in (int, float) for time in (expires, begins)):
            raise _rejected("times that are no numbers")
        if not begins - leeway <= now < expires + leeway:
            raise _rejected("expired, or not valid yet")


class _FileKeys:
    """The keys of a file, which is read once."""

    def __init__(self, settings: JwtSettings) -> None:
        path = settings.jwks_file
        assert path is not None
        try:
            self._known = _by_id(path.read_bytes())
        except (*_ODD, OSError):
            raise MalformedSettings(
                "no keys of tokens", where=str(path), expected="a JSON file of keys (JWKS)"
            ) from None

    def check(self) -> None:
        """Nothing is left to check: the file was read."""

    def find(self, name: object) -> jwt.PyJWK:
        """Return the key that a token names; NotAuthenticated if there is none."""
        if name not in self._known:
            raise _rejected("signed with an unknown key")
        return self._known[name]


class _UrlKeys:
    """The keys that a server shows, fetched when they are first needed. For several threads."""

    def __init__(self, settings: JwtSettings) -> None:
        assert settings.jwks_url is not None
        self._url = settings.jwks_url
        authorities = trusted_authorities(settings.ca_file, "surfaces.delegation.jwt.ca_file")
        self._http = BoundedHttp("", timeout=FETCH_SECONDS, most=MAX_BYTES, verify=authorities)
        self._lock = threading.Lock()
        self._known: dict[object, jwt.PyJWK] = {}
        self._asked = self._fetched = -math.inf

    def check(self) -> None:
        """Fetch the keys; UnavailableError if they do not come."""
        with self._lock:
            if not self._fetch(time.monotonic()):
                raise UnavailableError(
                    "the keys of tokens cannot be fetched",
                    where=f"surfaces.delegation.jwt.jwks_url: {self._url}",
                    expected="an address that answers with keys (JWKS)",
                )

    def find(self, name: object) -> jwt.PyJWK:
        """Return the key that a token names; NotAuthenticated, UnavailableError without it."""
        with self._lock:
            now = time.monotonic()
            fresh = now < self._fetched + KEYS_LAST_SECONDS
            if not (fresh and name in self._known) and now >= self._asked + PAUSE_SECONDS:
                self._asked = now
                fresh = self._fetch(now) or fresh
        # Keys that were withdrawn meanwhile must not be good for ever.
        if not fresh:
            raise UnavailableError("the keys of tokens cannot be fetched", expected="later")
        if name not in self._known:
            raise _rejected("signed with an unknown key")
        return self._known[name]

    def _fetch(self, now: float) -> bool:
        """Fetch the keys; return whether they came."""
        try:
            answer = self._http.send(self._http.build_request("GET", self._url))
            if answer.status_code != HTTPStatus.OK:
                raise ValueError(f"status {answer.status_code}")
            self._known = _by_id(answer.content)
        except (*_ODD, httpx.HTTPError, OddAnswer) as error:
            _log.warning("the keys of tokens at %s: %s", self._url, type(error).__name__)
            return False
        self._fetched = now
        return True


def _by_id(content: bytes) -> dict[object, jwt.PyJWK]:
    """Return the keys of a JWKS that sign, by their names."""
    value = read_json(content)
    listed = value.get("keys") if isinstance(value, dict) else None
    # The library takes for granted that they are objects.
    if not isinstance(listed, list) or not all(isinstance(key, dict) for key in listed):
        raise ValueError("no list of keys")
    keys = jwt.PyJWKSet.from_dict({"keys": listed}).keys
    return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}


def _rejected(what: str) -> NotAuthenticated:
    return NotAuthenticated(what, where="end user's token")
