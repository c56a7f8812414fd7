"""Requests, answers, and who carries them."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Protocol
from urllib.parse import quote

import httpx
from ragaudit.encoding.errors import UnavailableError

MAX_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of an answer that are looked at."""
_LONG_KEY: Final = 16
_LOST = "no answer: the connection ended"
_UNJUDGED: Final = frozenset(
    ("401", "429", "502", "503", "504", "08006", "53300", "55P03", "57014", "57P01", "57P03")
)
"""Of requests that nobody judged: the key is none, came too often, or the store is not there."""
_ELSEWHERE: Final = frozenset(("301", "302", "303", "307", "308"))
_MOST_HOPS: Final = 5
_WHOLE: Final = 12
"""Of an answer, in timeouts of one step: who sends a byte now and then is not waited for."""


@dataclass(frozen=True)
class Request:
    """One request, as it is sent but for the key.

    Attributes:
        by: the tenant whose key goes with it.
        method: of HTTP, or SQL.
        path: as it stands on the request line, escaped; or SQL statements.
        body: as sent; "" for none.
        headers: beside the key's. A value ``{etag}`` is the entity tag of the answer before.
    """

    by: str
    method: str
    path: str
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def holds(self, marker: str) -> bool:
        """Return whether the request itself has a text, so that an answer may repeat it."""
        return mentions(self._folded, marker)

    def about(self, created: str) -> "Request":
        """Return the request with an id in the place of ``{created}``."""
        path, body = (one.replace("{created}", created) for one in (self.path, self.body))
        return replace(self, path=path, body=body)

    @cached_property
    def _folded(self) -> str:
        return f"{self.path}\n{self.body}\n{dict(self.headers)}".casefold()


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: of HTTP; OK or a SQLSTATE of SQL; "" if nothing came.
        text: the body; rows as JSON; what went wrong if nothing came.
        etag: the entity tag, "" without.
        seconds: from the first byte sent to the last one read.
        wait: seconds that the store asks to wait before the request is sent again.
        headers: those of the answer, and of the redirections that led to it, a line each.
        cut: whether the text goes on and was not read.
    """

    status: str
    text: str
    etag: str = ""
    seconds: float = 0.0
    wait: float = 1.0
    headers: str = ""
    cut: bool = False

    @property
    def unjudged(self) -> str:
        """Why the answer does not show what the store does with the request, "" if it does."""
        if self.cut:
            return "an answer that is too long"
        if self.status in _ELSEWHERE:
            return f"{self.status} to another address"
        return (self.status if self.status in _UNJUDGED else "") if self.status else "no answer"

    @property
    def judged(self) -> bool:
        """Whether the store decided about the request at all, and its answer was read."""
        return not self.unjudged

    @cached_property
    def folded(self) -> str:
        """All that came back, without the difference of capitals."""
        return f"{self.headers}\n{self.text}".casefold()

    @property
    def succeeded(self) -> bool:
        """Whether the store did what it was asked for."""
        return self.status == "OK" or self.status.startswith("2")


class Client(Protocol):
    """Carries requests."""

    def send(self, request: Request) -> Answer:
        """Return the answer to a request; a failure is an answer without a status."""

    def close(self) -> None:
        """Release connections."""


class Secrets:
    """The keys, and texts without them."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        """Keep keys.

        Args:
            keys: by tenant.
        """
        self._keys = dict(keys)
        forms = {form: tenant for tenant, key in keys.items() for form in _forms(key)}
        # The longest first: a key may begin with another one.
        found = "|".join(_token(form) for form in sorted(forms, key=len, reverse=True))
        self._tenants, self._pattern = forms, re.compile(found) if forms else None

    def of(self, tenant: str) -> str | None:
        """Return the key of a tenant, None without one."""
        return self._keys.get(tenant)

    def redacted(self, text: str) -> str:
        """Return a text with every key replaced by whose it is.

        A short key counts where it stands as a word of its own; a long one, which stands nowhere
        by chance, anywhere.
        """
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"<key of {self._tenants[found[0]]}>", text)


def _forms(key: str) -> set[str]:
    """How a key may stand in a text: as it is, in JSON, in a URL."""
    return {key, json.dumps(key)[1:-1], quote(key, safe="")}


def _token(form: str) -> str:
    """A pattern of a key as a whole token."""
    if len(form) >= _LONG_KEY:
        return re.escape(form)
    # What ends in a letter or digit and is none: a byte of a URL, a character of JSON.
    escaped = r"(?<=%[0-9A-Fa-f]{2})|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4})"
    return rf"(?:(?<![A-Za-z0-9])|{escaped}){re.escape(form)}(?![A-Za-z0-9])"


class HttpClient:
    """Sends requests over HTTP, their paths exactly as they are written."""

    def __init__(
        self, url: str, header: str, prefix: str, secrets: Secrets, timeout: float
    ) -> None:
        """Connect lazily.

        Args:
            url: of the service; a path of its is put before every request's.
            header: that carries the key.
            prefix: of the key there, such as ``Bearer ``.
            timeout: in seconds, of each step of a request; a whole answer has twelve of them.
        """
        self._url = httpx.URL(url)
        self._header = header
        self._prefix = prefix
        self._secrets = secrets
        self._timeout = timeout
        # No environment: a proxy in between would be tested instead.
        self._http = httpx.Client(trust_env=False, timeout=timeout)

    def close(self) -> None:
        """Release connections."""
        self._http.close()

    def send(self, request: Request) -> Answer:
        """Return the answer to a request; a failure is an answer without a status."""
        headers = {"accept": "application/json, text/event-stream", **request.headers}
        key = self._secrets.of(request.by)
        if key:
            headers[self._header] = f"{self._prefix}{key}"
        if request.body:
            headers.setdefault("content-type", "application/json")
        target = self._url.raw_path.rstrip(b"/") + request.path.encode("ascii")
        answer = self._sent(request, target, headers)
        if answer.text == _LOST:
            # A kept connection may have ended just now: whether this request ends one, a new one
            # tells.
            answer = self._sent(request, target, headers)
        return self._followed(request, target, headers, answer)

    def _followed(
        self, request: Request, target: bytes, headers: Mapping[str, str], answer: Answer
    ) -> Answer:
        """Follow redirections as clients do, but not to another server: it is not under test."""
        for _ in range(_MOST_HOPS):
            place = self._place(answer, target)
            if place is None:
                break
            target = place
            if answer.status in ("301", "302", "303") and request.method != "HEAD":
                request = replace(request, method="GET", body="")
            next_one = self._sent(request, target, headers)
            answer = replace(
                next_one, seconds=answer.seconds + next_one.seconds,
                headers=f"{answer.headers}\n{next_one.headers}",
            )  # fmt: skip
        return answer

    def _place(self, answer: Answer, target: bytes) -> bytes | None:
        """The path to which an answer sends on; None if to none of this server."""
        found = [line for line in answer.headers.splitlines() if line.startswith("location: ")]
        if answer.status not in _ELSEWHERE or not found:
            return None
        try:
            here = self._url.copy_with(raw_path=target)
            there = here.join(found[-1].removeprefix("location: "))
        except (httpx.InvalidURL, ValueError):
            return None
        same = (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)
        return there.raw_path if same and there.raw_path != target else None

    def _sent(self, request: Request, target: bytes, headers: Mapping[str, str]) -> Answer:
        built = self._http.build_request(
            request.method,
            self._url,
            content=request.body.encode(),
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            # Not as part of the URL, whose dot segments the client would resolve.
            extensions={"target": target, "timeout": self._http.timeout.as_dict()},
        )
        started = time.perf_counter()
        try:
            answer = self._http.send(built, stream=True)
            try:
                body, until = bytearray(), started + _WHOLE * self._timeout
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > MAX_ANSWER:
                        break
                    if time.perf_counter() > until:
                        return Answer("", "no answer: it does not end")
            finally:
                answer.close()
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return Answer("", _LOST)
        except httpx.HTTPError as error:
            return Answer("", f"no answer: {type(error).__name__}")
        seconds = time.perf_counter() - started
        text = body[:MAX_ANSWER].decode("utf-8", "replace")
        wait = answer.headers.get("retry-after", "1")
        return Answer(
            str(answer.status_code),
            text,
            answer.headers.get("etag", ""),
            seconds,
            float(wait) if wait.isdecimal() else 1.0,
            "\n".join(f"{name}: {value}" for name, value in answer.headers.multi_items()),
            len(body) > MAX_ANSWER,
        )


def mentions(folded: str, marker: str) -> bool:
    """Return whether a text has a marker, in capitals or not; an id also without its hyphens.

    Args:
        folded: the text, case folded.
    """
    marker = marker.casefold()
    return marker in folded or marker.replace("-", "") in folded


def json_request(
    by: str, path: str, body: Any, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> Request:
    """Return a request with a JSON body.

    Args:
        by: the tenant whose key goes with it.
        path: as it stands on the request line.
        body: any JSON value.
    """
    return Request(by, method, path, json.dumps(body), headers or {})


def succeeded(client: Client, request: Request, where: str) -> Answer:
    """Return the answer to a request that must succeed before the test makes sense.

    Args:
        where: the field that names what is asked for, if it does not.

    Raises:
        UnavailableError: nothing answers, or with an error.
    """
    answer = client.send(request)
    if answer.succeeded:
        return answer
    said = (
        f"{answer.unjudged or answer.status} to {request.method}" if answer.status else answer.text
    )
    raise UnavailableError(said, where=where, expected="a store that answers this tenant")


def created_by(answer: Answer) -> str:
    """Return the id of what an answer says was made, escaped for a path; "" if it names none."""
    found = members(answer.text)
    return quote(str(found["id"]), safe="") if isinstance(found, dict) and "id" in found else ""


def members(text: str) -> Any:
    """Return the JSON value of an answer, also of one server-sent event; None if it has none."""
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
    for candidate in (text, "".join(lines)):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return None


def numbers(value: Any) -> Sequence[list[float]]:
    """Return the lists of numbers in a JSON value, also those written as texts."""
    found: list[list[float]] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            if item and all(type(one) in (int, float) for one in item):
                found.append(item)
            else:
                waiting.extend(item)
        elif isinstance(item, str) and item.startswith("[") and item.endswith("]"):
            inner = members(item)
            if isinstance(inner, list):
                waiting.append(inner)
    return found


def texts(value: Any) -> Sequence[str]:
    """Return the texts in a JSON value, names of members not among them."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str):
            found.append(item)
    return found
