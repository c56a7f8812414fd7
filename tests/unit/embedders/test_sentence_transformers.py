"""A directory of sentence-transformers: all of it in C_emb, nothing pickled, nothing downloaded."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit.embedders import registry
from ragaudit.embedders.base import EmbedderUnavailable, embed_quantised, file_digest
from ragaudit.embedders.registry import EmbedderOptions
from ragaudit.embedders.sentence_transformers import NAME, folder_digests

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="sentence-transformers is not installed: it is an extra of five gigabytes",
)

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "open", "a", "file", "church", "music"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer with random weights, saved as the library saves models."""
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("model")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    part = models.Transformer(str(folder / "bert"), max_seq_length=16)
    whole = SentenceTransformer(modules=[part, models.Pooling(32)], device="cpu")
    whole.save(str(folder / "saved"))
    return folder / "saved"


@needs_library
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_saved_model_embeds_and_all_its_files_are_committed(model: Path) -> None:
    embedder = registry.load(NAME, EmbedderOptions(folder=model))
    assert embedder.dimension == 32
    rows = embedder.embed(["open a file", "church music"])
    assert rows.dtype == np.float32 and rows.shape == (2, 32)
    assert embedder.embed([]).shape == (0, 32)
    assert embed_quantised(embedder, ["open a file"]).shape == (1, 32)
    files = embedder.manifest().files
    weights = [name for name in files if name.endswith(".safetensors")]
    assert weights and "modules.json" in files and any("tokenizer" in name for name in files)
    assert files[weights[0]] == file_digest(model / weights[0])
    again = registry.load(NAME, EmbedderOptions(folder=model))
    assert again.manifest().digest() == embedder.manifest().digest()


@needs_library
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_broken_model_is_refused_with_its_folder(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    for weights in broken.rglob("*.safetensors"):
        weights.write_bytes(b"no weights")
    with pytest.raises(EmbedderUnavailable):
        registry.load(NAME, EmbedderOptions(folder=broken))


def saved(folder: Path, **files: Any) -> Path:
    for name, value in {"modules.json": [], "1_Pooling/config.json": {}, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder


def test_every_file_counts_but_notes_and_hidden_ones(tmp_path: Path) -> None:
    before = folder_digests(saved(tmp_path))
    assert list(before) == ["1_Pooling/config.json", "modules.json"]
    saved(tmp_path, **{"README.md": "x", ".git/HEAD": "x", "onnx/model.onnx": "x"})
    assert folder_digests(tmp_path) == before
    saved(tmp_path, **{"tokenizer.json": {}})
    assert folder_digests(tmp_path).keys() == before.keys() | {"tokenizer.json"}
    saved(tmp_path, **{"1_Pooling/config.json": {"mean": True}})
    assert folder_digests(tmp_path)["1_Pooling/config.json"] != before["1_Pooling/config.json"]


@pytest.mark.parametrize("name", ["pytorch_model.bin", "0_Transformer/weights.pt", "x.pkl"])
def test_pickled_weights_are_refused_before_anything_is_loaded(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbedderUnavailable, match="pickled weights"):
        folder_digests(saved(tmp_path, **{name: "x"}))


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="no model of sentence-transformers"):
        folder_digests(tmp_path)
    saved(tmp_path, **{f"{number}.txt": "x" for number in range(201)})
    with pytest.raises(EmbedderUnavailable, match="too many files"):
        folder_digests(tmp_path)


@pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is not None, reason="it is installed"
)
def test_without_the_library_the_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"not installed .*pip install"):
        registry.load(NAME, EmbedderOptions(folder=saved(tmp_path)))
