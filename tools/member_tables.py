"""Write the members of messages that the specification names, from the classes that declare them.

Run `python tools/member_tables.py`, which writes `docs/spec/members.json`. A chapter names a
message with a line "Members: `module.Class` of members.json.", where the module is one of
`ragaudit.ledger.messages`; the site shows a table there. What a member means is what the docstring
of the class says of its attribute.
"""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaudit.ledger.messages.kernel import Message, Schema
from ragaudit.ledger.messages.signed import SignedMessage
from ragaudit.serving.settings import attributes

SPEC = Path(__file__).resolve().parents[1] / "docs" / "spec"
NAMED = re.compile(
    r"^Members: `(\w+)\.(\w+)` of \[`members\.json`\]\(members\.json\)\.$", re.MULTILINE
)


def document() -> dict[str, dict[str, Any]]:
    """Return every message that a chapter names: its format and its members in order of signing."""
    found: dict[str, dict[str, Any]] = {}
    for chapter in sorted(SPEC.glob("*.md")):
        for module, name in NAMED.findall(chapter.read_text(encoding="utf-8")):
            found[f"{module}.{name}"] = message(_class(module, name))
    return found


def message(kind: type[Message]) -> dict[str, Any]:
    """Return what stands of a message: each member with its form and meaning."""
    members = list(_members(kind))
    if issubclass(kind, SignedMessage):
        own = kind.signed_fields is SignedMessage.signed_fields
        every = tuple(kind._signed) == tuple(each for each in kind.FORMS if each != "signature")
        named = "the members above, in this order"
        signs = named if every else ", ".join(f"`{each}`" for each in kind._signed)
        meaning = f"over `sign/{kind.KIND}`: {signs if own else 'as the chapter says'}"
        members.append({"name": "signature", "form": "hex, 64 bytes", "meaning": meaning})
    return {"format": kind.FORMAT or None, "members": members}


def _members(kind: type[Message]) -> Iterator[dict[str, str]]:
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        said |= attributes(base)
    for member, form in kind.FORMS.items():
        if member in kind._embedded:
            yield from _members(kind._embedded[member])
        elif member != "signature":
            meaning = re.sub(r"\bNone\b", "null", said.get(member, "").replace("``", "`"))
            described = words(form.schema)
            if member in kind._omitted:
                described = f"{described.removesuffix(' or null')}; may be left out"
            yield {"name": member, "form": described, "meaning": meaning}


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


def text() -> str:
    """Return the document as it is kept, a member a line."""
    parts = []
    for name, each in document().items():
        members = ",\n".join(f"   {json.dumps(one, ensure_ascii=False)}" for one in each["members"])
        head = f'  {json.dumps(name)}: {{"format": {json.dumps(each["format"])}, "members": [\n'
        parts.append(f"{head}{members}\n  ]}}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    (SPEC / "members.json").write_text(text(), encoding="utf-8")
