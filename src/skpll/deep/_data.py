"""Examples and candidate sets where the network is: batches are cut out by row numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, Subset, default_collate

from skpll.candidates import CandidateSets

MAX_SHARE_OF_MEMORY = 0.6
"""Share of the free memory of a device that the examples may take."""


class TensorRows:
    """Examples in memory; on the device itself if they fit.

    Parameters
    ----------
    X : array or tensor of shape (n, ...)
        The examples.
    device : torch.device
        Where the network is.
    """

    def __init__(self, X: NDArray[np.float32] | Tensor, device: torch.device) -> None:
        if isinstance(X, np.ndarray) and not X.flags.writeable:
            X = X.copy()  # torch has no tensors that can't be written to
        rows = torch.as_tensor(X)
        rows = rows if rows.is_floating_point() else rows.float()
        resident = True
        if device.type == "cuda" and rows.device.type != "cuda":
            resident = rows.nbytes < MAX_SHARE_OF_MEMORY * torch.cuda.mem_get_info(device)[0]
        self.device, self.rows = device, rows.to(device) if resident else rows

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, index: Tensor) -> Tensor:
        """Return the examples with the given numbers, on the device."""
        rows = self.rows.index_select(0, index.to(self.rows.device))
        return rows.to(self.device, torch.float32)


class DatasetRows:
    """Examples that are read when they are needed.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Has a length; an item is an example, or a tuple that begins with one.
    device : torch.device
        Where batches go.
    """

    def __init__(self, dataset: Dataset, device: torch.device) -> None:
        self.dataset, self.device = dataset, device

    def __len__(self) -> int:
        return len(self.dataset)

    def batch(self, index: Tensor) -> Tensor:
        """Return the examples with the given numbers, on the device."""
        items = (self.dataset[number] for number in index.tolist())
        examples = [item[0] if isinstance(item, tuple | list) else item for item in items]
        return default_collate(examples).to(self.device, torch.float32)


class IndexedDataset:
    """A Dataset of which rows can be taken as of an array.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        The examples.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.shape = dataset, (len(dataset),)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> IndexedDataset:
        rows = np.arange(len(self))[key[0] if isinstance(key, tuple) else key]
        return IndexedDataset(Subset(self.dataset, rows.tolist()))


Rows: TypeAlias = TensorRows | DatasetRows


def as_rows(X: Any, device: torch.device) -> Rows:
    """Return examples of which batches can be taken."""
    if isinstance(X, IndexedDataset):
        return DatasetRows(X.dataset, device)
    return TensorRows(X, device)


@dataclass(frozen=True, slots=True)
class Cells:
    """The candidates of a batch.

    Parameters
    ----------
    places : tensor of shape (b, m)
        Where the confidence of each candidate is kept, filled up with the place after the last.
    columns : tensor of shape (b, m)
        The class numbers, filled up with q.
    candidates : bool tensor of shape (b, q)
        The same as a mask.
    confidences : tensor of shape (b, q)
        The confidences that are kept.
    """

    places: Tensor
    columns: Tensor
    candidates: Tensor
    confidences: Tensor


class Sets:
    """Candidate sets and one confidence for each candidate, in compressed rows on the device.

    Parameters
    ----------
    sets : CandidateSets
        The candidates of each example.
    confidences : array
        One for each candidate; rows sum to one.
    device : torch.device
        Where the network is.
    """

    def __init__(
        self, sets: CandidateSets, confidences: NDArray[np.float64], device: torch.device
    ) -> None:
        self.n_classes, self.width = sets.shape[1], int(sets.sizes.max())
        self.starts = torch.tensor(sets.indptr[:-1], device=device)
        self.sizes = torch.tensor(sets.sizes.astype(np.int64), device=device)
        columns = np.append(sets.indices, self.n_classes).astype(np.int64)
        self.columns = torch.tensor(columns, device=device)
        kept = np.append(confidences, 0.0).astype(np.float32)
        self.confidences = torch.tensor(kept, device=device)

    def dense(self, index: Tensor) -> Cells:
        """Return the sets of the given examples as a mask, and their confidences."""
        steps = torch.arange(self.width, device=index.device)
        inside = steps < self.sizes[index].unsqueeze(1)
        places = self.starts[index].unsqueeze(1) + steps
        places = places.masked_fill(~inside, len(self.columns) - 1)
        columns = self.columns[places]
        mask = torch.zeros(
            len(index), self.n_classes + 1, dtype=torch.bool, device=index.device
        ).scatter_(1, columns, True)
        values = torch.zeros(mask.shape, device=index.device)
        values = values.scatter_(1, columns, self.confidences[places])
        return Cells(places, columns, mask[:, :-1], values[:, :-1])

    def keep(self, cells: Cells, confidences: Tensor) -> None:
        """Keep new confidences of the given examples."""
        padded = torch.nn.functional.pad(confidences.float(), (0, 1))
        self.confidences[cells.places] = padded.gather(1, cells.columns)

    def set_all(self, confidences: NDArray[np.float64]) -> None:
        """Keep new confidences of all examples."""
        self.confidences[:-1] = torch.as_tensor(confidences, dtype=torch.float32)
