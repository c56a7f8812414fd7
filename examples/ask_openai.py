"""Search with OpenAI's SDK, for instance of PostgreSQL with pgvector behind the prover.

    STORE_URL=http://127.0.0.1:8080 STORE_KEY=... \
        python ask_openai.py <<< '["Where is the key?", "Who pays?", "When?"]'

The prover serves the table as the vector store `handbook` (docs/surfaces.md), and embeds the
questions. They are a JSON list on standard input, the answers one JSON object.
"""

import json
import os
import sys

from openai import OpenAI

questions = json.load(sys.stdin)
client = OpenAI(base_url=f"{os.environ['STORE_URL']}/v1", api_key=os.environ["STORE_KEY"])
condition = {
    "type": "and",
    "filters": [
        {"type": "gte", "key": "year", "value": 2015},
        {"type": "eq", "key": "part", "value": "b"},
    ],
}
nearest = [
    list(client.vector_stores.search("handbook", query=each, max_num_results=10))
    for each in questions
]
filtered = [
    list(
        client.vector_stores.search(
            "handbook",
            query=each,
            max_num_results=5,
            filters=condition,
            ranking_options={"ranker": "auto", "score_threshold": 0.0},
            rewrite_query=False,
        )
    )
    for each in questions[:3]
]
several = client.vector_stores.search("handbook", query=questions[:2], max_num_results=4)
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
            "scored": [row.file_id for row in nearest[0]],
            "scores": [row.score for row in nearest[0]],
            "several": [row.file_id for row in several],
            "total": client.vector_stores.retrieve("handbook").file_counts.total,
        }
    )
)
client.close()
