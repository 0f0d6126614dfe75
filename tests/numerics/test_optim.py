"""The torch optimizers: against hand computations, torch.optim.SGD, and this project's own rules in W."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from numerics import NormalizedGD, Polyak, train
from numerics.attention import optimal_loss
from numerics.datasets import load
from numerics.optim import NormalizedSGD, PolyakSGD

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.fixture(params=DEVICES)
def device(request) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return request.param


def parameters(*values, device="cpu", dtype=torch.float64) -> list[nn.Parameter]:
    return [nn.Parameter(torch.tensor(value, dtype=dtype, device=device)) for value in values]


def set_gradients(params: list[nn.Parameter], *values) -> None:
    for p, value in zip(params, values, strict=True):
        p.grad = None if value is None else torch.tensor(value, dtype=p.dtype, device=p.device)


def network(seed: int, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1)).to(dtype)


def batch_loss(model: nn.Module, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    dtype = next(model.parameters()).dtype
    x = torch.randn(12, 5, generator=generator, dtype=dtype)
    y = torch.sign(x[:, 0])
    return nn.functional.softplus(-y * model(x)[:, 0]).mean()


def test_a_normalized_step_by_hand(device: str) -> None:
    a, b = params = parameters([1.0, 2.0], [[3.0]], device=device)
    optimizer = NormalizedSGD(params, lr=0.5)
    set_gradients(params, [3.0, 0.0], [[4.0]])
    assert optimizer.step() is None
    torch.testing.assert_close(a.cpu().detach(), torch.tensor([1.0 - 0.3, 2.0], dtype=torch.float64))
    torch.testing.assert_close(b.cpu().detach(), torch.tensor([[3.0 - 0.4]], dtype=torch.float64))


def test_a_polyak_step_by_hand(device: str) -> None:
    a, b = params = parameters([1.0, 2.0], [[3.0]], device=device)
    optimizer = PolyakSGD(params, lr=10.0, c=0.5, lower_bound=1.0)
    set_gradients(params, [3.0, 0.0], [[4.0]])
    assert optimizer.step(loss=torch.tensor(6.0)) == 6.0  # gamma = 5/(0.5 * 25) = 0.4
    torch.testing.assert_close(a.cpu().detach(), torch.tensor([1.0 - 1.2, 2.0], dtype=torch.float64))
    torch.testing.assert_close(b.cpu().detach(), torch.tensor([[3.0 - 1.6]], dtype=torch.float64))


def test_the_cap_of_polyak_is_that_of_sgd() -> None:
    params, others = parameters([1.0, 2.0]), parameters([1.0, 2.0])
    set_gradients(params, [3.0, 4.0])
    set_gradients(others, [3.0, 4.0])
    PolyakSGD(params, lr=0.01).step(loss=1e6)
    torch.optim.SGD(others, lr=0.01).step()
    torch.testing.assert_close(params[0], others[0])


def test_momentum_and_weight_decay_by_hand() -> None:
    (p,) = params = parameters([2.0, 0.0])
    optimizer = NormalizedSGD(params, lr=1.0, momentum=0.5, weight_decay=0.5)
    set_gradients(params, [0.0, 1.0])
    optimizer.step()  # m = (0 + 1, 1)
    w = np.array([2.0, 0.0]) - np.array([1.0, 1.0]) / math.sqrt(2)
    np.testing.assert_allclose(p.detach().numpy(), w)
    set_gradients(params, [1.0, 0.0])
    optimizer.step()
    m = 0.5 * np.array([1.0, 1.0]) + 0.5 * (np.array([1.0, 0.0]) + 0.5 * w)
    np.testing.assert_allclose(p.detach().numpy(), w - m / np.linalg.norm(m))


def test_groups_share_the_norm_and_keep_their_options() -> None:
    a, b = parameters([0.0], [0.0])
    groups = [{"params": [a], "lr": 1.0}, {"params": [b], "lr": 10.0}]
    optimizer = NormalizedSGD(groups)
    set_gradients([a, b], [3.0], [4.0])
    optimizer.step()
    assert (a.item(), b.item()) == pytest.approx((-0.6, -8.0))
    a, b = parameters([0.0], [0.0])
    polyak = PolyakSGD([{"params": [a], "c": 1.0}, {"params": [b], "lower_bound": 5.0}], lr=math.inf, c=2.0)
    set_gradients([a, b], [3.0], [4.0])
    polyak.step(loss=10.0)
    assert (a.item(), b.item()) == pytest.approx((-3.0 * 10 / 25, -4.0 * 5 / 50))


@pytest.mark.parametrize("seed", range(3))
def test_on_one_full_batch_both_are_the_projects_rules(seed: int) -> None:
    """The attention layer itself, by autograd in float64: the runs of numerics.train at the same W."""
    problem = load("gaussian:n=4,T=3,d=30", seed)
    print(f"seed {seed}")
    floor = float(optimal_loss(torch.tensor(problem.scores[np.arange(problem.n), problem.optimal])))
    x, z = torch.tensor(problem.tokens), torch.tensor(problem.queries)
    scores = torch.tensor(problem.scores)
    for rule, make in (
        (NormalizedGD(step=0.3), lambda w: NormalizedSGD(w, lr=0.3)),
        (Polyak(), lambda w: PolyakSGD(w, lr=math.inf, lower_bound=floor)),
    ):
        W = nn.Parameter(torch.zeros(problem.d, problem.d, dtype=torch.float64))
        optimizer = make([W])

        def closure(W=W, optimizer=optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            attention = torch.softmax(torch.einsum("nTd,de,ne->nT", x, W, z), 1)
            loss = nn.functional.softplus(-(attention * scores).sum(1)).mean()
            loss.backward()
            return loss

        for _ in range(15):
            optimizer.step(closure)
        expected = train(problem, rule, steps=15, space="weight")
        np.testing.assert_allclose(
            W.detach().numpy(), expected.weights, rtol=0, atol=1e-8 * np.linalg.norm(expected.weights)
        )


def test_train_takes_it_as_an_optimizer() -> None:
    problem = load("gaussian:n=3,T=3,d=20", 0)
    run = train(problem, steps=50, space="weight", optimizer=lambda w: NormalizedSGD(w, lr=0.2))
    same = train(problem, NormalizedGD(step=0.2), steps=50, space="weight")
    np.testing.assert_allclose(run.weights, same.weights, atol=1e-12)
    assert run.rule.optimizer == "NormalizedSGD"


@pytest.mark.parametrize("make", [NormalizedSGD, PolyakSGD])
@pytest.mark.parametrize("seed", range(3))
def test_a_training_loop_reduces_the_loss(make, seed: int) -> None:
    print(f"seed {seed}")
    model = network(seed)
    optimizer = make(model.parameters(), lr=0.05 if make is NormalizedSGD else 10.0)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = batch_loss(model, seed)
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    for _ in range(200):
        last = optimizer.step(closure).item()
    assert last < 0.2 * first


@pytest.mark.parametrize(
    "make",
    [
        lambda p: NormalizedSGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        lambda p: PolyakSGD(p, lr=2.0, c=0.5, lower_bound=-0.25),
    ],
)
def test_state_dict_round_trip(make) -> None:
    model, other = network(0), network(1)
    optimizer, resumed = make(model.parameters()), make(other.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)

    def step(net: nn.Module, opt: torch.optim.Optimizer, seed: int) -> None:
        def closure() -> torch.Tensor:
            opt.zero_grad()
            loss = batch_loss(net, seed)
            loss.backward()
            return loss

        opt.step(closure)

    for seed in range(5):
        step(model, optimizer, seed)
        scheduler.step()
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert resumed.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"] < 2.0
    for seed in range(5, 10):
        step(model, optimizer, seed)
        step(other, resumed, seed)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=0)


def test_schedulers_scale_the_step() -> None:
    (p,) = params = parameters([0.0])
    optimizer = NormalizedSGD(params, lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: (t + 1.0) ** -0.5)
    lengths = []
    for _ in range(4):
        before = p.item()
        set_gradients(params, [-7.0])
        optimizer.step()
        scheduler.step()
        lengths.append(p.item() - before)
    np.testing.assert_allclose(lengths, [(t + 1.0) ** -0.5 for t in range(4)])


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e30, 1e37])
def test_float32_gradients_of_any_size(scale: float) -> None:
    for make, options, length in (
        (NormalizedSGD, {"lr": 0.5}, 0.5),
        (PolyakSGD, {"lr": math.inf, "c": 2.0}, 0.5),
    ):
        params = parameters([0.0, 0.0], dtype=torch.float32)
        set_gradients(params, [0.6 * scale, -0.8 * scale])
        optimizer = make(params, **options)
        if make is PolyakSGD:
            optimizer.step(loss=torch.tensor(scale))  # (f/2 ||g||) with f = ||g||
        else:
            optimizer.step()
        np.testing.assert_allclose(params[0].detach().numpy(), [-0.6 * length, 0.8 * length], rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    params = parameters([1.0, 1.0], [1.0], dtype=dtype)
    set_gradients(params, [3e-4, 0.0], [4e-4])
    NormalizedSGD(params, lr=0.5).step()
    torch.testing.assert_close(params[0].float(), torch.tensor([0.7, 1.0]), atol=4e-3, rtol=0)
    torch.testing.assert_close(params[1].float(), torch.tensor([0.6]), atol=4e-3, rtol=0)
    assert params[0].dtype == dtype


def test_mixed_precisions_share_the_norm() -> None:
    a, b = [*parameters([0.0], dtype=torch.float64), *parameters([0.0], dtype=torch.float32)]
    set_gradients([a, b], [3.0], [4.0])
    NormalizedSGD([a, b], lr=1.0).step()
    assert (a.item(), b.item()) == pytest.approx((-0.6, -0.8))
    assert (a.dtype, b.dtype) == (torch.float64, torch.float32)


@pytest.mark.parametrize("make", [NormalizedSGD, PolyakSGD])
def test_nothing_moves_without_a_gradient(make) -> None:
    for gradients in ([None, None], [[0.0, 0.0], None], [[0.0, 0.0], [0.0]]):
        params = parameters([1.0, 2.0], [3.0])
        set_gradients(params, *gradients)
        make(params, lr=1.0).step(lambda: torch.tensor(1.0))
        assert [p.tolist() for p in params] == [[1.0, 2.0], [3.0]]


def test_parameters_without_a_gradient_are_left_alone() -> None:
    params = parameters([1.0], [1.0], np.zeros((0, 3)))
    set_gradients(params, [2.0], None, np.zeros((0, 3)))
    NormalizedSGD(params, lr=1.0, momentum=0.5, weight_decay=0.0).step()
    assert [p.tolist() for p in params[:2]] == [[0.0], [1.0]]


def test_polyak_stays_where_the_loss_is_at_its_lower_bound() -> None:
    for loss in (0.0, -1.0):
        params = parameters([1.0])
        set_gradients(params, [2.0])
        PolyakSGD(params).step(loss=loss)
        assert params[0].item() == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_gradients_that_are_not_finite_are_not_hidden(bad: float) -> None:
    params = parameters([1.0, 1.0], [1.0])
    set_gradients(params, [bad, 1.0], [1.0])
    NormalizedSGD(params, lr=1.0).step()
    assert all(torch.isnan(p).all() for p in params)
    params = parameters([1.0])
    set_gradients(params, [1.0])
    PolyakSGD(params).step(loss=math.nan)
    assert torch.isnan(params[0]).all()


@pytest.mark.parametrize("make", [NormalizedSGD, PolyakSGD])
def test_sparse_gradients_are_dense_ones(make) -> None:
    results = []
    for sparse in (False, True):
        torch.manual_seed(0)
        table, head = nn.Embedding(6, 3, sparse=sparse, dtype=torch.float64), nn.Linear(3, 1).double()
        optimizer = make([*table.parameters(), *head.parameters()], lr=0.1)

        def closure(table=table, head=head, optimizer=optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            loss = head(table(torch.tensor([1, 4, 4]))).square().mean()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        results.append([p.detach() for p in (*table.parameters(), *head.parameters())])
    for dense, other in zip(*results, strict=True):
        torch.testing.assert_close(dense, other)
    heavy = NormalizedSGD(table.parameters(), lr=0.1, momentum=0.9)
    with pytest.raises(RuntimeError, match="sparse gradients without momentum"):
        heavy.step()


def test_the_closure_has_gradients_enabled_under_no_grad() -> None:
    (p,) = params = parameters([3.0])
    optimizer = PolyakSGD(params, lr=math.inf)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert p.item() == pytest.approx(3.0 - 9.0 / (2 * 36) * 6)


@pytest.mark.parametrize(
    ("make", "options", "named"),
    [
        (NormalizedSGD, {"lr": -1.0}, "lr"),
        (NormalizedSGD, {"lr": math.nan}, "lr"),
        (NormalizedSGD, {"lr": math.inf}, "lr"),
        (NormalizedSGD, {"momentum": 1.0}, "momentum"),
        (NormalizedSGD, {"momentum": -0.1}, "momentum"),
        (NormalizedSGD, {"weight_decay": -1.0}, "weight_decay"),
        (PolyakSGD, {"lr": -1.0}, "lr"),
        (PolyakSGD, {"lr": math.nan}, "lr"),
        (PolyakSGD, {"c": 0.0}, "c must"),
        (PolyakSGD, {"c": math.inf}, "c must"),
        (PolyakSGD, {"lower_bound": math.nan}, "lower_bound"),
        (PolyakSGD, {"lower_bound": -math.inf}, "lower_bound"),
    ],
)
def test_bad_options_are_refused(make, options, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make(parameters([1.0]), **options)
    optimizer = make(parameters([1.0]))
    with pytest.raises(ValueError, match=named):
        optimizer.add_param_group({"params": parameters([2.0])} | options)


def test_polyak_needs_a_scalar_loss() -> None:
    params = parameters([1.0])
    set_gradients(params, [1.0])
    optimizer = PolyakSGD(params)
    with pytest.raises(ValueError, match="needs the loss"):
        optimizer.step()
    with pytest.raises(ValueError, match="needs the loss"):
        optimizer.step(lambda: 1.0, loss=1.0)
    with pytest.raises(ValueError, match="returned no loss"):
        optimizer.step(lambda: None)
    with pytest.raises(ValueError, match=r"scalar loss, not one of shape \(2,\)"):
        optimizer.step(loss=torch.ones(2))
