"""Swarms of language models: agents that bid and act by generated text, in the same training loop.

Importing the package is cheap; its modules import transformers only once a model is wanted
(extra ``[llm]``). `docs/language_models.md` is the guide.
"""
