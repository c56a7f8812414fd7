"""A small language model that can only copy, its server, and what private answers are tried with.

vocabulary   its tokens: a few words, and syllables of invented names
episodes     what it is trained on
transformer  the model; `training` makes its weights, `serving` speaks OpenAI's API for it
decoding     greedy, in batches; `voters` are the model for the mechanisms in one process
records      invented patient records, and questions about them; `manifest` describes the model
"""
