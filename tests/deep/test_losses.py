"""Each loss: gradients against finite differences, and a case with a known optimum."""

import pytest
import torch

from skpll.deep.losses import LOSSES, Batch, cross_entropy, within

CANDIDATES = torch.tensor([[True, True, False, False], [True, False, True, True], [True] * 4])


def batch_of(candidates=CANDIDATES, epoch=0.0, confidences=None, views=None, half=None):
    if confidences is None:
        confidences = candidates.double() / candidates.sum(dim=1, keepdim=True)
    return Batch(candidates, confidences, torch.tensor(float(epoch)), views, half)


def scores_of(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("name", ["average", "cc", "proden", "pop"])
def test_gradients_equal_finite_differences(name):
    assert torch.autograd.gradcheck(
        lambda scores: LOSSES[name].function(scores, batch_of())[0], scores_of(3, 4)
    )


def test_gradient_of_crdpll_equals_finite_differences_with_views():
    def loss(scores, views):
        return LOSSES["crdpll"].function(scores, batch_of(epoch=50, views=views))[0]

    assert torch.autograd.gradcheck(loss, (scores_of(3, 4), scores_of(2, 3, 4)))


def test_gradient_of_cross_equals_finite_differences():
    half = torch.tensor([True, False, True])
    assert torch.autograd.gradcheck(
        lambda scores: LOSSES["cross"].function(scores, batch_of(half=half))[0], scores_of(3, 3, 4)
    )


def weights_at(name, scores):
    """The weights that the loss takes for constants, at these scores."""
    if name == "rc":
        return within(scores, CANDIDATES)
    values = (scores.detach() - 1).abs() * scores.detach()
    best = values.masked_fill(~CANDIDATES, -torch.inf).argmax(dim=1)
    return torch.nn.functional.one_hot(best, 4).double()


@pytest.mark.parametrize("name", ["rc", "cavl"])
def test_weights_from_the_scores_are_constants_in_the_gradient(name):
    scores = scores_of(3, 4)
    fixed = weights_at(name, scores)
    losses = LOSSES[name].function(scores, batch_of(epoch=20))[0]
    expected = cross_entropy(scores, fixed)
    torch.testing.assert_close(losses, expected)
    found, wanted = (torch.autograd.grad(loss.sum(), scores)[0] for loss in (losses, expected))
    torch.testing.assert_close(found, wanted)
    assert torch.autograd.gradcheck(lambda other: cross_entropy(other, fixed), scores)


def test_gradient_of_lws_equals_finite_differences_at_constant_weights():
    scores, beta = scores_of(3, 4), 2.0
    outside, inside = within(scores, ~CANDIDATES), batch_of().confidences

    def fixed(other):
        losses = inside * torch.sigmoid(-other) + beta * outside * torch.sigmoid(other)
        return losses.sum(dim=1)

    losses = LOSSES["lws"].function(scores, batch_of(), beta=beta)[0]
    found, wanted = (torch.autograd.grad(loss.sum(), scores)[0] for loss in (losses, fixed(scores)))
    torch.testing.assert_close(found, wanted)
    assert torch.autograd.gradcheck(fixed, scores)


def descend(name, candidates, epoch=0.0, confidences=None, steps=300, **params):
    """Minimize the mean loss over one vector of scores that all examples share."""
    scores = torch.zeros(candidates.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([scores], lr=3.0)
    for _ in range(steps):
        batch = batch_of(candidates, epoch, confidences)
        shared = scores.expand(len(candidates), -1)
        losses, kept = LOSSES[name].function(shared, batch, **params)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        confidences = confidences if kept is None else kept
    return torch.softmax(scores.detach(), dim=0)


def sets(*rows):
    return torch.tensor([[label in row for label in range(3)] for row in rows])


def test_optimum_of_average_is_the_mean_share():
    found = descend("average", sets({0}, {0, 1}, {1, 2}, {0, 1, 2}))
    shares = torch.tensor([1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3]) / 4
    torch.testing.assert_close(found, shares.double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "epoch"), [("cc", 0), ("rc", 1), ("proden", 1)])
def test_optimum_is_the_most_likely_mixture(name, epoch):
    # Sets {0}, {1}, {0, 1}, {2}, {2}: EM's fixed point shares {0, 1} evenly between 0 and 1.
    found = descend(name, sets({0}, {1}, {0, 1}, {2}, {2}), epoch)
    torch.testing.assert_close(found, torch.tensor([0.3, 0.3, 0.4]).double(), atol=1e-4, rtol=0)


def test_rc_begins_with_the_evidence():
    evidence = torch.tensor([[0.9, 0.1, 0.0]], dtype=torch.float64)
    found = descend("rc", sets({0, 1}), epoch=0, confidences=evidence)
    assert found[0] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("name", ["lws", "cavl", "pop", "crdpll"])
def test_optimum_is_the_label_that_all_sets_share(name):
    params = {"ramp": 1} if name == "crdpll" else {}
    found = descend(name, sets({0, 1}, {0, 2}, {0, 1}, {0, 2}), epoch=30, **params)
    assert found[0] > 0.99


def test_pop_takes_candidates_out_for_good():
    scores = torch.tensor([[4.0, 0.0, 0.0]])
    everything = torch.tensor([[True, True, False]])
    even = torch.tensor([[0.5, 0.5, 0.0]])
    early = LOSSES["pop"].function(scores, batch_of(everything, 9, even))[1]
    late = LOSSES["pop"].function(scores, batch_of(everything, 10, even))[1]
    again = LOSSES["pop"].function(-scores, batch_of(everything, 11, late))[1]
    assert (early > 0).tolist() == [[True, True, False]]
    assert late.tolist() == again.tolist() == [[1.0, 0.0, 0.0]]


def test_crdpll_ramps_consistency_up():
    scores, views = scores_of(3, 4), scores_of(2, 3, 4)
    at = {
        epoch: LOSSES["crdpll"].function(scores, batch_of(epoch=epoch, views=views))[0]
        for epoch in (0, 50, 100, 200)
    }
    torch.testing.assert_close(at[100] - at[0], 2 * (at[50] - at[0]))
    torch.testing.assert_close(at[200], at[100])


def test_cross_takes_weights_from_the_other_half():
    scores = torch.zeros(3, 2, 3)
    scores[1, :, 0], scores[2, :, 1] = 5.0, 5.0
    everything, half = torch.ones(2, 3, dtype=torch.bool), torch.tensor([False, True])
    kept = LOSSES["cross"].function(scores, batch_of(everything, half=half))[1]
    assert kept.argmax(dim=1).tolist() == [1, 0]


def test_within_is_zero_in_rows_without_such_a_label():
    assert within(torch.zeros(1, 3), torch.zeros(1, 3, dtype=torch.bool)).tolist() == [[0.0] * 3]
