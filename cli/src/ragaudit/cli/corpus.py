"""Real text without a download: Python's own documentation, cut into passages.

Three tenants, each with passages of its own subject: the language reference
(`pydoc_data.topics`) and docstrings of the standard library, read from its sources.
"""

import ast
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import UnsupportedError

__all__ = ["Passage", "load_corpus"]

# Characters of a passage: long enough to mean something, short enough for 500 a tenant.
_SHORTEST, _LONGEST = 120, 780
PASSAGES_PER_TENANT = 520

_MODULES = {
    "networking": (
        "asyncio", "email", "ftplib", "http", "imaplib", "ipaddress", "mailbox", "poplib",
        "selectors", "smtplib", "socket", "socketserver", "ssl", "urllib", "wsgiref", "xmlrpc",
    ),
    "data": (
        "ast", "bisect", "collections", "configparser", "csv", "dataclasses", "datetime",
        "decimal", "difflib", "fractions", "heapq", "json", "pickle", "pickletools", "random",
        "re", "sqlite3", "statistics", "string", "textwrap", "typing", "xml", "zoneinfo",
        "_pydatetime", "_pydecimal", "argparse", "optparse", "enum", "functools", "calendar",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Passage:
    """A document of a tenant.

    Attributes:
        id: unique in the tenant.
        text: of the document.
    """

    id: str
    text: str


def load_corpus(per_tenant: int = PASSAGES_PER_TENANT) -> dict[str, list[Passage]]:
    """Return tenant -> passages, at most ``per_tenant`` each, in a fixed order.

    Raises:
        UnsupportedError: this Python comes without its documentation or sources.
    """
    corpus = {"language": list(_topics())}
    for tenant, modules in _MODULES.items():
        corpus[tenant] = list(_docstrings(modules))
    for tenant, passages in corpus.items():
        if len(passages) < 300:
            raise UnsupportedError(
                f"only {len(passages)} passages for {tenant}",
                expected="a Python installation with pydoc_data and the library's sources",
            )
        corpus[tenant] = _spread(passages, per_tenant)
    return corpus


def _spread(passages: list[Passage], count: int) -> list[Passage]:
    """Return at most ``count`` passages, evenly spread, so that every module is there."""
    count = min(count, len(passages))
    return [passages[i * len(passages) // count] for i in range(count)]


def _topics() -> Iterator[Passage]:
    try:
        from pydoc_data.topics import topics  # noqa: PLC0415 - not in every installation
    except ImportError as error:
        raise UnsupportedError("this Python has no pydoc_data", expected="pydoc_data") from error
    for name in sorted(topics):
        yield from _cut(f"topics/{name}", topics[name])


def _docstrings(modules: tuple[str, ...]) -> Iterator[Passage]:
    library = Path(sysconfig.get_path("stdlib"))
    for module in modules:
        folder = library / module
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [library / f"{module}.py"]:
            if path.is_file() and "test" not in path.parts:
                name = ".".join(path.relative_to(library).with_suffix("").parts)
                yield from _module_docstrings(name.removesuffix(".__init__"), path)


def _module_docstrings(module: str, path: Path) -> Iterator[Passage]:
    def visit(prefix: str, node: ast.AST) -> Iterator[Passage]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{prefix}.{child.name}"
                if text := ast.get_docstring(child):
                    yield from _cut(name, f"{name}\n\n{text}")
                yield from visit(name, child)

    tree = ast.parse(path.read_text(encoding="utf-8"))
    if text := ast.get_docstring(tree):
        yield from _cut(module, f"{module}\n\n{text}")
    names = set()
    for passage in visit(module, tree):
        if passage.id not in names:  # overloads and properties repeat names
            names.add(passage.id)
            yield passage


def _cut(name: str, text: str) -> Iterator[Passage]:
    """Yield paragraphs joined up to the longest length; a short rest is left out."""
    pieces: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        piece = paragraph.strip("\n")[:_LONGEST]
        if pieces and len(pieces[-1]) + len(piece) + 2 <= _LONGEST:
            pieces[-1] += "\n\n" + piece
        elif piece.strip():
            pieces.append(piece)
    for number, piece in enumerate(pieces):
        if len(piece) >= _SHORTEST:
            yield Passage(f"{name}#{number}", piece)
