"""Answers of the generation channel (docs/spec/11-generation.md §11.10)."""

from dataclasses import field
from typing import Annotated, Final, TypeAlias

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import LONGEST_WORD, words
from ragaudit.ledger.messages.answerers import MAX_KEYWORDS, MAX_TOKENS
from ragaudit.ledger.messages.encoded import check_range
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.generator_manifest import MAX_VOCABULARY
from ragaudit.ledger.messages.kernel import Integer, Items, Message, Nested, OneOf, Text

__all__ = ["AnyAnswer", "GeneratedAnswer", "GeneratedKeywords", "read_answer"]

MAX_TEXT_BYTES: Final = 2**18  # of an answer


def _check_keyword(text: str) -> None:
    if words(text) != {text}:
        raise MalformedError("not a word", expected="letters and digits, case-folded")


AnswerText: TypeAlias = Annotated[str, Text(0, MAX_TEXT_BYTES)]
Token: TypeAlias = Annotated[int, Integer(0, MAX_VOCABULARY - 1)]
Keyword: TypeAlias = Annotated[str, Text(0, 4 * LONGEST_WORD, _check_keyword, "a word")]


class GeneratedAnswer(Message, where="answer"):
    """What is released.

    Attributes:
        text: of the tokens; the end token has none.
        tokens: of the committed vocabulary, the end token included where it ended the answer.
        private: how many of them the documents were asked for.
    """

    text: AnswerText = field(repr=False)
    tokens: Annotated[tuple[Token, ...], Items(0, MAX_TOKENS)] = field(repr=False)
    private: Annotated[int, Integer(0, MAX_TOKENS)]

    def __post_init__(self) -> None:
        check_range("private tokens", self.private, 0, len(self.tokens))

    def digest(self, salt: bytes) -> bytes:
        """Return what the answer entry says of the answer, 32 bytes (11.9).

        Args:
            salt: salt_a, 32 bytes.
        """
        return structure("generated", salt, self.encode())


class GeneratedKeywords(Message, where="answer"):
    """An answer of DP-KSA.

    Attributes:
        text: of the final answer, at most 2^18 bytes.
        keywords: that were released, rising, since their ranks are private; None where the test
            failed.
    """

    text: AnswerText = field(repr=False)
    keywords: Annotated[tuple[Keyword, ...], Items(0, MAX_KEYWORDS)] | None = field(repr=False)

    @property
    def private(self) -> int:
        """How many words the documents were asked for: none where the test failed."""
        return len(self.keywords or ())

    def digest(self, salt: bytes) -> bytes:
        """Return what the answer entry says of the answer, 32 bytes (11.9).

        Args:
            salt: salt_a, 32 bytes.
        """
        return structure("generated", salt, self.encode())

    def _check(self) -> None:
        found = self.keywords or ()
        # A set has one spelling, and an order of its own would tell the ranks.
        if list(found) != sorted(set(found)):
            raise MalformedError("do not rise", where="keywords", expected="in order, each once")


AnyAnswer: TypeAlias = Annotated[
    GeneratedAnswer | GeneratedKeywords,
    OneOf(
        lambda answer: isinstance(answer, dict) and "keywords" in answer,
        Nested(GeneratedKeywords),
        Nested(GeneratedAnswer),
    ),
]


def read_answer(f: Fields, name: str) -> AnyAnswer:
    """Return the answer that a member holds, of one form or the other; MalformedError."""
    value = f.raw(name)
    if isinstance(value, dict) and "keywords" in value:
        return f.message(name, GeneratedKeywords)
    return f.message(name, GeneratedAnswer)
