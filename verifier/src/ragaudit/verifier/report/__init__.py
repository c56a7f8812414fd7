"""Readable reports of a verdict: one HTML page without outside resources, and plain text."""

import textwrap
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from ragaudit.encoding.printable import printable
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier.report import wording
from ragaudit.verifier.report.view import Report, report_of

_TEMPLATES: Final = Path(__file__).parent / "templates"
_WIDTH: Final = 100


def render_html(verdict: Verdict) -> str:
    """Return the report as one HTML page: no script, no outside resource, everything escaped."""
    return _render("report.html.j2", report_of(verdict), autoescape=True)


def render_text(verdict: Verdict) -> str:
    """Return the report as plain text of at most about 100 columns."""
    return _render("report.txt.j2", report_of(verdict), autoescape=False)


def _render(template: str, report: Report, *, autoescape: bool) -> str:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=autoescape,  # noqa: S701 - off for plain text only
        # A misspelt member would be a gap in a page that claims to show everything.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["wrapped"] = _wrapped
    texts = {
        "claimed_only": wording.CLAIMED_ONLY,
        "signed": wording.SIGNED,
        "referred": wording.REFERRED,
        "row_samples": wording.ROW_SAMPLES,
    }
    # Names and reasons may be the provider's: none of them moves a cursor.
    return printable(environment.get_template(template).render(report=report, **texts))


def _wrapped(text: str, indent: int = 0) -> str:
    """``text`` in lines of bounded width, the following ones indented."""
    lines = textwrap.wrap(" ".join(text.split()), _WIDTH - indent, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)
