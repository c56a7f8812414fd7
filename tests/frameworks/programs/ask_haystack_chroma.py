"""Retrieval with a pipeline of Haystack over Chroma."""

import json
import os
import sys
from urllib.parse import urlsplit

from embedding import embed
from haystack import Pipeline
from haystack_integrations.components.retrievers.chroma import ChromaEmbeddingRetriever
from haystack_integrations.document_stores.chroma import ChromaDocumentStore

questions = json.load(sys.stdin)
address = urlsplit(os.environ["STORE_URL"])
store = ChromaDocumentStore(
    collection_name="handbook",
    host=address.hostname,
    port=address.port,
    distance_function="cosine",
    client_settings={
        "chroma_client_auth_provider": "chromadb.auth.token_authn.TokenAuthClientProvider",
        "chroma_client_auth_credentials": os.environ["STORE_KEY"],
        "chroma_auth_token_transport_header": "X-Chroma-Token",
        "anonymized_telemetry": False,
    },
)
condition = {
    "operator": "AND",
    "conditions": [
        {"field": "meta.year", "operator": ">=", "value": 2015},
        {"field": "meta.part", "operator": "==", "value": "b"},
    ],
}
pipeline = Pipeline()
pipeline.add_component("retriever", ChromaEmbeddingRetriever(document_store=store, top_k=10))


def ask(question: str, **more: object) -> list:
    told = {"query_embedding": embed([question])[0], **more}
    return pipeline.run({"retriever": told})["retriever"]["documents"]


nearest = [ask(question) for question in questions]
filtered = [ask(question, filters=condition, top_k=5) for question in questions[:3]]
print(
    json.dumps(
        {
            "nearest": [[document.id for document in each] for each in nearest],
            "filtered": [[document.id for document in each] for each in filtered],
            "rows": {d.id: [d.content, d.meta] for each in nearest for d in each},
            "scores": [document.score for document in nearest[0]],
            "count": store.count_documents(),
        }
    )
)
