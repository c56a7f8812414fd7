"""Questions of the generation channel (docs/spec/11-generation.md §11.10)."""

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES, Filter, request_filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.questions import MAX_QUERY_BYTES
from ragaudit.ledger.messages.records import MAX_QUERIES
from ragaudit.ledger.messages.requests import Request

__all__ = ["MAX_IGNORED", "GenerationRequest"]

MAX_IGNORED: Final = 16
_SETTING = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class GenerationRequest(JsonMessage):
    """A question to be answered in words.

    Attributes:
        query: 1..8192 bytes of UTF-8.
        filter: canonical text (5.12), at most 16 KiB; empty: none.
        counter: of an anchored client; None for a plain one.
        ignored: names of settings that came with the question and changed nothing, at most
            `MAX_IGNORED`, rising. They are part of what was asked: the provider signs that it did
            not honour them.
    """

    MEMBERS: ClassVar[str] = "counter filter query"
    WHERE: ClassVar[str] = "request"

    query: str = field(repr=False)
    filter: str = field(default="", repr=False)
    counter: int | None = None
    ignored: tuple[str, ...] = ()

    def check_policy(self, policy: Policy) -> Filter:
        """Return the filter of a request that the window takes.

        Raises:
            UnsupportedError: the window has no generation channel, or knows no such filter.
            MalformedRecord: a filter that is none.
        """
        if policy.generation is None:
            raise UnsupportedError("no generation channel in this window", where="window")
        return request_filter(self.filter, policy)

    @property
    def retrieval(self) -> Request:
        """The same question as the retrieval channel knows it: what its digests cover is one."""
        return Request(self.query, 1, self.counter, self.filter, kind="text")

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names of a request's members: ``ignored`` stands where something was."""
        ignores = isinstance(value, dict) and "ignored" in value
        return f"{cls.MEMBERS} ignored" if ignores else cls.MEMBERS

    def _members(self) -> dict[str, Any]:
        ignored = {"ignored": list(self.ignored)} if self.ignored else {}
        return {"counter": self.counter, "filter": self.filter, "query": self.query, **ignored}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            f.text("query", 1, MAX_QUERY_BYTES),
            f.text("filter", 0, MAX_FILTER_BYTES),
            f.optional(f.integer, "counter", 0, MAX_QUERIES - 1),
            _ignored(f) if "ignored" in f.value else (),
        )


def _ignored(f: Fields) -> tuple[str, ...]:
    names = f.texts("ignored", MAX_IGNORED, 64)
    # One spelling of nothing: without the member.
    if not names or list(names) != sorted(set(names)):
        raise f.error("ignored", "empty, or do not rise", "names in order, each once")
    if not all(map(_SETTING.fullmatch, names)):
        raise f.error("ignored", "not a name", "a-z, 0-9 and _")
    return names
