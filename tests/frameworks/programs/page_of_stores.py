"""What both clients that took over OpenAI's vector stores are asked, and what they answer."""

import json
import sys
from typing import Any

CONDITION = {
    "type": "and",
    "filters": [
        {"type": "gte", "key": "year", "value": 2015},
        {"type": "eq", "key": "part", "value": "b"},
    ],
}


def ask(client: Any) -> None:
    """Ask the questions of the standard input, and print the answers as one line of JSON."""
    questions = json.load(sys.stdin)

    def search(question: str, count: int, **more: object) -> list:
        found = client.vector_stores.search(
            "handbook", query=question, max_num_results=count, rewrite_query=False, **more
        )
        return found.data

    nearest = [search(question, 10) for question in questions]
    filtered = [search(question, 5, filters=CONDITION) for question in questions[:3]]
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
