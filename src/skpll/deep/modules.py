"""Networks by name: linear, a multi-layer perceptron, LeNet and a small residual network.

Networks for pictures also take flat rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from skpll._docs import documented

Shape = tuple[int, ...]
"""The shape of one example."""


def picture_shape(shape: Shape) -> tuple[int, int, int]:
    """Return channels, height and width of an example of the given shape.

    A flat example is a square picture of one channel or, failing that, of three.
    """
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 2:
        return 1, shape[0], shape[1]
    for channels in (1, 3):
        side = math.isqrt(math.prod(shape) // channels)
        if len(shape) == 1 and channels * side * side == shape[0]:
            return channels, side, side
    raise ValueError(
        f"X: examples of shape {shape} are no pictures; use shape (n, channels, height, width)."
    )


def as_pictures(X: Tensor) -> Tensor:
    """Return a batch in the shape (n, channels, height, width)."""
    return X.reshape(len(X), *picture_shape(tuple(X.shape[1:])))


@documented
class Linear(nn.Module):
    """One linear layer.

    Parameters
    ----------
    <<network>>
    """

    def __init__(self, shape: Shape, n_outputs: int) -> None:
        super().__init__()
        self.head = nn.Linear(math.prod(shape), n_outputs)
        self.body: nn.Module = nn.Flatten()

    def features(self, X: Tensor) -> Tensor:
        """Return what the last layer sees."""
        return self.body(X)

    def forward(self, X: Tensor) -> Tensor:
        """Score the classes."""
        return self.head(self.features(X))


@documented
class MLP(Linear):
    """The multi-layer perceptron of the papers: four hidden layers of 300 units.

    Parameters
    ----------
    <<network>>
    hidden : sequence of int
        Units of each hidden layer.
    batch_norm : bool
        Whether each layer is followed by batch normalization.
    """

    def __init__(
        self,
        shape: Shape,
        n_outputs: int,
        hidden: Sequence[int] = (300, 300, 300, 300),
        batch_norm: bool = True,
    ) -> None:
        super().__init__((hidden[-1],), n_outputs)
        layers = [nn.Flatten(), *_hidden(math.prod(shape), hidden, batch_norm)]
        self.body = nn.Sequential(*layers)
        for layer in [*layers, self.head]:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)


def _hidden(width: int, hidden: Sequence[int], norm: bool, bias: bool = False) -> list[nn.Module]:
    """Return hidden layers, each followed by batch normalization if that is asked for."""
    layers: list[nn.Module] = []
    for units in hidden:
        layers.append(nn.Linear(width, units, bias=bias or not norm))
        if norm:
            layers.append(nn.BatchNorm1d(units))
        layers.append(nn.ReLU())
        width = units
    return layers


class Pictures(nn.Module):
    """A layer that brings a batch into the shape (n, channels, height, width)."""

    def forward(self, X: Tensor) -> Tensor:
        """Reshape pictures."""
        return as_pictures(X)


@documented
class LeNet(Linear):
    """Two convolutions with pooling and two hidden layers, after LeNet-5.

    Parameters
    ----------
    <<network>>
    channels : pair of int
        Channels of the convolutions; LeNet-5 has 6 and 16.
    hidden : pair of int
        Units of the hidden layers.
    batch_norm, hidden_norm : bool
        Whether each convolution, and each hidden layer, is followed by batch normalization.
    """

    def __init__(
        self,
        shape: Shape,
        n_outputs: int,
        channels: tuple[int, int] = (6, 16),
        hidden: tuple[int, int] = (120, 84),
        batch_norm: bool = False,
        hidden_norm: bool = False,
    ) -> None:
        super().__init__((hidden[1],), n_outputs)
        depth, height, width = picture_shape(shape)
        if min(height, width) < 12:
            raise ValueError(
                f"X: pictures of {height} × {width} pixels are too small for 'lenet'; use 12 × 12 "
                "at least, or another module."
            )
        layers: list[nn.Module] = [Pictures()]
        for units, padding in zip(channels, (2, 0), strict=True):
            layers.append(nn.Conv2d(depth, units, 5, padding=padding))
            if batch_norm:
                layers.append(nn.BatchNorm2d(units))
            layers += [nn.ReLU(), nn.MaxPool2d(2)]
            depth = units
        depth *= ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
        layers += [nn.Flatten(), *_hidden(depth, hidden, hidden_norm, bias=True)]
        self.body = nn.Sequential(*layers)


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut.

    Parameters
    ----------
    depth, units : int
        Channels before and after.
    stride : int
        The step of the first convolution.
    """

    def __init__(self, depth: int, units: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(depth, units, 3, stride, 1, bias=False),
            nn.BatchNorm2d(units),
            nn.ReLU(),
            nn.Conv2d(units, units, 3, 1, 1, bias=False),
            nn.BatchNorm2d(units),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or depth != units:
            self.shortcut = nn.Sequential(
                nn.Conv2d(depth, units, 1, stride, bias=False), nn.BatchNorm2d(units)
            )

    def forward(self, X: Tensor) -> Tensor:
        """Transform pictures."""
        return torch.relu(self.body(X) + self.shortcut(X))


@documented
class ResNet(Linear):
    """A residual network for small pictures: 3 × 3 stem, two blocks for each width.

    Parameters
    ----------
    <<network>>
    widths : sequence of int
        Channels of the stages; (64, 128, 256, 512) makes it a ResNet-18.
    """

    def __init__(
        self, shape: Shape, n_outputs: int, widths: Sequence[int] = (64, 128, 256, 512)
    ) -> None:
        super().__init__((widths[-1],), n_outputs)
        depth = widths[0]
        layers = [
            Pictures(),
            nn.Conv2d(picture_shape(shape)[0], depth, 3, 1, 1, bias=False),
            nn.BatchNorm2d(depth),
            nn.ReLU(),
        ]
        for place, units in enumerate(widths):
            layers += [ResidualBlock(depth, units, 2 if place else 1)]
            layers += [ResidualBlock(units, units, 1)]
            depth = units
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Halves(nn.Module):
    """Three copies of a network: on all examples, and on each half of them.

    Parameters
    ----------
    make : callable
        Makes a new network.
    """

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList([make() for _ in range(3)])

    def forward(self, X: Tensor) -> Tensor:
        """Score the classes: by all three networks in training, by the first one afterwards."""
        if not self.training:
            return self.parts[0](X)
        return torch.stack([part(X) for part in self.parts])

    def features(self, X: Tensor) -> Tensor:
        """Return what the last layer of the first network sees."""
        return self.parts[0].features(X)

    def held_out(self, X: Tensor, half: Tensor) -> Tensor:
        """Score the classes by the network that has not been trained on the example."""
        return torch.where(half.unsqueeze(-1), self.parts[1](X), self.parts[2](X))


MODULES: dict[str, type[Linear]] = {
    "linear": Linear,
    "mlp": MLP,
    "lenet": LeNet,
    "resnet18": ResNet,
}
"""The networks by name."""


def make_module(module: Any, parameters: dict[str, Any], shape: Shape, n_outputs: int) -> nn.Module:
    """Make a network that has not been trained.

    Parameters
    ----------
    module : str, class or nn.Module
        A name, a class, or a network to copy.
    parameters : dict
        What its constructor takes.
    shape : tuple of int
        The shape of one example, for networks by name.
    n_outputs : int
        Number of classes, likewise.
    """
    if isinstance(module, nn.Module):
        return deepcopy(module)
    if isinstance(module, str):
        return MODULES[module](shape, n_outputs, **parameters)
    return module(**parameters)
