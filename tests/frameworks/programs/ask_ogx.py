"""Search of a vector store with the client of OGX, the successor of llama-stack."""

import os

from ogx_client import OgxClient
from page_of_stores import ask

ask(OgxClient(base_url=os.environ["STORE_URL"], api_key=os.environ["STORE_KEY"]))
