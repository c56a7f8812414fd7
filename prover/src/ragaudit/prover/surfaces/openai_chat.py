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
    """A question. Whatever would change how it is answered is refused: the policy says that."""

    model: str
    messages: list[Message] = Field(min_length=1)
    n: Literal[1] | None = None
    stream: bool | None = None
    user: str | None = None


router = OPENAI.router()


@router.post("/v1/chat/completions", operation_id="openaiChat")
@router.post("/chat/completions", operation_id="openaiChatShort")
async def chat(caller: CallerOf, body: ChatBody) -> Response:
    """Answer a question in words; ``model`` is the name of a collection of the tenant's."""
    caller.check_collection(body.model)
    if body.stream:
        raise NotServed("stream", expected="false: an answer leaves whole, at a fixed time")
    completion = await caller.complete(question_of(body.messages))
    return reply(document(completion, body.model), [completion.receipt])


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
