"""Real text without a download, and questions to ask of it: Python's own documentation.

Three tenants, each with passages of its own subject: the language reference
(`pydoc_data.topics`) and docstrings of the standard library, read from its sources. Their first
sentences become questions that people could ask: "Return the greatest common divisor of two
integers." becomes "How do I get the greatest common divisor of two integers?". A question goes to
the tenant whose passage suggested it.
"""

import ast
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import UnsupportedError

T = TypeVar("T")

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

    Args:
        per_tenant: at least 1.

    Raises:
        UnsupportedError: this Python comes without its documentation or sources.
    """
    corpus = {"language": list(_topics())}
    for tenant, modules in _MODULES.items():
        corpus[tenant] = list(_docstrings(modules))
    for tenant, passages in corpus.items():
        # So few passages mean that the sources of the library are not installed.
        if len(passages) < 300:
            raise UnsupportedError(
                f"only {len(passages)} passages for {tenant}",
                expected="a Python installation with pydoc_data and the library's sources",
            )
        corpus[tenant] = spread(passages, per_tenant)
    return corpus


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return at most ``count`` of the items, evenly spread, so that every part has some.

    Args:
        items: in the order in which they are to stay.
        count: largest number of them, >= 0.
    """
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def _topics() -> Iterator[Passage]:
    try:
        from pydoc_data.topics import topics  # noqa: PLC0415 - not in every installation
    except ImportError as error:
        raise UnsupportedError("this Python has no pydoc_data", expected="pydoc_data") from error
    for name in sorted(topics):
        yield from _cut(f"topics/{name}", topics[name])


@cache
def _docstrings(modules: tuple[str, ...]) -> tuple[Passage, ...]:
    found: list[Passage] = []
    library = Path(sysconfig.get_path("stdlib"))
    for module in modules:
        folder = library / module
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [library / f"{module}.py"]:
            if path.is_file() and "test" not in path.parts:
                name = ".".join(path.relative_to(library).with_suffix("").parts)
                found += _module_docstrings(name.removesuffix(".__init__"), path)
    return tuple(found)


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


# Two questions of different accounts stay below this cosine, well under the estimator's theta:
# otherwise honest strangers would look like a coalition.
LARGEST_COSINE = 0.7

_VERBS = (
    "accept", "acquire", "add", "append", "apply", "arrange", "assign", "attach", "block",
    "build", "calculate", "call", "cancel", "change", "check", "close", "compare", "compute",
    "configure", "connect", "construct", "convert", "copy", "create", "decode", "define",
    "delete", "determine", "display", "enable", "encode", "evaluate", "examine", "execute",
    "expand", "extract", "fetch", "find", "format", "generate", "get", "handle", "initialize",
    "insert", "issue", "iterate", "join", "list", "listen", "load", "look", "make", "mark",
    "move", "open", "parse", "pass", "place", "print", "process", "push", "quote", "raise",
    "read", "receive", "record", "register", "release", "remove", "replace", "request", "reset",
    "retrieve", "round", "run", "save", "schedule", "search", "select", "send", "serialize",
    "set", "shut", "skip", "sort", "specify", "split", "start", "stop", "store", "suspend",
    "switch", "transform", "translate", "try", "update", "upgrade", "use", "verify", "wait",
    "wrap", "write",
)  # fmt: skip
_IMPERATIVES = {verb: verb for verb in _VERBS} | {
    "return": "get", "returns": "get", "test": "check", "yield": "get", "ensure": "make sure",
    "give": "get", "parses": "parse",
}  # fmt: skip
_TITLE = re.compile(r"^(?:The )?([A-Z][^\n]{6,60})\n[*=\-~^]{4,}$", re.MULTILINE)
_PLAIN = re.compile(r"(?!.*[=~^*#|]{2})[^\n<>`*{}]{24,}")
_DEFINED = re.compile(r"(?:^|[.\n] +)(?:The|An?) \*([a-z][a-z \-]{3,40})\* (?:is|are) ")


def candidates(passages: Sequence[Passage]) -> Iterator[str]:
    """Yield the questions that the passages suggest, each once, in the passages' order.

    Args:
        passages: of one tenant.
    """
    earlier = set()
    for passage in passages:
        for question in _questions(passage.text):
            if question not in earlier and _PLAIN.fullmatch(question) and len(question) <= 160:
                earlier.add(question)
                yield question


def distinct(
    vectors: npt.NDArray[np.int8], earlier: Sequence[npt.NDArray[np.int8]], count: int
) -> list[int]:
    """Return the first positions whose vectors are far from each other and from ``earlier``.

    Far is a cosine of at most LARGEST_COSINE; there may be fewer such positions.

    Args:
        vectors: int8[n, d].
        earlier: int8[d] each.
        count: how many positions.
    """
    rows = vectors.astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    near = np.zeros(len(rows), dtype=bool)
    for vector in earlier:
        other = vector.astype(np.float64)
        near |= rows @ (other / np.linalg.norm(other)) > LARGEST_COSINE
    chosen: list[int] = []
    for position in range(len(rows)):
        if len(chosen) < count and not near[position]:
            chosen.append(position)
            near |= rows @ rows[position] > LARGEST_COSINE
    return chosen


def _questions(text: str) -> Iterator[str]:
    for title in _TITLE.findall(text):
        yield f"What should I know about {_lowered(title.strip())}?"
    for term in _DEFINED.findall(text):
        yield f"What is meant by {term}?"
    body = text.partition("\n\n")[2] or text
    sentence = " ".join(re.split(r"(?<=[.!?])\s|\n\s*\n", body.strip())[0].split()).rstrip(".!? ")
    verb, _, rest = sentence.partition(" ")
    if verb.lower() in _IMPERATIVES and rest and "*" not in rest and ":" not in rest:
        yield f"How do I {_IMPERATIVES[verb.lower()]} {rest}?"
    elif re.match(r"(?:An?|The) [a-z]", sentence) and " that " in sentence:
        yield f"Which thing is {_lowered(sentence)}?"
    elif re.match(r"(?:If|When) ", sentence) and len(sentence) < 120:
        yield f"What happens {_lowered(sentence.partition(',')[0])}?"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
