"""The auditor's side of the service's interface, for the command line.

A download of a bundle goes on where it broke off (spec 8.3).
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, BinaryIO, Self

import httpx
from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    PeerRefused,
    RagauditError,
    UnavailableError,
)
from ragaudit.encoding.problems import family_of, reason
from ragaudit.encoding.signing import PublicKey
from ragaudit.http import HttpClient
from ragaudit.ledger.messages.accounts import read_lines
from ragaudit.ledger.messages.bodies import AccessBody, ReferenceBody
from ragaudit.ledger.messages.custody import EvidenceAccess
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.ledger.messages.signed_results import ResultReference
from ragaudit.verifier.service.windows import FINAL

__all__ = ["BundleChanged", "Opened", "ServiceAway", "go_on", "receive"]


_TRIES = 6  # in a row that bring nothing
_WAIT_SECONDS = 0.2
_PLACE = re.compile(r"/v1/windows/[^/?]+/bundle/confidential/([0-9]{1,10})(\?.*)?", re.ASCII)
_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15})", re.ASCII)
_TAG = re.compile(r'"[0-9a-f]{64}"', re.ASCII)


class ServiceAway(UnavailableError):
    """The service does not answer, or cannot now."""


class BundleChanged(UnavailableError):
    """What is left is of another bundle: evidence is gone, or differs."""


@dataclass(frozen=True)
class Opened:
    """A download that was begun.

    Attributes:
        number: of the evidence access that was recorded for it.
        tag: the bundle's, as in the header `ETag`.
        size: of the whole bundle, bytes.
    """

    number: int
    tag: str
    size: int

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Return what the answer's headers say.

        Raises:
            MalformedError: they do not say it.
        """
        place = _PLACE.fullmatch(headers.get("content-location", ""))
        size = headers.get("content-length", "")
        tag = headers.get("etag", "")
        if place is None or not size.isdecimal() or _TAG.fullmatch(tag) is None:
            raise MalformedError("not a download that can be resumed", where="headers")
        return cls(int(place[1]), tag, int(size))

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return what `encode` wrote; MalformedError for anything else."""
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        match value:
            case {"number": int(number), "tag": str(tag), "size": int(size)} if len(value) == 3:
                return cls(number, tag, size)
        raise MalformedError("not the note of a download", expected="what this command wrote")

    def encode(self) -> str:
        """Return it as JSON, for a later process."""
        return json.dumps(asdict(self))


def go_on(
    request: Callable[[Mapping[str, str]], Any], opened: Opened, file: BinaryIO, where: str
) -> None:
    """Receive what is missing; an interruption is followed by another request for the rest.

    Args:
        request: with headers, opens the stream of what there is from a byte on.
        opened: of the first request.
        file: holds the bundle's beginning; what is missing is written behind it.
        where: for errors.

    Raises:
        ServiceAway: several requests in a row brought nothing. The file keeps what there is.
        BundleChanged: the rest is of another bundle.
    """
    idle, reason = 0, "no answer"
    while (have := file.seek(0, 2)) < opened.size:
        if idle == _TRIES:
            raise ServiceAway(
                f"the download broke off at byte {have} of {opened.size}: {reason}",
                where=where, expected="the same command again, which goes on from there",
            )  # fmt: skip
        if idle:
            time.sleep(_WAIT_SECONDS * 2**idle)
        try:
            with request({"Range": f"bytes={have}-", "If-Range": opened.tag}) as answer:
                if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    reason = f"status {answer.status_code}"
                else:
                    _check_rest(answer, opened, have, where)
                    receive(answer, file)
        except httpx.HTTPError as error:
            reason = type(error).__name__
        idle = 0 if file.seek(0, 2) > have else idle + 1


def receive(answer: httpx.Response, file: BinaryIO) -> None:
    """Write the answer's body behind what the file holds; what arrived stays if it breaks off."""
    for piece in answer.iter_bytes():
        file.write(piece)


def _check_rest(answer: httpx.Response, opened: Opened, have: int, where: str) -> None:
    found = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    whole = answer.status_code == HTTPStatus.OK and have == 0
    rest = answer.status_code == HTTPStatus.PARTIAL_CONTENT and found is not None
    if rest and found is not None:
        rest = (int(found[1]), int(found[2])) == (have, opened.size)
    if not (whole or rest) or answer.headers.get("etag") != opened.tag:
        raise BundleChanged(
            f"the rest from byte {have} on is not to be had (status {answer.status_code})",
            where=where, expected="the bundle to be opened anew",
        )  # fmt: skip


TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.5


class ServiceRefused(PeerRefused):
    """The service said no; the text is its problem document's."""


class NotDue(ServiceRefused):
    """The audit cannot start yet."""


class AuditFailed(InternalError):
    """The audit stopped without a verdict."""


class Remote:
    """A running verifier service.

    Args:
        url: where it listens.
        token: the auditor's.
        provider: whose windows; may be left out where no two providers share a window's name.
        transport: for tests.
    """

    def __init__(
        self,
        url: str,
        token: str,
        provider: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._url = url
        self._client = HttpClient(
            url,
            timeout=TIMEOUT_SECONDS,
            headers={"Authorization": f"Bearer {token}"},
            params=None if provider is None else {"provider": provider},
            transport=transport,
        )

    def __enter__(self) -> "Remote":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def verdict_key(self) -> PublicKey:
        """Return the key under which the service signs verdicts, as the service says."""
        return ShownKeys.from_json(self._json("GET", "/v1/keys")).verdict

    def start(self, window: str) -> None:
        """Start the audit, unless there is a verdict.

        Raises:
            NotDue: it cannot start yet.
            ServiceRefused: any other refusal.
            ServiceAway: no answer.
        """
        if self.state(window) not in FINAL:
            self._json("POST", f"/v1/windows/{window}/audit")

    def state(self, window: str) -> str:
        """Return the window's state."""
        return str(self._json("GET", f"/v1/windows/{window}")["state"])

    def wait(self, window: str, show: Callable[[str, int, int], None]) -> None:
        """Return when there is a verdict.

        Args:
            show: called with step, done and total at every poll.

        Raises:
            AuditFailed: the audit stopped without one.
        """
        while True:
            progress = self._json("GET", f"/v1/windows/{window}/progress")
            if progress["state"] in FINAL:
                return
            # No state says so: a window whose audit failed is still being audited.
            if str(progress["step"]).startswith("failed"):
                raise AuditFailed(
                    "the audit failed", where=window, expected="see the service's log"
                )
            show(progress["step"] or progress["state"], progress["done"], progress["total"])
            time.sleep(POLL_SECONDS)

    def verdict(self, window: str) -> bytes:
        """Return the signed verdict."""
        return self._request("GET", f"/v1/windows/{window}/verdict").content

    def bundle(
        self,
        window: str,
        said: AccessBody,
        file: BinaryIO,
        note: Callable[[Opened], None] = lambda _: None,
    ) -> None:
        """Write the bundle of all evidence, which may have gigabytes; the access is recorded.

        Args:
            said: who opens it, and why.
            file: empty.
            note: is told how to go on, before the first byte is written.

        Raises:
            ServiceAway, BundleChanged: as of `resume`.
            ServiceRefused: the service refuses to open it.
        """
        path = f"/v1/windows/{window}/bundle/confidential"
        opened: Opened | None = None
        with (
            self._failing(unless=lambda: opened is not None),
            self._client.stream("POST", path, json=said.to_json()) as answer,
        ):
            if not answer.is_success:
                answer.read()
                raise _refusal("POST", path, answer)
            opened = Opened.of(answer.headers)
            note(opened)
            receive(answer, file)
        assert opened is not None  # or something was raised
        self.resume(window, opened, file)

    def resume(self, window: str, opened: Opened, file: BinaryIO) -> None:
        """Write what is missing of a bundle whose download was begun; no access is recorded.

        Args:
            opened: as `bundle` told it.
            file: holds the beginning.

        Raises:
            ServiceAway: it broke off, and several tries brought nothing; what there is stays.
            BundleChanged: the rest cannot be had any more.
        """
        path = f"/v1/windows/{window}/bundle/confidential/{opened.number}"

        def rest(headers: Mapping[str, str]) -> Any:
            return self._client.stream("GET", path, headers=headers)

        go_on(rest, opened, file, path)

    def account(self, window: str, pseudonym: str, said: AccessBody, file: BinaryIO) -> None:
        """Write the lines of what the evidence holds of an account; the access is recorded.

        Args:
            pseudonym: of the account, in hexadecimal.
            said: who opens it, and why.
            file: empty, to be written and read.

        Raises:
            MalformedError: other lines arrived, or not all of them.
            ServiceAway: it broke off, or did not begin.
            ServiceRefused: the service refuses to open it.
        """
        path = f"/v1/windows/{window}/accounts/{pseudonym}"
        with self._failing(), self._client.stream("POST", path, json=said.to_json()) as answer:
            if not answer.is_success:
                answer.read()
                raise _refusal("POST", path, answer)
            receive(answer, file)
        file.seek(0)
        for _ in read_lines(file):
            pass  # whole, from the first to the last

    def accesses(self, window: str) -> list[EvidenceAccess]:
        """Return who opened confidential evidence, as the service says; see `verify_all`."""
        listed = self._request("GET", f"/v1/windows/{window}/accesses").json()
        if not isinstance(listed, list):
            raise ServiceRefused("not a verifier service", where=window)
        return [EvidenceAccess.from_json(each) for each in listed]

    def attach(self, window: str, name: str, body: ReferenceBody) -> ResultReference:
        """Have the verdict refer to a signed test result; return the reference.

        Args:
            name: of the result.
        """
        path = f"/v1/windows/{window}/test-results/{name}"
        return ResultReference.from_json(self._request("PUT", path, body.to_json()).json())

    def test_results(self, window: str) -> list[ResultReference]:
        """Return the test results that the verdict refers to, or will."""
        listed = self._request("GET", f"/v1/windows/{window}/test-results").json()
        if not isinstance(listed, list):
            raise ServiceRefused("not a verifier service", where=window)
        return [ResultReference.from_json(each) for each in listed]

    def _json(self, method: str, path: str) -> dict[str, Any]:
        found = self._request(method, path).json()
        if not isinstance(found, dict):
            raise ServiceRefused("not a verifier service", where=path)
        return found

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> httpx.Response:
        with self._failing():
            answer = self._client.request(method, path, json=body)
        if answer.is_success:
            return answer
        raise _refusal(method, path, answer)

    @contextmanager
    def _failing(self, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            if unless():
                return
            raise ServiceAway(f"no answer: {error}", where=self._url) from error


def _refusal(method: str, path: str, answer: httpx.Response) -> RagauditError:
    if answer.is_server_error:
        return ServiceAway(_detail(answer), where=str(answer.url))
    # A name that several providers use is no matter of time; reading the state says so first.
    early = method == "POST" and answer.status_code == HTTPStatus.CONFLICT
    if family_of(answer.status_code) is MalformedError:
        return MalformedError(_detail(answer), where=path)
    kind = NotDue if early else ServiceRefused
    return kind(_detail(answer), where=path)


def _detail(answer: httpx.Response) -> str:
    try:
        said = reason(answer.json())
    except ValueError:
        said = ""
    return said or f"status {answer.status_code}"
