"""A document that is added, one that is replaced and one that is deleted: Haystack over Chroma."""

import json
import os
import sys
from urllib.parse import urlsplit

from embedding import embed
from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.chroma import ChromaDocumentStore

text, another = json.load(sys.stdin)
new, changed, deleted = json.loads(os.environ["ROWS"])
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


def document(name: str, content: str) -> Document:
    metadata = {"year": 2020, "part": "b", "n": 1000}
    return Document(id=name, content=content, meta=metadata, embedding=embed([content])[0])


pipeline = Pipeline()
pipeline.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.OVERWRITE))
added = store.write_documents([document(new, text)])
replaced = pipeline.run({"writer": {"documents": [document(changed, another)]}})
store.delete_documents([deleted])
print(json.dumps({"added": added, "replaced": replaced["writer"]["documents_written"]}))
