"""Text: labelled documents, a pretrained transformer, its frozen embeddings, and its fine-tuning.

The packages behind it are heavy and optional, `pip install .[language]`; nothing here imports them before a
function that needs them is called, and each such function says what to install when they are missing.
"""
