"""What an application tries and what it hears."""

import json
import os
from collections.abc import Callable
from typing import Any

WORDS = "a unit of weight"
UNSERVED = json.loads(os.environ["UNSERVED"])


class Attempts:
    """Calls by name, with the error of each, or with what came of it."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}
        self.served: dict[str, str] = {}
        self.hidden: dict[str, list] = {}

    def refuse(self, name: str, call: Callable[[], Any]) -> None:
        """Try what should be refused."""
        try:
            self.served[name] = repr(call())
        except Exception as error:
            self.refused[name] = f"{type(error).__name__}: {error}"

    def hide(self, name: str, call: Callable[[], Any]) -> None:
        """Read what should not be there."""
        self.hidden[name] = list(call())

    def print(self) -> None:
        """Print everything as one line of JSON."""
        print(json.dumps({"refused": self.refused, "served": self.served, "hidden": self.hidden}))
