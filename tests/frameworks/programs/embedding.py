"""The embedding model of these applications, behind OpenAI's interface."""

import os

from openai import OpenAI


def embed(texts: list[str]) -> list[list[float]]:
    """Return the embeddings of texts, in their order."""
    with OpenAI(base_url=os.environ["EMBEDDINGS_URL"], api_key="none") as client:
        found = client.embeddings.create(model="default", input=texts)
    return [each.embedding for each in found.data]
