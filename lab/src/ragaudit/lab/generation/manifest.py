"""The manifest of the model of this package (docs/spec/11-generation.md §11.7)."""

import hashlib
from collections.abc import Iterable
from importlib.resources import files

from ragaudit.lab.generation.serving import MODEL
from ragaudit.lab.generation.transformer import Transformer, completed, next_logits
from ragaudit.lab.generation.voters import KEYWORDS, PROMPT, VOCABULARY
from ragaudit.ledger.messages.manifests import GeneratorManifest, GeneratorProbe

__all__ = ["PROBES", "keyword_manifest", "manifest"]

PROBES = ("treatment of bazeli ?", "symptom of mokuti ?")


def manifest(model: Transformer) -> GeneratorManifest:
    """Return the manifest of the model as DP-RAG asks it.

    Args:
        model: that answers the probes.
    """
    tokens = [int(each.argmax()) for each in next_logits(model, _prompts())]
    probes = _probes(VOCABULARY.text([token]) for token in tokens)
    return GeneratorManifest("files", MODEL, _digests(), VOCABULARY.terms, PROMPT, None, probes)


def keyword_manifest(model: Transformer, tokens: int) -> GeneratorManifest:
    """Return the manifest of the model as DP-KSA asks it.

    Args:
        model: that answers the probes.
        tokens: the most of an answer, as the policy has it.
    """
    probes = _probes(completed(model, _prompts(), tokens))
    return GeneratorManifest("files", MODEL, _digests(), None, PROMPT, KEYWORDS, probes)


def _prompts() -> list[str]:
    return [PROMPT.of((), question) for question in PROBES]


def _probes(answers: Iterable[str]) -> tuple[GeneratorProbe, ...]:
    return tuple(map(GeneratorProbe, PROBES, answers))


def _digests() -> dict[str, str]:
    folder = files(__package__)
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("weights.npz", "vocabulary.py")
    }
