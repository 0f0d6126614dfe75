"""Proofs: the trusted kernel (terms, normal, calculus, balls, kernel) and, outside it, comfort."""
