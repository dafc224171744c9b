"""SP-PLL and M3PL as estimators."""

import itertools
import os
import warnings
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import M3PL, PLLOO, SPPLL, CandidateSets, as_candidates
from skpll._examples import Examples
from skpll._iteration import InterruptedFitWarning
from skpll.datasets import load_dataset, make_partial_classification, make_partial_labels
from skpll.margin import _start
from skpll.margin._alternating import Alternation
from skpll.margin._start import INITIAL_COSTS
from skpll.pacing import DIFFICULTIES, REGULARIZERS, SCALES, SCHEDULES, Pace

BOTH = pytest.mark.parametrize("method", [M3PL, SPPLL])

LINEAR = {"kernel": "linear", "init": "ridge", "class_prior": "candidates"}
"""Nothing is left to PL-LOO, unless it is the difficulty."""


@pytest.fixture(scope="module")
def data():
    return make_partial_classification(200, 6, 4, p=0.8, r=2, class_sep=2.0, random_state=0)


@pytest.mark.parametrize(
    ("difficulty", "weights", "scale"),
    [
        *itertools.product(DIFFICULTIES, REGULARIZERS, ["share"]),
        *itertools.product(["gap"], REGULARIZERS, ["minmax"]),
    ],
)
def test_every_relative_reading_learns(data, difficulty, weights, scale):
    X, S, y = data
    pace = Pace(difficulty=difficulty, weights=weights, scale=scale)
    model = SPPLL(pace=pace).fit(X, S)
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("scale", SCALES)
def test_every_schedule_ends_and_gives_a_model(data, schedule, scale):
    X, S, _ = data
    pace = Pace(schedule=schedule, scale=scale, growth=1.3)
    model = SPPLL(pace=pace, C_growth=2.0).fit(X, S)
    assert np.isfinite(model.coef_).all()
    assert model.n_iter_ == len(model.history_)


def test_as_printed_is_a_configuration():
    model = SPPLL.as_printed(C=10, init="ridge")
    parameters = model.get_params()
    assert parameters["C"] == 10
    assert parameters["init"] == "ridge"
    assert model.pace == Pace(difficulty="loss", schedule="carry", end=10.0, weight_floor=1e-3)
    assert SPPLL.as_printed(pace__start=0.2).pace.start == 0.2


def test_as_published_is_a_configuration(data):
    X, S, _ = data
    parameters = M3PL.as_published(C=10, tol=1).get_params()
    assert (parameters["C"], parameters["tol"], parameters["kernel"]) == (10, 1, "linear")
    assert (parameters["init"], parameters["class_prior"]) == ("uniform", "rounded")
    assert parameters["prior_price"] is None
    model = M3PL.as_published().fit(X, S)
    assert model.coef_.shape == (4, 6)
    assert model.n_iter_ == 29


def test_lambda_is_set_once_as_printed(data):
    X, S, _ = data
    paces = [record["pace"] for record in SPPLL.as_printed(tol=1).fit(X, S).history_]
    np.testing.assert_allclose(paces, 0.6 * 1.05 ** np.arange(29))


def test_the_path_of_C(data):
    X, S, _ = data
    path = [record["C"] for record in M3PL(C=100, C_start=1e-5, tol=1).fit(X, S).history_]
    assert len(path) == 29
    assert path[0] == pytest.approx(1.5e-3)
    assert path[-1] == 100
    np.testing.assert_allclose(np.diff(np.log(path[:-1])), np.log(1.5))
    assert [r["C"] for r in M3PL(C=3, C_start=1).fit(X, S).history_] == [3]


def test_history(data):
    X, S, _ = data
    model = SPPLL(pace=Pace(difficulty="gap", scale="share", start=0.5)).fit(X, S)
    record = model.history_[0]
    assert set(record) == {
        "C",
        "pace",
        "objective",
        "admitted",
        "mean_weight",
        "label_changes",
        "passes",
        "trace",
        "seconds",
    }
    assert record["pace"] == 0.5
    assert 0.5 <= record["admitted"] < 0.9
    assert record["mean_weight"] < record["admitted"]
    assert model.history_[-1]["pace"] == 1
    assert model.history_[-1]["admitted"] == 1
    assert all(later["passes"] >= 1 and later["seconds"] >= 0 for later in model.history_)


def test_weights_and_when_examples_were_admitted(data):
    X, S, _ = data
    pace = Pace(difficulty="gap", weights="hard", scale="share", start=0.4, end=0.7)
    model = SPPLL(**LINEAR, pace=pace, C_start=1e-5, C=1).fit(X, S)
    admitted = model.weights_ > 0
    assert 0.7 <= admitted.mean() < 0.9
    assert (model.labeled_iter_[admitted] >= 0).all()
    assert (model.labeled_iter_ < model.n_iter_).all()
    assert (model.labeled_iter_ == 0).mean() < 0.7
    assert ((model.labeled_iter_ == -1) <= ~admitted).all()
    assert (model.labeled_iter_[S.sizes == 1] == 0).all()  # nothing to confuse: let in at once


def test_every_label_sends_its_easiest_examples(data):
    X, S, _ = data
    pace = Pace(difficulty="gap", weights="hard", scale="class_share", start=0.5, end=0.5)
    model = SPPLL(pace=pace, max_passes=1).fit(X, S)
    for label in model.classes_:
        assert model.weights_[model.training_labels_ == label].mean() >= 0.4


def test_who_is_doubted_counts_little():
    X, S, y = make_partial_classification(200, 6, 4, p=0.8, r=2, class_sep=0.8, random_state=0)
    confidences = PLLOO(random_state=_seed_of(0)).fit(X, S).label_distributions_.toarray()
    model = SPPLL().fit(X, S)
    labels = np.searchsorted(S.classes, model.training_labels_)
    trust = confidences[np.arange(len(S)), labels]
    assert np.corrcoef(model.weights_, trust)[0, 1] > 0.95  # the last labels change after it
    wrong = model.training_labels_ != y
    assert model.weights_[wrong].mean() < model.weights_[~wrong].mean() - 0.2
    assert (model.weights_[S.sizes == 1] == 1).all()


def test_difficulty_by_models_that_have_not_seen_the_example():
    X, S, y = make_partial_classification(150, 6, 4, p=0.8, class_sep=0.8, random_state=1)
    pace = Pace(difficulty="loss", weights="hard", scale="share", start=0.5, end=0.8)
    seen = SPPLL(**LINEAR, pace=pace, C=1.0).fit(X, S)
    unseen = clone(seen).set_params(pace__cv=5).fit(X, S)
    assert (seen.weights_ != unseen.weights_).any()
    for model in (seen, unseen):
        assert 0.8 <= (model.weights_ > 0).mean() < 1
        assert model.score(X, y) > 0.7
        for record in model.history_:
            trace = record["trace"]
            assert all(b <= a + 1e-9 * abs(a) for a, b in itertools.pairwise(trace))


@BOTH
def test_the_final_model_decides(data, method):
    X, S, _ = data
    wrong = {"class_prior": [0.7, 0.1, 0.1, 0.1], "prior_slack": 0.2, "prior_price": None}
    model = method(**{**LINEAR, **wrong}, C=1).fit(X, S)
    candidates = np.where(S.to_matrix().toarray(), model.decision_function(X), -np.inf)
    np.testing.assert_array_equal(model.transduction_, model.classes_[candidates.argmax(axis=1)])
    assert S.contains(model.training_labels_).all()
    assert (model.training_labels_ != model.transduction_).any()  # the prior is wrong on purpose


def test_a_difficulty_of_the_users_own(data):
    X, S, y = data

    def number_of_candidates(losses, assigned, candidates):
        return candidates.sizes.astype(float)

    pace = Pace(difficulty=number_of_candidates, weights="hard", scale="share", end=0.6)
    model = SPPLL(pace=pace).fit(X, S)
    assert (model.weights_[S.sizes == 1] == 1).all()
    assert model.score(X, y) > 0.85


def test_a_prior_by_label(data):
    X, S, y = data
    labels, counts = np.unique(y, return_counts=True)
    by_label = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    named = M3PL(class_prior=dict(reversed(by_label.items()))).fit(X, S)
    np.testing.assert_array_equal(named.coef_, M3PL(class_prior=counts).fit(X, S).coef_)
    for wrong in ({"nobody": 1.0}, {**by_label, "nobody": 1.0}, dict(list(by_label.items())[1:])):
        with pytest.raises(ValueError, match=r"class_prior: .* give one for each"):
            M3PL(class_prior=wrong).fit(X, S)


def test_a_pace_that_would_have_to_shrink_is_named(data):
    X, S, _ = data
    with pytest.raises(ValueError, match=r"start, end: .* from 0.95 to 0.5; choose a"):
        SPPLL(pace=Pace(start=0.95, end=0.5)).fit(X, S)
    with pytest.raises(ValueError, match=r"growth: a pace that grows by 1.0 never ends"):
        SPPLL(pace=Pace(growth=1.0, schedule="restart")).fit(X, S)
    with pytest.raises(ValueError, match=r"'weights' parameter of Pace must be a str among"):
        SPPLL(pace=Pace(weights="typo")).fit(X, S)


def test_parameters_of_the_pace_have_nested_names(data):
    X, S, _ = data
    model = SPPLL(kernel="linear")
    assert model.get_params()["pace__start"] == 0.6
    assert clone(model).set_params(pace__start=0.2).pace == Pace(start=0.2)
    assert model.pace is None  # a copy has its own pace
    search = GridSearchCV(model, {"pace__start": [0.3, 0.9], "pace__weights": ["hard"]}, cv=2)
    assert search.fit(X, S).best_estimator_.pace.weights == "hard"
    assert SPPLL(pace__end=2.0).pace == Pace(end=2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'stop' for estimator Pace"):
        model.set_params(pace__stop=1.0)


def test_nested_names_leave_the_users_pace_as_it_is():
    pace = Pace("gap")
    for make in (SPPLL, SPPLL.as_printed):
        assert make(pace=pace, pace__start=0.3).pace.start == 0.3
        assert pace.get_params() == Pace("gap").get_params()


def test_old_names_of_the_pace_still_work(data):
    X, S, _ = data
    with pytest.warns(FutureWarning, match=r"pace_start, scale: .* use pace=Pace\(start=…, scale"):
        old = SPPLL(pace_start=0.3, scale="share")
    new = SPPLL(pace=Pace(start=0.3, scale="share"))
    assert old.pace == new.pace
    np.testing.assert_array_equal(old.fit(X, S).coef_, new.fit(X, S).coef_)
    with pytest.warns(FutureWarning, match="weight_floor: now parameters of the pace"):
        assert SPPLL().set_params(weight_floor=0.1).pace == Pace(weight_floor=0.1)


@pytest.mark.skipif(
    not hasattr(sparse.csr_array, "__class_getitem__"),
    reason="sparse arrays of SciPy before 1.16 have no type parameters",
)
def test_names_of_options_are_types():
    """What the constructors declare is what the tables hold, so that a typo fails type checks."""
    known = {"CandidateSets": CandidateSets}
    hints = {**get_type_hints(SPPLL, localns=known), **get_type_hints(Pace, localns=known)}
    for name, table in {
        "difficulty": {*DIFFICULTIES, "leave_one_out"},
        "weights": REGULARIZERS,
        "scale": SCALES,
        "schedule": SCHEDULES,
        "class_prior": {"leave_one_out", "candidates", "rounded"},
        "init": {*INITIAL_COSTS, "leave_one_out"},
    }.items():
        assert literals(hints[name]) == set(table), name
    assert literals(get_type_hints(M3PL, localns=known)["init"]) == {
        *INITIAL_COSTS,
        "leave_one_out",
    }


def literals(hint):
    """All strings that a type allows by name."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return set().union(*map(literals, get_args(hint))) if get_origin(hint) is Union else set()


def test_single_precision(data):
    X, S, _ = data
    single = X.astype(np.float32)
    narrow = M3PL(**LINEAR).fit(single, S)
    wide = M3PL(**LINEAR).fit(single.astype(np.float64), S)
    np.testing.assert_array_equal(narrow.coef_, wide.coef_)


def test_passes_are_bounded(data):
    X, S, _ = data
    model = M3PL(max_passes=2, tol=0, init="uniform", C_start=1e-5).fit(X, S)
    assert max(record["passes"] for record in model.history_) == 2
    assert model.n_iter_ > 2


@BOTH
def test_priors(data, method):
    X, S, y = data
    counts = np.bincount(np.searchsorted(S.classes, y), minlength=4)
    for prior in ("leave_one_out", "candidates", "rounded", counts / counts.sum(), counts):
        model = method(class_prior=prior).fit(X, S)
        assert model.score(X, y) > 0.85
    exact = method(class_prior=counts, prior_price=None).fit(X, S)
    labels, found = np.unique(exact.training_labels_, return_counts=True)
    np.testing.assert_array_equal(found, counts)
    free = method(class_prior=None).fit(X, S)
    assert S.contains(free.transduction_).all()
    with pytest.raises(ValueError, match="class_prior: 3 shares for 4 classes"):
        method(class_prior=[1, 1, 1]).fit(X, S)


def test_a_prior_that_cannot_be_met_is_relaxed_and_the_user_told():
    X = np.arange(6.0)[:, None]
    S = as_candidates([{0}, {0}, {0}, {0, 1}, {1}, {1}])
    with pytest.warns(UserWarning, match="class_prior: .* relaxed by"):
        model = M3PL(class_prior=[0, 1], kernel="linear", prior_price=None).fit(X, S)
    assert model.transduction_.tolist()[:3] == [0, 0, 0]


@BOTH
def test_sparse_and_dense_agree(data, method):
    X, S, _ = data
    settings = {**LINEAR, "solver_tol": 1e-6}
    if method is SPPLL:
        settings |= {"pace": Pace(difficulty="gap")}
    dense = method(**settings).fit(X, S)
    compressed = method(**settings).fit(sparse.csr_array(X), S)
    assert (dense.predict(X) == compressed.predict(X)).mean() > 0.98
    np.testing.assert_allclose(
        dense.decision_function(X), compressed.decision_function(sparse.csr_array(X)), atol=0.01
    )


@BOTH
def test_integer_weights_are_replication(method):
    X, S, _ = make_partial_classification(60, 4, 3, p=0.6, random_state=1)
    times = np.random.default_rng(0).integers(1, 4, 60)
    settings = {"class_prior": None, "init": "ridge", "solver_tol": 1e-8, "C_growth": 10.0}
    settings |= {"kernel": "linear", "C_start": 1e-5, "C": 1.0}
    if method is SPPLL:
        settings |= {"pace": Pace(difficulty="loss")}
    weighted = method(**settings).fit(X, S, sample_weight=times)
    replicated = method(**settings).fit(np.repeat(X, times, axis=0), S[np.repeat(range(60), times)])
    np.testing.assert_allclose(weighted.coef_, replicated.coef_, atol=1e-3)


@BOTH
def test_rows_without_weight_take_no_part_but_get_a_label(data, method):
    X, S, y = data
    weights = np.where(np.arange(len(S)) < 20, 0.0, 1.0)
    model = method().fit(X, S, sample_weight=weights)
    without = method().fit(X[20:], S[20:])
    np.testing.assert_array_equal(model.coef_, without.coef_)
    assert S.contains(model.transduction_).all()
    assert (model.transduction_[:20] == y[:20]).mean() > 0.8
    if method is SPPLL:
        assert (model.weights_[:20] == 0).all()
        assert (model.labeled_iter_[:20] == -1).all()
    with pytest.raises(ValueError, match=r"at least one non-zero|all weights are zero"):
        method().fit(X, S, sample_weight=np.zeros(len(S)))


@BOTH
def test_a_class_that_only_weightless_rows_have(method):
    X = np.array([[0.0], [1.0], [5.0], [6.0], [9.0]])
    S = as_candidates([{"a"}, {"a", "b"}, {"b"}, {"b"}, {"c", "d"}])
    model = method().fit(X, S, sample_weight=[1, 1, 1, 1, 0])
    assert set(model.predict(X)) <= {"a", "b"}
    assert model.transduction_[4] in ("c", "d")
    assert model.label_distributions_[[4]].data.tolist() == [0.5, 0.5]


@BOTH
@pytest.mark.parametrize(
    ("X", "sets", "C"),
    [
        ([[0.0], [1.0]], [{0, 1}, {0, 1}], 1e-8),
        ([[0.0], [1.0]], [{0}, {1}], 1e8),
        ([[0.0]], [{0, 1}], 1.0),
        ([[1.0, 2.0]] * 6, [{0, 1}, {1, 2}, {0}, {1}, {2}, {0, 2}], 1e-8),
        (np.zeros((8, 3)), [{0, 1, 2}] * 8, 1e8),
        (np.arange(12.0)[:, None], [{0, 1, 2}] * 12, 1.0),
        (np.arange(12.0)[:, None], [{0}] * 6 + [{1}] * 6, 1e-8),
        (1e12 * np.arange(12.0)[:, None], [{0, 1}] * 6 + [{1}] * 6, 1e8),
        (1e-12 * np.arange(12.0)[:, None], [{0, 1}] * 6 + [{1}] * 6, 1.0),
        (
            np.c_[np.arange(12.0), np.ones(12), 1e9 * np.arange(12.0)],
            [{0, 1}] * 6 + [{1, 2}] * 6,
            1e-8,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:y. every class is a candidate of every example")
def test_degenerate_data(method, X, sets, C):
    S = as_candidates(sets, classes=range(3))
    X = np.asarray(X)
    model = method(C=C).fit(X, S)
    assert np.isfinite(model.coef_).all()
    assert S.contains(model.transduction_).all()
    assert np.isfinite(model.label_distributions_.data).all()
    never = set(range(3)) - set().union(*sets)
    assert not set(model.predict(X).tolist()) & never


@BOTH
def test_two_classes(method):
    X, S, y = make_partial_classification(80, 3, 2, p=0.5, class_sep=3.0, random_state=0)
    model = method().fit(X, S)
    decision = model.decision_function(X)
    assert decision.shape == (80,)
    np.testing.assert_array_equal(model.classes_[(decision > 0).astype(int)], model.predict(X))


def rings():
    """Two classes, one around the other."""
    rng = np.random.default_rng(0)
    angle, y = rng.uniform(0, 2 * np.pi, 300), np.arange(300) % 2
    X = (1 + 2 * y[:, None]) * np.c_[np.cos(angle), np.sin(angle)] + rng.normal(0, 0.2, (300, 2))
    return X, make_partial_labels(y, p=0.4, random_state=0), y


@BOTH
@pytest.mark.parametrize("kernel", ["auto", "laplacian", "rbf"])
def test_kernels(method, kernel):
    X, S, y = rings()
    assert method(kernel="linear").fit(X, S).score(X, y) < 0.8
    model = method(kernel=kernel, n_landmarks=50).fit(X, S)
    assert model.score(X, y) > 0.95
    assert model.coef_.shape[1] <= 50
    assert model.kernel_ == kernel or kernel == "auto"


@BOTH
def test_kernel_features_are_those_of_the_kernel(method):
    """With all examples as landmarks, products of features are the kernel itself."""
    X, S, _ = rings()
    model = method(kernel="rbf", gamma=0.5, init="ridge", class_prior=None, C=1e-3).fit(X, S)
    Z = model._features(X)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    unit = np.median(np.sqrt(squared[np.triu_indices(len(X), 1)]))
    np.testing.assert_allclose(Z @ Z.T, np.exp(-0.5 * squared / unit**2), atol=1e-4)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_landmarks_do_not_depend_on_copies_or_order(layout):
    X = np.round(np.random.default_rng(0).normal(size=(40, 3)), 1)
    X[X < 0] = 0.0
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(40), 3))
    once = _start.kernel_features(layout(X), "rbf", 1.0, 15, 0)
    often = _start.kernel_features(layout(X[order]), "rbf", 1.0, 15, 0)
    np.testing.assert_allclose(once(layout(X)), often(layout(X)), atol=1e-9)


# -- the start from PL-LOO -----------------------------------------------------------------


@BOTH
def test_the_first_labels_are_those_of_the_start(data, method, monkeypatch):
    X, S, _ = data
    first = []

    class Watched(Alternation):
        def run(self, *args):
            first.append(self.labels)
            return super().run(*args)

    monkeypatch.setattr(method, "_alternation", Watched)
    method(class_prior=None).fit(X, S)
    confident = PLLOO(random_state=_seed_of(0)).fit(X, S)
    np.testing.assert_array_equal(S.classes[first[0]], confident.transduction_)


def _seed_of(random_state):
    return int(np.random.RandomState(random_state).randint(np.iinfo(np.int32).max))


def test_the_class_prior_of_the_start(data):
    X, S, _ = data
    confident = PLLOO(random_state=_seed_of(0)).fit(X, S)
    counts = np.asarray(confident.label_distributions_.sum(axis=0)).ravel()
    model = M3PL(prior_price=None).fit(X, S)
    taken = np.bincount(np.searchsorted(S.classes, model.training_labels_), minlength=4)
    assert (np.abs(taken - counts) < 1).all()


def test_only_what_depends_on_it_asks_for_a_start(data, monkeypatch):
    X, S, _ = data
    asked = []
    original = PLLOO.fit

    def fit(self, *args, **kwargs):
        asked.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(PLLOO, "fit", fit)
    M3PL.as_published(tol=1).fit(X, S)
    SPPLL.as_printed(tol=1).fit(X, S)
    M3PL(**LINEAR).fit(X, S)
    assert not asked
    SPPLL(**LINEAR).fit(X, S)
    M3PL(**{**LINEAR, "class_prior": "leave_one_out"}).fit(X, S)
    M3PL(**{**LINEAR, "kernel": "rbf"}).fit(X, S)
    assert len(asked) == 3


def test_of_many_examples_some_are_learned_from_and_the_others_asked_about(data, monkeypatch):
    X, S, y = data
    monkeypatch.setattr(_start, "MAX_START_EXAMPLES", 100)
    start = _start.leave_one_out_start(PLLOO(), Examples(X, S, np.ones(len(S))), 0)
    np.testing.assert_allclose(np.add.reduceat(start.confidences, S.indptr[:-1]), 1)
    model = SPPLL().fit(X, S)
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("kernel", ["linear", "auto"])
def test_of_many_classes_a_linear_start_learns_from_all_examples(data, kernel, monkeypatch):
    X, S, _ = data
    monkeypatch.setattr(_start, "MAX_START_EXAMPLES", 100)
    monkeypatch.setattr(_start, "MAX_START_CLASSES", 2)
    asked, original = [], PLLOO.fit

    def fit(self, X, y, sample_weight):
        asked.append((self.kernel, np.count_nonzero(sample_weight)))
        return original(self, X, y, sample_weight)

    monkeypatch.setattr(PLLOO, "fit", fit)
    SPPLL(kernel=kernel).fit(X, S)
    assert asked == [(kernel, len(X) if kernel == "linear" else 100)]


def test_an_interrupted_start_is_an_interrupt(data, monkeypatch):
    X, S, _ = data

    def interrupted(self, *args, **kwargs):
        warnings.warn("Interrupted after 2 of 15 rounds", InterruptedFitWarning, stacklevel=1)
        return self

    monkeypatch.setattr(PLLOO, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        SPPLL().fit(X, S)


def test_rare_classes_are_kept():
    """Ninety examples of three classes each, eight, eight and four of the others."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), [90, 90, 90, 8, 8, 4])
    centers = 2 * rng.normal(size=(6, 8))
    X, X_new = centers[y] + rng.normal(size=(len(y), 8)), centers[y] + rng.normal(size=(len(y), 8))
    S = make_partial_labels(y, p=0.8, r=1, random_state=0)
    predictions = SPPLL().fit(X, S).predict(X_new)
    recalls = [(predictions[y == label] == label).mean() for label in range(6)]
    assert np.mean(recalls) > 0.8


# -- interrupts, progress, callbacks -------------------------------------------------------


def interrupt_after(monkeypatch, stages):
    original = Alternation.alternate
    calls = itertools.count()

    def alternate(self, C):
        if next(calls) == stages:
            raise KeyboardInterrupt
        return original(self, C)

    monkeypatch.setattr(Alternation, "alternate", alternate)


@BOTH
def test_an_interrupt_leaves_a_usable_model(data, method, monkeypatch):
    X, S, y = data
    interrupt_after(monkeypatch, 20)
    with pytest.warns(InterruptedFitWarning, match="Interrupted after 20 of 29 stages"):
        model = method(C=10, C_start=1e-5).fit(X, S)
    assert model.n_iter_ == 20
    assert model.score(X, y) > 0.8
    assert S.contains(model.transduction_).all()


@BOTH
def test_an_interrupt_before_there_is_a_model_goes_through(data, method, monkeypatch):
    X, S, _ = data
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        method().fit(X, S)


def test_progress_bar(data, capsys):
    X, S, _ = data
    SPPLL().fit(X, S)
    assert capsys.readouterr().err == ""
    SPPLL(verbose=1, random_state=17).fit(X, S)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("SPPLL [########################] 6/6  C=10  admitted 100%")
    assert any(line.startswith("PLLOO") for line in lines)


class Watcher:
    """Counts the tasks it is told about, and stops the fit after a few stages."""

    def __init__(self, stop_after):
        self.stop_after = stop_after
        self.stages = 0
        self.torn_down = False

    def setup(self, estimator, context):
        assert context.task_name == "fit"

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.stages += context.task_name == "stage"
        return context.task_name == "stage" and self.stages >= self.stop_after

    def teardown(self, estimator, context):
        self.torn_down = True


@BOTH
def test_callbacks(data, method):
    callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    X, S, _ = data
    watcher = Watcher(stop_after=5)
    model = method().set_callbacks(watcher).fit(X, S)
    assert watcher.stages == model.n_iter_ == 5
    assert watcher.torn_down
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method().set_callbacks(callback.ProgressBar()).fit(X, S)


# -- real data -----------------------------------------------------------------------------


@pytest.mark.skipif("SKPLL_DATA" not in os.environ, reason="SKPLL_DATA names no data directory")
@BOTH
def test_half_of_lost(method):
    X, S, y = load_dataset("lost", return_X_S_y=True)
    train = np.random.default_rng(0).permutation(len(y)) < len(y) // 2
    model = make_pipeline(StandardScaler(), method(C=1.0)).fit(X[train], S[train])
    assert model.score(X[~train], y[~train]) > 0.7
    assert (model[-1].transduction_ == y[train]).mean() > 0.8
