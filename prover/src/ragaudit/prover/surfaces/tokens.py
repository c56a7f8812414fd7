"""Tokens of end users (JWT, RFC 7519), verified with the keys that the settings name."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
from ragaudit.http import HttpClient, trusted_authorities
from ragaudit.prover.settings import JwtSettings
from ragaudit.prover.surfaces.dialects import read_json

FETCH_SECONDS = 5.0  # for each phase; a whole answer has `ragaudit.http.ANSWER_TIMEOUTS` of them
KEYS_LAST_SECONDS = 300.0
# A token may name any key: no more often is the server asked for one that nobody knows.
PAUSE_SECONDS = 10.0
# For so long the last good keys count while others cannot be had: an outage of the login service
# is not one of ours, and a key that was withdrawn must not be good for ever.
KEYS_TRUSTED_SECONDS = 3600.0
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

    def running(self) -> AbstractContextManager[None]:
        """Keep the keys fresh within the block, beside whatever else runs."""
        return self._keys.running()

    def subject(self, token: str) -> str:
        """Return the end user that a token names.

        It never waits: keys are fetched elsewhere.

        Raises:
            NotAuthenticated: not signed by one of the keys, for somebody else, expired, or it
                names nobody.
            UnavailableError: the keys are not there, or it may be signed with a newer one.
        """
        claims = self._claims(token)
        self._check_times(claims)
        subject = claims.get(self._settings.claim)
        if not isinstance(subject, str) or not subject:
            raise _rejected(f"no {self._settings.claim}")
        return subject

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            name = jwt.get_unverified_header(token).get("kid")
        except (jwt.PyJWTError, ValueError, TypeError):
            raise _rejected("not a token") from None
        key = self._keys.find(name)
        try:
            return jwt.decode(
                token,
                key,
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
        if not (_finite(expires) and _finite(begins)):
            raise _rejected("times that are no finite numbers")
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

    def running(self) -> AbstractContextManager[None]:
        """Nothing is to be kept fresh."""
        return nullcontext()

    def find(self, name: object) -> jwt.PyJWK:
        """Return the key that a token names; NotAuthenticated if there is none."""
        if name not in self._known:
            raise _rejected("signed with an unknown key")
        return self._known[name]


class _UrlKeys:
    """The keys that a server shows, as they were when they came last. For several threads.

    One thread of their own fetches them: whoever looks for a key waits for no network.
    """

    def __init__(self, settings: JwtSettings) -> None:
        assert settings.jwks_url is not None
        self._url = settings.jwks_url
        authorities = trusted_authorities(settings.ca_file, "surfaces.delegation.jwt.ca_file")
        self._http = HttpClient("", timeout=FETCH_SECONDS, most=MAX_BYTES, verify=authorities)
        # One object, replaced as a whole: it is read without a lock.
        self._fetched: tuple[float, dict[object, jwt.PyJWK]] = (-math.inf, {})
        self._wanted = threading.Event()
        self._ended = threading.Event()

    def check(self) -> None:
        """Fetch the keys; UnavailableError if they do not come."""
        if not self.fetch():
            raise UnavailableError(
                "the keys of tokens cannot be fetched",
                where=f"surfaces.delegation.jwt.jwks_url: {self._url}",
                expected="an address that answers with keys (JWKS)",
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Fetch the keys now, when they are old, and when one is missing, in a thread."""
        self._ended.clear()
        # Nobody waits for its end: a server may take its time to answer.
        threading.Thread(target=self._keep_fresh, name="keys of tokens", daemon=True).start()
        try:
            yield
        finally:
            self._ended.set()
            self._wanted.set()

    def find(self, name: object) -> jwt.PyJWK:
        """Return the key that a token names, at once.

        Raises:
            NotAuthenticated: there is none.
            UnavailableError: there may be; the keys are being fetched.
        """
        since, known = self._fetched
        age = time.monotonic() - since
        if age < KEYS_TRUSTED_SECONDS and name in known:
            return known[name]
        self._wanted.set()
        if age >= PAUSE_SECONDS:
            raise UnavailableError("the keys of tokens are being fetched", expected="later")
        raise _rejected("signed with an unknown key")

    def fetch(self) -> bool:
        """Fetch the keys; return whether they came. What was there stays if they did not."""
        try:
            answer = self._http.request("GET", self._url)
            if answer.status_code != HTTPStatus.OK:
                raise ValueError(f"status {answer.status_code}")
            self._fetched = (time.monotonic(), _by_id(answer.content))
        except (*_ODD, httpx.HTTPError) as error:
            _log.warning("the keys of tokens at %s: %s", self._url, type(error).__name__)
            return False
        return True

    def _keep_fresh(self) -> None:
        while not self._ended.is_set():
            self._wanted.clear()
            self.fetch()
            self._ended.wait(PAUSE_SECONDS)
            self._wanted.wait(KEYS_LAST_SECONDS - PAUSE_SECONDS)
        self._http.close()


def _by_id(content: bytes) -> dict[object, jwt.PyJWK]:
    """Return the keys of a JWKS that sign, by their names."""
    value = read_json(content)
    listed = value.get("keys") if isinstance(value, dict) else None
    # The library takes for granted that they are objects.
    if not isinstance(listed, list) or not all(isinstance(key, dict) for key in listed):
        raise ValueError("no list of keys")
    keys = jwt.PyJWKSet.from_dict({"keys": listed}).keys
    return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}


def _finite(time: object) -> bool:
    """Return whether a claim can be compared with a clock: JSON's 1e999 is infinite."""
    if isinstance(time, float):
        return math.isfinite(time)
    return isinstance(time, int) and not isinstance(time, bool)


def _rejected(what: str) -> NotAuthenticated:
    return NotAuthenticated(what, where="end user's token")
