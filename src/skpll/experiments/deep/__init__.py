"""Deep networks in experiments: the method ``deep``, and its specification with printed figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from skpll._typing import Array
from skpll.candidates import CandidatesLike

__all__ = ["DeepNetwork"]


@dataclass(eq=False, repr=False, kw_only=True)
class DeepNetwork(BaseEstimator):
    """A network of `skpll.deep` that is trained as the papers train it, on standardized pixels.

    torch is imported when it is fitted. The learning rate is divided by ten at the milestones.

    Parameters
    ----------
    module, loss, max_epochs, lr, batch_size, module_params, random_state
        See `skpll.deep.DeepPartialLabelClassifier`.
    weight_decay : float, default=0.0001
        Weight decay.
    milestones : sequence of float, default=(0.5, 0.76)
        Shares of the epochs.
    augment : sequence of {"crop", "cutout"}, default=()
        Random changes of pictures.

    Attributes
    ----------
    model_ : DeepPartialLabelClassifier
        The fitted network; its attributes are found here too.
    """

    _parameter_constraints: ClassVar[dict[str, object]] = {}

    module: str = "mlp"
    loss: str = "proden"
    max_epochs: int = 50
    lr: float = 0.01
    batch_size: int = 256
    module_params: dict[str, object] | None = None
    weight_decay: float = 1e-4
    milestones: Sequence[float] = (0.5, 0.76)
    augment: Sequence[str] = ()
    random_state: int = 0

    def fit(self, X: ArrayLike, y: CandidatesLike) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Pixels.
        y : CandidateSets or array-like
            Candidate sets or labels.

        Returns
        -------
        self
        """
        from skpll import deep  # says what to install if torch is missing

        classifier = deep.DeepPartialLabelClassifier
        from skorch.callbacks import LRScheduler

        names = ("module", "loss", "max_epochs", "lr", "batch_size", "module_params")
        places = [round(share * self.max_epochs) for share in self.milestones]
        known: dict[str, Any] = {"crop": deep.crop(2), "cutout": deep.cutout(8)}
        steps = [known[name] for name in self.augment]
        pixels = np.asarray(X, dtype=np.float32)
        self.mean_, self.scale_ = pixels.mean(), pixels.std() or 1.0
        self.model_ = classifier(
            **{name: getattr(self, name) for name in names},
            loss_params={"ramp": max(1, self.max_epochs // 2)} if self.loss == "crdpll" else None,
            optimizer_params={"weight_decay": self.weight_decay},
            augment=deep.compose(*steps) if steps else None,
            callbacks=[LRScheduler("MultiStepLR", milestones=places, gamma=0.1)],
            cuda_graphs=True,
            random_state=self.random_state,
        ).fit(self._scaled(pixels), y)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the label of each picture."""
        return self.model_.predict(self._scaled(X))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each label."""
        return self.model_.predict_proba(self._scaled(X))

    def _scaled(self, X: ArrayLike) -> NDArray[np.float32]:
        return (np.asarray(X, dtype=np.float32) - self.mean_) / self.scale_

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return getattr(self.model_, name)
