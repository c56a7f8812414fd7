"""WordLlama: offline, pinned, the same vector for the same text whatever surrounds it."""

import hashlib
import logging
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from ragaudit.embedders import registry, wordllama
from ragaudit.embedders.base import Embedder, EmbedderUnavailable, embed_quantised, file_digest
from ragaudit.embedders.wordllama import WordLlamaEmbedder
from ragaudit.encoding.errors import MalformedError, UnsupportedError

TEXTS = [
    "How do I open a file for reading?", "A context manager closes what it opened.",
    "naïve café ∑ 東京", "x" * 5000, "a longer text " * 400,
]  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


def test_shape_and_name(embedder: WordLlamaEmbedder) -> None:
    assert embedder.embed(TEXTS).shape == (len(TEXTS), 256)
    assert embedder.embed(TEXTS).dtype == np.float32
    assert embedder.dimension == embedder.manifest().dimension == 256
    assert embedder.name == embedder.manifest().name == registry.DEFAULT


def test_vectors_do_not_depend_on_the_other_texts(embedder: WordLlamaEmbedder) -> None:
    together = embedder.embed(TEXTS)
    backwards = embedder.embed(TEXTS[::-1])[::-1]
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    assert np.array_equal(together, alone)
    assert np.array_equal(together, backwards)


def test_vectors_are_the_same_in_another_process(embedder: WordLlamaEmbedder) -> None:
    program = (
        "import sys; from ragaudit.embedders import base, registry\n"
        "rows = base.embed_quantised(registry.load(), sys.argv[1:])\n"
        "sys.stdout.write(rows.tobytes().hex())"
    )
    shell = [sys.executable, "-c", program, *TEXTS[:3]]
    output = subprocess.run(shell, capture_output=True, check=True, text=True).stdout
    assert bytes.fromhex(output) == embed_quantised(embedder, TEXTS[:3]).tobytes()


def test_similar_texts_are_nearer(embedder: WordLlamaEmbedder) -> None:
    rows = embed_quantised(
        embedder, ["open a file", "reading files from disk", "medieval church music"]
    ).astype(np.int64)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_manifest_names_the_installed_files(embedder: WordLlamaEmbedder) -> None:
    assert dict(embedder.manifest().files) == wordllama.PINNED
    # A known answer: another digest means that other files, or another manifest, are committed.
    assert embedder.manifest().digest().hex() == (
        "612627a325c287e0df5107dbe31ef2f2ecc46e1ed688b27f934bd349bb310fec"
    )


def test_no_network_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the embedder opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    WordLlamaEmbedder().embed(["offline"])


def test_the_root_logger_is_left_alone() -> None:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    WordLlamaEmbedder()
    assert (root.handlers, root.level) == before


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(
        EmbedderUnavailable,
        match=r'wordllama is not installed .*pip install "ragaudit-embedders\[wordllama\]"',
    ):
        registry.load()


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama, "_package_folder", lambda: tmp_path)
    with pytest.raises(EmbedderUnavailable, match="missing"):
        WordLlamaEmbedder()
    for path in wordllama.PINNED:
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_bytes(b"other")
    with pytest.raises(EmbedderUnavailable, match="another"):
        WordLlamaEmbedder()


@pytest.mark.parametrize("bad", ["", " \n\t", "\ud800"])
def test_texts_without_words_are_refused(embedder: WordLlamaEmbedder, bad: str) -> None:
    with pytest.raises(MalformedError, match="text 1"):
        embedder.embed(["fine", bad])
    with pytest.raises(MalformedError, match="text 1"):
        embed_quantised(embedder, ["fine", bad])


def test_one_bare_text_is_refused(embedder: WordLlamaEmbedder) -> None:
    with pytest.raises(MalformedError):
        embedder.embed("not a list")


def test_no_text_gives_no_rows(embedder: WordLlamaEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 256)
    assert embed_quantised(embedder, []).shape == (0, 256)


class FixedEmbedder:
    """Returns what it was given, to stage broken embedders."""

    name = "fixed"

    def __init__(self, vectors: "np.ndarray[tuple[int, int], np.dtype[np.float32]]") -> None:
        self.vectors = vectors
        self.dimension = 4

    def embed(self, _texts: object) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
        return self.vectors

    def manifest(self) -> NoReturn:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.array([[1, 0, 0, 0], [0, 0, 0, 0]], np.float32), "text 1: null"),
        (np.array([[1, 0, 0, np.nan], [0, 1, 0, 0]], np.float32), "text 0: .*NaN"),
        (np.array([[1, 0, 0, 0], [np.inf, 1, 0, 0]], np.float32), "text 1: .*infinity"),
        (np.array([[1, 0, 0, 0]], np.float32), "float32\\[1, 4\\]"),
        (np.array([[1, 0, 0, 0], [0, 1, 0, 0]], np.float64), "float64"),
    ],
)
def test_broken_embeddings_are_refused(
    vectors: "np.ndarray[tuple[int, int], np.dtype[np.float32]]", message: str
) -> None:
    broken: Embedder = FixedEmbedder(vectors)
    with pytest.raises(MalformedError, match=message):
        embed_quantised(broken, ["one", "two"])


def test_registry_refuses_unknown_names() -> None:
    with pytest.raises(UnsupportedError, match="unknown embedder"):
        registry.load("other")
    assert set(registry.names()) == {
        registry.DEFAULT,
        "none",
        "openai-compatible",
        "sentence-transformers",
    }


def test_file_digest_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"x" * 3_000_000)
    assert file_digest(path) == hashlib.sha256(b"x" * 3_000_000).hexdigest()
