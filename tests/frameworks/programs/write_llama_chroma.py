"""Nodes and documents that are added, replaced and deleted: LlamaIndex over Chroma."""

import json
import os
import sys
import uuid
from urllib.parse import urlsplit

from embedding import embed
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.vector_stores.chroma import ChromaVectorStore


class Model(BaseEmbedding):
    """The model that embedded the documents."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


text, another = json.load(sys.stdin)
new, changed, deleted = json.loads(os.environ["ROWS"])
address = urlsplit(os.environ["STORE_URL"])
store = ChromaVectorStore.from_params(
    collection_name="handbook",
    host=address.hostname,
    port=str(address.port),
    headers={"x-chroma-token": os.environ["STORE_KEY"]},
)
index = VectorStoreIndex.from_vector_store(store, embed_model=Model())
metadata = {"year": 2020, "part": "b", "n": 1000}
bare = {"excluded_embed_metadata_keys": list(metadata)}
index.insert_nodes([TextNode(id_=new, text=text, metadata=metadata, **bare)])
index.delete_nodes([changed, deleted])
index.insert_nodes([TextNode(id_=changed, text=another, metadata=metadata, **bare)])
# A document's nodes have ids of their own: its name replaces and deletes them.
index.insert(Document(id_="a memo", text="A memo about tea.", metadata=metadata, **bare))
index.update_ref_doc(Document(id_="a memo", text="A memo on coffee.", metadata=metadata, **bare))
index.insert(Document(id_="a draft", text="A draft about milk.", metadata=metadata, **bare))
index.delete_ref_doc("a draft")
# Of these nodes, those that a filter names.
notes = [str(uuid.uuid5(uuid.NAMESPACE_URL, each)) for each in ("kept", "draft")]
states = zip(notes, ("kept", "draft"), strict=True)
bare = {"excluded_embed_metadata_keys": [*metadata, "state"]}
index.insert_nodes(
    [
        TextNode(id_=each, text=f"A note to be {s}.", metadata={**metadata, "state": s}, **bare)
        for each, s in states
    ]
)
drafts = MetadataFilters(filters=[MetadataFilter(key="state", value="draft")])
store.delete_nodes(notes, drafts)
print(json.dumps({"stored": store.stores_text}))
