"""Write the tables of members that the specification has, from the classes that declare them.

Run `python tools/member_tables.py`. A chapter marks the place of a table with a line
`<!-- members: module.Class -->`, where the module is one of `ragaudit.ledger.messages`, and its end
with `<!-- end -->`. What a member means is what the docstring of the class says of its attribute.
"""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from ragaudit.ledger.messages.kernel import Message, Schema
from ragaudit.ledger.messages.signed import SignedMessage
from ragaudit.serving.settings import attributes

SPEC = Path(__file__).resolve().parents[1] / "docs" / "spec"
TABLE = re.compile(r"(<!-- members: (\w+)\.(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written(text: str) -> str:
    """Return the text of a chapter with its tables as the classes have them."""
    return TABLE.sub(lambda found: found[1] + table(_class(found[2], found[3])) + found[4], text)


def table(kind: type[Message]) -> str:
    """Return the table of a message: its members in the order of signing, form and meaning."""
    name = f"`{kind.FORMAT}`" if kind.FORMAT else "member"
    rows = [f"| {name} | form | meaning |", "|---|---|---|", *_rows(kind)]
    if issubclass(kind, SignedMessage):
        own = kind.signed_fields is SignedMessage.signed_fields
        every = tuple(kind._signed) == tuple(each for each in kind.FORMS if each != "signature")
        named = "the members above, in this order"
        signs = named if every else ", ".join(f"`{each}`" for each in kind._signed)
        signs = signs if own else "as said above"
        rows.append(f"| `signature` | hex, 64 bytes | over `sign/{kind.KIND}`: {signs} |")
    return "\n".join((*rows, ""))


def _rows(kind: type[Message]) -> Iterator[str]:
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        said |= attributes(base)
    for member, form in kind.FORMS.items():
        if member in kind._embedded:
            yield from _rows(kind._embedded[member])
        elif member != "signature":
            meaning = re.sub(r"\bNone\b", "null", said.get(member, "").replace("``", "`"))
            described = words(form.schema)
            if member in kind._omitted:
                described = f"{described.removesuffix(' or null')}; may be left out"
            yield f"| `{member}` | {described} | {meaning} |"


def words(schema: Schema) -> str:
    """Return what a schema says, for people."""
    if "description" in schema:
        return str(schema["description"])
    if "title" in schema:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", schema["title"].lstrip("_")).lower()
    match schema:
        case {"anyOf": [*either]}:
            return " or ".join(map(words, either))
        case {"enum": [*choices]}:
            return " or ".join(f'"{choice}"' for choice in choices)
        case {"type": "integer", "minimum": low, "maximum": high}:
            return f"integer, {_number(low)}..{_number(high)}"
        case {"type": "array", "items": item, "minItems": low, "maxItems": high}:
            return f"list of {_number(low)}..{_number(high)}: {words(item)}"
        case {"type": "object", "additionalProperties": dict(item)}:
            return f"object of {words(item)}"
        case {"pattern": str(pattern)}:
            digits = re.search(r"{(\d+)}\$$", pattern)
            if digits:
                return f"hex, {int(digits[1]) // 2} bytes"
            return f"hex, at most {_number(schema['maxLength'] // 2)} bytes"
        case {"minLength": least, "maxLength": most}:
            return f"text, {least}..{_number(most)} bytes"
    return str(schema.get("type", "any JSON"))


def _number(value: int) -> str:
    for away, rest in ((0, ""), (1, " - 1")):
        if value >= 2**14 and (value + away).bit_count() == 1:
            return f"2^{(value + away).bit_length() - 1}{rest}"
    return f"{value:,}"


def _class(module: str, name: str) -> type[Message]:
    found: type[Message] = getattr(
        importlib.import_module(f"ragaudit.ledger.messages.{module}"), name
    )
    return found


if __name__ == "__main__":
    for chapter in sorted(SPEC.glob("*.md")):
        chapter.write_text(written(chapter.read_text(encoding="utf-8")), encoding="utf-8")
