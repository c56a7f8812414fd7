"""Write the pages of the site that only repeat what code and stored results say.

Run `python tools/site_pages.py`, which `make docs` does. They are below `docs/generated`, which is
not kept: every setting of the three services, from the published schemas, what bounds the members
of a policy, a verifier's terms, and all measurements, from `benchmarks`.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaudit.lab.bench import suite

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "generated"
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


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(exist_ok=True)
    (PAGES / "settings.md").write_text(settings_page(), encoding="utf-8")
    (PAGES / "policy-members.md").write_text(members_page(), encoding="utf-8")
    (PAGES / "terms.md").write_text(terms_page(), encoding="utf-8")
    suite.render(suite.Places.of(ROOT / "benchmarks", None))


if __name__ == "__main__":
    main()
