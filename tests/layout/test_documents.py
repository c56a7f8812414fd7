"""Prose of the documents ends at 100 columns; tables, code and words without a space may exceed."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Made with the site by tools/site_pages.py, not kept.
GENERATED = {
    DOCS / "generated" / name
    for name in (
        "settings.md",
        "measurements.md",
        "policy-members.md",
        "terms.md",
        "verdict-texts.md",
    )
}
KEPT = {*ROOT.glob("*.md"), *DOCS.rglob("*.md")} - GENERATED
PAGES = sorted(KEPT)
WIDTH = 100


def too_long(text: str) -> list[int]:
    """Return the numbers of the lines of prose that are longer than they need be."""
    found, fenced = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        table = line.lstrip().startswith("|")
        if len(line) <= WIDTH or fenced or table or line.startswith("    "):
            continue
        # A code span is not broken inside, and a link has no space.
        outside = "".join(line.split("`")[::2]).strip()
        if " " in outside.strip(" -*0123456789.,;:"):
            found.append(number)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped(page: Path) -> None:
    assert too_long(page.read_text(encoding="utf-8")) == []


def test_every_document_has_its_place_in_the_site() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    listed = re.findall(r"'([\w/.-]+\.md)'", repr(site["nav"]))
    pages = {path for path in KEPT if path.is_relative_to(DOCS)} | GENERATED
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in pages)


def test_what_counts_as_too_long() -> None:
    words, code = "word " * 25, "x y " * 30
    assert too_long(words) == [1]
    assert too_long(f"| {words} |\n    {words}\n```\n{words}\n```\n`{code}`\n{words}") == [7]
