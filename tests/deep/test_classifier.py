"""The deep classifier as a scikit-learn classifier, on small data and the processor."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import Callback, LRScheduler
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from skpll import CrossFitClassifier, as_candidates
from skpll.deep import DeepPartialLabelClassifier, compose, crop, cutout, flip
from skpll.deep.losses import LOSSES, cross_entropy
from skpll.deep.modules import LeNet, ResNet

SMALL = {"module_params": {"hidden": (32,)}, "max_epochs": 15, "batch_size": 16, "device": "cpu"}

LOADED_BY_SKORCH = pytest.mark.filterwarnings("ignore:You are using `torch.load`:FutureWarning")
"""With versions of PyTorch before 2.6, which warn of how older versions of skorch load a model."""


def small(**parameters):
    return DeepPartialLabelClassifier(**(SMALL | parameters))


@pytest.fixture(scope="module")
def fitted(blobs):
    return small().fit(*blobs[:2])


@pytest.fixture(scope="module")
def blobs():
    """Three clouds of points; every set has the truth and one other label."""
    random = np.random.default_rng(0)
    y = np.tile(np.arange(3), 40)
    X = random.normal(size=(120, 4)) + 6 * np.eye(4)[y]
    other = (y + random.integers(1, 3, size=120)) % 3
    S = as_candidates([{first, second} for first, second in zip(y, other, strict=True)])
    return X, S, y


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"average"}))
def test_every_loss_finds_the_truth(loss, blobs):
    X, S, y = blobs
    params = {"crdpll": {"ramp": 5}, "cavl": {"warm_up": 2}, "pop": {"warm_up": 5}}.get(loss)
    model = small(loss=loss, loss_params=params).fit(X, S)
    assert (model.transduction_ == y).mean() > 0.95
    assert model.score(X, y) > 0.95
    assert S.contains(model.transduction_).all()
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


def test_history_and_number_of_epochs(fitted):
    assert fitted.n_iter_ == len(fitted.history_) == len(fitted.net_.history) == 15
    assert fitted.history_[-1]["train_loss"] < fitted.history_[0]["train_loss"]


def test_same_seed_same_result_and_torch_left_alone(blobs, fitted):
    X, S, _ = blobs
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    again = small().fit(X, S)
    assert torch.equal(torch.rand(1), expected)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    other = small(random_state=1).fit(X, S)
    assert not np.array_equal(other.predict_proba(X), fitted.predict_proba(X))


@LOADED_BY_SKORCH
def test_pickle_and_clone(blobs, fitted):
    X, S, _ = blobs
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    again.partial_fit(X, S)
    assert not hasattr(clone(fitted), "net_")


@LOADED_BY_SKORCH
def test_partial_fit_goes_on_after_fit_and_alone(blobs, fitted):
    X, S, y = blobs
    model = pickle.loads(pickle.dumps(fitted)).partial_fit(X[::2], S[::2])
    assert model.n_epochs_seen_ == 16
    assert len(model.transduction_) == 60
    assert model.score(X, y) > 0.95
    stream = small(batch_size=10)
    for _ in range(10):
        for part in (slice(0, None, 2), slice(1, None, 2)):
            stream.partial_fit(X[part], S[part], classes=[0, 1, 2])
    assert stream.score(X, y) > 0.95
    assert stream.n_epochs_seen_ == 20
    with pytest.raises(ValueError, match="not one of the classes"):
        model.partial_fit(X[:2], [{0, 7}, {1}])


def test_grid_search_in_a_pipeline(blobs):
    X, S, _ = blobs
    model = make_pipeline(StandardScaler(), small(max_epochs=8))
    grid = {"deeppartiallabelclassifier__loss": ["cc", "proden"]}
    search = GridSearchCV(model, grid, cv=2).fit(X, S)
    assert search.best_score_ > 0.8


def test_cross_fitting_a_network(blobs):
    X, S, y = blobs
    model = CrossFitClassifier(small(max_epochs=5), cv=2, max_iter=2).fit(X, S)
    assert (model.transduction_ == y).mean() > 0.95


def test_weights_and_examples_without_one(blobs):
    X, S, y = blobs
    weights = np.ones(120)
    weights[::4] = 0
    model = small().fit(X, S, sample_weight=weights)
    assert (model.transduction_ == y).mean() > 0.95
    contradicting = as_candidates([0] * 10 + [1] * 10)
    same = np.ones((20, 2))
    heavy = np.repeat([10.0, 1.0], 10)
    model = small(module="linear", module_params=None, loss="cc").fit(same, contradicting, heavy)
    assert (model.predict(same) == 0).all()


def test_evidence_gives_the_first_confidences(blobs):
    X, S, y = blobs
    truth = S.to_matrix().toarray() * 0.05
    truth[np.arange(120), y] = 0.95
    model = small(loss="average", max_epochs=20).fit(X, S.with_weights(truth))
    assert (model.transduction_ == y).mean() == 1.0


def test_arrays_of_pictures_tensors_and_datasets_are_alike(digits):
    X, S, _ = digits
    X, S = X[:100].astype(np.float32), S[:100]
    pictures = torch.tensor(X).reshape(-1, 1, 8, 8)
    model = small(max_epochs=2)
    found = [
        clone(model).fit(data, S).predict_proba(data)
        for data in (X, X.reshape(-1, 8, 8), torch.tensor(X), pictures)
    ]
    dataset = TensorDataset(torch.tensor(X), torch.zeros(100))
    found.append(clone(model).fit(dataset, S).predict_proba(dataset))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-5)


class Lazy(Dataset):
    """Pictures that are made when they are asked for."""

    def __len__(self):
        return 120

    def __getitem__(self, number):
        return torch.full((4,), float(number % 3))


def test_a_dataset_with_weights(blobs):
    S = as_candidates([{number % 3, (number + 1) % 3} for number in range(120)])
    weights = np.r_[np.zeros(30), np.ones(90)]
    model = small(module="linear", module_params=None).fit(Lazy(), S, sample_weight=weights)
    assert len(model.transduction_) == 120
    assert model.score(Lazy(), S) > 0.6


@pytest.mark.parametrize("module", ["linear", "mlp", "lenet", "resnet18"])
def test_networks_by_name(module):
    X = np.random.default_rng(0).normal(size=(6, 784))
    params = {"widths": (4, 8)} if module == "resnet18" else None
    model = small(module=module, module_params=params, max_epochs=1)
    model.fit(X, [{"a"}, {"b"}, {"a", "b"}] * 2)
    assert model.predict_proba(X).shape == (6, 2)
    assert model.embed(X).shape[0] == 6


@pytest.mark.parametrize("shape", [(28, 28), (3, 32, 32), (3072,)])
@pytest.mark.parametrize(
    ("module", "params"),
    [("resnet18", {"widths": (4, 8)}), ("lenet", {"batch_norm": True, "hidden_norm": True})],
)
def test_small_and_colored_pictures(module, params, shape):
    X = np.random.default_rng(0).normal(size=(4, *shape)).astype(np.float32)
    model = small(module=module, module_params=params, max_epochs=1, batch_size=4)
    assert model.fit(X, [{"a"}, {"b"}, {"a", "b"}, {"b"}]).predict_proba(X).shape == (4, 2)


def test_normalized_hidden_layers_of_lenet():
    layers = [type(layer) for layer in LeNet((784,), 10, hidden_norm=True).body]
    assert layers.count(nn.BatchNorm1d) == 2
    assert nn.BatchNorm2d not in layers


def test_resnet18_has_as_many_weights_as_the_published_one():
    # 11.17 million for ten classes of 32 × 32 pictures in color.
    n_weights = sum(weight.numel() for weight in ResNet((3, 32, 32), 10).parameters())
    assert n_weights == 11_173_962


def test_a_network_of_ones_own(blobs):
    X, S, y = blobs
    own = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    before = own[0].weight.detach().clone()
    model = small(module=own, module_params=None).fit(X, S)
    assert model.score(X, y) > 0.95
    assert torch.equal(own[0].weight, before)
    of_class = small(module=nn.Linear, module_params={"in_features": 4, "out_features": 3})
    assert of_class.fit(X, S).score(X, y) > 0.9
    with pytest.raises(AttributeError, match="has no method `features`"):
        of_class.embed(X)
    with pytest.raises(ValueError, match=r"returns shape \(1, 5\) .* where \(1, 3\)"):
        small(module=nn.Linear, module_params={"in_features": 4, "out_features": 5}).fit(X, S)


def test_a_loss_of_ones_own(blobs):
    X, S, y = blobs

    def mine(scores, batch, factor):
        return factor * cross_entropy(scores, batch.confidences), None

    model = small(loss=mine, loss_params={"factor": 2.0}).fit(X, S)
    twice = small(loss="average").fit(X, S)
    assert model.history_[0]["train_loss"] > 1.5 * twice.history_[0]["train_loss"]


class Watch(Callback):
    """Keep the learning rate of each epoch."""

    def on_train_begin(self, net, **others):
        self.rates = []

    def on_epoch_end(self, net, **others):
        self.rates.append(net.optimizer_.param_groups[0]["lr"])


class Stop(Callback):
    """Stop in the third epoch."""

    def on_epoch_end(self, net, **others):
        if len(net.history) == 3:
            raise KeyboardInterrupt


def test_callbacks_of_skorch(blobs):
    X, S, _ = blobs
    watch = Watch()
    schedule = LRScheduler("MultiStepLR", milestones=[2], gamma=0.1)
    small(max_epochs=4, callbacks=[watch, schedule]).fit(X, S)
    np.testing.assert_allclose(watch.rates, [0.05, 0.05, 0.005, 0.005])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small(callbacks=[Stop()]).fit(X, S).n_iter_ == 3


def test_early_stopping_on_held_out_sets(blobs):
    X, S, _ = blobs
    by_chance = as_candidates(np.random.default_rng(0).integers(0, 3, size=120))
    model = small(max_epochs=200, early_stopping=True, n_iter_no_change=3).fit(X, by_chance)
    losses = [record["valid_loss"] for record in model.history_]
    assert model.n_iter_ < 200
    assert np.argmin(losses) < len(losses) - 2
    assert len(model.transduction_) == 120
    model.partial_fit(X, S)
    with pytest.raises(ValueError, match="validation_fraction"):
        small(early_stopping=True, validation_fraction=0.001).fit(X, S)


def test_read_only_rows(blobs, fitted):
    X, S, _ = blobs
    locked = X.astype(np.float32)
    locked.flags.writeable = False
    np.testing.assert_array_equal(small().fit(locked, S).predict_proba(X), fitted.predict_proba(X))


def test_mixed_precision(blobs):
    X, S, y = blobs
    assert small(mixed_precision=True).fit(X, S).score(X, y) > 0.95


def test_augmentations_keep_shape_and_change_pictures():
    torch.manual_seed(0)
    X = torch.rand(50, 1, 8, 8) + 0.1
    shifted, mirrored, cut = crop(2)(X), flip()(X), cutout(4)(X)
    assert shifted.shape == mirrored.shape == cut.shape == X.shape
    assert not torch.equal(shifted, X)
    same = (mirrored == X).flatten(1).all(dim=1)
    turned = (mirrored == X.flip(-1)).flatten(1).all(dim=1)
    assert (same | turned).all()
    assert 10 < int(turned.sum()) < 40
    holes = (cut == 0).flatten(1).sum(dim=1)
    assert 4 <= int(holes.min())
    assert int(holes.max()) == 16
    assert torch.equal(cut[cut != 0], X[cut != 0])
    assert compose(crop(1), flip())(X.flatten(1)).shape == X.shape


def test_a_shift_is_a_shift():
    X = torch.zeros(20, 1, 9, 9)
    X[:, 0, 4, 4] = 1.0
    moved = crop(2)(X)
    places = moved.flatten(2).argmax(dim=2).squeeze()
    assert (moved.flatten(1).sum(dim=1) == 1).all()
    rows, columns = places // 9, places % 9
    assert set(rows.tolist()) <= set(range(2, 7))
    assert len(set(rows.tolist())) > 2
    assert set(columns.tolist()) <= set(range(2, 7))


def test_training_with_augmented_views(digits):
    X, S, y = digits
    model = small(
        loss="crdpll", loss_params={"ramp": 5}, augment=crop(1), module_params={"hidden": (64,)}
    )
    assert model.fit(X, S).score(X, y) > 0.85


def test_bad_input_is_named(blobs):
    X, S, _ = blobs
    with pytest.raises(ValueError, match=r"X: shape .* has less than two dimensions"):
        small().fit(torch.zeros(120), S)
    with pytest.raises(ValueError, match="are no pictures"):
        small(module="lenet", module_params=None).fit(np.zeros((120, 5)), S)
    with pytest.raises(ValueError, match="4 × 4 pixels are too small"):
        small(module="lenet", module_params=None).fit(np.zeros((120, 16)), S)
    with pytest.raises(ValueError, match="loss"):
        small(loss="nothing").fit(X, S)
