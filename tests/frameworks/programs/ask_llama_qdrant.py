"""Retrieval with LlamaIndex over Qdrant, which asks in batches."""

import json
import sys

from embedding import embed
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.vector_stores import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.vector_stores.qdrant import QdrantVectorStore
from points import client


class Model(BaseEmbedding):
    """The model that embedded the documents."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


questions = json.load(sys.stdin)
qdrant = client()
store = QdrantVectorStore(client=qdrant, collection_name="handbook", text_key="page_content")
index = VectorStoreIndex.from_vector_store(store, embed_model=Model())
condition = MetadataFilters(
    filters=[
        MetadataFilter(key="metadata.year", operator=FilterOperator.GTE, value=2015),
        MetadataFilter(key="metadata.part", operator=FilterOperator.EQ, value="b"),
    ]
)
retriever = index.as_retriever(similarity_top_k=10)
narrow = index.as_retriever(similarity_top_k=5, filters=condition)
nearest = [retriever.retrieve(question) for question in questions]
filtered = [narrow.retrieve(question) for question in questions[:3]]
print(
    json.dumps(
        {
            "nearest": [[found.node_id for found in nodes] for nodes in nearest],
            "filtered": [[found.node_id for found in nodes] for nodes in filtered],
            "rows": {
                found.node_id: [found.text, found.metadata["metadata"]]
                for nodes in nearest
                for found in nodes
            },
            "scores": [found.score for found in nearest[0]],
        }
    )
)
qdrant.close()
