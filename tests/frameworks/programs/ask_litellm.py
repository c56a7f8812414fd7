"""Search of a vector store with LiteLLM's client, by its provider pg_vector."""

import json
import os
import sys

import litellm

questions = json.load(sys.stdin)
own = {
    "custom_llm_provider": "pg_vector",
    "api_base": os.environ["STORE_URL"],
    "api_key": os.environ["STORE_KEY"],
}
condition = {
    "type": "and",
    "filters": [
        {"type": "gte", "key": "year", "value": 2015},
        {"type": "eq", "key": "part", "value": "b"},
    ],
}


def ask(question: str, count: int, **more: object) -> list:
    found = litellm.vector_stores.search(
        vector_store_id="handbook", query=question, max_num_results=count, **own, **more
    )
    return found["data"]


nearest = [ask(question, 10) for question in questions]
filtered = [ask(question, 5, filters=condition) for question in questions[:3]]
print(
    json.dumps(
        {
            "nearest": [[row["file_id"] for row in rows] for rows in nearest],
            "filtered": [[row["file_id"] for row in rows] for rows in filtered],
            "rows": {
                row["file_id"]: [row["content"][0]["text"], row["attributes"]]
                for rows in nearest
                for row in rows
            },
            "scores": [row["score"] for row in nearest[0]],
        }
    )
)
