"""The manifest of the model of this package (docs/spec/11-generation.md §11.7)."""

import hashlib
from importlib.resources import files

from ragaudit.lab.generation.decoding import next_logits
from ragaudit.lab.generation.serving import MODEL
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.lab.generation.voters import PROMPT, VOCABULARY
from ragaudit.ledger.messages.generator_manifest import GeneratorManifest, GeneratorProbe

__all__ = ["PROBES", "manifest"]

PROBES = ("treatment of bazeli ?", "symptom of mokuti ?")


def manifest(model: Transformer) -> GeneratorManifest:
    """Return the manifest of the model as DP-RAG asks it.

    Args:
        model: that answers the probes.
    """
    folder = files(__package__)
    digests = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("weights.npz", "vocabulary.py")
    }
    prompts = [PROMPT.of((), question) for question in PROBES]
    tokens = [int(each.argmax()) for each in next_logits(model, prompts)]
    probes = tuple(
        GeneratorProbe(question, VOCABULARY.text([token]))
        for question, token in zip(PROBES, tokens, strict=True)
    )
    return GeneratorManifest("files", MODEL, digests, VOCABULARY.terms, PROMPT, None, probes)
