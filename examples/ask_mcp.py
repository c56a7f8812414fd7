"""What an agent does over the Model Context Protocol: list tools, `search`, `fetch`.

    STORE_URL=http://127.0.0.1:8080 STORE_KEY=... \
        python ask_mcp.py <<< '["Where is the key?", "Who pays?"]'

The questions are a JSON list on standard input, the answers and the ids of their receipts one JSON
object.
"""

import asyncio
import json
import os
import sys

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client


async def main(questions: list[str]) -> dict:
    headers = {"Authorization": f"Bearer {os.environ['STORE_KEY']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        streamable_http_client(f"{os.environ['STORE_URL']}/mcp", http_client=http) as streams,
        mcp.ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        tools = await session.list_tools()
        found = [await session.call_tool("search", {"query": each}) for each in questions]
        results = [each.structured_content["results"] for each in found]
        texts = {}
        for row in results[0]:
            shown = await session.call_tool("fetch", {"id": row["id"]})
            document = shown.structured_content
            texts[document["id"]] = [document["text"], document["metadata"]]
        return {
            "nearest": [[row["id"] for row in rows] for rows in results],
            "filtered": [],
            "rows": texts,
            "tools": [tool.name for tool in tools.tools],
            "receipts": [name for each in found for name in each.meta["ragaudit_receipts"]],
            "same": all(json.loads(e.content[0].text) == e.structured_content for e in found),
        }


print(json.dumps(asyncio.run(main(json.load(sys.stdin)))))
