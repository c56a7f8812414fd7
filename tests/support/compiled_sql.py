"""SQL is compiled once in a process of tests: they open hundreds of SQLite databases, all alike."""

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

STATEMENTS = 2000  # kept; an engine of its own would keep 500


def share_compiled() -> None:
    """Let all engines of SQLite know what one has compiled; the dialect is part of the key."""
    shared: LRUCache[Any, Any] = LRUCache(STATEMENTS)

    def of(engine: Engine) -> Any:
        return shared if engine.name == "sqlite" else vars(engine)["_own_cache"]

    def own(engine: Engine, cache: Any) -> None:
        vars(engine)["_own_cache"] = cache

    dialect: Any = SQLiteDialect_pysqlite
    dialect.__eq__ = lambda one, other: type(one) is type(other)
    dialect.__hash__ = lambda one: hash(type(one))
    engines: Any = Engine
    engines._compiled_cache = property(of, own)
