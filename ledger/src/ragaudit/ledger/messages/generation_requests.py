"""Questions of the generation channel (docs/spec/11-generation.md §11.10)."""

import re
from dataclasses import field
from typing import Annotated, Final, TypeAlias

from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES, Filter, request_filter
from ragaudit.ledger.messages.kernel import (
    OMITTED,
    Converted,
    Integer,
    Items,
    Message,
    OrNull,
    Text,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.questions import MAX_QUERY_BYTES
from ragaudit.ledger.messages.records import MAX_QUERIES
from ragaudit.ledger.messages.requests import Request

__all__ = ["MAX_IGNORED", "GenerationRequest"]

MAX_IGNORED: Final = 16
_SETTING = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


def _check_setting(name: str) -> None:
    if _SETTING.fullmatch(name) is None:
        raise MalformedError("not a name", expected="a-z, 0-9 and _")


def _ignored(names: tuple[str, ...] | None) -> tuple[str, ...]:
    # One spelling of nothing: without the member.
    if names is not None and (not names or list(names) != sorted(set(names))):
        raise MalformedError("empty, or do not rise", expected="names in order, each once")
    return names or ()


Ignored: TypeAlias = Annotated[
    tuple[str, ...],
    Converted(
        OrNull(Items(0, MAX_IGNORED, Text(1, 64, _check_setting, "name of a setting"))),
        _ignored,
        lambda names: list(names) or None,
    ),
    OMITTED,
]


class GenerationRequest(Message, where="request"):
    """A question to be answered in words.

    Attributes:
        query: 1..8192 bytes of UTF-8.
        filter: canonical text (5.12), at most 16 KiB; empty: none.
        counter: of an anchored client; None for a plain one.
        ignored: names of settings that came with the question and changed nothing, at most
            `MAX_IGNORED`, rising. They are part of what was asked: the provider signs that it did
            not honour them.
    """

    query: Annotated[str, Text(1, MAX_QUERY_BYTES)] = field(repr=False)
    filter: Annotated[str, Text(0, MAX_FILTER_BYTES)] = field(default="", repr=False)
    counter: Annotated[int, Integer(0, MAX_QUERIES - 1)] | None = None
    ignored: Ignored = ()

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
