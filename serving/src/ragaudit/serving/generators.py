"""A language model behind OpenAI's API, as the voters of the mechanisms of spec 11.

`Asking` is one service: what it may take of time and memory. `NextTokens` asks it for the next
token of each voter (`POST /completions`, for DP-RAG), `WholeAnswers` for whole answers (`POST
/chat/completions`, for DP-KSA).

What fails for a voter is an empty vote, never an error: whether a document made its own voter fail
would be told otherwise. Errors come of prompts that hold no document:

RagauditError
└── UnavailableError
    └── GeneratorUnavailable   GeneratorSlow, GeneratorBusy
        └── OddGenerator   GeneratorNotDeterministic, TokenOutsideVocabulary
"""

import json
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
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.json_structure import loads
from ragaudit.http import HttpClient, OddAnswer, trusted_authorities
from ragaudit.ledger.messages.manifests import Prompt, Vocabulary

__all__ = [
    "Asking",
    "GeneratorOptions",
    "NextTokens",
    "Prompt",
    "Vocabulary",
    "WholeAnswers",
    "read_json",
    "read_tokens",
]


class GeneratorUnavailable(UnavailableError):
    """The language model behind the generation channel gives no answer that can be used."""


class GeneratorSlow(GeneratorUnavailable):
    """The language model did not answer in time."""


class GeneratorBusy(GeneratorUnavailable):
    """The language model, or what waits for it here, has too much to do: ask again later."""

    retry_after = 1


class OddGenerator(GeneratorUnavailable):
    """The language model answered what it was not asked for."""


class GeneratorNotDeterministic(OddGenerator):
    """The language model answers the same prompt differently: no vote could be recomputed."""


class TokenOutsideVocabulary(OddGenerator):
    """The language model named a token that the committed vocabulary does not have."""


def read_json(path: Path) -> Any:
    """Return what a file says, in any spelling of JSON: a digest is of the canonical form.

    Raises:
        MalformedError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise MalformedError(f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON") from error


def read_tokens(path: Path) -> tuple[str, ...]:
    """Return the texts of all tokens, in their order; MalformedError as `read_json`."""
    tokens = read_json(path)
    if not isinstance(tokens, list) or not all(isinstance(each, str) for each in tokens):
        raise MalformedError("not a list of texts")
    return tuple(tokens)


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


_LARGEST = 10**9  # of a logprob that is read, without its sign; -inf is none


class NextTokens:
    """`privacy.mechanisms.dp_rag.TokenVoters` over a service. Safe to use from several threads.

    Only a service that decodes greedily for temperature 0 can be used; `check` finds out one that
    does not, as far as asking twice can.

    Attributes:
        vocabulary: of the tokens.
    """

    def __init__(self, asking: Asking, vocabulary: Vocabulary, prompt: Prompt) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            asking: the service; closed by its owner.
            vocabulary: fixed and public.
            prompt: of a voter.
        """
        self._asking = asking
        self.vocabulary = vocabulary
        self._prompt = prompt

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        """Return the next token of each voter, None where a voter gave none.

        Args:
            question, documents, answer: as of `TokenVoters`.

        Raises:
            GeneratorUnavailable: one that reads nothing gave none; of a kind that says why.
        """
        so_far = self.vocabulary.text(answer)
        prompts = [self._prompt.of(texts, question) + so_far for texts in documents]
        public = [place for place, texts in enumerate(documents) if not texts]
        private = [place for place, texts in enumerate(documents) if texts]
        found: list[int | None] = [None] * len(prompts)
        with self._asking.step() as until:
            for place in public:
                # Never in one call with documents, which could spoil it.
                found[place] = self._batch([prompts[place]], until)[0]
            size = self._asking.options.batch
            parts = [private[start : start + size] for start in range(0, len(private), size)]

            def ask(part: Sequence[int]) -> list[int] | None:
                return self._batch([prompts[place] for place in part], until)

            answers = self._asking.each(parts, ask, None)
            # One document of a call that fails is to blame: each is asked alone.
            alone = [
                [place]
                for part, tokens in zip(parts, answers, strict=True)
                if tokens is None and len(part) > 1
                for place in part
            ]
            answers += self._asking.each(alone, ask, None)
        for part, tokens in zip(parts + alone, answers, strict=True):
            for place, token in zip(part, tokens or (), strict=tokens is not None):
                found[place] = token
        return found

    def check(self, questions: Sequence[str]) -> list[int]:
        """Return the next token of each public question, asked alone, together and turned around.

        Args:
            questions: none empty, no document in them.

        Raises:
            GeneratorNotDeterministic: an answer differs.
            GeneratorUnavailable: no answer, of a kind that says why.
        """
        prompts = [self._prompt.of((), question) for question in questions]
        with self._asking.step() as until:
            alone = [self._batch([prompt], until)[0] for prompt in prompts]
            together = self._batch(prompts, until)
            turned = self._batch(prompts[::-1], until)[::-1]
        if not alone == together == turned:
            self._asking.refuse(GeneratorNotDeterministic, "answers the same prompt differently")
        return alone

    def _batch(self, prompts: list[str], until: float) -> list[int]:
        body = {
            "prompt": prompts, "max_tokens": 1, "temperature": 0, "seed": 0, "n": 1, "logprobs": 1,
        }  # fmt: skip
        choices = self._asking.post("completions", body, until)
        # The order of the list is no promise; the index is.
        places: dict[int, dict[str, Any]] = {}
        for each in choices:
            match each:
                case {"index": int(index)} if 0 <= index < len(prompts):
                    places[index] = each
        if len(choices) != len(prompts) or len(places) != len(prompts):
            self._asking.refuse(OddGenerator, "did not answer one choice for each prompt")
        return [self._token(places[index]) for index in range(len(prompts))]

    def _token(self, choice: dict[str, Any]) -> int:
        text, likeliest = _likeliest(choice)
        if text is None and choice.get("finish_reason") == "stop" and choice.get("text") == "":
            return self.vocabulary.end  # services that do not write the end token
        if text is None:
            self._asking.refuse(OddGenerator, "did not answer one token with its logprobs")
        if text not in likeliest:
            self._asking.refuse(OddGenerator, "chose a token that is not its likeliest")
        token = self.vocabulary.id_of(text)
        if token is None:
            self._asking.refuse(
                TokenOutsideVocabulary, "answered a token that the vocabulary does not have"
            )
        return token


def _likeliest(choice: dict[str, Any]) -> tuple[str | None, set[str]]:
    """Return the only token of a choice, and those that were as likely as any.

    OpenAI's form (``tokens``, ``top_logprobs``), and the one of newer servers, that of their chat
    (``content``).
    """
    match choice.get("logprobs"):
        case {"tokens": [str(text)], "token_logprobs": [own], "top_logprobs": [dict(top)]}:
            pairs = [(text, own), *top.items()]
        case {"content": [{"token": str(text), "logprob": own, "top_logprobs": list(top)}]}:
            pairs = [(text, own)]
            for each in top:
                match each:
                    case {"token": str(token), "logprob": logprob}:
                        pairs.append((token, logprob))
                    case _:
                        return None, set()
        case _:
            return None, set()
    if not all(_is_logprob(logprob) for _, logprob in pairs):
        return None, set()
    most = max(float(logprob) for _, logprob in pairs)
    return text, {token for token, logprob in pairs if float(logprob) == most}


def _is_logprob(value: object) -> bool:
    # A sum of rounded chances may be a little above 1. No whole number is compared as a float
    # before its range is known: JSON may hold one that no float does.
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -_LARGEST <= value <= 0.01
    )


CHARACTERS = 64
"""The most of an answer, for each of its tokens: no token of a known model is longer."""


class WholeAnswers:
    """`privacy.mechanisms.dp_ksa.ResponseVoters` over a service. Safe to use from several threads.

    Without keywords the prompt of the final answer is that of a voter who reads nothing, byte for
    byte: whether the test failed is not told in another way than by the answer.
    """

    def __init__(self, asking: Asking, prompt: Prompt, keywords: Prompt, *, tokens: int) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            asking: the service; closed by its owner.
            prompt: of a voter.
            keywords: of the final answer; the released keywords are its documents.
            tokens: the most of an answer.
        """
        self._asking = asking
        self._prompt = prompt
        self._keywords = keywords
        self._tokens = tokens

    def responses(self, question: str, documents: Sequence[str]) -> list[str]:
        """Return an answer for each document, "" where a voter gave none.

        Args:
            question, documents: as of `ResponseVoters`.

        Raises:
            GeneratorBusy: too many answers are generated already.
        """
        return ["" if each is None else each for each in self.whole(question, documents)]

    def whole(self, question: str, documents: Sequence[str]) -> list[str | None]:
        """Return an answer for each document, None where a voter gave none.

        Args:
            question, documents: as of `ResponseVoters`.

        Raises:
            GeneratorBusy: too many answers are generated already.
        """

        def ask(prompt: str) -> str | None:
            return self._one(prompt, until)

        prompts = [self._prompt.of((text,), question) for text in documents]
        with self._asking.step() as until:
            return self._asking.each(prompts, ask, None)

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the answer to a question with keywords, or without any.

        Args:
            question, keywords: as of `ResponseVoters`; both are released or public.

        Raises:
            GeneratorUnavailable: no answer, of a kind that says why.
        """
        prompt = self._keywords if keywords else self._prompt
        with self._asking.step() as until:
            return self._one(prompt.of(keywords, question), until)

    def check(self, questions: Sequence[str]) -> list[str]:
        """Return the answer to each public question; all are asked twice, at the same time.

        Args:
            questions: no document in them.

        Raises:
            GeneratorNotDeterministic: an answer differs.
            GeneratorUnavailable: no answer, of a kind that says why.
        """
        prompts = [self._prompt.of((), question) for question in questions]
        with self._asking.step() as until:
            alone = [self._one(prompt, until) for prompt in prompts]
            again = self._asking.each(prompts, lambda prompt: self._one(prompt, until), None)
        if alone != again:
            self._asking.refuse(GeneratorNotDeterministic, "answers the same prompt differently")
        return alone

    def _one(self, prompt: str, until: float) -> str:
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self._tokens, "temperature": 0, "seed": 0, "n": 1,
        }  # fmt: skip
        match self._asking.post("chat/completions", body, until):
            case [{"message": {"role": "assistant", "content": str(text)}}]:
                pass
            case _:
                self._asking.refuse(OddGenerator, "did not answer one message")
        if len(text) > CHARACTERS * self._tokens:
            self._asking.refuse(OddGenerator, "answered more than it was asked for")
        # JSON can write halves of characters, which nothing that comes after can store.
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._asking.refuse(OddGenerator, "answered what is no text")
        return text
