"""One service that generates text: bounded calls to it, and names for its failures."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Semaphore
from typing import Any, NoReturn, TypeVar

import httpx
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.json_structure import loads
from ragaudit.http import HttpClient, OddAnswer, trusted_authorities
from ragaudit.ledger.messages.generator_manifest import Prompt
from ragaudit.serving.generators.errors import (
    GeneratorBusy,
    GeneratorSlow,
    GeneratorUnavailable,
    OddGenerator,
)

__all__ = ["Asking", "GeneratorOptions", "Prompt"]

MAX_ANSWER_BYTES = 2**24  # whoever answers must not fill our memory
_PAUSE = 1.0  # seconds, where a busy service does not say how long
_LONGEST_PAUSE = 30.0

_log = logging.getLogger(__name__)
Result = TypeVar("Result")
Item = TypeVar("Item")


@dataclass(frozen=True)
class GeneratorOptions:
    """How the service is reached, and how much of it is used.

    Attributes:
        url: of the API, as ``https://host/v1``.
        model: as the service is asked for it.
        served_as: the name that its answers give the model; `model` if None.
        key: sent as a bearer token; None for a service that asks for none.
        timeout: seconds for each phase of a call.
        deadline: seconds for everything that one step of an answer asks; what is not there by
            then is an empty vote.
        batch: prompts of one call, where the API takes several.
        parallel: calls at a time, of all questions together.
        questions: steps of answers that are worked on at a time; one more waits, and is refused
            after `timeout` seconds.
        authorities: PEM file of the certificate authorities to trust instead of the usual.
        transport: instead of the network, for tests.
    """

    url: str
    model: str
    served_as: str | None = None
    key: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    deadline: float = 120.0
    batch: int = 16
    parallel: int = 4
    questions: int = 4
    authorities: Path | None = None
    transport: httpx.BaseTransport | None = field(default=None, repr=False)


class Asking:
    """Calls to the service. Safe to use from several threads."""

    def __init__(self, options: GeneratorOptions) -> None:
        """Prepare the calls; nothing is sent yet.

        Raises:
            MalformedSettings: no certificates in the file of authorities.
        """
        self.options = options
        headers = {} if options.key is None else {"Authorization": f"Bearer {options.key}"}
        self._http = HttpClient(
            options.url,
            timeout=options.timeout,
            most=MAX_ANSWER_BYTES,
            verify=trusted_authorities(options.authorities, "generator ca_file"),
            headers=headers,
            transport=options.transport,
        )
        self._calls = ThreadPoolExecutor(options.parallel, thread_name_prefix="generator")
        self._admitted = Semaphore(options.questions)

    def close(self) -> None:
        """Release the connections; calls under way end first."""
        self._calls.shutdown()
        self._http.close()

    @contextmanager
    def step(self) -> Iterator[float]:
        """Yield the time (monotonic) by which a step of an answer must be done.

        Raises:
            GeneratorBusy: as many steps as may be are worked on.
        """
        if not self._admitted.acquire(timeout=self.options.timeout):
            raise GeneratorBusy("too many answers are being generated", where="generator")
        try:
            yield time.monotonic() + self.options.deadline
        finally:
            self._admitted.release()

    def each(
        self, items: Sequence[Item], ask: Callable[[Item], Result], empty: Result
    ) -> list[Result]:
        """Return an answer for each item; ``empty`` where there is none.

        Args:
            items: what is asked.
            ask: one call.
            empty: stands for any failure of the service.
        """

        def attempt(item: Item) -> Result:
            try:
                return ask(item)
            except GeneratorUnavailable:
                return empty

        return list(self._calls.map(attempt, items))

    def post(self, path: str, body: dict[str, Any], until: float) -> list[dict[str, Any]]:
        """Return the choices of an answer; a busy service is asked again while there is time.

        Args:
            path: below the URL.
            body: of the call, without the model.
            until: as of `step`.

        Raises:
            GeneratorSlow: no answer in time.
            GeneratorBusy: it is asked to wait for longer than there is time.
            OddGenerator: an answer of another form, or of another model.
            GeneratorUnavailable: none, or a status that is none of an answer.
        """
        while True:
            if time.monotonic() >= until:
                raise GeneratorSlow("the generator did not answer in time", where="generator")
            request = self._http.build_request(
                "POST", path, json={"model": self.options.model, **body}
            )
            response = self._sent(request)
            if response.status_code not in (429, 503):
                break
            pause = _pause(response)
            if time.monotonic() + pause >= until:
                raise GeneratorBusy("the generator has too much to do", where="generator")
            time.sleep(pause)
        if response.status_code != 200:
            self.refuse(GeneratorUnavailable, f"answered {response.status_code}")
        return self._choices(response.content)

    def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            try:
                return self._http.send(request)
            except (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError):
                # Most often the service closed a connection that was kept, as the request came.
                # Decoding is greedy, so nothing is drawn by asking again.
                return self._http.send(request)
        except httpx.TimeoutException:
            self.refuse(GeneratorSlow, "did not answer in time")
        except OddAnswer as error:
            self.refuse(OddGenerator, f"sent what is not read: {type(error).__name__}")
        except httpx.HTTPError:
            self.refuse(GeneratorUnavailable, "cannot be reached")

    def _choices(self, content: bytes) -> list[dict[str, Any]]:
        try:
            value = loads(content)
        except (ValueError, MalformedError):
            self.refuse(OddGenerator, "answered something else than JSON")
        choices = value.get("choices") if isinstance(value, dict) else None
        if not isinstance(choices, list) or not all(isinstance(each, dict) for each in choices):
            self.refuse(OddGenerator, "answered without choices")
        if value.get("model") != (self.options.served_as or self.options.model):
            self.refuse(OddGenerator, "answered as another model")
        return choices

    def refuse(self, kind: type[GeneratorUnavailable], what: str) -> NoReturn:
        """Raise a failure of the service.

        Args:
            kind: of failure.
            what: it did; never what it wrote, which may quote documents.

        Raises:
            GeneratorUnavailable: of that kind.
        """
        # The address is the operator's: it stands in the log, not in the error.
        _log.warning("the generator at %s %s", self.options.url, what)
        raise kind(f"the generator {what}", where="generator") from None


def _pause(response: httpx.Response) -> float:
    """Return for how many seconds a busy service wants to be left alone."""
    stated = response.headers.get("retry-after", "")
    return min(float(stated), _LONGEST_PAUSE) if stated.isdecimal() else _PAUSE
