"""Measure the same again and again, keep what came out, and say when an answer no longer holds."""
