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
            self.note(name, error)

    def note(self, name: str, error: Exception) -> None:
        """Keep an error: its class and its words."""
        kind = type(error)
        self.refused[name] = f"{kind.__module__}.{kind.__qualname__}: {error}"

    def hide(self, name: str, call: Callable[[], Any]) -> None:
        """Read what should not be there."""
        self.hidden[name] = list(call())

    def print(self) -> None:
        """Print everything as one line of JSON."""
        print(json.dumps({"refused": self.refused, "served": self.served, "hidden": self.hidden}))
