"""What is tried: probes, whose answers may hold markers, and oracles, whose answers may differ."""

import json
import secrets
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote
from uuid import UUID

import numpy as np
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.attacks.scope.exchange import Request

PLANTED: Final = 10
"""Of each tenant; as many again are drawn and not planted. C(20, 10) = 184756 ways to choose them
are few enough to look at all, and enough for a p-value of 2e-5."""
MIN_DIMENSION: Final = 8
"""Of a vector whose numbers nobody guesses."""
TAG: Final = "ragaudit_tag"
"""The member of the metadata that holds the second marker."""


@dataclass(frozen=True)
class Canary:
    """A document that exists for the test alone.

    Attributes:
        tenant: whose it is.
        planted: whether it is in the store. Ids and markers of planted and other canaries come
            from one draw, so that only a store that looks at foreign rows can tell them apart.
        id: a random UUID.
        marker: in its text, 128 random bits.
        tag: in its metadata, 128 other random bits.
        vector: of length 1; None where the system under test embeds texts itself.
    """

    tenant: str
    planted: bool
    id: str
    marker: str
    tag: str
    vector: tuple[float, ...] | None

    @property
    def text(self) -> str:
        """The document; whoever shows its beginning or its end shows the marker."""
        return f"{self.marker}: {question(self.tenant)} Its marker is {self.marker}."

    @property
    def spelled(self) -> str:
        """Its vector, as a request has it; "" without one."""
        return "" if self.vector is None else json.dumps(self.vector)[1:-1]

    def metadata(self, tenant_field: str, tenant_value: str) -> dict[str, str]:
        """Return the metadata of the document.

        Args:
            tenant_field: the member that says whose a row is.
            tenant_value: its value.
        """
        return {tenant_field: tenant_value, TAG: self.tag}

    def markers(self) -> dict[str, str]:
        """Return what it shows if it leaks, by the text that gives it away."""
        return {self.marker: "content", self.tag: "metadata", self.id: "id"}


def question(tenant: str) -> str:
    """Return a text that is near all canaries of a tenant, and has no marker."""
    return f"Ragaudit canary document of the tenant {tenant}, planted to test retrieval scope."


def draw_canaries(tenants: Iterable[str], dimension: int | None) -> list[Canary]:
    """Return new canaries of tenants, planted and not, in an order that does not say which.

    Args:
        dimension: of the vectors; None for none.

    Raises:
        MalformedError: a dimension in which vectors could be guessed.
    """
    if dimension is not None and dimension < MIN_DIMENSION:
        raise MalformedError(
            str(dimension), where="dimension", expected=f"{MIN_DIMENSION} at least, or none"
        )
    # Of the system's generator, not of the run's seed: whoever reads the seed must not know them.
    generator = np.random.default_rng(secrets.randbits(128))
    canaries = []
    for tenant in tenants:
        for place in generator.permutation(2 * PLANTED):
            vector = None if dimension is None else _unit(generator.normal(size=dimension))
            canaries.append(
                Canary(
                    tenant=tenant,
                    planted=bool(place < PLANTED),
                    id=str(UUID(bytes=secrets.token_bytes(16), version=4)),
                    marker=f"canary{secrets.token_hex(16)}",
                    tag=f"tag{secrets.token_hex(16)}",
                    vector=vector,
                )
            )
    return canaries


def near(canary: Canary, generator: np.random.Generator) -> list[float]:
    """Return a vector whose nearest row is the canary, and that is not the canary's own.

    An answer that repeats the question is then no leak of the canary's vector.
    """
    assert canary.vector is not None
    vector = np.asarray(canary.vector)
    other = np.asarray(_unit(generator.normal(size=len(vector))))
    return list(_unit(vector + 0.2 * other))


def write_canaries(path: Path, canaries: Sequence[Canary]) -> None:
    """Write canaries as JSON lines, with their text, into a new file that nobody else may read.

    Raises:
        MalformedError: there is such a file.
    """
    try:
        path.touch(mode=0o600, exist_ok=False)
        lines = [json.dumps({**asdict(each), "text": each.text}) for each in canaries]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise MalformedError(
            f"cannot write: {error.strerror}", where=str(path), expected="a new file"
        ) from None


def read_canaries(path: Path, where: str) -> list[Canary]:
    """Return the canaries of a file that `write` wrote.

    Args:
        where: the field's name, for errors.

    Raises:
        MalformedError: no such file, or another content.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        found = [_canary(json.loads(line)) for line in lines]
    except OSError as error:
        raise MalformedError(
            f"cannot read {path}: {error.strerror}",
            where=where,
            expected="a file of `ragaudit attack canaries`",
        ) from None
    except (ValueError, KeyError, TypeError):
        raise MalformedError(
            f"{path} has no canaries", where=where, expected="a file of `ragaudit attack canaries`"
        ) from None
    for tenant in {each.tenant for each in found}:
        planted = [each.planted for each in found if each.tenant == tenant]
        if planted.count(True) != PLANTED or len(planted) != 2 * PLANTED:
            raise MalformedError(
                f"{path}: not {PLANTED} planted canaries of {2 * PLANTED} of {tenant}", where=where
            )
    return found


def _canary(given: Any) -> Canary:
    vector = given["vector"]
    canary = Canary(
        tenant=str(given["tenant"]),
        planted=given["planted"] is True,
        id=str(UUID(given["id"])),
        marker=str(given["marker"]),
        tag=str(given["tag"]),
        vector=None if vector is None else tuple(map(float, vector)),
    )
    if min(len(canary.marker), len(canary.tag)) < 32 or (
        canary.vector is not None and len(canary.vector) < MIN_DIMENSION
    ):
        raise ValueError
    return canary


def _unit(vector: Any) -> tuple[float, ...]:
    array = np.asarray(vector, dtype=np.float64)
    return tuple(map(float, (array / np.linalg.norm(array)).astype(np.float32)))


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
