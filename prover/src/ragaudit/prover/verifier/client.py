"""Calls to the verifier service: docs/spec/08-services.md §8.1 and §8.3.

Every method raises VerifierUnreachable when the call may simply be repeated, and VerifierRefused
when the verifier declined it.
"""

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from ragaudit.encoding.canonical_json import dumps, loads, loads_any
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.problems import reason
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.errors import MalformedNote
from ragaudit.ledger.log.cosigner_protocol import (
    AddCheckpointRequest,
    parse_conflict,
    parse_cosignatures,
)
from ragaudit.ledger.log.notes import NoteSignature
from ragaudit.ledger.messages.activation import Activation
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.ledger.messages.claims import Claimed, ClaimsPage
from ragaudit.ledger.messages.countersignature import Countersignature
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.shown_keys import ShownKeys
from ragaudit.ledger.messages.signed_request import SignedRequest
from ragaudit.prover.errors import (
    NotPinned,
    VerifierMessageRejected,
    VerifierRefused,
    VerifierUnreachable,
)
from ragaudit.prover.settings import Settings
from ragaudit.prover.verifier.trust import trusted_authorities

MAX_ANSWER_BYTES = 2**26
ANSWER_TIMEOUTS = 12  # for a whole answer, in timeouts of one phase
_TOO_EARLY = 425


@dataclass(frozen=True)
class SizeConflict:
    """The cosigner has seen a tree of another size than the request said."""

    size: int


class VerifierClient:
    """The prover's side of the verifier's API. Safe to use from several threads."""

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
            timeout: seconds for each phase of a call.
            clock: milliseconds since 1970, for the time under each signature.
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
        self._http = httpx.Client(
            base_url=url,
            timeout=timeout,
            trust_env=False,
            transport=transport,
            verify=trusted_authorities(authorities),
            proxy=proxy,
            # A small answer that unpacks to a large one would be read in full.
            headers={"Accept-Encoding": "identity"},
        )

    @classmethod
    def of(
        cls,
        settings: Settings,
        key: PrivateKey,
        clock: Callable[[], int],
        transport: httpx.BaseTransport | None = None,
    ) -> "VerifierClient":
        """Return the client that the settings describe."""
        chosen = settings.verifier
        return cls(
            chosen.url,
            provider=settings.provider,
            key=key,
            timeout=chosen.timeout_seconds,
            clock=clock,
            transport=transport,
            authorities=chosen.ca_file,
            proxy=chosen.proxy,
        )

    def close(self) -> None:
        self._http.close()

    def check_pinned(self) -> None:
        """Return if the verifier knows this provider's key.

        A signed question about a window that does not exist: who is known is told so (404).

        Raises:
            NotPinned: the signature was not accepted.
            VerifierUnreachable, VerifierRefused: there is no telling.
        """
        try:
            self._send("GET", f"{_window('check-of-a-key')}/claims", b"")
        except VerifierRefused as error:
            if error.status == httpx.codes.UNAUTHORIZED:
                raise NotPinned(
                    f"the verifier does not accept our signature: {error.what}",
                    where=self._url,
                    expected=f"there: ragaudit verifier provider add {self._provider} "
                    f"--key {hex_encode(self._key.public.raw)}",
                ) from None
            if error.status not in {httpx.codes.NOT_FOUND, httpx.codes.FORBIDDEN}:
                raise

    def keys(self) -> ShownKeys:
        """Return the verifier's public keys and clock."""
        value = _json(self._send("GET", "/v1/keys", b"", signed=False))
        try:
            return ShownKeys.from_json(value)
        except MalformedError as error:
            raise VerifierMessageRejected("not the verifier's keys", where="/v1/keys") from error

    def register(self, policy: bytes, embedder: bytes) -> None:
        """Hand over the policy and the embedder manifest, both canonical JSON."""
        body = dumps({"policy": loads(policy), "embedder": loads(embedder)})
        self._send("POST", "/v1/windows", body)

    def put_index(self, window: str, tenant: str, version: int, commitment: bytes) -> None:
        """Hand over an index commitment (docs/spec/05-records.md §5.4)."""
        path = f"{_window(window)}/tenants/{quote(tenant, safe='')}/versions/{version}"
        self._send("PUT", path, commitment, kind="application/octet-stream")

    def countersign(
        self, window: str, *, opening: bytes, salt: bytes, empty_checkpoint: bytes
    ) -> Countersignature:
        """Ask for the countersignature; VerifierRefused carries a signed verdict if refused."""
        body = dumps(
            {
                "opening": hex_encode(opening),
                "salt": hex_encode(salt),
                "empty_checkpoint": empty_checkpoint.decode("utf-8"),
            }
        )
        value = _json(self._send("POST", f"{_window(window)}/countersign", body))
        return Countersignature.from_json(value)

    def put_entries(self, window: str, entries: Sequence[Entry]) -> None:
        """Hand over log entries other than records."""
        body = dumps({"entries": [entry.to_json() for entry in entries]})
        self._send("POST", f"{_window(window)}/entries", body)

    def add_checkpoint(
        self, request: AddCheckpointRequest, read: int
    ) -> tuple[NoteSignature, ...] | SizeConflict:
        """Ask for a cosignature (C2SP tlog-witness) of a tree head read at the time ``read``."""
        path, body = "/cosigner/add-checkpoint", request.encode()
        try:
            answer = self._send("POST", path, body, kind="text/plain", time=read)
            return parse_cosignatures(answer.content)
        except VerifierRefused as error:
            if error.status != httpx.codes.CONFLICT:
                raise
            try:
                return SizeConflict(parse_conflict(error.content))
            except MalformedNote:
                raise error from None

    def activation(self, window: str, number: int) -> Activation | None:
        """Return the signed activation, or None before its instant."""
        path = f"{_window(window)}/activations/{number}{self._own}"
        value = self._unless_early("GET", path)
        return None if value is None else Activation.from_json(value)

    def claims(self, window: str, after: bytes = b"") -> ClaimsPage | None:
        """Return a page of claims of revealed promises, or None before the window's end.

        Args:
            after: `next` of the page before.

        Raises:
            VerifierMessageRejected: not a page, or the one after it is none that follows.
        """
        query = f"?after={after.hex()}" if after else ""
        value = self._unless_early("GET", f"{_window(window)}/claims{query}")
        if value is None:
            return None
        try:
            page = ClaimsPage.from_json(value)
        except MalformedError as error:
            raise VerifierMessageRejected("not a page of claims", where="claims") from error
        if page.next is not None and page.next <= after:
            raise VerifierMessageRejected("not the next page of claims", where="claims")
        return page

    def claimed(self, window: str, record: Record) -> bool | None:
        """Return whether a promise for the query was claimed, None while the record's may be."""
        query = f"{hex_encode(record.pseudonym)}/{record.counter}?made={record.time}"
        value = self._unless_early("GET", f"{_window(window)}/claims/{query}")
        if value is None:
            return None
        try:
            return Claimed.from_json(value).claimed
        except MalformedError as error:
            raise VerifierMessageRejected("not whether it was claimed", where="claims") from error

    def put_records(self, window: str, data: bytes) -> None:
        """Hand over all bodies (docs/spec/08-services.md §8.3)."""
        self._send("PUT", f"{_window(window)}/records", data, kind="application/octet-stream")

    def close_window(self, window: str, final_checkpoint: bytes) -> None:
        """Name the final cosigned checkpoint."""
        body = dumps({"final_checkpoint": final_checkpoint.decode("utf-8")})
        self._send("POST", f"{_window(window)}/close", body)

    def challenge(self, window: str) -> Challenge | None:
        """Return the challenge, or None before the sampling instant."""
        value = self._unless_early("GET", f"{_window(window)}/challenge")
        return None if value is None else Challenge.from_json(value)

    def put_response(self, window: str, position: int, response: bytes) -> None:
        """Hand over the response for one record; one that is there already stays."""
        path = f"{_window(window)}/challenge/{position}"
        try:
            self._send("PUT", path, response, kind="application/octet-stream")
        except VerifierRefused as error:
            if error.status != httpx.codes.CONFLICT:
                raise

    def verdict(self, window: str) -> bytes | None:
        """Return the signed verdict, or None if there is none yet."""
        try:
            return self._send(
                "GET", f"{_window(window)}/verdict{self._own}", b"", signed=False
            ).content
        except VerifierRefused as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def _unless_early(self, method: str, path: str) -> dict[str, Any] | None:
        try:
            return _json(self._send(method, path, b""))
        except VerifierRefused as error:
            if error.status == _TOO_EARLY:
                return None
            raise

    def _send(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        kind: str = "application/json",
        signed: bool = True,
        time: int | None = None,
    ) -> httpx.Response:
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
        if response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise VerifierUnreachable(f"the verifier answered {response.status_code}", where=place)
        if response.is_redirect:
            raise VerifierUnreachable(
                "the verifier redirects", where=place, expected="its own address in verifier.url"
            )
        raise _refused(response)

    def _receive(self, request: httpx.Request, place: str) -> httpx.Response:
        """Return the response with its body, which is read up to a limit and never unpacked."""
        response = self._http.send(request, stream=True)
        try:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise VerifierMessageRejected("packed answer", where=place, expected="plain bytes")
            body, until = bytearray(), time.monotonic() + ANSWER_TIMEOUTS * self._timeout
            for part in response.iter_bytes():
                body += part
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("a drip", request=request)
                if len(body) > MAX_ANSWER_BYTES:
                    raise VerifierMessageRejected(
                        "answer too long", where=place, expected=f"at most {MAX_ANSWER_BYTES} bytes"
                    )
        finally:
            response.close()
        return httpx.Response(response.status_code, content=bytes(body), request=request)

    def _reason(self, error: httpx.HTTPError) -> str:
        """Return what stands between us and the verifier, in words."""
        causes = []
        cause: BaseException | None = error
        while cause is not None:
            causes.append(cause)
            cause = cause.__cause__ or cause.__context__
        for each in causes:
            if isinstance(each, ssl.SSLCertVerificationError):
                return f"the verifier's certificate is not trusted: {each.verify_message}"
            if isinstance(each, ssl.SSLError):
                return f"no TLS with the verifier: {each.reason or 'broken off'}"
            if isinstance(each, socket.gaierror):
                return "the name of the verifier (or proxy) is not known"
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
        target, provider = path.decode("ascii"), self._provider
        return SignedRequest.issue(
            self._key, provider=provider, method=method, target=target, body=body, time=time
        ).headers()


def _window(name: str) -> str:
    return f"/v1/windows/{quote(name, safe='')}"


def _json_value(response: httpx.Response) -> Any:
    try:
        return loads_any(response.content)
    except MalformedError as error:
        raise VerifierMessageRejected(
            f"answer is not JSON: {error.what}", where=str(response.url)
        ) from error


def _json(response: httpx.Response) -> dict[str, Any]:
    value = _json_value(response)
    if not isinstance(value, dict):
        raise VerifierMessageRejected("answer is not an object", where=str(response.url))
    return value


def _refused(response: httpx.Response) -> VerifierRefused:
    try:
        document = loads_any(response.content)
    except MalformedError:
        document = {}
    if not isinstance(document, dict):
        document = {}
    said = reason(document) or "no reason given"
    return VerifierRefused(
        f"the verifier answered {response.status_code}: {said[:500]}",
        status=response.status_code,
        document=document,
        content=response.content[:64],
    )
