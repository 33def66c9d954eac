"""Trains the review cross-encoder's adapter and the fusion beside it; run as `python -m training.train`.

The only folder that needs torch. It uses the product's reader, tokenizer and graph, so what is
evaluated is what the server runs.
"""
