"""Answers of the generation channel (docs/spec/11-generation.md §11.10)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding.digests import structure
from ragaudit.encoding.words import LONGEST_WORD, words
from ragaudit.ledger.messages.answerers import MAX_KEYWORDS, MAX_TOKENS
from ragaudit.ledger.messages.encoded import check_range
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.generator_manifest import MAX_VOCABULARY

__all__ = ["AnyAnswer", "GeneratedAnswer", "GeneratedKeywords", "read_answer"]

MAX_TEXT_BYTES: Final = 2**18  # of an answer


@dataclass(frozen=True, slots=True)
class GeneratedAnswer(JsonMessage):
    """What is released.

    Attributes:
        text: of the tokens; the end token has none.
        tokens: of the committed vocabulary, the end token included where it ended the answer.
        private: how many of them the documents were asked for.
    """

    MEMBERS: ClassVar[str] = "private text tokens"
    WHERE: ClassVar[str] = "answer"

    text: str = field(repr=False)
    tokens: tuple[int, ...] = field(repr=False)
    private: int

    def __post_init__(self) -> None:
        check_range("private tokens", self.private, 0, len(self.tokens))

    def digest(self, salt: bytes) -> bytes:
        """Return what the answer entry says of the answer, 32 bytes (11.9).

        Args:
            salt: salt_a, 32 bytes.
        """
        return structure("generated", salt, self.encode())

    def _members(self) -> dict[str, Any]:
        return {"private": self.private, "text": self.text, "tokens": list(self.tokens)}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            f.text("text", 0, MAX_TEXT_BYTES),
            f.integers("tokens", (0, MAX_TOKENS), 0, MAX_VOCABULARY - 1),
            f.integer("private", 0, MAX_TOKENS),
        )


@dataclass(frozen=True, slots=True)
class GeneratedKeywords(JsonMessage):
    """An answer of DP-KSA.

    Attributes:
        text: of the final answer, at most 2^18 bytes.
        keywords: that were released, rising, since their ranks are private; None where the test
            failed.
    """

    MEMBERS: ClassVar[str] = "keywords text"
    WHERE: ClassVar[str] = "answer"

    text: str = field(repr=False)
    keywords: tuple[str, ...] | None = field(repr=False)

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

    def _members(self) -> dict[str, Any]:
        return {
            "keywords": None if self.keywords is None else list(self.keywords),
            "text": self.text,
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        found = None
        if f.raw("keywords") is not None:
            found = f.texts("keywords", MAX_KEYWORDS, 4 * LONGEST_WORD)
            # A set has one spelling, and an order of its own would tell the ranks.
            if list(found) != sorted(set(found)):
                raise f.error("keywords", "do not rise", "in order, each once")
            if any(words(each) != {each} for each in found):
                raise f.error("keywords", "not a word", "letters and digits, case-folded")
        return cls(f.text("text", 0, MAX_TEXT_BYTES), found)


AnyAnswer = GeneratedAnswer | GeneratedKeywords


def read_answer(f: Fields, name: str) -> AnyAnswer:
    """Return the answer that a member holds, of one form or the other; MalformedError."""
    value = f.raw(name)
    if isinstance(value, dict) and "keywords" in value:
        return f.message(name, GeneratedKeywords)
    return f.message(name, GeneratedAnswer)
