"""Readable reports of a verdict: one HTML page without outside resources, and plain text."""

from ragaudit.verifier.report.render import render_html, render_text

__all__ = ["render_html", "render_text"]
