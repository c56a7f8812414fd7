"""Search of a vector store with the client of llama-stack, which OGX grew from."""

import json
import os
import sys

from llama_stack_client import LlamaStackClient

questions = json.load(sys.stdin)
client = LlamaStackClient(base_url=os.environ["STORE_URL"], api_key=os.environ["STORE_KEY"])
condition = {
    "type": "and",
    "filters": [
        {"type": "gte", "key": "year", "value": 2015},
        {"type": "eq", "key": "part", "value": "b"},
    ],
}


def ask(question: str, count: int, **more: object) -> list:
    found = client.vector_stores.search(
        "handbook", query=question, max_num_results=count, rewrite_query=False, **more
    )
    return found.data


nearest = [ask(question, 10) for question in questions]
filtered = [ask(question, 5, filters=condition) for question in questions[:3]]
print(
    json.dumps(
        {
            "nearest": [[row.file_id for row in rows] for rows in nearest],
            "filtered": [[row.file_id for row in rows] for rows in filtered],
            "rows": {
                row.file_id: [row.content[0].text, row.attributes]
                for rows in nearest
                for row in rows
            },
            "scores": [row.score for row in nearest[0]],
            "total": client.vector_stores.retrieve("handbook").file_counts.total,
        }
    )
)
