"""The service that an answer over HTTP stands beside: it stores a question durably, and no more.

FastAPI on uvicorn, a row of SQLite for each request, committed before the reply: what a service
costs that checks nothing, logs nothing and signs nothing. Run as a process of its own:
``python -m ragaudit.lab.bench.one_row PORT FILE``.
"""

import sqlite3
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

ROUTE, READY = "/query", "/openapi.json"


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kind: str
    query: str
    top_k: int
    filter: str


def application(file: str) -> FastAPI:
    """Return the application; its database is as durable as the prover's.

    Args:
        file: of the database, which is not there yet.
    """
    database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE question (id INTEGER PRIMARY KEY, query TEXT, top_k INTEGER)")
    app = FastAPI()

    # On the event loop, where it costs least: a thread for each would be slower.
    @app.post(ROUTE)
    async def ask(body: _Question) -> dict[str, int | None]:
        row = "INSERT INTO question (query, top_k) VALUES (?, ?)"
        return {"id": database.execute(row, (body.query, body.top_k)).lastrowid}

    return app


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), access_log=False)
