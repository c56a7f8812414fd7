"""A language model behind OpenAI's API, as the voters of the mechanisms of spec 11.

    asking   one service: what it may take of time and memory, and what its failures are called
    tokens   the next token of each voter, `POST /completions`: for DP-RAG
    answers  whole answers, `POST /chat/completions`: for DP-KSA

What fails for a voter is an empty vote, never an error: whether a document made its own voter fail
would be told otherwise. Errors come of prompts that hold no document.
"""
