"""Lemmas about an arbitrary weight matrix W."""
