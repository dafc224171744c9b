"""PL-LOO as a whole."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from skpll import PLLOO, CandidateSets, as_candidates
from skpll._examples import Examples
from skpll._iteration import InterruptedFitWarning
from skpll.datasets import (
    load_dataset,
    make_partial_classification,
    make_partial_labels,
)
from skpll.engine.blocks import Block
from skpll.engine.kernels import KernelMap
from skpll.leave_one_out._choice import Answers, HeldOutFits, begin, choose
from skpll.leave_one_out._loop import Loop, Settings
from skpll.leave_one_out._regression import System
from skpll.leave_one_out._repeated import NearCopyWarning, come_in_groups

FIXED = {"kernel": "rbf", "gamma": 1.0, "alpha": 0.1, "prior_strength": 0.25}


def test_rounds_ask_ridge_regressions_that_were_trained_without_the_example(clusters):
    X, S, _ = clusters
    plain = {"class_prior": None, "start": "evidence", "set_model": 0.0}
    model = PLLOO(**FIXED, **plain, max_iter=2, tol=0.0).fit(X, S)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    apart = squared[np.triu_indices(len(X), 1)]
    K = np.exp(-squared / np.median(np.sqrt(apart)) ** 2)
    Y = np.asarray(S) / S.sizes[:, None]
    for _ in range(2):
        mu = Y.mean(axis=0)
        F = np.empty_like(Y)
        for i in range(len(X)):
            others = np.arange(len(X)) != i
            A = K[np.ix_(others, others)] + 0.1 * np.eye(len(X) - 1)
            F[i] = K[i, others] @ np.linalg.solve(A, Y[others] - mu) + mu
        Q = np.where(np.asarray(S) > 0, np.maximum(F, 1e-4) ** 1.5, 0)
        previous, Y = Y, Q / Q.sum(axis=1, keepdims=True)
    change = np.abs(Y - previous).sum() / (2 * len(X))
    assert model.history_[-1]["change"] == pytest.approx(change, rel=1e-8)
    new = np.random.default_rng(0).normal(size=(7, 2))
    k = np.exp(-((new[:, None] - X[None]) ** 2).sum(axis=-1) / np.median(np.sqrt(apart)) ** 2)
    mu = Y.mean(axis=0)
    expected = k @ np.linalg.solve(K + 0.1 * np.eye(len(X)), Y - mu) + mu
    assert_allclose(model.decision_function(new), expected, rtol=1e-8)


def test_it_finds_labels_and_says_how_sure_it_is(clusters):
    X, S, y = clusters
    model = PLLOO().fit(X, S)
    assert (model.transduction_ == y).mean() > 0.88
    assert model.score(X, y) > 0.88
    confidence = model.label_distributions_.max(axis=1).toarray().ravel()
    ambiguous = S.sizes > 1
    right = (model.transduction_ == y)[ambiguous].mean()
    assert confidence[ambiguous].mean() == pytest.approx(right, abs=0.06)
    assert 1 <= model.n_iter_ == len(model.history_) <= 15
    assert model.search_.kernel == model.kernel_
    assert {trial.kernel for trial in model.search_.trials} == {"laplacian", "rbf"}
    best = max(model.search_.trials, key=lambda trial: trial.likelihood)
    assert (best.gamma, best.alpha) == (model.gamma_, model.alpha_)
    assert set(model.search_.merits) == {0.0, 0.2, 0.5, 1.0}


def test_one_fold_that_is_held_out_tells_how_sure_all_are(clusters, monkeypatch):
    X, S, _ = clusters
    usual = PLLOO(**FIXED).fit(X, S)
    monkeypatch.setattr("skpll.engine.limits.LIMITS.cross_fitted_rows", 100)
    model = PLLOO(**FIXED).fit(X, S)
    means = [each.label_distributions_.max(axis=1).toarray().mean() for each in (usual, model)]
    assert means[0] == pytest.approx(means[1], abs=0.02)
    assert model.temperature_ == pytest.approx(usual.temperature_, rel=0.5)


def test_the_prior_is_chosen_by_one_fold_if_there_are_many_scores(clusters, monkeypatch):
    X, S, y = clusters
    monkeypatch.setattr("skpll.engine.limits.LIMITS.cross_fitted_scores", len(X))
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(X))
    model = PLLOO(kernel="rbf", gamma=1.0, alpha=0.1).fit(X, S, sample_weight=weights)
    assert set(model.search_.merits) == {0.0, 0.2, 0.5, 1.0}
    assert (model.transduction_ == y).mean() > 0.9


def test_what_is_given_is_not_chosen(clusters):
    X, S, _ = clusters
    model = PLLOO(**FIXED).fit(X, S)
    assert (model.kernel_, model.gamma_, model.alpha_, model.prior_strength_) == tuple(
        FIXED.values()
    )
    assert np.isnan(model.search_.trials[0].likelihood)
    assert PLLOO(gamma=0.7).fit(X, S).gamma_ == 0.7
    assert PLLOO(class_prior=None).fit(X, S).prior_strength_ == 0


def test_the_prior_is_as_strong_as_the_joint_likelihood_says(clusters):
    X, S, _ = clusters
    several = S.sizes > 1
    model = PLLOO().fit(X[several], S[several])  # the labels of singletons are not needed
    merits = model.search_.merits
    assert model.prior_strength_ in (0.2, max(merits, key=merits.get))
    assert PLLOO(noise=0.1).fit(X, S).prior_strength_ == 0.2


@pytest.mark.parametrize(
    ("merits", "chosen"),
    [
        ({0.2: 0.0, 0.0: -1.0, 0.5: 0.07, 1.0: -1.0}, 0.2),  # stronger: better by far, or not
        ({0.2: 0.0, 0.0: -1.0, 0.5: 0.09, 1.0: -1.0}, 0.5),
        ({0.2: 0.0, 0.0: 0.01, 0.5: -1.0, 1.0: -1.0}, 0.0),  # weaker: by more than its error
    ],
)
def test_a_stronger_prior_has_to_be_better_by_far(clusters, monkeypatch, merits, chosen):
    X, S, _ = clusters
    examples = Examples(X, S, np.ones(len(S)))
    monkeypatch.setattr(Answers, "joint", lambda self: np.full(len(S), self.noise))

    def answers(self, examples, kernel, parameters):
        return [Answers(examples, np.empty(0), merits[strength]) for _, strength in parameters]

    monkeypatch.setattr(HeldOutFits, "answers", answers)
    options = {"rbf": (1.0,)}, (0.1,), tuple(merits)
    fits = HeldOutFits(None, 3, 800, 2000, np.random.RandomState(0))
    assert choose(fits, examples, 1.0, *options).strength == chosen


def test_in_sample_answers_believe_the_start_more(clusters):
    X, S, _ = clusters
    narrow = {**FIXED, "gamma": 20.0, "alpha": 0.001, "class_prior": None}
    inside = PLLOO(**narrow, leave_one_out=False).fit(X, S)
    outside = PLLOO(**narrow).fit(X, S)
    assert inside.history_[0]["change"] < 0.5 * outside.history_[0]["change"]


def test_duplicates_are_one_example_of_their_weight(clusters):
    X, S, _ = clusters
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, len(S))
    rows = np.repeat(np.arange(len(S)), weights)
    shuffled = rng.permutation(rows)
    reordered = PLLOO().fit(X[shuffled], S[shuffled])
    weighted = PLLOO().fit(X, S, sample_weight=weights)
    repeated = PLLOO().fit(X[rows], S[rows])
    assert_allclose(repeated.predict_proba(X), weighted.predict_proba(X), atol=1e-9)
    assert_array_equal(repeated.transduction_, weighted.transduction_[rows])
    scaled = PLLOO().fit(X, S, sample_weight=10.0 * weights)
    assert_allclose(scaled.predict_proba(X), weighted.predict_proba(X), atol=1e-9)
    assert_allclose(reordered.predict_proba(X), weighted.predict_proba(X), atol=1e-9)
    assert_array_equal(reordered.transduction_, weighted.transduction_[shuffled])


def test_landmarks_are_near_the_exact_kernel(clusters):
    X, S, y = clusters
    exact = PLLOO(**FIXED).fit(X, S)
    few = PLLOO(**FIXED, n_landmarks=60).fit(X, S)
    assert (few.predict(X) == exact.predict(X)).mean() > 0.97
    assert np.abs(few.decision_function(X) - exact.decision_function(X)).max() < 0.05


def test_linear_features_dense_and_sparse(clusters):
    X, S, y = clusters
    dense = PLLOO(kernel="linear").fit(X, S)
    assert (dense.transduction_ == y).mean() > 0.75
    moved = PLLOO(kernel="linear").fit(X + 100, S)
    assert_allclose(moved.predict_proba(X + 100), dense.predict_proba(X), atol=1e-6)
    by_kernel = PLLOO(kernel="linear", alpha=0.1, prior_strength=0.1, n_landmarks=1)
    assert by_kernel.fit(X[:2], S[:2]).predict(X[:2]).shape == (2,)


@pytest.mark.parametrize("settings", [{}, {"n_landmarks": 60}, {"noise": "auto", "alpha": 0.1}])
def test_sparse_features_are_learned_from_as_dense_ones(clusters, settings):
    X, S, _ = clusters
    X = np.round(X * 8) / 8 * (np.random.default_rng(0).random(X.shape) < 0.8)  # zeros and copies
    stored = sparse.csr_array(X)
    stored.data[:3] = X[0, 0] = X[0, 1] = X[1, 0] = 0.0  # explicit zeros
    dense, by_rows = PLLOO(**settings).fit(X, S), PLLOO(**settings).fit(stored, S)
    assert by_rows.kernel_ == dense.kernel_ != "linear"
    assert_allclose(by_rows.label_distributions_.data, dense.label_distributions_.data, atol=1e-7)
    assert_allclose(by_rows.predict_proba(stored), dense.predict_proba(X), atol=1e-7)
    assert_allclose(by_rows.predict_proba(X), dense.predict_proba(X), atol=1e-7)


def test_a_category_beside_numbers():
    rng = np.random.default_rng(0)
    category, numbers = rng.integers(0, 40, 600), rng.normal(size=(600, 3))
    y = rng.integers(0, 5, 40)[category]
    frame = pd.DataFrame(numbers, columns=["a", "b", "c"]).assign(kind=category.astype(str))
    S = make_partial_labels(y, p=0.8, r=1, random_state=0)
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["a", "b", "c"]), ("kind", OneHotEncoder(), ["kind"])],
        sparse_threshold=1.0,
    )
    model = make_pipeline(columns, PLLOO()).fit(frame[:400], S[:400])
    assert sparse.issparse(columns.fit_transform(frame))
    assert model.score(frame[400:], y[400:]) > 0.6


@pytest.mark.parametrize("kernel", ["auto", "laplacian", "linear"])
def test_features_far_from_zero(clusters, kernel):
    X, S, y = clusters
    X = np.round(X * 64) / 64  # so that the offset brings no rounding error
    usual, moved = PLLOO(kernel=kernel).fit(X, S), PLLOO(kernel=kernel).fit(X + 1e8, S)
    assert_allclose(moved.predict_proba(X + 1e8), usual.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("n_landmarks", [1, 1000])  # the kernel, and the features themselves
def test_sparse_rows_are_asked_about_as_dense_ones(clusters, n_landmarks):
    """The centre that was learned from dense rows is taken off sparse ones, too."""
    X, S, _ = clusters
    X = X[:40] + 5
    settings = {"kernel": "linear", "alpha": 0.1, "n_landmarks": n_landmarks}
    model = PLLOO(**settings).fit(X, S[:40])
    assert_allclose(model.predict_proba(sparse.csr_array(X)), model.predict_proba(X), atol=1e-9)
    grown = PLLOO(**settings).partial_fit(X[:20], S[:20])
    by_dense = PLLOO(**settings).partial_fit(X[:20], S[:20]).partial_fit(X[20:], S[20:40])
    grown.partial_fit(sparse.csr_array(X[20:]), S[20:40])
    assert_allclose(grown.predict_proba(X), by_dense.predict_proba(X), atol=1e-9)


def test_the_linear_kernel_gives_what_linear_features_give(clusters):
    X, S, _ = clusters
    settings = {"kernel": "linear", "alpha": 0.1, "prior_strength": 0.1}
    wide = np.hstack([X, np.zeros((len(X), 300))])
    by_features = PLLOO(**settings).fit(wide, S)
    by_kernel = PLLOO(**settings, n_landmarks=len(X) // 2 + 1).fit(wide, S)
    assert_allclose(
        by_kernel.decision_function(wide), by_features.decision_function(wide), atol=1e-8
    )


def test_priors_that_are_given(clusters):
    X, S, y = clusters
    names, counts = np.unique(y, return_counts=True)
    shares = counts / counts.sum()
    by_array = PLLOO(**FIXED | {"class_prior": shares}).fit(X, S)
    by_name = PLLOO(**FIXED | {"class_prior": dict(zip(names, shares, strict=True))}).fit(X, S)
    assert_array_equal(by_array.predict_proba(X), by_name.predict_proba(X))
    skewed = PLLOO(**FIXED | {"class_prior": [8, 1, 1], "prior_strength": 1.0}).fit(X, S)
    assert (skewed.transduction_ == "ant").sum() > (by_array.transduction_ == "ant").sum()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([1, 2], "class_prior: 2 shares for 3 classes"),
        ([1, -2, 1], "class_prior: shares have to be non-negative"),
        ({"yak": 1}, "class_prior: 'ant' has no share, or is not one of the classes"),
    ],
)
def test_bad_priors(clusters, prior, message):
    X, S, _ = clusters
    with pytest.raises(ValueError, match=message):
        PLLOO(class_prior=prior).fit(X, S)


@pytest.mark.filterwarnings("ignore:.*features do not help")
def test_groups_share_their_candidates():
    rng = np.random.default_rng(0)
    n_groups = 60
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(n_groups)])
    y = pairs.ravel()  # each candidate of a group is the label of one of its two examples
    groups = np.repeat(np.arange(n_groups), 2)
    X = rng.normal(size=(len(y), 5)) + 1.3 * np.eye(4, 5)[y]
    S = as_candidates([set(pairs[g].tolist()) for g in groups], classes=range(4))
    settings = FIXED | {"group_strength": 1.0}
    alone = PLLOO(**settings).fit(X, S)
    together = PLLOO(**settings).fit(X, S, groups=groups)
    found = (together.transduction_ == y).mean()
    assert found > (alone.transduction_ == y).mean()
    by_set = PLLOO(**settings, group_by="candidates").fit(X, S)
    assert not np.array_equal(by_set.label_distributions_.data, alone.label_distributions_.data)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PLLOO().fit(X, S, groups=groups[:-1])


@pytest.mark.filterwarnings("ignore:.*features do not help")
def test_sets_of_scenes_are_told_from_sets_by_chance(clusters):
    rng = np.random.default_rng(4)
    y = rng.integers(8, size=240)
    alone = make_partial_labels(y, p=1.0, r=2, random_state=0)
    scenes = np.arange(240) // 12
    labels = [set(y[scenes == scene][:4].tolist()) for scene in range(20)]
    together = as_candidates([labels[scene] for scene in scenes], classes=range(8))
    assert not come_in_groups(alone, np.random.RandomState(0))
    assert come_in_groups(together, np.random.RandomState(0))
    X = rng.normal(size=(240, 3))
    fixed = {**FIXED, "max_iter": 2}
    assert PLLOO(**fixed).fit(X, together).group_by_ == "candidates"
    assert PLLOO(**fixed).fit(X, alone).group_by_ is None
    assert PLLOO(**fixed, group_by=None).fit(X, together).group_by_ is None


def copied(seed, n=80, size=4):
    """Return examples with noisy copies of the same candidates, and the number of the original."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    X = rng.normal(size=(n, 6)) + 2.5 * np.eye(4, 6)[y]
    S = make_partial_labels(y, p=0.9, r=2, random_state=seed)
    rows = np.repeat(np.arange(n), size)
    return X[rows] + 0.05 * rng.normal(size=(n * size, 6)), S[rows], y[rows], rows


def test_copies_that_are_given_are_left_out_together():
    X, S, y, rows = copied(0)
    with pytest.warns(NearCopyWarning, match=r"such as rows \d+ and \d+.*pass copies="):
        alone = PLLOO().fit(X, S)
    together = PLLOO().fit(X, S, copies=rows)
    right, confidence = [], []
    for model in (alone, together):
        right.append(np.mean(model.transduction_ == y))
        confidence.append(model.label_distributions_.max(axis=1).toarray().mean())
    assert confidence[0] > right[0] + 0.08
    assert confidence[1] == pytest.approx(right[1], abs=0.08)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_what_is_said_of_copies_is_said_without_all_of_them(kernel):
    X, S, _, rows = copied(1, n=12)
    weights = np.random.default_rng(2).uniform(0.5, 2, len(S))
    block = Block.of(Examples(X, S, weights, copies=rows))
    ridge = System.of(block, KernelMap(kernel, 1.0, 2.0), 100, np.random.RandomState(0)).ridge(0.3)
    q = S.row_normalized(np.random.default_rng(3).random(len(S.indices)))
    Q, mu = S.to_matrix(q).toarray(), weights @ S.to_matrix(q).toarray() / weights.sum()
    K = ridge.features.kernel.against(X) if kernel == "rbf" else ridge.store.Z @ ridge.store.Z.T
    F = np.empty_like(Q)
    for group in range(12):
        G, T = rows == group, rows != group
        A = np.linalg.inv(K[np.ix_(T, T)] + 0.3 * np.diag(1 / weights[T]))
        F[G] = K[np.ix_(G, T)] @ A @ (Q[T] - mu) + mu
    assert_allclose(ridge.ask(q), S.entries(F), atol=1e-8)


def test_copies_are_for_data_in_memory(monkeypatch):
    X, S, _, rows = copied(0)
    monkeypatch.setattr("skpll.engine.limits.LIMITS.rows_in_memory", 10)
    with pytest.raises(ValueError, match="copies: not supported for data in blocks"):
        PLLOO(n_landmarks=4).fit(X, S, copies=rows)
    with pytest.raises(ValueError, match="copies: row 0 has no group"):
        PLLOO().fit(X, S, copies=[None] * len(S))


def annotated(seed, n=300, q=5, annotators=10, right=0.7):
    """Features that tell much, and annotators of whom each is right in 70 % of the cases."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, q, n)
    X = rng.normal(size=(n, 8)) + 2.5 * np.eye(q, 8)[y]
    wrong = (y[:, None] + rng.integers(1, q, (n, annotators))) % q
    answers = np.where(rng.random((n, annotators)) < right, y[:, None], wrong)
    return X, answers, y


def test_votes_and_features_together_beat_each_alone():
    majority, bare, both = [], [], []
    for seed in range(3):
        X, answers, y = annotated(seed)
        S = CandidateSets.from_annotators(answers, classes=range(5))
        counts = (answers[:, :, None] == np.arange(5)).sum(axis=1)
        majority.append((counts.argmax(axis=1) == y).mean())
        bare.append((PLLOO().fit(X, S.with_weights(None)).transduction_ == y).mean())
        both.append((PLLOO().fit(X, S).transduction_ == y).mean())
    assert np.mean(both) > np.mean(majority) + 0.002
    assert np.mean(both) > np.mean(bare) + 0.05


def noisy_digits(seed, missing=0.3):
    """Digits with two false candidates; in part of the sets another one stands for the truth."""
    X, y = load_digits(return_X_y=True)
    S = make_partial_labels(y, p=0.8, r=2, random_state=1000 + seed)
    M = np.asarray(S).astype(bool)
    rng = np.random.default_rng(seed)
    bad = rng.random(len(y)) < missing
    for i in np.flatnonzero(bad):
        outside = np.flatnonzero(~M[i])
        M[i, y[i]] = False
        M[i, rng.choice(outside)] = True
    parts = train_test_split(X, M.astype(int), y, bad, test_size=0.5, random_state=seed)
    scaler = StandardScaler().fit(parts[0])
    return scaler.transform(parts[0]), scaler.transform(parts[1]), *parts[2:]


def test_sets_that_miss_the_truth_are_seen_through():
    X, X_new, S, _, _, y_new, bad, _ = noisy_digits(0)
    careless = PLLOO().fit(X, S).score(X_new, y_new)
    model = PLLOO(noise="auto").fit(X, S)
    assert model.score(X_new, y_new) > max(0.9, careless + 0.03)
    assert 0.1 < model.noise_ < 0.4
    suspicious = model.missing_ > 0.5
    assert bad[suspicious].mean() > 0.95
    assert suspicious[bad].mean() > 0.3
    assert as_candidates(S).contains(model.transduction_).all()
    told = PLLOO(noise=0.3).fit(X, S)
    assert told.noise_ == 0.3
    assert told.score(X_new, y_new) > 0.92
    mean = told.predict_proba(X_new).max(axis=1).mean()
    assert mean == pytest.approx(told.score(X_new, y_new), abs=0.08)


def test_an_interrupt_leaves_a_usable_model(clusters, monkeypatch):
    X, S, y = clusters
    ask, asked = Loop.confidences_at, []

    def interrupted(self, power):
        asked.append(power)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return ask(self, power)

    monkeypatch.setattr(Loop, "confidences_at", interrupted)
    with pytest.warns(InterruptedFitWarning, match="Interrupted after 3 of 15 rounds"):
        model = PLLOO(**FIXED, tol=0.0).fit(X, S)
    assert model.n_iter_ == 3
    assert model.score(X, y) > 0.9


def test_progress(clusters, capsys):
    X, S, _ = clusters
    PLLOO(**FIXED, verbose=1).fit(X, S)
    assert "PLLOO [" in capsys.readouterr().err


def test_nothing_is_compiled():
    code = (
        "import sys, numpy as np; from skpll import PLLOO; "
        "PLLOO().fit(np.arange(12.0).reshape(6, 2), [{0}, {0, 1}, {0}, {1}, {0, 1}, {1}]); "
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_plain_labels_are_ordinary_classification(clusters):
    X, _, y = clusters
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PLLOO().fit(X, y)
    assert model.score(X, y) > 0.88
    assert model.n_iter_ == 1
    assert get_tags(model).array_api_support


def test_lost_is_solved_as_in_the_documentation():
    if not os.environ.get("SKPLL_DATA"):
        pytest.skip("SKPLL_DATA names no data directory")
    X, S, y = load_dataset("lost", return_X_S_y=True)
    train = np.random.default_rng(5).permutation(len(y))[:900]
    test = np.setdiff1d(np.arange(len(y)), train)
    scaler = StandardScaler().fit(X[train])
    model = PLLOO().fit(scaler.transform(X[train]), S[train])
    accuracy = model.score(scaler.transform(X[test]), y[test])
    assert accuracy > 0.77
    assert (model.transduction_ == y[train]).mean() > 0.88
    assert model.predict_proba(scaler.transform(X[test])).max(axis=1).mean() == pytest.approx(
        accuracy, abs=0.1
    )


def test_the_unit_of_the_features_does_not_matter(clusters):
    X, S, _ = clusters
    usual = PLLOO().fit(X, S)
    for factor in (2.0**-90, 2.0**130):
        model = PLLOO().fit(factor * X, S)
        assert model.search_.trials == usual.search_.trials
        assert_allclose(model.predict_proba(factor * X), usual.predict_proba(X), atol=1e-9)


def test_odd_shapes(clusters):
    X, S, _ = clusters
    assert PLLOO().fit(X[:2], ["a", "b"]).predict(X[:2]).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="groups: pass one group per example"):
        PLLOO().fit(X, S, groups=np.ones((len(X), 2)))


def test_sets_of_a_dictionary_are_held_out_as_a_whole():
    """Rows of a word vouch for each other; without each other they are less sure of themselves."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 8
    X = 0.8 * rng.normal(size=(400, 2)) + 2 * np.column_stack([y % 3, y // 3])
    S = make_partial_labels(y, kind="dictionary", X=X, n_words=30, min_share=0.1, random_state=0)
    by_set = PLLOO().fit(X, S)
    each = PLLOO().fit(X, S, copies=np.arange(len(S)))
    assert by_set.calibrated_by_ == "sets"
    assert each.calibrated_by_ == "rows"
    surer, sure = (m.predict_proba(X).max(axis=1).mean() for m in (each, by_set))
    assert sure < surer - 0.05
    drawn = make_partial_labels(y, p=0.8, r=2, random_state=0)
    assert PLLOO(**FIXED).fit(X, drawn).calibrated_by_ == "rows"


def test_near_copies_of_many_sets_are_named_too():
    """Their features decide the sets, so the temperature is found on sets that were held out."""
    X, S, _ = make_partial_classification(80, 6, 6, p=0.9, r=2, class_sep=1.0, random_state=3)
    rows = np.repeat(np.arange(80), 5)
    copies = X[rows] + 0.02 * np.random.default_rng(0).normal(size=(400, 6))
    with pytest.warns(NearCopyWarning, match="pass copies= to fit"):
        method = PLLOO().fit(copies, S[rows])
    assert method.calibrated_by_ == "sets"


def test_the_share_of_missing_truths_is_that_of_all_rows(clusters):
    X, S, _ = clusters
    weights = np.ones(len(X))
    weights[::5] = 0
    model = PLLOO(**FIXED, noise=0.1).fit(X, S, sample_weight=weights)
    assert_array_equal(np.isnan(model.missing_), weights == 0)
    without = PLLOO(**FIXED).fit(X, S, sample_weight=weights)
    assert_array_equal(without.missing_, np.zeros(len(X)))


@pytest.mark.parametrize("weight", [1e-30, 1e-100, 1e-300])
def test_tiny_weights(clusters, weight):
    X, S, y = clusters
    weights = np.where(np.arange(len(X)) % 5, 1.0, weight)
    model = PLLOO(**FIXED).fit(X, S, sample_weight=weights)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("scale", [1e-25, 1e20])
def test_single_precision_of_unusual_size(clusters, scale):
    X, S, y = clusters
    usual = PLLOO().fit(X, S).score(X, y)
    X = (X * scale).astype(np.float32)
    assert PLLOO().fit(X, S).score(X, y) == pytest.approx(usual, abs=0.02)
    with pytest.raises(ValueError, match=r"X: has values of .*, too large to square"):
        PLLOO().fit(X.astype(np.float64) * 1e170, S)


def test_findings_of_other_data_are_forgotten():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 3)), random.integers(0, 3, 200)
    model = PLLOO().partial_fit(X, [{int(k), int(k + 1) % 3} for k in y], classes=[0, 1, 2])
    assert model.inseparable_ == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[:8], [{int(k)} for k in y[:8]])


def test_few_examples_have_the_confidences_of_their_scores(clusters):
    """There is nothing to hold out: the temperature stays one."""
    X, S, _ = clusters
    rows = np.arange(9)
    model = PLLOO(**FIXED, class_prior=None, set_model=0.0).fit(X[rows], S[rows])
    assert model.temperature_ == 1.0
    block = Block.of(Examples(X[rows], S[rows], np.ones(9)))
    kernel = KernelMap("rbf", 1.0, model._unit)
    ridge = System.of(block, kernel, 100, np.random.RandomState(0)).ridge(0.1)
    loop = begin(ridge, Settings(15, 1e-3, start="convex"))
    list(loop.rounds())
    assert_allclose(model.label_distributions_.data, loop.confidences_at(1.0), atol=1e-8)


@pytest.mark.parametrize("settings", [{"kernel": "rbf"}, {"kernel": "linear"}])
def test_stored_entries_may_repeat(clusters, settings):
    """CSR matrices may hold an entry in parts: rows are equal if their sums are."""
    X, S, _ = clusters
    X = np.round(X * 4) / 4
    once = sparse.csr_array(X)
    parts = sparse.csr_array(
        (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), X.shape
    )
    plain, again = PLLOO(**settings).fit(once, S), PLLOO(**settings).fit(parts, S)
    assert_allclose(again.predict_proba(X), plain.predict_proba(X), atol=1e-9)
