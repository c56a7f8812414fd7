"""The model behind OpenAI's API: ``python -m ragaudit.lab.generation.serving --port 8000``.

`GET /v1/models`, `POST /v1/completions` (with logprobs, several prompts in a call) and
`POST /v1/chat/completions` (the contents of the messages, one after another, are the prompt). Only
greedy decoding. For tests, reproductions and demonstrations.
"""

import argparse
import hashlib
import os
from collections.abc import Iterable
from importlib.resources import files
from typing import Annotated, Any

import numpy as np
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.generation.transformer import Transformer, completed, next_logits
from ragaudit.lab.generation.vocabulary import END, TOKENS
from ragaudit.lab.generation.voters import KEYWORDS, PROMPT, VOCABULARY
from ragaudit.ledger.messages.manifests import GeneratorManifest, GeneratorProbe

PROBES = ("treatment of bazeli ?", "symptom of mokuti ?")


def manifest(model: Transformer) -> GeneratorManifest:
    """Return the manifest of the model as DP-RAG asks it.

    Args:
        model: that answers the probes.
    """
    tokens = [int(each.argmax()) for each in next_logits(model, _prompts())]
    probes = _probes(VOCABULARY.text([token]) for token in tokens)
    return GeneratorManifest("files", MODEL, _digests(), VOCABULARY.terms, PROMPT, None, probes)


def keyword_manifest(model: Transformer, tokens: int) -> GeneratorManifest:
    """Return the manifest of the model as DP-KSA asks it.

    Args:
        model: that answers the probes.
        tokens: the most of an answer, as the policy has it.
    """
    probes = _probes(completed(model, _prompts(), tokens))
    return GeneratorManifest("files", MODEL, _digests(), None, PROMPT, KEYWORDS, probes)


def _prompts() -> list[str]:
    return [PROMPT.of((), question) for question in PROBES]


def _probes(answers: Iterable[str]) -> tuple[GeneratorProbe, ...]:
    return tuple(map(GeneratorProbe, PROBES, answers))


def _digests() -> dict[str, str]:
    folder = files(__package__)
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("weights.npz", "vocabulary.py")
    }


MODEL = "ragaudit-copy"
_Text = Annotated[str, Field(max_length=10_000)]


class _Greedy(BaseModel):
    model: str
    max_tokens: int = Field(default=16, ge=1, le=64)
    temperature: float = Field(default=1.0, le=0)
    n: int = Field(default=1, ge=1, le=1)
    stream: bool = False


class _Completion(_Greedy):
    prompt: _Text | list[_Text]
    logprobs: int = Field(default=0, ge=0, le=20)


class _Message(BaseModel):
    role: str
    content: _Text


class _Chat(_Greedy):
    messages: list[_Message] = Field(min_length=1, max_length=16)


def application(model: Transformer) -> FastAPI:
    """Return the service.

    Args:
        model: that answers.
    """
    service = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @service.exception_handler(MalformedError)
    async def refused(_: Request, error: MalformedError) -> JSONResponse:
        body = {"message": str(error), "type": "invalid_request_error"}
        return JSONResponse({"error": body}, 400)

    @service.get("/readyz")
    def ready() -> dict[str, Any]:
        return {}

    @service.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": MODEL, "object": "model"}]}

    @service.post("/v1/completions")
    def completions(asked: _Completion) -> dict[str, Any]:
        _check(asked)
        prompts = [asked.prompt] if isinstance(asked.prompt, str) else asked.prompt
        if asked.logprobs and asked.max_tokens > 1:
            raise MalformedError("logprobs of several tokens", where="logprobs", expected="of one")
        if not asked.logprobs:
            texts = completed(model, prompts, asked.max_tokens)
            return _answer("text_completion", [{"text": each} for each in texts])
        logits = next_logits(model, prompts)
        return _answer("text_completion", [_token(each, asked.logprobs) for each in logits])

    @service.post("/v1/chat/completions")
    def chat(asked: _Chat) -> dict[str, Any]:
        _check(asked)
        prompt = "\n".join(each.content for each in asked.messages)
        (text,) = completed(model, [prompt], asked.max_tokens)
        message = {"role": "assistant", "content": text}
        return _answer("chat.completion", [{"message": message}])

    return service


def _check(asked: _Greedy) -> None:
    if asked.model != MODEL or asked.stream:
        raise MalformedError("another model, or a stream", where="model", expected=MODEL)


def _answer(kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    numbered = [
        {"index": index, "finish_reason": "stop", **each} for index, each in enumerate(choices)
    ]
    return {"object": kind, "model": MODEL, "choices": numbered}


def _token(logits: "np.ndarray[Any, np.dtype[np.float32]]", most: int) -> dict[str, Any]:
    logprobs = logits - logits.max()
    logprobs = logprobs - np.log(np.exp(logprobs).sum())
    order = [int(each) for each in np.argsort(-logprobs, kind="stable")[:most]]
    best = order[0]
    return {
        "text": "" if best == END else TOKENS[best],
        "logprobs": {
            "tokens": [TOKENS[best]],
            "token_logprobs": [float(logprobs[best])],
            "top_logprobs": [{TOKENS[each]: float(logprobs[each]) for each in order}],
        },
    }


def main() -> None:
    """Serve the model of this package."""
    parser = argparse.ArgumentParser(description="Serve the copying model over OpenAI's API.")
    parser.add_argument("--host", default="127.0.0.1")
    port = int(os.environ.get("RAGAUDIT_MODEL_PORT", "8000"))
    parser.add_argument("--port", type=int, default=port)
    options = parser.parse_args()
    uvicorn.run(application(Transformer.load()), host=options.host, port=options.port)


if __name__ == "__main__":
    main()
