"""Every member of a policy, its range and bound: as in docs/notes/policy-members.toml.

A provider states a policy. What it may state without a bound, an attacker states.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generation_messages import GENERATION, KEYWORDS
from message_examples import POLICY
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.terms import KNOWN, TERMS

NOTE = Path(__file__).parents[3] / "docs" / "notes" / "policy-members.toml"
NAMES = {term.name for term in TERMS} | {each.name for each in KNOWN}
# Of the log, not of a member.
OF_WINDOWS = {"least_claimed_anchored_share", "most_void_share", "most_withheld_share"}


def examples() -> list[dict[str, Any]]:
    """Policies that have every member that there is, and every kind of each."""
    adaptive = {"edges": [9000, 10], "epsilon": "1/2", "enough": 3}
    generation: list[dict[str, Any]] = [
        {},
        {**KEYWORDS},
        {"mechanism": "murag-ada", "threshold": adaptive},
    ]
    return [{**POLICY, "generation": {**GENERATION, **each}} for each in generation]


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """The paths of what a document says: members of objects, also of those in lists."""
    if isinstance(value, dict) and not path.endswith(".files"):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for each in value:
            yield from leaves(each, f"{path}[]")
    else:
        yield path


def rows() -> dict[str, tuple[str, str]]:
    """Range and bound of each member in the table."""
    found: dict[str, tuple[str, str]] = {}
    for entry in tomllib.loads(NOTE.read_text(encoding="utf-8"))["member"]:
        for member in entry["names"]:
            assert member not in found, f"{member} stands twice"
            found[member] = (entry["range"], entry["bound"])
    return found


def ranges(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Path and bounds of each integer that a schema describes."""
    if schema.get("type") == "integer":
        yield path, (schema["minimum"], schema["maximum"])
    for name, member in schema.get("properties", {}).items():
        yield from ranges(f"{path}.{name}" if path else name, member)
    for either in schema.get("anyOf", ()):
        yield from ranges(path, either)


def test_every_member_is_in_the_table_and_no_other() -> None:
    members = {path for each in examples() for path in leaves(each)}
    assert members == set(rows())


def test_ranges_are_those_that_are_read() -> None:
    integers: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for name, bounds in ranges("", Policy.json_schema()):
        integers[name].add(bounds)

    def number(text: str) -> int:
        base, _, power = text.replace(",", "").partition("^")
        return int(base) ** int(power or 1)

    checked = 0
    for member, (limits, _) in rows().items():
        whole = re.fullmatch(r"([\d,^]+)\.\.([\d,^]+)", limits)
        if whole is None:
            assert limits, member
            continue
        assert integers[member] == {(number(whole[1]), number(whole[2]))}, member
        checked += 1
    assert checked > 15


def test_every_bound_is_a_term_or_a_reason() -> None:
    named: set[str] = set()
    for member, (_, bound) in rows().items():
        terms = set(re.findall(r"`((?:most|least|further|known)_\w+)`", bound))
        assert terms <= NAMES, f"{member}: {terms - NAMES}"
        # Without a term it says what bounds it, or why nothing must.
        assert terms or len(bound.split()) > 3, f"{member}: {bound!r}"
        named |= terms
    assert named == NAMES - OF_WINDOWS
