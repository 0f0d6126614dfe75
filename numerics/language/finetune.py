"""Fine-tuning a pretrained transformer on two classes of texts, with one of four optimizers.

The classifier is the transformer, the mean of its last layer's vectors over the tokens, and a linear layer
giving one logit; the loss is the logistic loss log(1 + exp(-y logit)), as everywhere in this project. There
is no dropout: the training loss is a function of the weights, which is what the optimizers are compared on.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from numerics.errors import InputError
from numerics.language.encoder import Encoder
from numerics.language.texts import Texts
from numerics.optim import NormalizedSGD, PolyakSGD

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter], float], torch.optim.Optimizer]] = {
    "sgd": lambda params, step: torch.optim.SGD(params, lr=step),
    "nsgd": lambda params, step: NormalizedSGD(params, lr=step),
    "sps": lambda params, step: PolyakSGD(params, lr=step),
    "adam": lambda params, step: torch.optim.Adam(params, lr=step),
}
_AT_ONCE = 64  # texts in one forward pass when measuring


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is trained on what, the same for every optimizer.

    train, validation and test are numbers of texts, `length` the most tokens of a text, `batch` the texts of
    a step, `steps` the steps of a run, `evaluations` how often a run is measured, beside its beginning.
    The input embeddings and the lowest `frozen_layers` layers are left as they are where that is positive.
    """

    train: int = 64
    validation: int = 96
    test: int = 200
    length: int = 12
    batch: int = 16
    steps: int = 40
    evaluations: int = 5
    frozen_layers: int = 0

    def __post_init__(self) -> None:
        """Validate the numbers. Raises InputError naming the one that is out of range."""
        for name, value in asdict(self).items():
            least = {"frozen_layers": 0, "length": 4}.get(name, 1)
            if value < least:
                raise InputError(f"{name.replace('_', ' ')} must be at least {least}, not {value}")


class Cell(NamedTuple):
    """One run: the optimizer's name, its step size (for "sps" the longest), and the seed."""

    optimizer: str
    step_size: float
    seed: int


class Split(NamedTuple):
    """Texts as token ids and so on, on the device, with their labels +-1 (n,)."""

    inputs: dict[str, Tensor]
    labels: Tensor

    def __len__(self) -> int:
        """Count the texts."""
        return len(self.labels)

    def rows(self, rows: Any) -> Split:
        """Take these texts."""
        return Split({key: value[rows] for key, value in self.inputs.items()}, self.labels[rows])


class Classifier(nn.Module):
    """The transformer with a linear layer on the mean of its token vectors: one logit a text."""

    def __init__(self, transformer: nn.Module, width: int) -> None:
        """Take over a transformer of this width; the linear layer starts at zero until `reset`."""
        super().__init__()
        self.transformer = transformer
        self.head = nn.Linear(width, 1)

    def forward(self, **inputs: Tensor) -> Tensor:
        """The logits (n,)."""
        states = self.transformer(**inputs).last_hidden_state
        mask = inputs["attention_mask"][..., None].to(states.dtype)
        return self.head((states * mask).sum(1) / mask.sum(1))[:, 0]


class Task:
    """A model and its training, validation and test texts, ready to be fine-tuned again and again.

    The split is stratified and the same for every run: it depends on the texts and the sizes only.
    Attributes: settings, device, sizes (texts in each split), batch (texts of a step), parameters (numbers
    trained), encoder (name and hash). Raises InputError for too few texts, longer texts than the model reads,
    and more frozen layers than there are.
    """

    def __init__(self, texts: Texts, encoder: Encoder, settings: Settings, device: torch.device) -> None:
        """Tokenize the texts and put the model on the device."""
        self.settings, self.device = settings, device
        positions = getattr(encoder.model.config, "max_position_embeddings", math.inf)
        most = min(positions, encoder.tokenizer.model_max_length)
        if settings.length > most:
            raise InputError(f"{encoder.name} reads at most {most} tokens, not {settings.length}")
        rows = _split(texts, settings)
        self.sizes = {name: len(own) for name, own in rows.items()}
        self.batch = min(settings.batch, self.sizes["train"])
        self._splits = {
            name: _prepared(texts.take(own), encoder, settings.length, device) for name, own in rows.items()
        }
        width = int(encoder.model.config.hidden_size)
        self._model = Classifier(copy.deepcopy(encoder.model), width).to(device).eval()
        _freeze(self._model.transformer, settings.frozen_layers, encoder.name)
        self._start = copy.deepcopy(self._model.state_dict())
        self._trained = [p for p in self._model.parameters() if p.requires_grad]
        self.parameters = sum(p.numel() for p in self._trained)
        self.encoder = {"name": encoder.name, "sha256": encoder.hash}

    def run(
        self, cell: Cell, measure: tuple[str, ...], *, every: int, tick: Callable[[], None] = lambda: None
    ) -> dict[str, np.ndarray]:
        """Fine-tune from the pretrained weights and measure; repeatable on a CPU, up to rounding on a GPU.

        The seed gives the linear layer's first weights, N(0, 0.02^2), and the order of the texts, which are
        shuffled before every pass. `measure` names splits, measured every `every` steps, at the beginning
        too when that is before the end, and after the last step; `tick` is called after each step. Returns
        columns of equal length: step, and SPLIT_loss and SPLIT_accuracy for each. Once the weights are not
        finite any more, losses are infinite and accuracies NaN.
        """
        generator = torch.Generator().manual_seed(cell.seed)
        self._model.load_state_dict(self._start)
        with torch.no_grad():
            weight = 0.02 * torch.randn(self._model.head.weight.shape, generator=generator)
            self._model.head.weight.copy_(weight)
            self._model.head.bias.zero_()
        optimizer = OPTIMIZERS[cell.optimizer](self._trained, cell.step_size)
        train, steps = self._splits["train"], self.settings.steps
        order = torch.empty(0, dtype=torch.long)
        rows = [self._measured(0, measure)] if every < steps else []
        for step in range(1, steps + 1):
            if len(order) < self.batch:
                order = torch.cat([order, torch.randperm(len(train), generator=generator)])
            some, order = train.rows(order[: self.batch].to(self.device)), order[self.batch :]

            optimizer.step(partial(self._closure, optimizer, some))
            tick()
            if step % every == 0 or step == steps:
                rows.append(self._measured(step, measure))
        optimizer.zero_grad()
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _closure(self, optimizer: torch.optim.Optimizer, some: Split) -> Any:
        """The mean loss of these texts, its gradient left in the parameters."""
        optimizer.zero_grad()
        loss = self._losses(some)[0].mean()
        loss.backward()
        return loss

    def _losses(self, split: Split) -> tuple[Tensor, Tensor]:
        """(the logistic loss of each text, whether it is classified rightly)."""
        margin = split.labels * self._model(**split.inputs)
        return nn.functional.softplus(-margin), margin > 0

    @torch.no_grad()
    def _measured(self, step: int, names: tuple[str, ...]) -> dict[str, float]:
        row: dict[str, float] = {"step": float(step)}
        for name in names:
            split = self._splits[name]
            parts = [
                self._losses(split.rows(slice(start, start + _AT_ONCE)))
                for start in range(0, len(split), _AT_ONCE)
            ]
            loss = float(torch.cat([part[0] for part in parts]).double().mean())
            right = float(torch.cat([part[1] for part in parts]).double().mean())
            finite = math.isfinite(loss)
            row[f"{name}_loss"] = loss if finite else math.inf
            row[f"{name}_accuracy"] = right if finite else math.nan
        return row


def choose_device(name: str) -> torch.device:
    """Find "auto" (CUDA when there is one), "cpu" or "cuda". Raises InputError for any other."""
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', not {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device 'cuda' was asked for, and this machine has none that torch can use")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def _split(texts: Texts, settings: Settings) -> dict[str, list[int]]:
    """Rows of the three splits, each with the classes in the proportion of the whole."""
    wanted = {"train": settings.train, "validation": settings.validation, "test": settings.test}
    total = len(texts.texts)
    if total < sum(wanted.values()):  # too few texts for the sizes asked for: keep the proportions
        share = total / sum(wanted.values())
        wanted = {name: int(size * share) for name, size in wanted.items()}
    rng = np.random.default_rng(0)
    queues = {sign: rng.permutation(np.flatnonzero(texts.labels == sign)).tolist() for sign in (1.0, -1.0)}
    positive = len(queues[1.0]) / total
    rows = {}
    for name, size in wanted.items():
        ones = min(len(queues[1.0]), round(size * positive))
        take = {1.0: ones, -1.0: min(len(queues[-1.0]), size - ones)}
        if not all(take.values()):
            raise InputError(
                f"{texts.source}: too few texts ({total}, {len(texts.texts) - int((texts.labels > 0).sum())} "
                f'of them "{texts.names[1]}"): the {name} split needs both labels'
            )
        rows[name] = sorted(row for sign, queue in queues.items() for row in queue[: take[sign]])
        queues = {sign: queue[take[sign] :] for sign, queue in queues.items()}
    return rows


def _prepared(texts: Texts, encoder: Encoder, length: int, device: torch.device) -> Split:
    inputs = encoder.tokenize(texts.texts, length, texts.pairs)
    labels = torch.tensor(texts.labels, dtype=torch.float32, device=device)
    return Split({key: value.to(device) for key, value in inputs.items()}, labels)


def _freeze(transformer: nn.Module, layers: int, name: str) -> None:
    """Freeze the pooler (unused), and below the upper layers everything when `layers` is positive."""
    pooler = getattr(transformer, "pooler", None)
    if pooler is not None:
        pooler.requires_grad_(False)
    if layers == 0:
        return
    depth = int(transformer.config.num_hidden_layers)  # type: ignore[union-attr, arg-type]
    stacks = [m for m in transformer.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if layers > depth or not stacks:
        raise InputError(f"{name} has {depth} layers, {layers} cannot be frozen")
    trained = {p for layer in stacks[0][layers:] for p in layer.parameters()}
    for p in transformer.parameters():
        p.requires_grad_(p in trained)
