"""The client of Qdrant: of a server, or of a folder, which Qdrant calls its local mode."""

import os

from qdrant_client import QdrantClient


def client() -> QdrantClient:
    """Return the client of the store that the environment names."""
    address = os.environ["STORE_URL"]
    if address.startswith("/"):
        return QdrantClient(path=address)
    return QdrantClient(url=address, api_key=os.environ["STORE_KEY"])
