"""An anchored client that dies between a promise and its nonce: run as a process of its own.

Reads one JSON object from standard input (no secret on a command line), asks one question, and
ends without a word once the promise is durable. Its state directory is all that is left of it.
"""

import json
import os
import sys
from typing import NoReturn

from ragaudit.client import Client
from ragaudit.client.asking import Asking

# 128 + 9, what a shell shows of a process that was killed.
EXIT_CRASHED = 137


def crash(*_: object, **__: object) -> NoReturn:
    """End the process where a real client would reveal the nonce."""
    # No handler, flush or finally runs: only what was durable before is there afterwards.
    os._exit(EXIT_CRASHED)


def main() -> None:
    """Ask and crash."""
    arguments = json.load(sys.stdin)
    query, top_k = arguments.pop("query"), arguments.pop("top_k")
    Asking._begin = crash  # type: ignore[method-assign]
    with Client(**arguments) as client:
        client.search(query, top_k)


if __name__ == "__main__":
    main()
