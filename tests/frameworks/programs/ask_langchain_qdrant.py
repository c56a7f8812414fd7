"""Retrieval with LangChain over Qdrant: retrievers, scores, filters, and reading by id."""

import json
import sys

from embedding import embed
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore
from points import client
from qdrant_client import models


class Model(Embeddings):
    """The model that embedded the documents."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


def ids(documents: list[Document]) -> list[str]:
    return [document.metadata["_id"] for document in documents]


def row(document: Document) -> list:
    own = {"_id", "_collection_name"}
    return [document.page_content, {k: v for k, v in document.metadata.items() if k not in own}]


questions = json.load(sys.stdin)
qdrant = client()
store = QdrantVectorStore(client=qdrant, collection_name="handbook", embedding=Model())
condition = models.Filter(
    must=[
        models.FieldCondition(key="metadata.year", range=models.Range(gte=2015)),
        models.FieldCondition(key="metadata.part", match=models.MatchValue(value="b")),
    ]
)
retriever = store.as_retriever(search_kwargs={"k": 10})
nearest = [retriever.invoke(question) for question in questions]
filtered = [store.similarity_search(each, k=5, filter=condition) for each in questions[:3]]
scored = store.similarity_search_with_score(questions[0], k=4)
print(
    json.dumps(
        {
            "nearest": [ids(documents) for documents in nearest],
            "filtered": [ids(documents) for documents in filtered],
            "rows": {ids([d])[0]: row(d) for each in nearest for d in each},
            "scored": ids([document for document, _ in scored]),
            "scores": [score for _, score in scored],
            "again": sorted(ids(store.get_by_ids(ids(nearest[0])))),
        }
    )
)
qdrant.close()
