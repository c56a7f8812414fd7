"""What is tried: probes, whose answers may hold markers, and oracles, whose answers may differ."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from ragaudit.lab.attacks.scope.exchange import Request

TURNS = 20
"""Of a census: C(20, 10) ways in which a store may have a row more."""
NO_TAG = '"ragaudit-0"'
"""An entity tag that no answer has."""
FAILING = "Requests that fail, and may say on what."
"""The idea of `error-texts`, in every store."""

Family = Literal[
    "filter", "id", "enumeration", "batch", "collection", "name", "paging", "document-filter",
    "cache", "identity", "session", "statistics", "error", "write",
]  # fmt: skip


@dataclass(frozen=True)
class Probe:
    """Requests of one idea. A marker of the victim in an answer to the attacker is a leak.

    Attributes:
        name: kebab-case, unique in its store.
        family: of the idea.
        idea: what is tried, in one sentence.
        attempts: each one or more requests in order; answers to the victim are not judged.
        names: of the victim's collection, its name and its id: a list of names has no canary. They
            count as a whole text of a JSON answer to a request that has none of them.
    """

    name: str
    family: Family
    idea: str
    attempts: tuple[tuple[Request, ...], ...] = field(repr=False)
    names: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """How many it sends."""
        return sum(len(steps) for steps in self.attempts)


@dataclass(frozen=True)
class Attempt:
    """One write, and how its success shows to the victim.

    Attributes:
        request: the attacker's. It names canaries and rows of the test, and nothing else.
        read: the victim's lawful request, sent before and after.
        shows: what only the attempt has written, "" for nothing: in the answer after it is a leak.
        loses: what the victim reads before, "" for nothing: not in the answer after it is a leak.
        undo: takes back what may have been written, by whoever may.
        setup: the victim's, before all others: makes something for the attempt alone. Its id, from
            the last answer, takes the place of ``{created}`` in the others.
        proves: what only the success shows in the attacker's own answer, where it is taken back
            before anybody else sees it; "" where the victim's reading decides.
    """

    request: Request
    read: Request
    shows: str
    loses: str
    undo: tuple[Request, ...]
    setup: tuple[Request, ...] = ()
    proves: str = ""

    @property
    def names_created(self) -> bool:
        """Whether a request names what was set up by the id that it was given."""
        return any(one.about("") != one for one in (self.request, self.read, *self.undo))

    @property
    def requests(self) -> int:
        """How many it sends."""
        return 3 + len(self.setup) + len(self.undo) + self.names_created


@dataclass(frozen=True)
class Write:
    """Attempts to write into what belongs to the victim.

    Attributes:
        name: kebab-case, unique in its store.
        idea: what is tried, in one sentence.
        attempts: in order.
    """

    name: str
    idea: str
    attempts: tuple[Attempt, ...] = field(repr=False)
    family: Family = "write"

    @property
    def requests(self) -> int:
        """How many it sends."""
        return sum(one.requests for one in self.attempts)


@dataclass(frozen=True)
class Census:
    """A count that is asked for while the victim has a row more, and while it has not.

    When it has was drawn by lot, so that a count which always says so is no chance.

    Attributes:
        name: kebab-case, unique in its store.
        idea: what is tried, in one sentence.
        ask: the attacker's request.
        add: the victim's, which adds a row of its own.
        remove: the victim's, which takes it out again, and may find nothing.
    """

    name: str
    idea: str
    ask: Request = field(repr=False)
    add: Request = field(repr=False)
    remove: Request = field(repr=False)
    family: Family = "enumeration"

    @property
    def requests(self) -> int:
        """How many it sends, with a lawful question at the end."""
        return 2 * TURNS + 2


@dataclass(frozen=True)
class Oracle:
    """A request that is sent with what exists elsewhere, and with what exists nowhere.

    Attributes:
        name: kebab-case, unique in its store.
        family: of the idea.
        idea: what is tried, in one sentence.
        by: what of a canary is asked for: its id or its tag.
        ask: the attacker's request for one value.
    """

    name: str
    family: Family
    idea: str
    by: Literal["id", "tag"]
    ask: Callable[[str], Request] = field(repr=False)


Tested = Probe | Oracle | Census | Write


def each(requests: Iterable[Request]) -> tuple[tuple[Request, ...], ...]:
    """Return attempts of one request each."""
    return tuple((request,) for request in requests)


def conditional(question: Request, by: str) -> Probe:
    """Return the probe of another's entity tag.

    A store that answers 304 to any tag tells nothing by it: one of no answer is tried first.

    Args:
        question: the victim's.
        by: the attacker.
    """
    tags = (
        Request(by, question.method, question.path, question.body, {"if-none-match": tag})
        for tag in (NO_TAG, "{etag}")
    )
    nobodys, anothers = tags
    idea = "The entity tag of another's answer."
    return Probe("conditional", "cache", idea, ((nobodys, question, anothers),))


def name_variants(name: str) -> list[str]:
    """Return spellings of a name that some layer may take for it, escaped for a path.

    Of the same look, the same under case folding, normal form NFKC or trimming, or the same once a
    layer has decoded a path again. The name itself is not among them.
    """
    wide = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in name)
    assert unicodedata.normalize("NFKC", wide) == unicodedata.normalize("NFKC", name)
    looks = {"a": "\u0430", "e": "\u0435", "o": "\u043e", "c": "\u0441", "p": "\u0440"}
    homoglyph = "".join(looks.get(one, one) for one in name)
    texts = [
        name.upper(), name.lower(), name.title(), name.swapcase(), wide, homoglyph, f" {name}",
        f"{name} ", f"{name}\t", f"{name}.", f"{name}\u200b", f"\ufeff{name}", f"{name}\u00ad",
        f"{name[:1]}\u0301{name[1:]}", f"{name}\x00", f"{name}\u2060", f"{name};", f"{name}\n",
    ]  # fmt: skip
    escaped = "".join(f"%{byte:02x}" for byte in name.encode())
    raw = [
        escaped, quote(escaped, safe=""), f"{quote(name)}/", f"./{quote(name)}",
        f"x/../{quote(name)}",
        f"..%2f{quote(name)}", f"x%2f..%2f{quote(name)}", f"x%252f..%252f{quote(name)}",
        f"%2e%2e/{quote(name)}", f"{quote(name)}%00", f"{quote(name)}%3f", f"{quote(name)};x=1",
        f"//{quote(name)}",
    ]  # fmt: skip
    spelled = dict.fromkeys([*(quote(text, safe="") for text in texts), *raw])
    return [one for one in spelled if one != quote(name, safe="")]


def conditions(field_name: str, own: str, other: str) -> Mapping[str, list[Any]]:
    """Return filters in the grammar of Chroma and MongoDB, by their idea.

    Args:
        field_name: the member of the metadata that says whose a row is.
        own: its value for the attacker.
        other: for the victim.
    """
    mine, yours = {field_name: own}, {field_name: other}
    always = {"$or": [mine, {field_name: {"$ne": own}}]}
    return {
        "filter-tenant": [yours, {field_name: {"$eq": other}}],
        "filter-or": [{"$or": [mine, yours]}, always, {"$or": [always, yours]}],
        "filter-and": [{"$and": [yours]}, {"$and": [yours, yours]}, {**mine, "$or": [yours, mine]},
                       {**mine, "$and": [yours, yours]}],
        "filter-not": [{field_name: {"$ne": own}}, {field_name: {"$ne": ""}},
                       {field_name: {"$ne": None}}, {field_name: {"$nin": [own]}},
                       {"$not": mine}, {"$nor": [mine]}],
        "filter-range": [{field_name: {"$gt": ""}}, {field_name: {"$gte": ""}},
                         {field_name: {"$lt": "\uffff"}}],
        "filter-list": [{field_name: [own, other]}, {field_name: {"$in": [own, other]}},
                        {field_name: {"$eq": [own, other]}}],
        "filter-null": [{field_name: None}, {field_name: {"$exists": True}}, {"": None}, {}],
        "filter-regex": [{field_name: {"$regex": ".*"}}, {field_name: {"$like": "%"}},
                         {field_name: {"$contains": ""}}],
        "filter-nested": [{field_name: {"$or": [{"$eq": other}, {"$eq": own}]}},
                          {"$and": [{"$or": [{"$and": [yours, yours]}, mine]}, always]},
                          {f"metadata.{field_name}": other}, {field_name: {field_name: other}}],
        "filter-type": [True, 1, "1", [], [yours], [mine, yours], f"{field_name} = '{other}'",
                        {field_name: True}, {field_name: 0}, {field_name: {}}],
        "filter-sql": [{field_name: f"{own}' OR '1'='1"}, {field_name: f"{own}' OR 1=1 --"},
                       {field_name: f"{own}') OR ('1'='1"}, {f"{field_name}' OR '1'='1": own},
                       {field_name: f"{own}\\"}, {field_name: f'{own}" OR ""="'}],
        "filter-spelling": [{field_name.upper(): other}, {f"{field_name} ": other},
                            {field_name: other.upper()}, {field_name: f"{other} "},
                            {field_name: f"{other}\x00"}],
    }  # fmt: skip


IDEAS: Mapping[str, str] = {
    "filter-tenant": "A filter that names the other tenant.",
    "filter-or": "An alternative beside the condition that keeps tenants apart.",
    "filter-and": "A conjunction, or a second member, that replaces that condition.",
    "filter-not": "A negation that holds for the rows of others.",
    "filter-range": "A range in which every tenant's name lies.",
    "filter-list": "A list of tenants where one is expected.",
    "filter-null": "No condition, a null, or a test of existence.",
    "filter-regex": "A pattern that every tenant's name matches.",
    "filter-nested": "Conditions within conditions, and paths to members.",
    "filter-type": "A value of another type than the checks expect.",
    "filter-sql": "SQL within names and values.",
    "filter-spelling": "Another spelling of the tenant's field or name.",
    "filter-duplicate-key": "The filter twice: two readers of JSON may take different ones.",
}
