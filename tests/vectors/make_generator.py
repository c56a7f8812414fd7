"""Write generator.json: the manifest of a generator, its vocabulary and both digests.

Run `python tests/vectors/make_generator.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (chapters 1 and 11) alone: standard library, nothing of ours.
"""

import hashlib
import json
from pathlib import Path

from make_encoding import pack as enc
from make_messages import canonical

FOLDER = Path(__file__).parent
TOKENS = ["<end>", " yes", " no", " perhaps", "é"]


def sha(tag: str, data: bytes) -> bytes:
    return hashlib.sha256(enc(tag, data)).digest()


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    listed = json.dumps(TOKENS, ensure_ascii=False, separators=(",", ":")).encode()
    vocabulary = {
        "digest": sha("ragaudit/v1/vocabulary", listed).hex(), "size": len(TOKENS), "end": 0,
    }  # fmt: skip
    prompt = {"template": "{documents}\n\n{question}\n", "between": "\n"}
    common: dict[str, object] = {
        "format": "ragaudit/v1/generator", "model": "model-1", "prompt": prompt,
        "decoding": "greedy",
    }  # fmt: skip
    of_tokens = {
        **common, "kind": "files", "files": {"weights.bin": "ab" * 32, "tokenizer.json": "cd" * 32},
        "vocabulary": vocabulary, "keywords": None,
        "probes": [{"question": "is it?", "answer": " yes"}, {"question": "why?", "answer": ""}],
    }  # fmt: skip
    of_answers = {
        **common, "kind": "endpoint", "files": {}, "vocabulary": None,
        "keywords": {"template": "{documents}: {question}", "between": " "},
        "probes": [{"question": "is it?", "answer": "perhaps"}],
    }  # fmt: skip
    cases = []
    for value in (of_tokens, of_answers):
        data = canonical(value)
        cases.append(
            {"manifest": data.decode(), "digest": sha("ragaudit/v1/generator", data).hex()}
        )
    document = {
        "origin": "tests/vectors/make_generator.py, from docs/spec alone",
        "tokens": TOKENS,
        "vocabulary": vocabulary,
        "generators": cases,
    }
    return {"generator.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
