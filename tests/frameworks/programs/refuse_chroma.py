"""Ways around a query of Chroma, through LangChain, LlamaIndex, Haystack and its own client."""

import os
from urllib.parse import urlsplit

import chromadb
from attempts import UNSERVED, WORDS, Attempts
from embedding import embed
from haystack_integrations.document_stores.chroma import ChromaDocumentStore
from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.vector_stores.chroma import ChromaVectorStore


class Model(Embeddings):
    """The model that embedded the documents."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


address = urlsplit(os.environ["STORE_URL"])
place = {"host": address.hostname, "port": address.port}
headers = {"x-chroma-token": os.environ["STORE_KEY"]}
tries = Attempts()


def langchain(name: str) -> Chroma:
    return Chroma(collection_name=name, embedding_function=Model(), headers=headers, **place)


lang = langchain("handbook")
tries.refuse("langchain get", lang.get)
tries.refuse("langchain get where", lambda: lang.get(where={"part": "b"}))
tries.refuse("langchain get text", lambda: lang.get(where_document={"$contains": "the"}))
tries.refuse(
    "langchain where_document",
    lambda: lang.similarity_search(WORDS, k=2, where_document={"$contains": "the"}),
)
tries.refuse("langchain k", lambda: lang.similarity_search(WORDS, k=21))
tries.refuse("langchain column", lambda: lang.similarity_search(WORDS, k=2, filter={"n": 1}))
tries.refuse("langchain mmr", lambda: lang.max_marginal_relevance_search(WORDS, k=2, fetch_k=21))
tries.refuse("langchain reset", lang.reset_collection)
tries.refuse("langchain other tenant", lambda: langchain("manual"))
tries.refuse("langchain other case", lambda: langchain("Handbook"))
tries.refuse("langchain unknown", lambda: langchain("nothing"))
tries.refuse(
    "langchain key",
    lambda: Chroma(collection_name="handbook", headers={"x-chroma-token": "no"}, **place),
)
tries.hide("langchain get by id", lambda: lang.get_by_ids(UNSERVED))

llama = ChromaVectorStore.from_params(
    collection_name="handbook", host=address.hostname, port=str(address.port), headers=headers
)
one = MetadataFilters(filters=[MetadataFilter(key="part", value="b")])
vector = embed([WORDS])[0]
# It asks for four times as many to choose from.
diverse = VectorStoreQuery(
    query_embedding=vector, similarity_top_k=6, mode=VectorStoreQueryMode.MMR
)
tries.refuse("llama get_nodes", lambda: llama.get_nodes(node_ids=None))
tries.refuse("llama get_nodes where", lambda: llama.get_nodes(node_ids=None, filters=one))
tries.refuse("llama mmr", lambda: llama.query(diverse))
tries.refuse("llama clear", llama.clear)
tries.hide("llama get_nodes by id", lambda: llama.get_nodes(node_ids=UNSERVED))

hay = ChromaDocumentStore(
    collection_name="handbook",
    client_settings={
        "chroma_client_auth_provider": "chromadb.auth.token_authn.TokenAuthClientProvider",
        "chroma_client_auth_credentials": os.environ["STORE_KEY"],
        "chroma_auth_token_transport_header": "X-Chroma-Token",
        "anonymized_telemetry": False,
    },
    **place,
)
part = {"field": "meta.part", "operator": "==", "value": "b"}
text = {"field": "content", "operator": "contains", "value": "the"}
tries.refuse("haystack filter_documents", hay.filter_documents)
tries.refuse("haystack filter_documents where", lambda: hay.filter_documents(part))
tries.refuse("haystack count where", lambda: hay.count_documents_by_filter(part))
tries.refuse("haystack metadata", hay.get_metadata_fields_info)
tries.refuse("haystack unique", lambda: hay.get_metadata_field_unique_values("part"))
tries.refuse("haystack delete where", lambda: hay.delete_by_filter(part))
tries.refuse("haystack update where", lambda: hay.update_by_filter(part, {"part": "c"}))
tries.refuse("haystack delete all", hay.delete_all_documents)
tries.refuse("haystack text", lambda: hay.search_embeddings([vector], top_k=2, filters=text))

client = chromadb.HttpClient(headers=headers, **place)
rows = client.get_collection("handbook", embedding_function=None)
near, words = {"query_embeddings": [vector]}, {"$contains": "the"}
tries.refuse("peek", rows.peek)
tries.refuse("get with vectors", lambda: rows.get(include=["embeddings"]))
tries.refuse("get a page", lambda: rows.get(limit=5, offset=5))
tries.refuse("get among ids", lambda: rows.get(ids=UNSERVED, where={"part": "b"}))
tries.refuse("query by words", lambda: rows.query(**near, where_document=words))
tries.refuse("query for more", lambda: rows.query(**near, n_results=21))
tries.refuse("query by a column", lambda: rows.query(**near, where={"n": {"$gt": 1}}))
tries.refuse(
    "query by one of two", lambda: rows.query(**near, where={"$or": [{"n": 1}, {"part": "b"}]})
)
tries.refuse("query among ids", lambda: rows.query(query_embeddings=[vector], ids=UNSERVED))
tries.refuse("rename", lambda: rows.modify(name="other"))
tries.refuse("fork", lambda: rows.fork("other"))
tries.refuse("delete by words", lambda: rows.delete(where_document=words))
tries.refuse("delete by words too", lambda: rows.delete(where={"#document": words}))
tries.refuse("delete collection", lambda: client.delete_collection("handbook"))
tries.refuse("create collection", lambda: client.create_collection("other"))
tries.refuse("get collection", lambda: client.get_collection("manual"))
tries.refuse("reset", client.reset)
tries.refuse("hybrid search", lambda: rows.search(chromadb.Search().limit(2)))
tries.hide("get by id", lambda: rows.get(ids=UNSERVED)["ids"])
tries.print()
