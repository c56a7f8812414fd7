"""Search of a vector store with the client of llama-stack, which OGX grew from."""

import os

from llama_stack_client import LlamaStackClient
from page_of_stores import ask

ask(LlamaStackClient(base_url=os.environ["STORE_URL"], api_key=os.environ["STORE_KEY"]))
