"""What the frameworks' programs ask about: glosses in both tenants' collections, and questions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import qdrant_client
import wordnet
from fastapi import FastAPI
from ragaudit.embedders import registry
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.requests import float32_bytes

TENANTS = {"one": "handbook", "two": "manual"}
ROWS = {"one": 600, "two": 60}
QUESTIONS = 100
BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"


@dataclass(frozen=True)
class Row:
    """A document as the store has it."""

    id: str
    text: str
    metadata: dict[str, Any]

    @property
    def passes(self) -> bool:
        """Whether the filter that all programs ask for lets it through."""
        return passes(self.metadata)


def passes(metadata: Mapping[str, Any]) -> bool:
    """Whether the filter that all programs ask for lets a row with this metadata through."""
    return int(metadata["year"]) >= 2015 and str(metadata["part"]) == "b"


@dataclass
class Corpus:
    """What both tenants have, and what is asked; ids are UUIDs, which every store takes."""

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        every = wordnet.glosses(sum(ROWS.values()))
        parts = {"one": every[: ROWS["one"]], "two": every[ROWS["one"] :]}
        return {
            tenant: [
                Row(
                    str(uuid.uuid5(uuid.NAMESPACE_URL, f"{tenant}/{gloss.id}")),
                    gloss.text,
                    {"year": 2010 + n % 11, "part": "abc"[n % 3], "n": n},
                )
                for n, gloss in enumerate(glosses)
            ]
            for tenant, glosses in parts.items()
        }

    @cached_property
    def vectors(self) -> dict[str, npt.NDArray[np.float32]]:
        model = registry.load()
        return {
            tenant: model.embed([row.text for row in rows]) for tenant, rows in self.rows.items()
        }

    @cached_property
    def questions(self) -> list[str]:
        """The second halves of glosses, as the demo's passages are asked for (spec 2.1)."""
        texts = [row.text.split() for row in self.rows["one"][:: ROWS["one"] // QUESTIONS]]
        return [" ".join(words[len(words) // 2 :]) for words in texts]

    @cached_property
    def asked(self) -> npt.NDArray[np.float32]:
        return registry.load().embed(self.questions)

    def fill(self, http: httpx.Client, tenant: str) -> None:
        """Fill a tenant's collection, as an application fills it."""
        # Wide enough that Chroma compares every row: its float ranking, and no approximation of it.
        hnsw = {"space": "cosine", "ef_search": 2000, "ef_construction": 2000}
        body = {"name": TENANTS[tenant], "configuration": {"hnsw": hnsw}}
        place = f"{BASE}/{http.post(BASE, json=body).raise_for_status().json()['id']}"
        rows = self.rows[tenant]
        added = {
            "ids": [row.id for row in rows],
            "documents": [row.text for row in rows],
            "metadatas": [row.metadata for row in rows],
            "embeddings": self.vectors[tenant].tolist(),
        }
        http.post(f"{place}/add", json=added).raise_for_status()

    def fill_points(self, folder: Path) -> None:
        """Fill a folder of Qdrant's local mode with the first tenant's rows."""
        with closing(qdrant_client.QdrantClient(path=str(folder))) as client:
            models = qdrant_client.models
            size = self.vectors["one"].shape[1]
            shape = models.VectorParams(size=size, distance=models.Distance.COSINE)
            client.create_collection(TENANTS["one"], vectors_config=shape)
            points = [
                models.PointStruct(
                    id=row.id,
                    vector=vector.tolist(),
                    payload={"page_content": row.text, "metadata": row.metadata},
                )
                for row, vector in zip(self.rows["one"], self.vectors["one"], strict=True)
            ]
            client.upsert(TENANTS["one"], points)


def model_app() -> FastAPI:
    """OpenAI's interface of an embedding model, as applications and no prover use it here."""
    app, model = FastAPI(), registry.load()

    @app.post("/v1/embeddings")
    def embeddings(body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [vector.tolist() for vector in model.embed(texts)]
        if body.get("encoding_format") == "base64":
            vectors = [b64_encode(float32_bytes(vector)) for vector in vectors]
        data = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "model": body["model"], "data": data, "usage": usage}

    return app
