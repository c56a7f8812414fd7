"""An anchored client that dies between a promise and its nonce: run as a process of its own.

Reads one JSON object from standard input (no secret on a command line), asks one question, and
ends without a word once the promise is durable. Its state directory is all that is left of it.
"""

import json
import os
import sys
from typing import NoReturn

from ragaudit.client import Client

EXIT_CRASHED = 137


class CrashingClient(Client):
    """Ends its process where a real one would reveal the nonce."""

    def _reveal(self, *_: object) -> NoReturn:
        os._exit(EXIT_CRASHED)


def main() -> None:
    """Ask and crash."""
    arguments = json.load(sys.stdin)
    query, top_k = arguments.pop("query"), arguments.pop("top_k")
    with CrashingClient(**arguments) as client:
        client.search(query, top_k)


if __name__ == "__main__":
    main()
