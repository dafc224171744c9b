"""The training loop: epochs over examples and candidate sets that stay on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from torch import Tensor, nn

from ._data import Cells, Rows, Sets
from .augmentation import Augmentation
from .losses import LOSSES, Batch, Loss, within
from .modules import Halves

EVALUATION_BATCH = 2048
"""Number of examples that are scored at once."""

GRAPH_WARM_UP = 3
"""Number of ordinary steps before a CUDA graph is recorded."""


class Net(NeuralNet):
    """skorch's network, of which the training loop here uses all but the loop.

    Module, optimizer, callbacks, history and pickling are skorch's. Callbacks hear of the
    beginning and the end of the training and of each epoch, not of batches.
    """

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        return [("epoch_timer", EpochTimer())]


@dataclass(frozen=True)
class Settings:
    """How to train.

    Parameters
    ----------
    loss : Loss
        The loss.
    loss_params : dict
        Its parameters.
    augment : callable or None
        Changes a batch of examples at random.
    batch_size : int
        Number of examples in a step.
    mixed_precision : bool
        Whether the network computes in bfloat16.
    graphs : bool
        Whether steps are recorded as a CUDA graph.
    """

    loss: Loss
    loss_params: dict[str, Any] = field(default_factory=dict)
    augment: Augmentation | None = None
    batch_size: int = 128
    mixed_precision: bool = False
    graphs: bool = False

    def forward(self, module: nn.Module, X: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the scores of a batch and of its further views."""
        with torch.autocast(
            X.device.type, torch.bfloat16, enabled=self.mixed_precision, cache_enabled=False
        ):
            if self.augment is None:
                return module(X).float(), None
            if not self.loss.views:
                return module(self.augment(X)).float(), None
            views = [self.augment(X) for _ in range(self.loss.views)]
            scores = module(torch.cat([X.reshape(views[0].shape), *views])).float()
            together = scores.reshape(len(views) + 1, len(X), -1)
            return together[0], together[1:]


class Training:
    """The training of one network on one set of examples.

    Parameters
    ----------
    net : Net
        An initialized network.
    settings : Settings
        How to train.
    rows : Rows
        The examples.
    sets : Sets
        Their candidates.
    weights : array of shape (n,)
        How much each example counts.
    """

    def __init__(
        self, net: Net, settings: Settings, rows: Rows, sets: Sets, weights: NDArray[Any]
    ) -> None:
        self.net, self.settings, self.rows, self.sets = net, settings, rows, sets
        self.device = torch.device(net.device)
        mean_one = torch.as_tensor(weights / weights.mean(), dtype=torch.float32)
        self.weights = mean_one.to(self.device)
        self.half = torch.randperm(len(rows), device=self.device) % 2 == 1
        self.epoch = torch.zeros((), device=self.device)
        self.total = torch.zeros((), device=self.device)

    def epochs(self, first: int, n_epochs: int, held_out: float) -> Iterator[dict[str, float]]:
        """Train, and yield a record of each epoch.

        Parameters
        ----------
        first : int
            Number of epochs that the network has been trained before.
        n_epochs : int
            Number of epochs.
        held_out : float
            Share of the examples that are held out: the record has minus the mean log-probability
            of their candidate sets as `valid_loss`.
        """
        order = torch.randperm(len(self.rows), device=self.device)
        n_valid = int(held_out * len(order))
        if held_out and not n_valid:
            raise ValueError(
                f"validation_fraction: {held_out:g} of {len(order)} examples are none; hold out "
                "more, or set early_stopping=False."
            )
        valid, train = order[:n_valid], order[n_valid:]
        step = _GraphedStep(self) if self.settings.graphs else self.step
        net = self.net
        net.notify("on_train_begin", X=None, y=None)
        try:
            for epoch in range(first, first + n_epochs):
                net.notify("on_epoch_begin", dataset_train=None, dataset_valid=None)
                self.epoch.fill_(float(epoch))
                record = {"train_loss": self._run(train, step)}
                if n_valid:
                    record["valid_loss"] = self.set_loss(valid)
                for name, value in record.items():
                    net.history.record(name, value)
                net.notify("on_epoch_end", dataset_train=None, dataset_valid=None)
                yield record
        except KeyboardInterrupt:  # how skorch's callbacks end a training
            yield record
        finally:
            net.notify("on_train_end", X=None, y=None)

    def _run(self, train: Tensor, step: Any) -> float:
        """Go through the examples once, in batches of one size: the last one is filled up."""
        self.net.module_.train()
        self.total.zero_()
        size = min(self.settings.batch_size, len(train))
        order = train[torch.randperm(len(train), device=self.device)]
        missing = -len(order) % size
        batches = torch.cat([order, order[:missing]]).reshape(-1, size)
        for index in batches:
            step(index)
        return float(self.total) / len(batches)

    def step(self, index: Tensor) -> None:
        """Train on one batch."""
        settings, cells = self.settings, self.sets.dense(index)
        optimizer: Any = self.net.optimizer_
        optimizer.zero_grad(set_to_none=True)
        scores, views = settings.forward(self.net.module_, self.rows.batch(index))
        batch = Batch(cells.candidates, cells.confidences, self.epoch, views, self.half[index])
        losses, kept = settings.loss.function(scores, batch, **settings.loss_params)
        loss = (losses * self.weights[index]).mean()
        loss.backward()
        optimizer.step()
        if kept is not None:
            self.sets.keep(cells, kept)
        self.total += loss.detach()

    @torch.no_grad()
    def set_loss(self, index: Tensor) -> float:
        """Compute minus the mean log-probability of the given examples' sets."""
        total = 0.0
        for _, cells, scores in self._scored(index):
            batch = Batch(cells.candidates, cells.confidences, self.epoch)
            total += float(LOSSES["cc"].function(scores, batch)[0].sum())
        return total / len(index)

    @torch.no_grad()
    def label(self) -> NDArray[Any]:
        """Return the confidence in each candidate, by the network as it is now.

        With two halves, it is the network that has not been trained on the example.
        """
        module = self.net.module_
        everything = torch.arange(len(self.rows), device=self.device)
        for index, cells, scores in self._scored(everything):
            if isinstance(module, Halves):
                scores = module.held_out(self.rows.batch(index), self.half[index]).float()
            self.sets.keep(cells, within(scores, cells.candidates))
        return self.sets.confidences[:-1].double().cpu().numpy()

    def _scored(self, index: Tensor) -> Iterator[tuple[Tensor, Cells, Tensor]]:
        module = self.net.module_.eval()
        for part in index.split(EVALUATION_BATCH):
            yield part, self.sets.dense(part), module(self.rows.batch(part)).float()


class _GraphedStep:
    """A step that is recorded once as a CUDA graph, and replayed: small networks wait for Python.

    Parameters
    ----------
    training : Training
        Its `step` is recorded. Recorded again when a callback has changed the learning rate.
    """

    def __init__(self, training: Training) -> None:
        self.training, self.n_steps = training, 0
        self.graph: Any = None
        self.index: Tensor | None = None
        self.rates: list[float] = []

    def __call__(self, index: Tensor) -> None:
        self.n_steps += 1
        if self.n_steps <= GRAPH_WARM_UP:
            return self._aside(index)
        rates = [group["lr"] for group in self.training.net.optimizer_.param_groups]
        if self.graph is None or rates != self.rates:
            self.rates, self.index = rates, index.clone()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.training.step(self.index)
        assert self.index is not None
        self.index.copy_(index)
        return self.graph.replay()

    def _aside(self, index: Tensor) -> None:
        """Take an ordinary step on another stream, as recording demands."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.training.step(index)
        torch.cuda.current_stream().wait_stream(stream)


def score_rows(module: nn.Module, rows: Rows, *, features: bool = False) -> Tensor:
    """Return the scores of all examples, or what the last layer sees of them."""
    module.eval()
    answer = module.features if features else module
    with torch.no_grad():
        parts = torch.arange(len(rows)).split(EVALUATION_BATCH)
        device = next(module.parameters()).device
        found = [answer(rows.batch(part.to(device))).float().cpu() for part in parts]
    return torch.cat(found)
