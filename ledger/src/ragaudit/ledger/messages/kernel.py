"""Messages whose members are declared once (docs/spec/01-encoding.md §1.4).

A message is a class with annotated attributes, in the order in which they are signed. From them
follow its constructor, its one JSON form, the strict reader of it, what a signature covers, its
JSON schema, and its table in the specification. A wrong declaration is an error at import.

A reader demands one exact shape: whatever else it let pass, two parties could read differently.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import methodcaller
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES, PREFIX
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import KEY_BYTES, SIGNATURE_BYTES, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.notes import MAX_NAME_BYTES, VerifierKey, check_name
from ragaudit.ledger.messages.identifiers import (
    MAX_DOCUMENT_ID_BYTES,
    check_document_id,
    check_provider,
    check_tenant,
    check_window,
)

MAX_TIME: Final = canonical_json.MAX_INTEGER
"""Of a time in Unix milliseconds, a count or a size: the largest integer that JSON holds."""

Schema: TypeAlias = dict[str, Any]


class Form(ABC):
    """What a member may be in JSON; stands in the annotation of the member.

    Attributes:
        schema: JSON schema of its values; what it leaves open, `read` refuses all the same.
        write: gives the JSON value of an attribute; None: it is its own.
        signable: whether a value is a field that a signature covers as it is.
    """

    signable = False

    def __init__(
        self, kind: str, write: Callable[[Any], Any] | None = None, **schema: object
    ) -> None:
        """Set the schema, whose parts without a value are left out, and how values are written."""
        self.schema: Schema = {name: part for name, part in schema.items() if part != ""}
        if kind:
            self.schema = {"type": kind, **self.schema}
        self.write = write

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Return the attribute of a JSON value.

        Raises:
            MalformedError: another type, or out of range; ``where`` is relative to the member.
        """


class Text(Form):
    """A text of ``low``..``high`` bytes of UTF-8, which ``check`` may look into."""

    signable = True

    def __init__(
        self, low: int, high: int, check: Callable[[str], object] | None = None, what: str = ""
    ) -> None:
        super().__init__("string", minLength=min(low, 1), maxLength=high, description=what)
        self._low, self._high, self._check = low, high, check

    def read(self, value: Any) -> str:
        # Lone surrogates, which a lenient JSON reader lets in, make it no text at all.
        data = value.encode(errors="replace") if isinstance(value, str) else b""
        if not isinstance(value, str) or data != value.encode(errors="surrogatepass"):
            raise MalformedError("not a text", expected="Unicode text")
        if not self._low <= len(data) <= self._high:
            expected = f"{self._low}..{self._high} bytes"
            raise MalformedError("text of another length", expected=expected)
        if self._check is not None:
            _by_name(self._check, value)
        return value


class Integer(Form):
    """An integer in ``low``..``high``."""

    signable = True

    def __init__(self, low: int, high: int, what: str = "") -> None:
        super().__init__("integer", minimum=low, maximum=high, description=what)
        self._low, self._high = low, high

    def read(self, value: Any) -> int:
        # type() and not isinstance(): true is an int to Python, not to JSON.
        if type(value) is not int or not self._low <= value <= self._high:
            raise MalformedError("not such an integer", expected=f"{self._low}..{self._high}")
        return value


class Plain(Form):
    """A value of one type, which is not looked into."""

    def __init__(self, type_: type, kind: str, what: str = "", expected: str = "") -> None:
        super().__init__(kind)
        self._type, self._what, self._expected = type_, what, expected

    def read(self, value: Any) -> Any:
        if not isinstance(value, self._type):
            raise MalformedError(f"not {self._what}", expected=self._expected)
        return value


BOOLEAN: Final = Plain(bool, "boolean", "a boolean", "true or false")
OBJECT: Final = Plain(dict, "object", "an object")
ANYTHING: Final = Plain(object, "")


class Choice(Form):
    """One of some texts: the form of a Literal."""

    signable = True

    def __init__(self, *choices: str) -> None:
        super().__init__("string", enum=list(choices))
        self._choices = choices

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self._choices:
            raise MalformedError("not a known value", expected=" or ".join(self._choices))
        return value


class Hex(Form):
    """Bytes in lower-case hexadecimal: exactly ``length``, or at most ``limit``."""

    signable = True

    def __init__(self, length: int | None = None, *, limit: int = 0) -> None:
        exact = length is not None
        pattern = f"^[0-9a-f]{{{2 * (length or 0)}}}$" if exact else "^([0-9a-f]{2})*$"
        super().__init__(
            "string", bytes.hex, pattern=pattern, **({} if exact else {"maxLength": 2 * limit})
        )
        count = f"{{{length}}}" if exact else f"{{0,{limit}}}"
        self._match = re.compile(f"(?:[0-9a-f]{{2}}){count}", re.ASCII).fullmatch
        self._length, self._limit = length, limit

    def read(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise MalformedError("not hexadecimal", expected="text")
        if self._match(value) is None:
            hex_decode(value, self._length)  # says what is wrong
            raise MalformedError("too long", expected=f"at most {self._limit} bytes")
        return bytes.fromhex(value)


class Converted(Form):
    """Another form, whose value is read further: a key, a note, a text in base64."""

    def __init__(
        self,
        form: Form,
        read: Callable[[Any], Any],
        write: Callable[[Any], Any],
        what: str = "",
        **schema: object,
    ) -> None:
        named = {"description": what} if what else {}
        super().__init__("", write, **{**form.schema, **named, **schema})
        self._form, self._convert = form, read

    def read(self, value: Any) -> Any:
        return _by_name(self._convert, self._form.read(value))


class OrNull(Form):
    """Null, or another form: the form of a union with None."""

    def __init__(self, form: Form) -> None:
        write = form.write
        either = None if write is None else lambda value: None if value is None else write(value)
        super().__init__("", either, anyOf=[form.schema, {"type": "null"}])
        self._form, self.signable = form, form.signable

    def read(self, value: Any) -> Any:
        return None if value is None else self._form.read(value)


class Items(Form):
    """A list of ``low``..``high`` items, whose form is that of the items of the annotated tuple."""

    def __init__(self, low: int, high: int, item: Form = ANYTHING) -> None:
        write = item.write
        whole = list if write is None else lambda items: [*map(write, items)]
        super().__init__("array", whole, items=item.schema, minItems=low, maxItems=high)
        self.low, self.high, self.item = low, high, item

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not self.low <= len(value) <= self.high:
            raise MalformedError("not such a list", expected=f"{self.low}..{self.high} items")
        read = self.item.read
        found: list[Any] = []
        try:
            for item in value:
                found.append(read(item))  # noqa: PERF401 - what is read says where a fault is
        except FAULTS as error:
            error.where = joined(f"[{len(found)}]", error.where)
            raise
        return tuple(found)


class MapOf(Form):
    """An object whose names are data of one form, and its values of another."""

    def __init__(self, key: Form, value: Form) -> None:
        name, of = key.write or str, value.write or _written
        super().__init__(
            "object",
            lambda found: {name(key): of(value) for key, value in found.items()},
            additionalProperties=value.schema,
        )
        self._key, self._value = key, value

    def read(self, value: Any) -> dict[Any, Any]:
        found, name = {}, ""
        try:
            for name, item in OBJECT.read(value).items():
                found[self._key.read(name)] = self._value.read(item)
        except FAULTS as error:
            error.where = joined(name[:80], error.where)
            raise
        return found


class Nested(Form):
    """A message within a message: the form of its class."""

    def __init__(self, kind: Any) -> None:
        schema = kind.json_schema() if hasattr(kind, "json_schema") else OBJECT.schema
        super().__init__("", methodcaller("to_json"), **schema, title=kind.__name__)
        self._read = kind.read if issubclass(kind, Message) else kind.from_json

    def read(self, value: Any) -> Any:
        return self._read(value)


class OneOf(Form):
    """One of two forms, of which ``first`` tells by the JSON value."""

    def __init__(self, first: Callable[[Any], bool], one: Form, other: Form) -> None:
        super().__init__("", _written, anyOf=[one.schema, other.schema])
        self._first, self._one, self._other = first, one, other

    def read(self, value: Any) -> Any:
        return (self._one if self._first(value) else self._other).read(value)


class Mark:
    """What an annotation says of a member beside its form."""


OMITTED: Final = Mark()
"""Of a member that is left out where it is None."""

UNSIGNED: Final = Mark()
"""Of a member that the signature does not cover."""

EMBEDDED: Final = Mark()
"""Of a message whose members stand among those of the outer one; None: each of them is null."""

Name: TypeAlias = Annotated[str, Text(1, 64)]
ProviderName: TypeAlias = Annotated[str, Text(1, 64, check_provider, "name of a provider")]
WindowName: TypeAlias = Annotated[str, Text(1, 64, check_window, "name of a window")]
TenantName: TypeAlias = Annotated[str, Text(1, 64, check_tenant, "name of a tenant")]
# It is the first line of a checkpoint: one with a newline in it would forge the rest.
ORIGIN: Final = Text(1, MAX_NAME_BYTES, check_name, "origin of a log")
Origin: TypeAlias = Annotated[str, ORIGIN]
DocumentId: TypeAlias = Annotated[
    str, Text(1, MAX_DOCUMENT_ID_BYTES, check_document_id, "id of a document")
]
Digest: TypeAlias = Annotated[bytes, Hex(DIGEST_BYTES)]
Signature: TypeAlias = Annotated[bytes, Hex(SIGNATURE_BYTES), UNSIGNED]
# Not any 32 bytes are a key that is taken: small orders are refused, under which signatures verify
# that nobody made. The example is of RFC 8032, 7.1, test 1.
KEY: Final = Converted(
    Hex(KEY_BYTES),
    PublicKey.from_raw,
    lambda key: key.raw.hex(),
    "hex, an Ed25519 key",
    examples=["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"],
)
KeyInHex: TypeAlias = Annotated[PublicKey, KEY]
Vkey: TypeAlias = Annotated[
    VerifierKey, Converted(Text(1, 512), VerifierKey.parse, str, "vkey (6.3)")
]
Count: TypeAlias = Annotated[int, Integer(0, MAX_TIME)]
Milliseconds: TypeAlias = Annotated[int, Integer(0, MAX_TIME, "Unix milliseconds")]
Object: TypeAlias = Annotated[dict[str, Any], OBJECT]


def form_of(hint: Any) -> Form:
    """Return the form that an annotation declares.

    Raises:
        TypeError: it declares none.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        form = next((each for each in reversed(arguments) if isinstance(each, Form)), None)
        if isinstance(form, Items) and form.item is ANYTHING:
            return Items(form.low, form.high, form_of(get_args(arguments[0])[0]))
        return form or form_of(arguments[0])
    if origin in (Union, UnionType) and len(arguments) == 2 and NoneType in arguments:
        return OrNull(form_of(arguments[arguments[0] is NoneType]))
    if origin is Literal:
        return Choice(*arguments)
    if hint in (bool, Any):
        return BOOLEAN if hint is bool else ANYTHING
    if isinstance(hint, type) and hasattr(hint, "from_json"):
        return Nested(hint)
    raise TypeError(f"no form of a member: {hint}")


def _by_name(read: Callable[[Any], Any], value: Any) -> Any:
    """Return what is read; what is wrong stands under the member's name, and no other place."""
    try:
        return read(value)
    except MalformedError as error:
        raise MalformedError(error.what, expected=error.expected) from error


def _written(value: Any) -> Any:
    return value.to_json() if isinstance(value, Message) else value


FAULTS: Final = (MalformedError, UnsupportedError)
"""What a reader raises, ``where`` relative to what it reads; whoever called it adds the place."""


def joined(place: str, inner: str) -> str:
    """Return the path of what lies at ``inner`` within ``place``."""
    dot = "." if place and inner and not inner.startswith("[") else ""
    return f"{place}{dot}{inner}"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True, eq=False, repr=False)
class Message:
    """A message that is one JSON object of exact members, and as bytes its canonical form.

    Attributes:
        KIND: names the format, if there is one: the value of the member ``format``.
        WHERE: what errors call the message when it is no part of another.
        ERROR: what a reader raises.
        FORMS: of the members, in order.
    """

    KIND: ClassVar[str] = ""
    FORMAT: ClassVar[str] = ""
    WHERE: ClassVar[str] = ""
    ERROR: ClassVar[type[MalformedError]] = MalformedRecord
    FORMS: ClassVar[Mapping[str, Form]]

    def __init_subclass__(cls, kind: str = "", where: str | None = None) -> None:
        """Make the class a frozen dataclass, and its members readable and writable.

        Args:
            kind, where: see the attributes; left out, the place is the kind.

        Raises:
            TypeError: a member without a form.
        """
        cls.KIND = kind or cls.KIND
        cls.FORMAT = PREFIX + cls.KIND if cls.KIND else ""
        cls.WHERE = (kind or cls.WHERE) if where is None else where
        # Equality, hash and text are the same for all: compiling them for each takes half of the
        # time in which a service loads its messages.
        dataclass(frozen=True, eq=False, repr=False)(cls)
        hints = get_type_hints(cls, include_extras=True)
        # What a base declares, the signature, comes last.
        own = [each for each in fields(cls) if each.init]
        names = [each.name for each in sorted(own, key=lambda each: bool(each.kw_only))]
        marks = {name: getattr(hints[name], "__metadata__", ()) for name in names}
        cls.FORMS = {name: form_of(hints[name]) for name in names}
        cls._omitted = frozenset(name for name in names if OMITTED in marks[name])
        cls._signed = tuple(name for name in names if UNSIGNED not in marks[name])
        embedded = {name: hints[name].__origin__ for name in names if EMBEDDED in marks[name]}
        cls._embedded = {name: (get_args(kind) or (kind,))[0] for name, kind in embedded.items()}
        inner = list(cls._embedded.values())
        cls._names = frozenset({"format"} if cls.KIND else ()).union(
            set(names) - cls._embedded.keys(), *(kind._names for kind in inner)
        )
        cls._optional = cls._omitted.union(*(kind._optional for kind in inner))
        cls._readers = tuple((name, form.read) for name, form in cls.FORMS.items())
        cls._writers = tuple((name, form.write) for name, form in cls.FORMS.items() if form.write)

    _omitted: ClassVar[frozenset[str]]
    _optional: ClassVar[frozenset[str]]
    _signed: ClassVar[tuple[str, ...]]
    _names: ClassVar[frozenset[str]]
    _embedded: ClassVar[Mapping[str, "type[Message]"]]
    _readers: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]]
    _writers: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        own, its = vars(self), vars(other)
        return all(own[name] == its[name] for name in self.FORMS)

    def __hash__(self) -> int:
        return hash(tuple(map(vars(self).__getitem__, self.FORMS)))

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def to_json(self) -> dict[str, Any]:
        """Return the message as a JSON object."""
        # A frozen dataclass without slots: its dictionary is its members, and copied at once.
        shown = {"format": self.FORMAT, **vars(self)} if self.KIND else vars(self).copy()
        for name, write in self._writers:
            shown[name] = write(shown[name])
        for name in self._omitted:
            if shown[name] is None:
                del shown[name]
        for name, kind in self._embedded.items():
            part = shown.pop(name)
            shown |= dict.fromkeys(kind._names) if part is None else part
        return shown

    @classmethod
    def from_json(cls, value: Any, where: str = "") -> Self:
        """Return the message of a JSON value, the strict inverse of `to_json`.

        Args:
            value: as a JSON reader gives it.
            where: the value's place, for errors.

        Raises:
            MalformedError: not such a message; `ERROR` for its own members.
            UnsupportedError: a member that version 1 does not know how to honour.
        """
        try:
            return cls.read(value)
        except FAULTS as error:
            error.where = joined(where or cls.WHERE, error.where)
            raise

    @classmethod
    def read(cls, value: Any) -> Self:
        """Return the message of a JSON value that lies within another; as `from_json`."""
        if not isinstance(value, dict):
            raise cls.ERROR("not an object")
        if value.keys() != cls._names:
            # An unknown member is refused, not skipped: it would travel under somebody's signature
            # with a meaning that this reader does not know.
            for problem, names in (
                ("missing", cls._names - cls._optional - value.keys()),
                ("unknown", value.keys() - cls._names),
            ):
                if names:
                    # Cut, because an unknown name is the sender's text and ends up in a log line.
                    raise cls.ERROR(f"{problem} member", where=min(names)[:64])
        for name in cls._omitted & value.keys():
            if value[name] is None:
                raise cls.ERROR("null", where=name, expected="a value, or no such member")
        if cls.KIND and value["format"] != cls.FORMAT:
            raise cls.ERROR("another value", where="format", expected=repr(cls.FORMAT))
        found: dict[str, Any] = {}
        name = ""
        for name, kind in cls._embedded.items():
            part = {each: value[each] for each in value.keys() & kind._names}
            optional = isinstance(cls.FORMS[name], OrNull)
            empty = optional and all(each is None for each in part.values())
            value = {**value, name: None if empty else part}
        try:
            for name, read in cls._readers:
                found[name] = read(value.get(name))
            name = ""
            message = cls(**found)
            message._check()
        except FAULTS as error:
            error.where = joined("" if name in cls._embedded else name, error.where)
            if type(error) is MalformedError:
                raise cls.ERROR(error.what, where=error.where, expected=error.expected) from error
            raise
        return message

    def _check(self) -> None:
        """Raise MalformedError if members that were read do not fit together."""

    def encode(self) -> bytes:
        """Return the message in canonical JSON, as it is sent, digested and kept."""
        return canonical_json.dumps(self.to_json())

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the message in ``data``, the strict inverse of `encode`.

        Args:
            data: canonical JSON; other spellings are refused, so that a digest names one message.

        Raises:
            MalformedError: not canonical JSON, or as `from_json`. Nothing is verified.
        """
        try:
            value = canonical_json.loads(data)
        except MalformedError as error:
            where = cls.WHERE or error.where
            raise cls.ERROR(error.what, where=where, expected=error.expected) from error
        return cls.from_json(value)

    @classmethod
    def json_schema(cls) -> Schema:
        """Return the JSON schema of the message, for OpenAPI."""
        properties: Schema = {"format": {"const": cls.FORMAT}} if cls.KIND else {}
        properties |= {name: form.schema for name, form in cls.FORMS.items()}
        for name, kind in cls._embedded.items():
            properties.pop(name)
            own = kind.json_schema()["properties"]
            if isinstance(cls.FORMS[name], OrNull):
                own = {each: {"anyOf": [said, {"type": "null"}]} for each, said in own.items()}
            properties |= own
        return {
            "type": "object",
            "additionalProperties": False,
            "required": [name for name in properties if name not in cls._optional],
            "properties": properties,
        }
