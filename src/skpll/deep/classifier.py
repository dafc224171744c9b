"""Deep networks as classifiers that learn from candidate sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from skorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import Dataset

from skpll._errors import ArgumentError
from skpll._examples import Examples
from skpll._iteration import Iterative
from skpll._labels import as_objects
from skpll._parameters import COUNT, POSITIVE
from skpll._typing import Label
from skpll.base import MatrixLike, WeightedPartialLabelClassifier, unchanged_on_failure
from skpll.candidates import CandidatesLike

from ._data import IndexedDataset, Sets, as_rows
from ._training import Net, Settings, Training, score_rows
from .losses import LOSSES, Loss
from .modules import MODULES, Halves, Shape, make_module

Floats = NDArray[np.float64]

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"momentum": 0.9}),
    "adam": (torch.optim.Adam, {}),
}
"""Optimizers by name, with the parameters they have here."""

WATCHER = "early_stopping"
"""The name of the callback that stops the training early."""


@dataclass(eq=False, repr=False)
class DeepPartialLabelClassifier(Iterative, WeightedPartialLabelClassifier):
    """A neural network that learns from candidate sets.

    Any `torch.nn.Module` and any of the losses of `skpll.deep.losses`. skorch runs the callbacks
    and keeps the network; examples and sets stay on the device if they fit. `X` is an array or a
    tensor of two or more dimensions, or a ``torch.utils.data.Dataset`` with a length, whose items
    are examples or begin with one.

    Parameters
    ----------
    module : {"linear", "mlp", "lenet", "resnet18"}, nn.Module class or instance, default="mlp"
        The network: from a batch of examples to one score for each class. "mlp" has four hidden
        layers of 300 units with batch normalization. "lenet" and "resnet18" take pictures, also as
        flat rows. An instance is copied before it is trained: pretrained networks are fine-tuned.
    loss : str, Loss or callable, default="proden"
        "average", "cc", "rc", "proden", "lws", "cavl", "pop", "crdpll" or "cross", described in
        `skpll.deep.losses`; or a function as there.
    max_epochs : int, default=50
        Number of times that all examples are gone through.
    lr : float, default=0.05
        Learning rate. `callbacks` can change it by epoch, such as ``skorch.callbacks.LRScheduler``.
    batch_size : int, default=128
        Number of examples in a step.
    module_params, loss_params : dict, optional
        Parameters of the network's class and of the loss.
    optimizer : {"sgd", "adam"} or torch.optim class, default="sgd"
        The optimizer; "sgd" has a momentum of 0.9.
    optimizer_params : dict, optional
        Its parameters, such as ``{"weight_decay": 1e-4}``.
    augment : callable, optional
        Changes a batch of examples at random in training, such as `skpll.deep.crop`.
    early_stopping : bool, default=False
        Whether to hold out some examples, stop when their candidate sets no longer become more
        probable, and go back to the best epoch.
    validation_fraction : float, default=0.1
        Share of the examples that are held out then.
    n_iter_no_change : int, default=10
        Number of epochs without an improvement before the training stops.
    callbacks : list of skorch callbacks, optional
        They hear of epochs, not of batches.
    device : str, default="auto"
        Where to compute; "auto" is a GPU if there is one.
    mixed_precision : bool, default=False
        Whether the network computes in bfloat16.
    cuda_graphs : bool, default=False
        Whether steps are recorded and replayed, which makes small networks several times faster on
        an NVIDIA GPU. Network, loss and augmentation must not depend on values in Python. Without
        such a GPU, and for a `Dataset`, it has no effect.
    random_state : int, RandomState or None, default=0
        Seed of first weights, order of examples, augmentation and held-out examples.
    <<verbose>>

    <<Attributes: classes_>>
    net_ : skorch.NeuralNet
        The network; its `module_` is the trained module.
    <<transduction_>>
    label_distributions_ : sparse array of shape (n, q)
        The network's confidence in each candidate; with ``loss="cross"`` that of the network which
        has not been trained on the example.
    history_ : list of dict
        For each epoch the mean loss, and that of the held-out examples if there are any.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        The second dimension of `X`, where it is an array or a tensor.

    Notes
    -----
    Evidence for the candidates (`CandidateSets.weights`) gives the first confidences.

    Examples
    --------
    >>> from skpll.deep import DeepPartialLabelClassifier
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a"}, {"b"}, {"a", "b"}, {"b"}]
    >>> model = DeepPartialLabelClassifier("linear", lr=0.5, max_epochs=100, device="cpu")
    >>> model.fit(X, S).transduction_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "module": [StrOptions(set(MODULES)), nn.Module, type],
        "loss": [StrOptions(set(LOSSES)), Loss, callable],
        "max_epochs": [COUNT],
        "lr": [POSITIVE],
        "batch_size": [COUNT],
        "module_params": [dict, None],
        "loss_params": [dict, None],
        "optimizer": [StrOptions(set(OPTIMIZERS)), type],
        "optimizer_params": [dict, None],
        "augment": [callable, None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [COUNT],
        "callbacks": [list, None],
        "device": [str],
        "mixed_precision": ["boolean"],
        "cuda_graphs": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    module: str | type[nn.Module] | nn.Module = "mlp"
    loss: str | Loss | Callable[..., Any] = "proden"
    max_epochs: int = 50
    lr: float = 0.05
    batch_size: int = 128
    _: KW_ONLY
    module_params: dict[str, Any] | None = None
    loss_params: dict[str, Any] | None = None
    optimizer: str | type[torch.optim.Optimizer] = "sgd"
    optimizer_params: dict[str, Any] | None = None
    augment: Callable[[torch.Tensor], torch.Tensor] | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    callbacks: list[Any] | None = None
    device: str = "auto"
    mixed_precision: bool = False
    cuda_graphs: bool = False
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    def embed(self, X: MatrixLike) -> NDArray[np.float32]:
        """Return what the last layer of the network sees of each example.

        Parameters
        ----------
        X : array, tensor or Dataset of n examples
            The examples.

        Returns
        -------
        features : array of shape (n, d)
        """
        rows = as_rows(self._validate_features(X), torch.device(self.net_.device))
        if not hasattr(self.net_.module_, "features"):
            raise AttributeError(
                f"module: {type(self.net_.module_).__name__} has no method `features`; give it one "
                "that returns the input of its last layer."
            )
        return score_rows(self.net_.module_, rows, features=True).numpy()

    def partial_fit(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        classes: Iterable[Label] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go through more examples once, with the network as it is.

        After a `fit` it goes on with the fitted network. Candidates of new examples start with the
        network's confidences.

        Parameters
        ----------
        X : array, tensor or Dataset of n examples
            The examples.
        <<y>>
        classes : sequence of labels, optional
            All labels there are; needed in the first call if `y` has not all of them.
        <<sample_weight>>

        Returns
        -------
        self
            Its `transduction_` and `label_distributions_` are those of the new examples.
        """
        begun = hasattr(self, "net_")
        with unchanged_on_failure(self):
            X, candidates = self._validate_training_data(X, y, reset=not begun)
            if begun:
                candidates = candidates.with_classes(as_objects(self.classes_))
            elif classes is not None:
                candidates = candidates.with_classes(classes)
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            known = self._seen if begun else np.arange(len(candidates.classes))
            learn = partial(self._fit, streaming=True)
            return self._learn(Examples(X, candidates, weights), learn=learn, known=known)

    def _fit(self, examples: Examples, streaming: bool = False) -> Floats:
        """Train the network: a new one, or the one there is if examples come in a stream."""
        X, candidates = examples.X, examples.sets
        name = "cuda" if torch.cuda.is_available() else "cpu"
        device = torch.device(name if self.device == "auto" else self.device)
        go_on = streaming and hasattr(self, "net_")
        rows, settings = as_rows(X, device), self._settings(X, device)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with _own_draws(int(seed) + (self.n_epochs_seen_ if go_on else 0), device):
            first_row = rows.batch(torch.zeros(1, dtype=torch.long, device=device))
            if not go_on:
                shape = tuple(first_row.shape[1:])
                self.net_ = self._new_net(shape, len(candidates.classes), settings, device)
                self.n_epochs_seen_: int = 0
            _check_scores(self.net_.module_, first_row, len(candidates.classes))
            sets = Sets(candidates, candidates.initial_confidences(), device)
            training = Training(self.net_, settings, rows, sets, examples.weights)
            if go_on:
                found = training.label() * candidates.initial_confidences()
                sets.set_all(candidates.row_normalized(found))
            n_epochs = 1 if streaming else self.max_epochs
            held_out = self.validation_fraction if self.early_stopping and not streaming else 0.0
            records = training.epochs(self.n_epochs_seen_, n_epochs, held_out)
            self.iterate(records, X=X, total=n_epochs, unit="epoch")
            self.n_epochs_seen_ += self.n_iter_
            # Later calls of `partial_fit` hold nothing out, so that nothing is watched.
            callbacks = self.net_.callbacks_
            self.net_.callbacks_ = [entry for entry in callbacks if entry[0] != WATCHER]
            return training.label()

    def _class_scores(self, X: Any) -> NDArray[np.float32]:
        scores = score_rows(self.net_.module_, as_rows(X, torch.device(self.net_.device)))
        return scores.numpy()

    def _probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(softmax(scores, axis=1))

    def _settings(self, X: Any, device: torch.device) -> Settings:
        loss: Any = LOSSES[self.loss] if isinstance(self.loss, str) else self.loss
        return Settings(
            loss if isinstance(loss, Loss) else Loss(loss),
            self.loss_params or {},
            self.augment,
            self.batch_size,
            self.mixed_precision,
            self.cuda_graphs and device.type == "cuda" and not isinstance(X, IndexedDataset),
        )

    def _new_net(
        self, shape: Shape, n_classes: int, settings: Settings, device: torch.device
    ) -> Net:
        """Make a network of skorch that has not been trained."""

        def make() -> nn.Module:
            return make_module(self.module, self.module_params or {}, shape, n_classes)

        optimizer, defaults = self.optimizer, dict[str, Any]()
        if isinstance(optimizer, str):
            optimizer, defaults = OPTIMIZERS[optimizer]
        if self.cuda_graphs and device.type == "cuda" and optimizer is not torch.optim.SGD:
            defaults = defaults | {"capturable": True}
        parameters = defaults | (self.optimizer_params or {})
        watching = list(self.callbacks or ())
        if self.early_stopping:
            stopper = EarlyStopping(patience=self.n_iter_no_change, load_best=True)
            watching.append((WATCHER, stopper))
        return Net(
            Halves(make) if settings.loss.halves else make(),
            nn.Identity,
            optimizer=optimizer,
            lr=self.lr,
            callbacks=watching,
            device=str(device),
            verbose=0,
            **{f"optimizer__{name}": value for name, value in parameters.items()},
        ).initialize()

    def _read_features(self, X: Any) -> Any:
        return self._validated(X, reset=True)

    def _validate_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, reset: bool) -> Any:
        """Check arrays as scikit-learn does, the others as far as they can be."""
        if isinstance(X, Dataset):
            return IndexedDataset(X)
        if isinstance(X, torch.Tensor):
            if X.ndim < 2:
                raise ArgumentError("X", f"shape {tuple(X.shape)} has less than two dimensions.")
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, allow_nd=True, dtype=np.float32, order="C")


@contextmanager
def _own_draws(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch for a while, and leave its own sequence of random numbers alone."""
    cudnn, before = torch.backends.cudnn, torch.backends.cudnn.deterministic
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        cudnn.deterministic = True
        try:
            yield
        finally:
            cudnn.deterministic = before


def _check_scores(module: nn.Module, example: torch.Tensor, n_classes: int) -> None:
    """Refuse a network that does not score each of the classes."""
    with torch.no_grad():
        shape = tuple(module.eval()(example).shape)
    if shape != (1, n_classes):
        raise ArgumentError(
            "module",
            f"the network returns shape {shape} for one example, where (1, {n_classes}) is "
            "expected: one score for each class that is a candidate.",
        )
