"""The connection to the verifier: signed calls, and what must hold of who answers.

The party at the other end is the one that audits us: its keys are pinned, its certificate is
checked, its answers are bounded and parsed strictly.
"""

import logging
import socket
import ssl
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import httpx
from ragaudit.encoding.canonical_json import loads_any
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.problems import reason
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import hex_encode
from ragaudit.http import (
    HttpClient,
    LongAnswer,
    PackedAnswer,
    trusted_authorities,
)
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.ledger.messages.signed import SignedRequest
from ragaudit.prover.errors import (
    ClocksDiffer,
    UnpinnedVerifier,
    VerifierMessageRejected,
    VerifierRefused,
    VerifierUnreachable,
)
from ragaudit.prover.settings import Settings, VerifierSettings

_log = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 2**26  # whoever answers must not fill our memory


class Connection:
    """Signed calls to one verifier. Safe to use from several threads."""

    def __init__(
        self,
        url: str,
        *,
        provider: str,
        key: PrivateKey,
        timeout: float,
        clock: Callable[[], int],
        transport: httpx.BaseTransport | None = None,
        authorities: Path | None = None,
        proxy: str | None = None,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            url: of the verifier service.
            provider: our name there.
            key: the provider's, signs the calls.
            timeout: seconds for each phase of a call.
            clock: Unix milliseconds, for the time under each signature.
            transport: instead of the network, for tests.
            authorities: PEM file of the certificate authorities to trust instead of the usual.
            proxy: URL of the HTTP proxy through which the verifier is reached.

        Raises:
            MalformedSettings: the file holds no certificates.
        """
        self._provider = provider
        self._own = f"?provider={provider}"  # of the calls that anybody may make
        self._key = key
        self.clock = clock
        self._url = url
        self._proxied = proxy is not None
        self._timeout = timeout
        self._http = HttpClient(
            url,
            timeout=timeout,
            most=MAX_ANSWER_BYTES,
            verify=trusted_authorities(authorities, "verifier.ca_file"),
            transport=transport,
            proxy=proxy,
        )

    @classmethod
    def of(
        cls,
        settings: Settings,
        key: PrivateKey,
        clock: Callable[[], int],
        transport: httpx.BaseTransport | None = None,
    ) -> Self:
        """Return the client that the settings describe.

        Args:
            key: the provider's, signs the calls.
            clock: Unix milliseconds.
            transport: instead of the network, for tests.

        Raises:
            MalformedSettings: the file of certificate authorities holds none.
        """
        options = settings.verifier
        return cls(
            options.url,
            provider=settings.provider,
            key=key,
            timeout=options.timeout_seconds,
            clock=clock,
            transport=transport,
            authorities=options.ca_file,
            proxy=options.proxy,
        )

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def _send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        kind: str = "application/json",
        signed: bool = True,
        time: int | None = None,
    ) -> httpx.Response:
        """Return the verifier's answer of success, its body read.

        Args:
            path: with its query, below the verifier's URL.
            kind: the body's media type.
            time: Unix milliseconds under the signature; the present if None.

        Raises:
            VerifierUnreachable: no answer, one of 5xx or 429, or a redirection: not declined.
            VerifierRefused: any other status.
            VerifierMessageRejected: an answer that is packed or too long.
        """
        request = self._http.build_request(
            method, path, content=body or None, headers={"Content-Type": kind} if body else None
        )
        if signed:
            now = self.clock() if time is None else time
            request.headers.update(self._signature(method, request.url.raw_path, body, now))
        place = f"{self._url}{path}"
        try:
            response = self._receive(request, place)
        except httpx.HTTPError as error:
            raise VerifierUnreachable(self._reason(error), where=place) from error
        if response.is_success:
            return response
        # Neither is a decision: the same call may succeed later.
        if response.is_server_error or response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise VerifierUnreachable(f"the verifier answered {response.status_code}", where=place)
        # Another address is not the one whose operator the settings trust.
        if response.is_redirect:
            raise VerifierUnreachable(
                "the verifier redirects", where=place, expected="its own address in verifier.url"
            )
        raise _refused(response)

    def _receive(self, request: httpx.Request, place: str) -> httpx.Response:
        """Return the response with its body, which is read up to a limit and never unpacked."""
        try:
            return self._http.send(request)
        except PackedAnswer:
            raise VerifierMessageRejected(
                "packed answer", where=place, expected="plain bytes"
            ) from None
        except LongAnswer:
            raise VerifierMessageRejected(
                "answer too long", where=place, expected=f"at most {MAX_ANSWER_BYTES} bytes"
            ) from None

    def _reason(self, error: httpx.HTTPError) -> str:
        """Return in words why the verifier was not reached."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return f"the verifier's certificate is not trusted: {cause.verify_message}"
            if isinstance(cause, ssl.SSLError):
                return f"no TLS with the verifier: {cause.reason or 'broken off'}"
            if isinstance(cause, socket.gaierror):
                return "the name of the verifier (or proxy) is not known"
            # The library wraps the reason twice; the operator needs the innermost.
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, httpx.ProxyError):
            return f"the proxy does not connect: {str(error)[:100]}"
        if isinstance(error, httpx.TimeoutException):
            return (
                f"no answer from the verifier in time (verifier.timeout_seconds {self._timeout:g})"
            )
        if isinstance(error, httpx.ConnectError):
            peer = "proxy to the verifier" if self._proxied else "verifier"
            return f"the {peer} cannot be reached: connection refused or no route"
        return f"the connection to the verifier broke off: {type(error).__name__}"

    def _signature(self, method: str, path: bytes, body: bytes, time: int) -> dict[str, str]:
        # Of the request line as it is sent: another encoding has another signature (spec 8.1).
        target, provider = path.decode("ascii"), self._provider
        return SignedRequest.issue(
            self._key, provider=provider, method=method, target=target, body=body, time=time
        ).encode()


def json_object(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer.

    Args:
        response: of any status, its body read.

    Raises:
        VerifierMessageRejected: it is none.
    """
    place = str(response.url)
    try:
        # Any spelling, but no duplicate keys and no fractions: what is signed has one meaning.
        value = loads_any(response.content)
    except MalformedError as error:
        raise VerifierMessageRejected(f"answer is not JSON: {error.what}", where=place) from error
    if not isinstance(value, dict):
        raise VerifierMessageRejected("answer is not an object", where=place)
    return value


def _refused(response: httpx.Response) -> VerifierRefused:
    try:
        document = json_object(response)
    except VerifierMessageRejected:
        document = {}
    words = reason(document) or "no reason given"
    # Cut: what a stranger writes goes into our log and to our operator.
    return VerifierRefused(
        f"the verifier answered {response.status_code}: {words[:500]}",
        status=response.status_code,
        document=document,
        content=response.content[:64],
    )


def checked_keys(keys: ShownKeys, pinned: VerifierSettings) -> ShownKeys:
    """Return the verifier's keys if they are the pinned ones.

    Args:
        pinned: the settings' pins (docs/spec/08-services.md §8.1).

    Raises:
        VerifierMessageRejected: another key than the settings name, or an arbiter's that they do
            not name.
    """
    arbiter = None if keys.arbiter is None else hex_encode(keys.arbiter.raw)
    for member, key, expected in (
        ("arbiter_key", arbiter, pinned.arbiter_key),
        ("cosigner_key", str(keys.cosigner), pinned.cosigner_key),
        ("verifier_key", hex_encode(keys.verifier.raw), pinned.verifier_key),
        ("verdict_key", hex_encode(keys.verdict.raw), pinned.verdict_key),
    ):
        # No pin for the arbiter means that there is none; whether the other pins may be missing,
        # `check_pins` says.
        required = member == "arbiter_key" and not pinned.allow_unpinned
        if key != expected and (expected is not None or required):
            raise VerifierMessageRejected(
                f"the verifier shows another key, {key}",
                where=f"verifier.{member}",
                expected=expected or "none",
            )
    return keys


def check_pins(settings: VerifierSettings) -> None:
    """Check that every key of the verifier is pinned, or warn of each where none has to be.

    Raises:
        UnpinnedVerifier: whichever server answers first would be trusted for the others.
    """
    if settings.unpinned and not settings.allow_unpinned:
        names = ", ".join(f"verifier.{name}" for name in settings.unpinned)
        raise UnpinnedVerifier(
            "keys of the verifier are not pinned: whichever server answers first is trusted",
            where=names,
            expected="the keys that the regulator published, as GET /v1/keys shows them; or "
            "verifier.allow_unpinned: true",
        )
    for name in settings.unpinned:
        _log.warning("verifier.%s is not pinned: whichever server answers first is trusted", name)


def check_clocks(ours: int, verifiers: int, skew: int) -> None:
    """Check that two clocks, in milliseconds, differ by at most ``skew`` seconds.

    Args:
        ours: this machine's, Unix milliseconds.
        verifiers: of `GET /v1/keys`, Unix milliseconds.
        skew: seconds, the policy's.

    Raises:
        ClocksDiffer: by more: records would not lie between the cosigned times around them.
    """
    if abs(ours - verifiers) > 1000 * skew:
        raise ClocksDiffer(
            f"our clock is {(ours - verifiers) / 1000:+.1f} s from the verifier's",
            where="clock",
            expected=f"at most {skew} s",
        )
