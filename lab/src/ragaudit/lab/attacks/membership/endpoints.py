"""Any RAG that answers JSON over HTTP, described by a small template.

    {"url": "https://rag.example/ask", "headers": {"Authorization": "Bearer {key}"},
     "body": {"question": "{query}"}, "answer": "reply.text", "citations": "sources[*].title"}

A path is member names with dots between them, `[n]` an item and `[*]` every item. OpenAI's chat and
the prover's own queries are templates too.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import httpx
from ragaudit.encoding.errors import MalformedError, RefusedError, UnavailableError
from ragaudit.http import HttpClient
from ragaudit.lab.attacks.membership.documents import is_text

_PART: Final = re.compile(r"([^.\[\]]+)|\[(\d{1,6}|\*)\]")
_PATH: Final = re.compile(
    r"[^.\[\]]+(?:\[(?:\d{1,6}|\*)\])*(?:\.[^.\[\]]+(?:\[(?:\d{1,6}|\*)\])*)*"
)
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MOST_BYTES: Final = 4 * 2**20
_TRIES: Final = 4
_LONGEST_WAIT: Final = 60.0
_DECLINED: Final = frozenset({400, 413, 422})
"""Of one question: an answer like another, that tells nothing."""
REDACTED: Final = "[redacted]"
LEAST_KEY_BYTES: Final = 8


@dataclass(frozen=True)
class Template:
    """How a RAG is asked, and where in its reply the answer is.

    Attributes:
        url: that questions are posted to.
        body: JSON, `{query}` in its texts.
        answer: path of the answer's text, or texts.
        citations: path of what it cites; empty for none.
        headers: `{key}` in their values.
    """

    url: str
    body: Mapping[str, Any]
    answer: str
    citations: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        place = httpx.URL(self.url) if _is_url(self.url) else None
        if place is None or place.scheme not in ("http", "https") or not place.host:
            raise MalformedError("no URL", where="url", expected="http(s)://host/path")
        # What is stored names the URL: nothing secret may be in it.
        if place.userinfo:
            raise MalformedError("a password", where="url", expected="a header with {key}")
        body = json.dumps(self.body, ensure_ascii=False)
        if "{query}" not in body or not is_text(body):
            raise MalformedError("no place for the question", where="body", expected="{query}")
        for header, text in self.headers.items():
            if not _HEADER.fullmatch(header) or not _is_line(text):
                raise MalformedError(
                    f"{header!r}", where="headers", expected="names and values in one line of ASCII"
                )
        for name, path in (("answer", self.answer), ("citations", self.citations or "x")):
            if not _PATH.fullmatch(path):
                raise MalformedError(f"{path!r}", where=name, expected="a path as a.b[0].c[*]")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the template of a file.

        Args:
            text: JSON.

        Raises:
            MalformedError: anything else.
        """
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedError("not JSON", where="--endpoint") from error
        match value:
            case {"url": str(url), "body": dict(body), "answer": str(answer), **rest}:
                citations, given = rest.pop("citations", ""), rest.pop("headers", {})
                headers: dict[str, Any] = given if isinstance(given, dict) else {"": None}
                texts = [citations, *headers.values()]
                if not rest and all(isinstance(each, str) for each in texts):
                    return cls(url, body, answer, str(citations), headers)
        raise MalformedError(
            "no template", where="--endpoint", expected="url, body, answer; citations, headers"
        )

    def check_key(self, key: str) -> None:
        """Check that there is a key if the headers want one.

        Args:
            key: may be empty.

        Raises:
            MalformedError: they do, and it is; or it would stand in any text by chance.
        """
        if not key and any("{key}" in value for value in self.headers.values()):
            raise MalformedError("no key", where="--key-file", expected="a file of one line")
        if not _is_line(key):
            raise MalformedError("no key", where="--key-file", expected="one line of ASCII")
        if 0 < len(key) < LEAST_KEY_BYTES:
            # It is left out of what is kept, and would take letters of answers with it.
            raise MalformedError(
                f"a key of {len(key)} bytes",
                where="--key-file",
                expected=f"{LEAST_KEY_BYTES} or more",
            )

    def filled(self, query: str) -> Any:
        """Return the body of a question.

        Args:
            query: its text.
        """
        return _filled(self.body, query)

    def read(self, reply: Any) -> "Answer":
        """Return the answer in a reply.

        Args:
            reply: JSON.

        Raises:
            MalformedError: there is none at its path.
        """
        texts = _at(reply, self.answer)
        if texts is None or not all(isinstance(each, str | None) for each in texts):
            # Its members, and not what they hold.
            members = ", ".join(map(str, reply)) if isinstance(reply, dict) else "no object"
            raise MalformedError(
                "no text", where=f"answer at {self.answer}",
                expected=f"a path into the reply, which has: {members[:200]}",
            )  # fmt: skip
        cited = _at(reply, self.citations) if self.citations else None
        # Null is what OpenAI's chat says where a filter has declined.
        told = "\n".join(each for each in texts if each)
        return Answer(told, tuple(str(each) for each in cited or ()))


@dataclass(frozen=True)
class Answer:
    """What a RAG said.

    Attributes:
        text: empty if it declined the question.
        citations: as they came.
        status: of HTTP.
    """

    text: str
    citations: tuple[str, ...] = ()
    status: int = 200


def openai(url: str, model: str) -> Template:
    """Return the template of OpenAI's chat completions.

    Args:
        url: up to and with `/v1`.
        model: as the service calls it.
    """
    # No temperature: some services refuse it, and a template of one's own may name it.
    body = {"model": model, "messages": [{"role": "user", "content": "{query}"}]}
    return Template(
        f"{url.rstrip('/')}/chat/completions", body, "choices[0].message.content",
        headers={"Authorization": "Bearer {key}"},
    )  # fmt: skip


def ragaudit(url: str, window: str, top_k: int) -> Template:
    """Return the template of the prover's own queries: the answer is the documents that it gives.

    Args:
        url: of the prover.
        window: that is open, in which the key's account is registered.
        top_k: as the policy has it.
    """
    return Template(
        f"{url.rstrip('/')}/v1/windows/{window}/query", {"query": "{query}", "top_k": top_k},
        "answer.documents[*].content", "answer.documents[*].id",
        headers={"Authorization": "Bearer {key}"},
    )  # fmt: skip


class Caller:
    """Asks one endpoint, a question at a time; what it returns never holds the key."""

    def __init__(
        self, template: Template, key: str, timeout: float,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:  # fmt: skip
        """Prepare the calls; nothing is sent yet.

        Args:
            template: of the endpoint.
            key: for `{key}`; may be empty.
            timeout: seconds of each phase of a call.
            sleep: between tries.
        """
        template.check_key(key)
        headers = {name: value.replace("{key}", key) for name, value in template.headers.items()}
        self._template, self._key, self._sleep = template, key, sleep
        self._http = HttpClient(
            template.url, timeout=timeout, most=_MOST_BYTES, headers=headers, connects=1
        )

    def __repr__(self) -> str:
        return f"Caller({self._template.url!r})"

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def ask(self, query: str) -> tuple[Answer, Any]:
        """Return the answer to a question, and the whole reply, without the key.

        A question that the endpoint finds wrong (400, 413, 422) has an empty answer: some contents
        are filtered, and that is an answer too.

        Args:
            query: its text.

        Raises:
            UnavailableError: no answer after four tries, or one that cannot be read.
            RefusedError: the endpoint does not answer us at all (401, 403, 404, ...).
        """
        for tried in range(_TRIES):
            last = tried == _TRIES - 1
            try:
                body = self._template.filled(query)
                response = self._http.request("POST", self._template.url, json=body)
            except httpx.HTTPError as error:
                if last:
                    raise UnavailableError(
                        f"no answer: {type(error).__name__}", where=self._template.url
                    ) from None
                self._sleep(float(2**tried))
                continue
            if response.status_code == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
                if last:
                    raise UnavailableError(
                        f"answers {response.status_code}", where=self._template.url,
                        expected="200; go on later with the same command",
                    )  # fmt: skip
                self._sleep(_wait(response, tried))
                continue
            return self._read(response)
        raise AssertionError  # the last try returned or raised

    def _read(self, response: httpx.Response) -> tuple[Answer, Any]:
        if response.status_code in _DECLINED:
            return Answer("", status=response.status_code), self._clean(response.text[:10_000])
        if not response.is_success:
            raise RefusedError(
                f"answers {response.status_code}", where=self._template.url,
                expected="200: look at key and address",
            )  # fmt: skip
        try:
            reply = self._clean(json.loads(response.content))
            return self._template.read(reply), reply
        except (ValueError, RecursionError, MalformedError) as error:
            what = str(error) if isinstance(error, MalformedError) else "not JSON"
            raise UnavailableError(
                f"an answer that cannot be read: {what}", where=self._template.url
            ) from None

    def _clean(self, value: Any) -> Any:
        """The same without the key, wherever the endpoint may have put it."""
        if isinstance(value, str):
            return value.replace(self._key, REDACTED) if self._key else value
        if isinstance(value, list):
            return [self._clean(each) for each in value]
        if isinstance(value, dict):
            return {self._clean(name): self._clean(each) for name, each in value.items()}
        return value


def _is_line(text: str) -> bool:
    return text.isascii() and (text == "" or text.isprintable())


def _is_url(text: str) -> bool:
    try:
        httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return True


def _filled(value: Any, query: str) -> Any:
    if isinstance(value, str):
        return value.replace("{query}", query)
    if isinstance(value, list):
        return [_filled(each, query) for each in value]
    if isinstance(value, dict):
        return {name: _filled(each, query) for name, each in value.items()}
    return value


def _at(value: Any, path: str) -> list[Any] | None:
    """What stands at a path, an empty list if a list on the way is empty; None if nothing does."""
    found = [value]
    for name, item in _PART.findall(path):
        if name:
            found = [each[name] for each in found if isinstance(each, dict) and name in each]
        else:
            lists = [each for each in found if isinstance(each, list)]
            if item == "*":
                found = [inner for each in lists for inner in each]
                if lists and not found:
                    return found
            else:
                at = int(item)
                found = [each[at] for each in lists if at < len(each)]
        if not found:
            return None
    return found


def _wait(response: httpx.Response, tried: int) -> float:
    text = response.headers.get("retry-after", "")
    return min(_LONGEST_WAIT, float(text)) if text.isdecimal() else float(2**tried)
