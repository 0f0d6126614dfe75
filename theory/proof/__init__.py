"""Proofs.

The trusted base is ``terms``, ``normal``, ``calculus``, ``balls`` and ``kernel``. Outside it, ending in
kernel rules: ``tactics`` (everyday steps, and the search for multipliers), ``ranges`` (unbounded boxes,
maxima) and ``squares`` (polynomial inequalities).
"""
