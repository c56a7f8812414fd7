"""No module is too long to be read at one sitting."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 400
# Not written by hand, or of somebody else.
ELSEWHERE = {"target", "node_modules", "__pycache__", "build", "dist"}


def modules() -> list[Path]:
    """Return the Python modules of the product, the laboratory, the tests and the tools."""
    folders = (each for each in ROOT.iterdir() if each.is_dir() and not each.name.startswith("."))
    found = (path for folder in folders for path in folder.rglob("*.py"))
    return [path for path in found if not ELSEWHERE & {*path.relative_to(ROOT).parts}]


def test_no_module_has_too_many_lines() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert len(lines) > 100
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}
