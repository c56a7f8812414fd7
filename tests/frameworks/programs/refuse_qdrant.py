"""Ways around a query of Qdrant, through LangChain, LlamaIndex and its own client."""

from attempts import UNSERVED, WORDS, Attempts
from embedding import embed
from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.vector_stores.qdrant import QdrantVectorStore as LlamaStore
from points import client
from qdrant_client import QdrantClient, models


class Model(Embeddings):
    """The model that embedded the documents."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


qdrant: QdrantClient = client()
tries = Attempts()
vector = embed([WORDS])[0]


def matching(key: str, value: object) -> models.Filter:
    return models.Filter(
        must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))]
    )


def langchain(name: str) -> QdrantVectorStore:
    return QdrantVectorStore(client=qdrant, collection_name=name, embedding=Model())


lang = langchain("handbook")
tries.refuse("langchain mmr", lambda: lang.max_marginal_relevance_search(WORDS, k=2))
tries.refuse("langchain k", lambda: lang.similarity_search(WORDS, k=21))
tries.refuse(
    "langchain column",
    lambda: lang.similarity_search(WORDS, k=2, filter=matching("metadata.n", 1)),
)
tries.refuse(
    "langchain text",
    lambda: lang.similarity_search(
        WORDS,
        k=2,
        filter=models.Filter(
            must=[models.FieldCondition(key="page_content", match=models.MatchText(text="the"))]
        ),
    ),
)
tries.refuse("langchain offset", lambda: lang.similarity_search(WORDS, k=2, offset=2))
tries.refuse("langchain threshold", lambda: lang.similarity_search(WORDS, k=2, score_threshold=1.5))
tries.refuse("langchain add", lambda: lang.add_texts(["a text"]))
tries.refuse("langchain delete", lambda: lang.delete(UNSERVED))
tries.refuse("langchain other tenant", lambda: langchain("manual"))
tries.refuse("langchain other case", lambda: langchain("HANDBOOK"))
tries.hide("langchain get by id", lambda: lang.get_by_ids(UNSERVED))

llama = LlamaStore(client=qdrant, collection_name="handbook", text_key="page_content")
one = MetadataFilters(filters=[MetadataFilter(key="metadata.part", value="b")])
tries.refuse("llama get_nodes where", lambda: llama.get_nodes(filters=one))
tries.refuse("llama get_nodes", lambda: llama.get_nodes(node_ids=UNSERVED))
tries.refuse("llama add", lambda: llama.add([TextNode(text="a text", embedding=vector)]))
tries.refuse("llama delete", lambda: llama.delete("document"))
tries.refuse("llama delete_nodes", lambda: llama.delete_nodes(UNSERVED))
tries.refuse("llama clear", llama.clear)

name = "handbook"
tries.refuse("scroll", lambda: qdrant.scroll(name))
tries.refuse("count where", lambda: qdrant.count(name, count_filter=matching("metadata.part", "b")))
tries.refuse("facet", lambda: qdrant.facet(name, key="metadata.part"))
tries.refuse("query by id", lambda: qdrant.query_points(name, query=UNSERVED[0]))
tries.refuse("all points", lambda: qdrant.query_points(name))
tries.refuse(
    "fusion",
    lambda: qdrant.query_points(
        name,
        prefetch=models.Prefetch(query=vector),
        query=models.FusionQuery(fusion=models.Fusion.RRF),
    ),
)
tries.refuse(
    "recommendation",
    lambda: qdrant.query_points(
        name,
        query=models.RecommendQuery(recommend=models.RecommendInput(positive=[UNSERVED[0]])),
    ),
)
tries.refuse(
    "batch with a bad one",
    lambda: qdrant.query_batch_points(
        name,
        [
            models.QueryRequest(query=vector, limit=2),
            models.QueryRequest(query=vector, limit=2, filter=matching("metadata.n", 1)),
        ],
    ),
)
tries.refuse(
    "groups",
    lambda: qdrant.query_points_groups(name, group_by="metadata.part", query=vector),
)
asked = {"collection_name": name, "query": vector}
target = models.DiscoverInput(target=vector, context=[])
pair = models.ContextPair(positive=vector, negative=vector)
score = models.SumExpression(sum=["$score", 1.0])
tries.refuse(
    "discovery",
    lambda: qdrant.query_points(name, query=models.DiscoverQuery(discover=target)),
)
tries.refuse(
    "context", lambda: qdrant.query_points(name, query=models.ContextQuery(context=[pair]))
)
tries.refuse("order", lambda: qdrant.query_points(name, query=models.OrderByQuery(order_by="n")))
tries.refuse(
    "sample",
    lambda: qdrant.query_points(name, query=models.SampleQuery(sample=models.Sample.RANDOM)),
)
tries.refuse(
    "formula",
    lambda: qdrant.query_points(
        name,
        prefetch=models.Prefetch(query=vector),
        query=models.FormulaQuery(formula=score),
    ),
)
tries.refuse("named vector", lambda: qdrant.query_points(**asked, using="other"))
tries.refuse("many rows", lambda: qdrant.query_points(**asked, limit=21))
tries.refuse("scroll in order", lambda: qdrant.scroll(name, order_by="metadata.n"))
tries.refuse("matrix", lambda: qdrant.search_matrix_pairs(name))
tries.refuse("matrix of offsets", lambda: qdrant.search_matrix_offsets(name))
tries.refuse("payload", lambda: qdrant.set_payload(name, {"part": "c"}, points=UNSERVED))
tries.refuse("new key", lambda: qdrant.create_payload_index(name, "metadata.n", "integer"))
tries.refuse("delete collection", lambda: qdrant.delete_collection(name))
tries.refuse("snapshot", lambda: qdrant.create_snapshot(name))
tries.refuse("get collection", lambda: qdrant.get_collection("manual"))
tries.hide("get by id", lambda: qdrant.retrieve(name, UNSERVED))
tries.print()
qdrant.close()
