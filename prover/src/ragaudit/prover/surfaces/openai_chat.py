"""OpenAI's chat completions: a private answer in words (docs/surfaces.md)."""

from typing import Any, Literal

from fastapi import Response
from pydantic import Field
from ragaudit.prover.surfaces.dialects import reply
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.openai import OPENAI, CallerOf
from ragaudit.prover.surfaces.queries import Completion
from ragaudit.prover.surfaces.wire import Body

__all__ = ["router"]


class TextPart(Body):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Message(Body):
    """A message; the only one, and the user's, is the question."""

    role: str
    content: str | list[TextPart]
    name: str | None = None


class ChatBody(Body):
    """A question; how it is answered, the policy says.

    What clients send with every question, and what only asks for another draw of the same kind, is
    taken and not honoured (`IGNORED`). What asks for another kind of answer is refused by name
    (`_REFUSED`), and so is every other member.
    """

    model: str
    messages: list[Message] = Field(min_length=1)
    n: int | None = Field(default=None, ge=1)
    stream: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    user: str | None = None
    tools: Any = None
    tool_choice: Any = None
    parallel_tool_calls: Any = None
    functions: Any = None
    function_call: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    response_format: Any = None
    stop: Any = None

    @property
    def ignored(self) -> list[str]:
        """Names of the members that were sent and change nothing."""
        return [name for name in IGNORED if getattr(self, name) is not None]


IGNORED = ("max_completion_tokens", "max_tokens", "seed", "temperature", "top_p", "user")
_REFUSED = (
    "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "logprobs",
    "top_logprobs", "response_format", "stop",
)  # fmt: skip
router = OPENAI.router()


@router.post("/v1/chat/completions", operation_id="openaiChat")
@router.post("/chat/completions", operation_id="openaiChatShort")
async def chat(caller: CallerOf, body: ChatBody) -> Response:
    """Answer a question in words; ``model`` is the name of a collection of the tenant's."""
    caller.check_collection(body.model)
    check_kind(body)
    completion = await caller.complete(question_of(body.messages), body.ignored)
    return reply(document(completion, body.model), [completion.receipt])


def check_kind(body: ChatBody) -> None:
    """Check that the answer that is wanted is one that there is: whole, one, and of words alone.

    Raises:
        NotServed: another one; the member is named.
    """
    if body.stream:
        raise NotServed("stream", expected="false: an answer leaves whole, at a fixed time")
    if body.n is not None and body.n > 1:
        raise NotServed(f"n = {body.n}", expected="1: each answer is a charge of its own")
    for name in _REFUSED:
        # Some clients send what asks for nothing.
        if getattr(body, name) not in (None, False, [], "none", {"type": "text"}):
            raise NotServed(name, expected="a question without it")


def question_of(messages: list[Message]) -> str:
    """Return the question of a conversation that is only a question.

    Raises:
        NotServed: more messages: what they say would be no part of what is logged and answered.
    """
    if [message.role for message in messages] != ["user"]:
        raise NotServed("a conversation", expected="one message, of the role user")
    content = messages[0].content
    return content if isinstance(content, str) else "".join(part.text for part in content)


def document(completion: Completion, model: str) -> dict[str, Any]:
    """Return the answer's body.

    Args:
        model: as it was asked for.
    """
    message = {"role": "assistant", "content": completion.text, "refusal": None}
    return {
        "id": f"chatcmpl-{completion.receipt}",
        "object": "chat.completion",
        "created": completion.time // 1000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "stop" if completion.ended else "length",
            }
        ],
        # Of the prompts nothing is said: how long they were depends on documents.
        "usage": {
            "prompt_tokens": 0,
            "completion_tokens": completion.tokens,
            "total_tokens": completion.tokens,
        },
    }


OPENAI.refuse_rest(router)
