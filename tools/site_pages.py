"""Write the pages of the site into `build/pages`.

Run `python tools/site_pages.py`, which `make docs` does. They are those of `docs`, with the members
of messages as tables, and pages below `generated` that only repeat what code and stored results
say: every setting of the three services, what bounds the members of a policy, a verifier's terms,
the fixed texts of verdicts, and all measurements.
"""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaudit.lab.bench import suite

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "pages"
MEMBERS = re.compile(
    r"^Members: `([\w.]+)` of \[`members\.json`\]\(members\.json\)\.$", re.MULTILINE
)
SERVICES = ("prover", "verifier", "cosigner")


def settings_page() -> str:
    """Return the page of every setting: default, range, meaning."""
    lines = [
        "# Settings", "",
        "Every member of the three settings files. How to choose: [operating the prover]"
        "(../operations.md), [running the verifier](../regulator.md), [a cosigner](../cosigner.md)."
        " Paths are relative to the file.", "",
    ]  # fmt: skip
    for service in SERVICES:
        schema = json.loads((ROOT / "deployment" / f"{service}.schema.json").read_text("utf-8"))
        lines += [
            f"## {service.capitalize()}", "", schema["description"], "",
            "| member | default | range | meaning |", "|---|---|---|---|",
            *_rows(schema, schema["$defs"], "", set(schema.get("required", ()))), "",
        ]  # fmt: skip
    return "\n".join(lines)


def _rows(
    schema: dict[str, Any], known: dict[str, Any], prefix: str, required: set[str]
) -> Iterator[str]:
    for name, member in schema["properties"].items():
        inner = [known[ref] for ref in _references(member)]
        default = "required" if name in required else _code(member.get("default"))
        if inner and isinstance(member.get("default"), dict):
            default = ""
        cells = (f"`{prefix}{name}`", default, _range(member), member["description"])
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        for each in inner:
            if "properties" in each:
                below = f"{prefix}{name}." + ("NAME." if "additionalProperties" in member else "")
                yield from _rows(each, known, below, set(each.get("required", ())))


def _references(member: dict[str, Any]) -> Iterator[str]:
    for each in (member, *member.get("anyOf", ()), member.get("additionalProperties", {})):
        if isinstance(each, dict) and "$ref" in each:
            yield each["$ref"].rpartition("/")[2]


def _code(value: Any) -> str:
    return "none" if value in (None, [], {}) else f"`{json.dumps(value)}`"


def _range(member: dict[str, Any]) -> str:
    said = []
    for each in (member, *member.get("anyOf", ()), member.get("items", {})):
        if "enum" in each:
            said.append(", ".join(f"`{choice}`" for choice in each["enum"]))
        elif low := next((each[key] for key in ("minimum", "exclusiveMinimum") if key in each), ""):
            said.append(f"{'from' if 'minimum' in each else 'above'} {low:,}")
        if "maximum" in each:
            said.append(f"at most {each['maximum']:,}")
    return "; ".join(said)


def members_page() -> str:
    """Return the page of what bounds each member of a policy."""
    table = tomllib.loads((ROOT / "docs/notes/policy-members.toml").read_text("utf-8"))["member"]
    lines = [
        "# What bounds each member of a policy", "",
        "A provider states the policy ([5.2](../spec/05-records.md)), and a verifier's terms "
        "([9.4](../spec/09-audit.md)) keep it from stating one under which a PASS says nothing.",
        "",
        "| member of a policy | range | bounded by, or why by nothing |", "|---|---|---|",
    ]  # fmt: skip
    for each in table:
        names = ", ".join(f"`{name}`" for name in each["names"])
        lines.append(f"| {names} | {each['range']} | {each['bound']} |")
    return "\n".join((*lines, ""))


def terms_page() -> str:
    """Return the page of a verifier's terms."""
    told = json.loads((ROOT / "docs/spec/terms.json").read_text("utf-8"))
    lines = [
        "# Terms of a verifier", "",
        "What a policy may promise at least, and at most ([9.4](../spec/09-audit.md)).", "",
        "| member | bounds | shipped | may be |", "|---|---|---|---|",
    ]  # fmt: skip
    for name, each in told.items():
        shipped = json.dumps(each["shipped"])
        lines.append(f"| `{name}` | {each['bounds']} | {shipped} | {each['may_be']} |")
    return "\n".join((*lines, ""))


def texts_page() -> str:
    """Return the page of the fixed texts of verdicts."""
    told = json.loads((DOCS / "spec/verdict-texts.json").read_text("utf-8"))
    lines = ["# Texts of verdicts", "", "When each stands: [10.4](../spec/10-verdict.md).", ""]
    lines += ["| text | |", "|---|---|", *(f"| {name} | {text} |" for name, text in told.items())]
    return "\n".join((*lines, ""))


def members_table(message: dict[str, Any]) -> str:
    """Return the table of a message's members."""
    name = f"`{message['format']}`" if message["format"] else "member"
    rows = [f"| `{one['name']}` | {one['form']} | {one['meaning']} |" for one in message["members"]]
    return "\n".join((f"| {name} | form | meaning |", "|---|---|---|", *rows))


def main() -> None:
    """Write the pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES, ignore=shutil.ignore_patterns("generated"))
    messages = json.loads((DOCS / "spec/members.json").read_text("utf-8"))
    for chapter in (PAGES / "spec").glob("*.md"):
        text = chapter.read_text("utf-8")
        shown = MEMBERS.sub(lambda found: members_table(messages[found[1]]), text)
        chapter.write_text(shown, encoding="utf-8")
    generated = PAGES / "generated"
    generated.mkdir()
    for name, page in (
        ("settings", settings_page()),
        ("policy-members", members_page()),
        ("terms", terms_page()),
        ("verdict-texts", texts_page()),
    ):
        (generated / f"{name}.md").write_text(page, encoding="utf-8")
    inputs = ROOT / "benchmarks"
    measured = generated / "measurements.md"
    suite.render(suite.Places(inputs, inputs / "results", measured, PAGES / "benchmarks"))


if __name__ == "__main__":
    main()
