"""A document that is added, one that is replaced and one that is deleted: LangChain over Chroma."""

import json
import os
import sys
from urllib.parse import urlsplit

from embedding import embed
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings


class Model(Embeddings):
    """The model that embedded the documents."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


text, another = json.load(sys.stdin)
new, changed, deleted = json.loads(os.environ["ROWS"])
address = urlsplit(os.environ["STORE_URL"])
store = Chroma(
    collection_name="handbook",
    embedding_function=Model(),
    host=address.hostname,
    port=address.port,
    headers={"x-chroma-token": os.environ["STORE_KEY"]},
)
metadata = {"year": 2020, "part": "b", "n": 1000}
added = store.add_documents([Document(page_content=text, metadata=metadata)], ids=[new])
store.update_document(changed, Document(page_content=another, metadata=metadata))
store.delete([deleted])
# A tenth of the handbook, by a filter.
store.delete(where={"$and": [{"n": {"$gte": 540}}, {"n": {"$lt": 600}}]})
print(json.dumps({"added": added}))
