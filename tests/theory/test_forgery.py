# ruff: noqa: PLW0108 -- each attempt is a lambda, made inside its own test
"""Ways to come by a Proved that the kernel did not make, or to make the kernel make one; each fails."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import pickle
import types
import weakref
from fractions import Fraction
from unittest import mock

import pytest

from theory.page import ProofError, Theorem
from theory.proof import balls, calculus, kernel, normal, terms
from theory.proof.kernel import Fact, KernelError, Proved, assume, combine
from theory.proof.tactics import one_positive
from theory.proof.terms import Formula, Term, eq, exp, real, symbol

FALSE = real(1) < 0
x, y = symbol("x"), symbol("y")


def genuine():
    return combine(eq(x, x))


def is_claim(value):
    """Whether the kernel takes a value for a claim: ``discharge`` passes on any claim unchanged."""
    try:
        return kernel.discharge(value).conclusion == FALSE
    except KernelError:
        return False


class Imitation:
    """Everything a claim shows, and even its class."""

    hypotheses = frozenset()
    conclusion = FALSE
    rule = "assume"
    premises = ()
    axioms = frozenset()

    @property
    def __class__(self):
        return Proved


class Plain:
    __slots__ = ("__weakref__",)


def _cast():
    value = Plain()
    value.__class__ = Proved
    return value


def _reconstructed():
    return copy._reconstruct(genuine(), None, Proved, ())


def _initialized():
    value = object.__new__(Proved)
    value.__init__(frozenset(), FALSE)
    return value


FORGERIES = {
    "constructor": Proved,
    "constructor with a claim": lambda: Proved(frozenset(), FALSE),
    "constructor with a fact": lambda: Proved(Fact((frozenset(), FALSE))),
    "__new__": lambda: Proved.__new__(Proved),
    "object.__new__": lambda: object.__new__(Proved),
    "object.__new__ and __init__": _initialized,
    "copy": lambda: copy.copy(genuine()),
    "deepcopy": lambda: copy.deepcopy(genuine()),
    "copy in a list": lambda: copy.deepcopy([genuine()])[0],
    "copy.replace protocol": lambda: genuine().__replace__(conclusion=FALSE),
    "dataclasses.replace": lambda: dataclasses.replace(genuine(), conclusion=FALSE),
    "namedtuple _replace": lambda: genuine()._replace(conclusion=FALSE),
    "pickle": lambda: pickle.loads(pickle.dumps(genuine())),
    "pickle, old protocol": lambda: pickle.loads(pickle.dumps(genuine(), protocol=0)),
    "pickle written by hand": lambda: pickle.loads(b"\x80\x04ctheory.proof.kernel\nProved\n)\x81."),
    "reduce": lambda: genuine().__reduce__()[0](),
    "reconstruction": _reconstructed,
    "subclass": lambda: type("Mine", (Proved,), {"conclusion": FALSE})(),
    "class statement": lambda: types.new_class("Mine", (Proved,))(),
    "metaclass called directly": lambda: type(Proved)("Mine", (Proved,), {})(),
    "a class of that name": lambda: type("Proved", (), {"conclusion": FALSE, "hypotheses": frozenset()})(),
    "__class__ assigned": _cast,
    "__class__ claimed": Imitation,
    "mock with spec": lambda: mock.MagicMock(spec=Proved, conclusion=FALSE, hypotheses=frozenset()),
    "a fact": lambda: Fact((frozenset(), FALSE)),
    "a pair": lambda: (frozenset(), FALSE),
    "a formula": lambda: FALSE,
    "a namespace": lambda: types.SimpleNamespace(conclusion=FALSE, hypotheses=frozenset()),
    "proxy of weakref": lambda: __import__("weakref").proxy(genuine()),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_forged_claims_are_refused(forge):
    try:
        value = forge()
    except (TypeError, AttributeError, KernelError, pickle.UnpicklingError):
        return  # there is not even a value
    with pytest.raises(KernelError, match=r"not made by the kernel|no attribute"):
        kernel.discharge(value)
    assert not is_claim(value)


@pytest.mark.parametrize(
    "name", ["conclusion", "hypotheses", "rule", "premises", "axioms", "extra", "__class__"]
)
def test_a_claim_does_not_change(name):
    claim = genuine()
    with pytest.raises(TypeError, match="kernel's rules only"):
        setattr(claim, name, FALSE)
    with pytest.raises(TypeError, match="kernel's rules only"):
        delattr(claim, name)
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(claim, name, FALSE)
    assert claim.conclusion == eq(x, x)
    assert claim.hypotheses == frozenset()


def test_a_claim_of_another_class_is_no_claim():
    claim = one_positive()
    try:
        object.__setattr__(claim, "__class__", Plain)
    except TypeError:
        return
    with pytest.raises(KernelError, match="not made by the kernel: Plain"):
        kernel.discharge(claim)


@pytest.mark.parametrize(
    "name", ["conclusion", "hypotheses", "rule", "__new__", "__init_subclass__", "__slots__"]
)
@pytest.mark.parametrize("cls", [Proved, Fact, Term, Formula], ids=lambda c: c.__name__)
def test_classes_do_not_change(cls, name):
    with pytest.raises(TypeError, match="cannot be changed"):
        setattr(cls, name, property(lambda self: FALSE))
    with pytest.raises(TypeError, match="cannot be changed"):
        delattr(cls, name)


def test_the_class_that_seals_is_sealed():
    for change in (
        lambda: setattr(terms.Sealed, "__setattr__", type.__setattr__),
        lambda: delattr(terms.Sealed, "__setattr__"),
        lambda: setattr(terms.Sealed, "__class__", type),
        lambda: setattr(Proved, "__class__", type),
        lambda: setattr(type(kernel), "__setattr__", types.ModuleType.__setattr__),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()


def test_a_term_does_not_change():
    # a node that is no Node for a moment would leave a wrong set of free names in the caches
    other = type("Other", (tuple,), {"__slots__": ()})
    for node in (x, exp(x), x <= y, terms.index("i"), terms.finite("D"), terms.vector("u")):
        for name, value in (("__class__", other), ("extra", 1)):
            with pytest.raises(TypeError, match="cannot be changed"):
                setattr(node, name, value)
        with pytest.raises(TypeError, match="does not support item assignment"):
            node[0] = "num"


def test_a_hidden_fact_is_found():
    fact = Fact((frozenset(), FALSE))
    hiding = [
        fact,
        [fact],
        (1, (fact,)),
        {"a": fact},
        iter([fact]),
        (f for f in [fact]),
        frozenset([fact]),
        {fact},
        type("List", (list,), {})([fact]),
        type("Tuple", (tuple,), {})([fact]),
        type("Dict", (dict,), {})(a=fact),
        types.MappingProxyType({"a": fact}),
        [[[[fact]]]],
    ]
    for container in hiding:
        with pytest.raises(KernelError, match="not made by the kernel"):
            combine(FALSE, [(1, container)])
        with pytest.raises(KernelError, match="not made by the kernel"):
            combine(FALSE, container)
        with pytest.raises(KernelError, match="not made by the kernel"):
            kernel.discharge(genuine(), container)
        with pytest.raises(KernelError, match="not made by the kernel"):
            combine(FALSE, nonzero=container)


@pytest.mark.parametrize("module", [kernel, terms, normal, calculus, balls], ids=lambda m: m.__name__)
def test_trusted_modules_do_not_change(module):
    names = [n for n in vars(module) if not n.startswith("__")]
    assert names
    for name in [*names, "fresh_name", "__class__", "__dict__"]:
        with pytest.raises(TypeError, match="cannot be changed"):
            setattr(module, name, lambda *args, **options: True)
        with pytest.raises(TypeError, match="cannot be changed"):
            delattr(module, name)
    with pytest.raises(TypeError, match="cannot be changed"):
        mock.patch.object(module, names[0], return_value=True).start()


def test_tables_of_the_kernel_do_not_change():
    for table in (kernel.AXIOMS, terms.FUNCTIONS, terms.BINDERS, terms._SIGNATURES):
        with pytest.raises(TypeError):
            table["new"] = "x"
    polynomial = normal.normal(x + y)
    with pytest.raises(TypeError):
        polynomial[()] = Fraction(1)


def _resurrected():
    """The identity of a dead claim: a new object may get its address, not its record."""
    claim = genuine()
    address = id(claim)
    del claim
    made = [object.__new__(Proved) for _ in range(1000)]
    return next((p for p in made if id(p) == address), made[0])


class Chameleon:
    """Equal to every claim, with the hash of one: a lookup by equality would take it for that claim."""

    def __init__(self, claim):
        self.claim = claim

    def __hash__(self):
        return hash(self.claim)

    def __eq__(self, other):
        return True


def test_a_record_belongs_to_one_object():
    claim = genuine()
    for value in (_resurrected(), Chameleon(claim), weakref.ref(claim), functools.partial(lambda: claim)):
        with pytest.raises(KernelError, match="not made by the kernel"):
            kernel.discharge(value)
        with pytest.raises(KernelError, match="not made by the kernel"):
            combine(FALSE, [(1, value)])


def test_numbers_and_names_of_other_types_are_refused():
    """Multipliers and names are compared by type: a subclass may answer one thing now, another later."""
    sly = type("Sly", (Fraction,), {"__ge__": lambda self, other: True, "__gt__": lambda self, other: True})
    for multiplier in (sly(-1), type("Int", (int,), {})(-1), True + 0.0, type("Str", (str,), {})("1")):
        with pytest.raises(KernelError, match="not made by the kernel"):
            combine(FALSE, [(multiplier, one_positive())])
    with pytest.raises(KernelError, match="negative"):
        combine(FALSE, [(-1, one_positive())])


def test_nothing_is_left_that_makes_claims_by_hand():
    assert not hasattr(kernel, "_rule")
    assert not hasattr(kernel, "_axiom")
    assert not hasattr(kernel, "_build")
    rules = [assume, combine, kernel.discharge, kernel.on_box, *(getattr(kernel, a) for a in kernel.AXIOMS)]
    assert not any(hasattr(rule, "__wrapped__") for rule in rules)  # which would make facts


def test_terms_are_not_pickled_or_copied():
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="not pickled"):
            use(exp(x))


def test_a_kernel_loaded_twice_does_not_know_the_other_claims():
    spec = importlib.util.find_spec("theory.proof.kernel")
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)  # beside the one in use, under no name
    theirs = other.exp_positive(x)
    assert theirs.conclusion == (exp(x) > 0)
    with pytest.raises(KernelError, match="not made by the kernel: Proved"):
        kernel.discharge(theirs)
    with pytest.raises(other.KernelError, match="not made by the kernel: Proved"):
        other.discharge(genuine())


def page(**fields):
    usual = {
        "key": "forged", "title": "", "kind": "lemma", "reference": "", "statement": "{claim}",
        "hypotheses": {}, "claim": FALSE, "prove": one_positive,
    }  # fmt: skip
    return Theorem(**usual | fields)


@pytest.mark.parametrize("forge", [Imitation, lambda: mock.MagicMock(spec=Proved, **_shown()), lambda: FALSE])
def test_a_page_takes_only_the_kernels_claims(forge):
    forged = page(prove=forge)
    assert forged.status == "failed"


def _shown():
    return {"conclusion": FALSE, "hypotheses": frozenset(), "axioms": frozenset(), "premises": (), "rule": ""}


def test_a_page_takes_only_a_proof_of_its_own_claim():
    honest = page(claim=one_positive().conclusion)
    assert honest.proved().conclusion == (real(0) < 1)
    with pytest.raises(ProofError, match="the proof ends in"):
        dataclasses.replace(honest, claim=FALSE).proved()
    with pytest.raises(ProofError, match="also needs"):
        page(claim=x <= y, prove=lambda: assume(x <= y)).proved()
    with pytest.raises(ProofError, match="stated but not needed"):
        dataclasses.replace(honest, hypotheses={"idle": x <= y}).proved()
