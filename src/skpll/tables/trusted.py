"""What a model file may consist of, and whether its parts fit together.

A model file comes from anywhere. Three locks keep it from running code or crashing the process:

1. Every node of the file is checked before anything is made of it: plain values, arrays, and
   instances of the classes in `trusted_classes`, which are compared by identity. Functions,
   methods, and calls of any other kind are refused.
2. Nothing that is written in C is made from the file. Decision trees are stored as arrays, and are
   made anew from arrays whose indices are within bounds; search trees are built again from their
   rows.
3. The arrays of all other parts are checked for finite values, and for sizes and indices that fit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble._forest import BaseForest
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC
from sklearn.tree import BaseDecisionTree

from skpll.base import PartialLabelClassifier
from skpll.neighbors.graph import NeighborMethod
from skpll.registry import all_methods

__all__ = ["check_nodes", "packed", "trusted_classes", "unpacked"]

_NOT_STORED = frozenset(
    {
        "_learned",
        "_waiting",
        "label_distributions_",
        "labeled_iter_",
        "missing_",
        "nonconformity_",
        "search_",
        "training_labels_",
        "transduction_",
        "weights_",
    }
)
"""What fitted methods know of their training rows and search; prediction does not need it."""

_PLAIN = {"DictNode": dict, "ListNode": list, "TupleNode": tuple, "SliceNode": slice}
_KEYS = {f"builtins.{kind.__name__}" for kind in (str, int, float, bool)}
_SPARSE = {"scipy.sparse._csr.csr_array", "scipy.sparse._csc.csc_array"}
_SPARSE |= {"scipy.sparse._csr.csr_matrix", "scipy.sparse._csc.csc_matrix"}
_PROTOCOL = 2  # of skops; another one might have other nodes
_ADVICE = "load models of people you trust only, or fit the model anew"


def trusted_classes() -> dict[str, type]:
    """Return the classes whose instances may be part of a model, by their full names.

    These are the registered methods, the records that they hold when they are fitted, and the
    classes of scikit-learn that are used in them or in front of them. A method whose fitted
    instances hold records of its own lists their classes in `_stored_classes`.
    """
    classes = list(_shared_classes())
    for method in all_methods().values():
        classes += [method, *getattr(method, "_stored_classes", ())]
    return {f"{found.__module__}.{found.__qualname__}": found for found in classes}


@lru_cache(maxsize=1)
def _shared_classes() -> tuple[type, ...]:
    from sklearn import compose, ensemble, impute, linear_model, pipeline, preprocessing, svm, tree
    from sklearn.compose import _column_transformer

    from skpll.coding._models import KernelMachines, Models
    from skpll.engine.held_out import Trained
    from skpll.engine.kernels import FeatureMap, KernelMap
    from skpll.leave_one_out.calibration import CalibratedCandidatesCV
    from skpll.neighbors.graph import NeighborSearch
    from skpll.pacing import Pace

    from .blocks import PeriodEncoder, SquareRoots, TextEncoder, VectorEncoder

    records = [FeatureMap, KernelMachines, KernelMap, Models, NeighborSearch, Pace, Trained]
    of_columns = [compose.ColumnTransformer, impute.MissingIndicator, impute.SimpleImputer]
    of_columns += [PeriodEncoder, SquareRoots, TextEncoder, VectorEncoder]
    of_columns += [pipeline.Pipeline, preprocessing.OneHotEncoder, preprocessing.StandardScaler]
    of_methods = [ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor]
    of_methods += [ensemble.RandomForestClassifier, ensemble.RandomForestRegressor]
    of_methods += [tree.DecisionTreeClassifier, tree.DecisionTreeRegressor]
    of_methods += [tree.ExtraTreeClassifier, tree.ExtraTreeRegressor]
    of_methods += [linear_model.LogisticRegression, linear_model.Ridge, svm.LinearSVC, svm.SVC]
    older = getattr(_column_transformer, "_RemainderColsList", None)  # scikit-learn before 1.7
    of_columns += [] if older is None else [older]
    return (CalibratedCandidatesCV, NearestNeighbors, *records, *of_columns, *of_methods)


def check_nodes(schema: bytes) -> list[str]:
    """Refuse a file with any node that is not known to be harmless, before anything is made of it.

    Parameters
    ----------
    schema : bytes
        The content of ``schema.json`` in a file of skops.

    Returns
    -------
    names : list of str
        The names of all types in it, each of which is trusted.

    Raises
    ------
    ValueError
        If there is another type in the file.
    """
    root = json.loads(schema)
    if root.get("protocol") != _PROTOCOL:
        raise ValueError(f"it has the protocol {root.get('protocol')!r} of skops.")
    trusted, names = trusted_classes(), set()
    same: dict[object, tuple[str, str]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        name = f"{node['__module__']}.{node['__class__']}"
        if not _is_harmless(node["__loader__"], name, trusted):
            raise ValueError(
                f"refused, it holds types that are not trusted: {name} ({node['__loader__']}); "
                f"{_ADVICE}."
            )
        # To skops, nodes of the same number are one: each may stand where the other was checked.
        kind = node["__loader__"], name
        if same.setdefault(node.get("__id__", kind), kind) != kind:
            raise ValueError(f"refused, two parts of it have one number; {_ADVICE}.")
        names.add(name)
        waiting += _inner(node)
    return sorted(names)


def _is_harmless(loader: str, name: str, trusted: Mapping[str, type]) -> bool:
    """Return True if a node of this kind and type runs no code when it is made."""
    if loader in _PLAIN:
        return name == f"builtins.{_PLAIN[loader].__name__}"
    if loader == "ObjectNode":
        module, _, own = name.rpartition(".")
        found = getattr(sys.modules.get(module), own, None)
        return found is not None and found is trusted.get(name)
    kinds = {
        "JsonNode": {"builtins.str"},
        "TypeNode": _KEYS | _scalars(),
        "NdArrayNode": {"numpy.ndarray"} | _scalars(),
        "DTypeNode": {"numpy.dtype"},
        "SparseMatrixNode": _SPARSE,
    }
    return name in kinds.get(loader, ())


@lru_cache(maxsize=1)
def _scalars() -> frozenset[str]:
    kinds = {kind for kind in np.sctypeDict.values() if issubclass(kind, np.generic)}
    kinds -= {np.object_, np.void}
    return frozenset(f"numpy.{kind.__name__}" for kind in kinds)


def _inner(node: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the nodes inside a node."""
    loader = node["__loader__"]
    if loader == "DictNode":
        keys = node["key_types"]
        for key in keys["content"]:
            if key["__loader__"] != "TypeNode":
                name = f"{key['__module__']}.{key['__class__']}"
                raise ValueError(
                    f"refused, it holds types that are not trusted: {name} as a key; {_ADVICE}."
                )
        yield keys
        yield from node["content"].values()
    elif loader in ("ListNode", "TupleNode") or node.get("type") == "json":
        yield from node["content"]
        if "shape" in node:
            yield node["shape"]
    elif loader == "DTypeNode":
        yield node["content"]
    elif loader == "ObjectNode":
        if node["content"]["__loader__"] != "DictNode":
            raise ValueError(f"refused, an object in it has no attributes; {_ADVICE}.")
        yield node["content"]


def packed(part: Any) -> Any:
    """Return a copy of a fitted part without what is not stored, and with trees as arrays."""
    return _packed(part, frozenset(trusted_classes().values()))


def _packed(part: Any, trusted: frozenset[type]) -> Any:
    if type(part) in (list, tuple):
        return type(part)(_packed(entry, trusted) for entry in part)
    if type(part) not in trusted:
        return part
    bare = part.__new__(type(part))
    kept = {name: value for name, value in vars(part).items() if name not in _NOT_STORED}
    vars(bare).update({name: _packed(value, trusted) for name, value in kept.items()})
    if isinstance(part, NearestNeighbors):
        vars(bare)["_tree"] = None
    if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
        _, (_, n_classes, _), state = part.tree_.__reduce__()
        state = {name: state[name] for name in ("max_depth", "nodes", "values")}
        vars(bare)["tree_"] = {"n_classes": n_classes, **state}
    return bare


def unpacked(part: Any) -> Any:
    """Make the trees of a loaded part anew; refuse what does not fit together.

    Parameters
    ----------
    part : object
        What `packed` gave, after it was stored and loaded.

    Returns
    -------
    part : object
        The same object.

    Raises
    ------
    ValueError
        If an array is not finite, or sizes and indices do not fit.
    """
    parts = list(_parts(part))
    for found in parts:
        if isinstance(found, np.ndarray):
            _require(found.dtype.kind != "f" or bool(np.isfinite(found).all()), "a number")
    for found in parts:
        if isinstance(found, NearestNeighbors) and hasattr(found, "_fit_X"):
            found.fit(found._fit_X)
        elif isinstance(found, BaseDecisionTree) and hasattr(found, "tree_"):
            found.tree_ = _tree(found)
        elif isinstance(found, PartialLabelClassifier) and hasattr(found, "classes_"):
            _check_classes(found)
        elif isinstance(found, SVC) and hasattr(found, "support_vectors_"):
            _check_support_vectors(found)
        elif isinstance(found, BaseForest) and hasattr(found, "estimators_"):
            widths = {tree.n_features_in_ for tree in found.estimators_}
            _require(widths == {found.n_features_in_}, "the trees of a forest")
    return part


def _parts(part: Any) -> Iterator[Any]:
    """Yield all objects and arrays that a part consists of, each once."""
    seen: set[int] = set()
    waiting, trusted = [part], frozenset(trusted_classes().values())
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, np.ndarray):
            yield found
            waiting += found.ravel().tolist() if found.dtype == object else []
        elif isinstance(found, Mapping):
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found
        elif sparse.issparse(found):
            waiting.append(_checked_data(found))
        elif type(found) in trusted:
            yield found
            waiting += vars(found).values()


def _checked_data(matrix: Any) -> NDArray[Any]:
    """Return the numbers of a sparse matrix, if their places are within bounds."""
    _require(matrix.format in ("csr", "csc"), "a sparse matrix")
    matrix.check_format(full_check=True)
    return np.asarray(matrix.data)


def _check_classes(method: Any) -> None:
    classes, seen = method.classes_, getattr(method, "_seen", np.zeros(0, dtype=int))
    _require(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0, "classes_")
    _require(_are_indices(seen, len(classes)) and seen.ndim == 1, "the classes that were seen")
    for name, values in vars(method).items():
        if name.startswith("_") and isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            known = name in ("_seen", "_columns") or _are_indices(values, len(seen))
            _require(known, f"the indices in {name}")
    if not isinstance(method, NeighborMethod) or not hasattr(method, "_neighbors"):
        return
    n = method._neighbors.n_examples
    _require(n == method._neighbors._index._fit_X.shape[0], "the neighbours")
    for name in {"_X", "_candidates", "_labels"} & vars(method).keys():
        _require(getattr(method, name).shape[0] == n, f"{name} of the neighbours")


def _check_support_vectors(model: Any) -> None:
    """Refuse a support vector machine from which LIBSVM would read beyond an array."""
    vectors, counts = model.support_vectors_, model._n_support
    n, pairs = vectors.shape[0], len(counts) * (len(counts) - 1) // 2
    probabilities = {len(model._probA), len(model._probB)}
    _require(
        vectors.ndim == 2
        and vectors.shape[1] == model.n_features_in_ == model.shape_fit_[1]
        and counts.dtype == np.int32
        and len(counts) == len(model.classes_) > 1
        and counts.min() >= 0
        and counts.sum() == n == len(model.support_)
        and model.support_.dtype == np.int32
        and model._dual_coef_.shape == (len(counts) - 1, n)
        and len(model._intercept_) == pairs
        and probabilities in ({0}, {pairs})
        and isinstance(model._gamma, float),
        "the support vectors",
    )


def _tree(model: Any) -> Any:
    """Make a decision tree from arrays, if all of its children and features are there."""
    from sklearn.tree._tree import Tree

    stored = model.tree_
    n_classes = np.ascontiguousarray(stored["n_classes"], dtype=np.intp)
    n_features, n_outputs = model.n_features_in_, model.n_outputs_
    _require(isinstance(n_features, int) and n_features > 0, "the features of a tree")
    _require(n_classes.shape == (n_outputs,) and n_classes.min() > 0, "the outputs of a tree")
    nodes, values = stored["nodes"], stored["values"]
    kind = Tree(1, np.ones(1, dtype=np.intp), 1).__getstate__()["nodes"].dtype
    _require(nodes.dtype == kind and nodes.ndim == 1 and len(nodes) > 0, "the nodes of a tree")
    shape = (len(nodes), n_outputs, n_classes.max())
    _require(values.shape == shape and values.dtype == np.float64, "the values of a tree")
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != -1
    below = np.column_stack((left, right))[inner]
    _require(bool((right[~inner] == -1).all()), "the leaves of a tree")
    _require(
        bool((below > np.flatnonzero(inner)[:, np.newaxis]).all() and (below < len(nodes)).all()),
        "the children in a tree",
    )
    _require(_are_indices(nodes["feature"][inner], n_features), "the features of a tree")
    found = Tree(n_features, n_classes, n_outputs)
    state = {"max_depth": stored["max_depth"], "node_count": len(nodes), "nodes": nodes}
    found.__setstate__({**state, "values": np.ascontiguousarray(values)})
    return found


def _are_indices(values: NDArray[Any], end: int) -> bool:
    whole = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
    return whole and bool(((values >= 0) & (values < end)).all())


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"{what} can't be right; the file is damaged or was changed, {_ADVICE}.")
