"""The suite itself: shapes and types of numerics and theory are really checked at run time."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from numerics.datasets import load
from theory.verdict import ratios


def test_a_wrong_shape_is_caught():
    problem = load("gaussian:n=2,T=2,d=8")
    with pytest.raises(TypeCheckError):
        problem.combine(np.zeros((3, 3)))


def test_a_wrong_type_is_caught(monkeypatch):
    monkeypatch.setattr(np, "where", lambda *_: "not an array")
    with pytest.raises(TypeCheckError):
        ratios(1.0, 2.0)
