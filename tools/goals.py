"""Print how large the repository is, beside how large it should become.

Run `python tools/goals.py`. Lines are those of code: neither blank, comment nor docstring.
"""

import ast
import io
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import grimp
from ragaudit.lab.bench.answering import InProcess
from ragaudit.lab.bench.workload import Sizes, Workload

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = (
    "encoding", "circuits", "ledger", "privacy", "embedders", "serving", "prover", "verifier",
    "client", "cli",
)  # fmt: skip
PACKAGES = (*PRODUCT, "core")
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip

# One of each kind: as many files as name it, a new one of the kind takes.
EXAMPLES = ("coalition_estimate", "dify", "check_time_stamps", "AuditFinding", "--shadow")


class Goal(NamedTuple):
    """One line of the table."""

    what: str
    now: str
    goal: str


def goals() -> list[Goal]:
    """Measure the tracked files."""
    product, laboratory, tests = (
        [path for folder in folders for path in tracked(folder, "*.py")]
        for folders in ([f"{each}/" for each in PRODUCT], ["lab/"], ["tests/"])
    )
    single = sum(count == 1 for count in importers().values())
    return [
        Goal("product, code lines / modules", _size(product), "42k / 280"),
        Goal("laboratory, code lines / modules", _size(laboratory), "21k / 150"),
        Goal("tests, code lines / modules", _size(tests), "52k"),
        Goal("functions of one line, of all", f"{one_liners([*product, *laboratory]):.0%}", "22%"),
        Goal("product modules with one importer", str(single), "60"),
        Goal("files that one question runs through", str(len(question_files())), "25"),
        Goal(
            "files of a policy member, surface, check, message, option",
            " / ".join(map(str, naming(product))),
            "3 / 2 / 3 / 2 / 1",
        ),
        Goal("documents, words", _thousands(sum(map(words, tracked("", "*.md")))), "80k"),
    ]


def tracked(folder: str, pattern: str) -> list[Path]:
    """Return the files of the repository below a folder whose names match a pattern."""
    command = ["git", "ls-files", "-z", f":(glob){folder}**/{pattern}"]
    listed = subprocess.run(  # noqa: S603
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [ROOT / name for name in filter(None, listed.split("\0")) if (ROOT / name).is_file()]


def code_lines(source: str) -> int:
    """Return how many lines of a module hold code."""
    tree = ast.parse(source)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for text in _docstrings(tree):
        lines.difference_update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return len(lines)


def one_liners(paths: list[Path]) -> float:
    """Return the share of functions whose body, docstring aside, is one line."""
    short = every = 0
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if _docstring(node) else node.body
                every += 1
                short += bool(body) and body[0].lineno == body[-1].end_lineno
    return short / every


def importers() -> dict[str, int]:
    """Return by how many modules of the product each of its modules is imported."""
    first, *others = (f"ragaudit.{name}" for name in PACKAGES)
    graph = grimp.build_graph(first, *others, cache_dir=None)
    packages = {module for module in graph.modules if graph.find_children(module)}
    return {
        module: len(graph.find_modules_that_directly_import(module))
        for module in graph.modules - packages
    }


def question_files() -> set[Path]:
    """Return the product's files with code that runs while one question is answered in process.

    HTTP is not in it: the request is at hand, and what comes back is the encoded receipt file. A
    question before it has built what is built once.
    """
    sizes = Sizes(rows=50, dimension=16, top_k=3, sigma="40", queries=4)
    ran: set[str] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code.co_filename)

    with tempfile.TemporaryDirectory() as folder:
        window = InProcess(Workload(sizes), Path(folder), 2, durable=True)
        window.answer()
        threading.setprofile(look)
        sys.setprofile(look)
        try:
            window.answer()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            window.close()
    product = [ROOT / name for name in (*PRODUCT, "circuits")]
    paths = {Path(name).resolve() for name in ran if not name.startswith("<")}
    return {path for path in paths if any(path.is_relative_to(each) for each in product)}


def naming(paths: list[Path]) -> list[int]:
    """Return how many files name each of `EXAMPLES`."""
    sources = [path.read_text(encoding="utf-8") for path in paths]
    wanted = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in EXAMPLES]
    return [sum(bool(pattern.search(each)) for each in sources) for pattern in wanted]


def words(path: Path) -> int:
    """Return how many words a document has."""
    return len(path.read_text(encoding="utf-8").split())


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the expression of each docstring, and of each text that stands for one."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Expr(ast.Constant(str()) as text):
                    yield text


def _docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    return ast.get_docstring(node, clean=False)


def _size(paths: list[Path]) -> str:
    lines = sum(code_lines(path.read_text(encoding="utf-8")) for path in paths)
    return f"{_thousands(lines)} / {len(paths)}"


def _thousands(count: int) -> str:
    return f"{count / 1000:.1f}k"


def main() -> None:
    """Print the table."""
    for each in (Goal("", "now", "goal"), *goals()):
        print(f"{each.what:<57}{each.now:>18}{each.goal:>18}")


if __name__ == "__main__":
    main()
