"""A provider's text files as documents: plain text, Markdown, JSON Lines; UTF-8 only.

Text is cut into passages at blank lines (Markdown also at headings), so that a passage is what an
answer can usefully show. Passage ``n`` of a file has the id ``<path>#<n>``. A JSON line may bring
attributes, which all passages of its text have: what stands beside a text in a vector store.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragaudit.prover.errors import MalformedDocument

if TYPE_CHECKING:
    from ragaudit.prover.backends.interface import Document

PASSAGE_CHARACTERS = 800
MAX_FILE_BYTES = 2**28
SUFFIXES = (".txt", ".md", ".markdown", ".jsonl")

_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def read_files(paths: Sequence[Path], *, passage: int = PASSAGE_CHARACTERS) -> "list[Document]":
    """Return the passages of files and folders; folders are searched in rising name order.

    Args:
        paths: files of any of SUFFIXES, and folders of such files.
        passage: the largest number of characters in a passage.

    Raises:
        MalformedDocument: a file is missing, of another kind, empty or not UTF-8, a JSON line
            is not an object with ``id``, ``text`` and perhaps ``attributes``, or nothing was found.
    """
    documents: list[Document] = []
    for path in paths:
        root = path if path.is_dir() else path.parent
        for file in _files(path):
            documents += read_file(file, str(file.relative_to(root)), passage=passage)
    if not documents:
        raise MalformedDocument("no documents found", expected=", ".join(SUFFIXES))
    return documents


def read_file(path: Path, name: str, *, passage: int = PASSAGE_CHARACTERS) -> "list[Document]":
    """Return the passages of one file, whose ids begin with ``name``.

    Args:
        name: begins each passage's id.
        passage: the largest number of characters in a passage.

    Raises:
        MalformedDocument: as `read_files`.
    """
    from ragaudit.prover.backends.interface import Document

    if path.suffix.lower() not in SUFFIXES:
        raise MalformedDocument(
            "unknown kind of file", where=str(path), expected=", ".join(SUFFIXES)
        )
    text = _read_text(path)
    if path.suffix.lower() == ".jsonl":
        return list(_json_lines(text, str(path), passage))
    parts = _HEADING.split(text) if path.suffix.lower() != ".txt" else [text]
    passages = [text for part in parts for text in cut(part, passage)]
    if not passages:
        raise MalformedDocument("empty file", where=str(path))
    return [Document(f"{name}#{number}", text) for number, text in enumerate(passages)]


def cut(text: str, limit: int = PASSAGE_CHARACTERS) -> list[str]:
    """Return ``text`` as passages of at most ``limit`` characters.

    Neighbouring blocks that are short are joined; a long one is cut at sentence ends, else
    between words.

    Args:
        text: of one document, its blocks separated by blank lines.
        limit: characters of a passage, at least 1.
    """
    passages: list[str] = []
    room = False  # the last passage consists of whole blocks
    for block in filter(str.strip, _BLANK_LINES.split(text)):
        pieces = list(_shorten(block, limit))
        whole = len(pieces) == 1
        if room and whole and len(passages[-1]) + len(pieces[0]) + 2 <= limit:
            passages[-1] += "\n\n" + pieces[0]
        else:
            passages += pieces
        room = whole
    return passages


def _shorten(block: str, limit: int) -> Iterator[str]:
    block = block.strip()
    while len(block) > limit:
        ends = [match.start() for match in _SENTENCE_END.finditer(block, 0, limit)]
        at = ends[-1] if ends else block.rfind(" ", 1, limit)
        at = at if at > 0 else limit
        yield block[:at].strip()
        block = block[at:].strip()
    if block:
        yield block


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    # In rising order: ids and row order must not depend on the file system.
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.suffix.lower() in SUFFIXES:
            yield file


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise MalformedDocument(
                "file too long", where=str(path), expected=f"at most {MAX_FILE_BYTES} bytes"
            )
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise MalformedDocument(f"cannot read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise MalformedDocument(
            "not UTF-8", where=f"{path}, byte {error.start}", expected="UTF-8 text"
        ) from None
    if not text.strip():
        raise MalformedDocument("empty file", where=str(path))
    # A byte order mark or the line ends of an editor must not make another document.
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _json_lines(text: str, where: str, passage: int) -> "Iterator[Document]":
    from ragaudit.prover.backends.interface import Document

    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{where}, line {number}"
        identifier, content, attributes = _json_document(line, place)
        passages = cut(content, passage) if len(content) > passage else [content]
        if not content.strip():
            raise MalformedDocument("empty text", where=place)
        for part, piece in enumerate(passages):
            # A document that fits keeps the provider's own id, which answers will show.
            name = f"{identifier}#{part}" if len(passages) > 1 else identifier
            yield Document(name, piece, attributes)


def _json_document(line: str, place: str) -> tuple[str, str, str]:
    """Return id, text and the canonical attributes of a line."""
    from ragaudit.prover.backends.interface import attributes_text

    expected = '{"id": text, "text": text}, and "attributes": {..} if there are any'
    try:
        value: Any = json.loads(line, object_pairs_hook=_members)
    # The parser is recursive, and a provider's file may be anything.
    except (ValueError, RecursionError):
        raise MalformedDocument("not a JSON object", where=place, expected=expected) from None
    if not isinstance(value, dict) or value.keys() - {"attributes"} != {"id", "text"}:
        raise MalformedDocument("other members", where=place, expected=expected)
    if not isinstance(value["id"], str) or not isinstance(value["text"], str):
        raise MalformedDocument("a member is not text", where=place, expected=expected)
    attributes = value.get("attributes", {})
    if not isinstance(attributes, dict):
        raise MalformedDocument("attributes are no object", where=place, expected=expected)
    return value["id"], value["text"], attributes_text(attributes, place)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; no name stands for two values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found
