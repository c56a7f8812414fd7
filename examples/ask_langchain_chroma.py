"""Retrieval with LangChain over Chroma: retrievers, scores, filters, MMR, and a chain.

    STORE_URL=http://127.0.0.1:8080 STORE_KEY=... EMBEDDINGS_URL=http://127.0.0.1:9000/v1 \
        python ask_langchain_chroma.py <<< '["Where is the key?", "Who pays?", "When?"]'

Point STORE_URL at Chroma or at the prover before it: nothing else changes. The questions are a JSON
list on standard input, the answers one JSON object.
"""

import json
import os
import sys
from urllib.parse import urlsplit

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from openai import OpenAI


class Model(Embeddings):
    """The model that embedded the documents, behind OpenAI's interface."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        with OpenAI(base_url=os.environ["EMBEDDINGS_URL"], api_key="none") as client:
            found = client.embeddings.create(model="default", input=texts)
        return [each.embedding for each in found.data]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def ids(documents: list[Document]) -> list[str]:
    return [str(document.id) for document in documents]


questions = json.load(sys.stdin)
address = urlsplit(os.environ["STORE_URL"])
store = Chroma(
    collection_name="handbook",
    embedding_function=Model(),
    host=address.hostname,
    port=address.port,
    headers={"x-chroma-token": os.environ["STORE_KEY"]},
)
retriever = store.as_retriever(search_kwargs={"k": 10})
nearest = [retriever.invoke(question) for question in questions]
where = {"$and": [{"year": {"$gte": 2015}}, {"part": "b"}]}
filtered = [store.similarity_search(each, k=5, filter=where) for each in questions[:3]]
scored = store.similarity_search_with_score(questions[0], k=4)
relevant = store.similarity_search_with_relevance_scores(questions[1], k=4)
diverse = store.max_marginal_relevance_search(questions[2], k=4, fetch_k=20)
chain = (
    {"context": retriever, "question": RunnablePassthrough()}
    | RunnableLambda(lambda it: f"{it['question']} {it['context'][0].page_content}")  # the LLM
)
print(
    json.dumps(
        {
            "nearest": [ids(documents) for documents in nearest],
            "filtered": [ids(documents) for documents in filtered],
            "rows": {d.id: [d.page_content, d.metadata] for each in nearest for d in each},
            "scored": ids([document for document, _ in scored]),
            "scores": [score for _, score in scored],
            "relevant": ids([document for document, _ in relevant]),
            "diverse": ids(diverse),
            "again": sorted(ids(store.get_by_ids(ids(nearest[0])))),
            "answer": chain.invoke(questions[0]),
        }
    )
)
