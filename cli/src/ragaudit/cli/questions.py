"""Questions that people could ask, made from the first sentences of the documentation.

"Return the greatest common divisor of two integers." becomes "How do I get the greatest
common divisor of two integers?". A question goes to the tenant whose passage suggested it.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.cli.corpus import Passage

__all__ = ["candidates", "distinct"]

# Two questions of different accounts stay below this cosine, well under the estimator's theta:
# otherwise honest strangers would look like a coalition.
LARGEST_COSINE = 0.7

_IMPERATIVES = {
    "return": "get", "returns": "get", "get": "get", "create": "create", "open": "open",
    "read": "read", "write": "write", "convert": "convert", "parse": "parse", "send": "send",
    "compute": "compute", "add": "add", "remove": "remove", "set": "set", "print": "print",
    "make": "make", "find": "find", "check": "check", "test": "check", "encode": "encode",
    "decode": "decode", "close": "close", "connect": "connect", "wait": "wait", "call": "call",
    "compare": "compare", "format": "format", "generate": "generate", "register": "register",
    "start": "start", "stop": "stop", "use": "use", "load": "load", "split": "split",
    "join": "join", "sort": "sort", "calculate": "calculate", "construct": "construct",
    "build": "build", "delete": "delete", "insert": "insert", "select": "select", "round": "round",
    "fetch": "fetch", "handle": "handle", "determine": "determine", "extract": "extract",
    "replace": "replace", "search": "search", "update": "update", "wrap": "wrap", "yield": "get",
    "arrange": "arrange", "list": "list", "run": "run", "upgrade": "upgrade", "place": "place",
    "suspend": "suspend", "initialize": "initialize", "evaluate": "evaluate", "accept": "accept",
    "receive": "receive", "store": "store", "apply": "apply", "schedule": "schedule",
    "cancel": "cancel", "change": "change", "configure": "configure", "copy": "copy",
    "define": "define", "display": "display", "enable": "enable", "ensure": "make sure",
    "examine": "examine", "execute": "execute", "expand": "expand", "give": "get", "issue": "issue",
    "iterate": "iterate", "listen": "listen", "look": "look", "mark": "mark", "move": "move",
    "parses": "parse", "pass": "pass", "process": "process", "push": "push", "quote": "quote",
    "raise": "raise", "record": "record", "release": "release", "request": "request",
    "reset": "reset", "retrieve": "retrieve", "save": "save", "serialize": "serialize",
    "shut": "shut", "skip": "skip", "specify": "specify", "switch": "switch",
    "transform": "transform", "translate": "translate", "try": "try", "verify": "verify",
    "acquire": "acquire", "append": "append", "assign": "assign", "attach": "attach",
    "block": "block",
}  # fmt: skip
_TITLE = re.compile(r"^(?:The )?([A-Z][^\n]{6,60})\n[*=\-~^]{4,}$", re.MULTILINE)
_PLAIN = re.compile(r"(?!.*[=~^*#|]{2})[^\n<>`*{}]{24,}")
_DEFINED = re.compile(r"(?:^|[.\n] +)(?:The|An?) \*([a-z][a-z \-]{3,40})\* (?:is|are) ")


def candidates(passages: Sequence[Passage]) -> Iterator[str]:
    """Yield the questions that the passages suggest, each once, in the passages' order."""
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
