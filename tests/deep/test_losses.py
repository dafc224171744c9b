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


def descend(name, candidates, epoch=0.0, confidences=None, start=(0.0, 0.0, 0.0), **params):
    """Minimize the mean loss over one vector of scores that all examples share.

    Returns its softmax and the mean loss there.
    """
    scores = torch.tensor(start[: candidates.shape[1]], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([scores], lr=1.0)
    for _ in range(600):
        batch = batch_of(candidates, epoch, confidences)
        shared = scores.expand(len(candidates), -1)
        losses, kept = LOSSES[name].function(shared, batch, **params)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        confidences = confidences if kept is None else kept
    return torch.softmax(scores.detach(), dim=0), losses.mean().item()


def sets(*rows, n_classes=3):
    return torch.tensor([[label in row for label in range(n_classes)] for row in rows])


def assert_near(found, wanted, atol=1e-4):
    torch.testing.assert_close(found, torch.tensor(wanted).double(), atol=atol, rtol=0)


def test_optimum_of_average_is_the_mean_share():
    found, _ = descend("average", sets({0}, {0, 1}, {1, 2}, {0, 1, 2}))
    assert_near(found, [(1 + 1 / 2 + 1 / 3) / 4, (1 / 2 + 1 / 2 + 1 / 3) / 4, (1 / 2 + 1 / 3) / 4])


@pytest.mark.parametrize(("name", "epoch"), [("cc", 0), ("rc", 1), ("proden", 1)])
def test_optimum_is_the_most_likely_mixture(name, epoch):
    # Three {0}, one {1}, two {0, 1} and two {2}: the ambiguous ones are shared 3 : 1.
    rows = [{0}] * 3 + [{1}] + [{0, 1}] * 2 + [{2}] * 2
    found, _ = descend(name, sets(*rows), epoch)
    assert_near(found, [9 / 16, 3 / 16, 1 / 4])


@pytest.mark.parametrize(("beta", "lowest"), [(1.0, 0.25 + 0.25), (4.0, 0.75 + 0.25)])
def test_optimum_of_lws_takes_the_smaller_loss_of_each_label(beta, lowest):
    # Label j costs a_j ψ(f_j) + β b_j ψ(−f_j), a = (3/4, 1/4), b = (1/4, 3/4): at best the smaller
    # of a_j and β b_j, with f_j at one end or the other.
    _, found = descend("lws", sets({0}, {0}, {0}, {1}, n_classes=2), beta=beta)
    assert found == pytest.approx(lowest, abs=0.02)


def test_cavl_takes_the_largest_activation_value_not_the_largest_score():
    # |f − 1| f is .25 at .5 and .09 at .9: the first label is taken. In the first epochs ambiguous
    # examples are shared evenly.
    rows = sets({0, 1}, {0, 1}, {1}, {2})
    early, _ = descend("cavl", rows, epoch=0, start=(0.5, 0.9, 0.0))
    assert_near(early, [1 / 4, 1 / 2, 1 / 4])
    scores = torch.tensor([[0.5, 0.9, 0.0]], dtype=torch.float64)
    late = LOSSES["cavl"].function(scores, batch_of(sets({0, 1}), epoch=5))[0]
    torch.testing.assert_close(late, -torch.log_softmax(scores, dim=1)[:, 0])
    found, _ = descend("cavl", sets({0, 1}, {0, 1}, {0, 1}, {2}), epoch=5, start=(2.0, 0.5, 0.0))
    assert_near(found, [3 / 4, 0.0, 1 / 4], atol=2e-2)


def test_optimum_of_pop_is_that_of_the_purified_sets():
    # PRODEN stays at 8 : 1; a margin of 7/9 takes label 1 out of {0, 1}, which makes it 9 : 1.
    rows = sets(*[{0}] * 8, {1}, {0, 1}, n_classes=2)
    before, _ = descend("pop", rows, epoch=5)
    assert_near(before, [8 / 9, 1 / 9])
    after, _ = descend("pop", rows, epoch=100)
    assert_near(after, [9 / 10, 1 / 10])


@pytest.mark.parametrize("epoch", [0, 100])
def test_optimum_of_crdpll_is_the_share_of_each_label(epoch):
    # With two labels and no ambiguity both of its parts are the cross entropy.
    found, _ = descend("crdpll", sets({0}, {0}, {0}, {1}, n_classes=2), epoch=epoch)
    assert_near(found, [3 / 4, 1 / 4])


def test_optimum_of_crdpll_leaves_no_probability_outside_the_sets():
    found, lowest = descend("crdpll", sets({0, 1}, {0, 1}), epoch=100, start=(0.0, 1.0, 0.5))
    assert float(found[2]) < 5e-3
    assert lowest == pytest.approx(0, abs=1e-2)


def test_target_of_crdpll_is_the_geometric_mean_of_the_views():
    first, second = torch.tensor([[0.8, 0.1, 0.1]]), torch.tensor([[0.2, 0.4, 0.4]])
    batch = batch_of(sets({0, 1}), views=second.log().unsqueeze(0))
    kept = LOSSES["crdpll"].function(first.log(), batch)[1]
    torch.testing.assert_close(kept, torch.tensor([[2 / 3, 1 / 3, 0.0]]))


def test_optimum_of_cross_has_the_weights_of_the_other_half():
    rows = sets({0}, {0}, {0}, {1}, {0, 1}, {0}, {1}, {1}, {1}, n_classes=2)
    half = torch.tensor([False] * 5 + [True] * 4)
    scores = torch.zeros(3, 1, 2, dtype=torch.float64, requires_grad=True)
    optimizer, kept = torch.optim.SGD([scores], lr=1.0), None
    for _ in range(600):
        batch = batch_of(rows, confidences=kept, half=half)
        losses, kept = LOSSES["cross"].function(scores.expand(-1, len(rows), -1), batch)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
    found = torch.softmax(scores.detach(), dim=-1)[:, 0, 0]
    # The second half has label 0 with 1/4, which is its weight in {0, 1} of the first half.
    assert_near(found, [(4 + 1 / 4) / 9, (3 + 1 / 4) / 5, 1 / 4])


def test_rc_begins_with_the_evidence():
    evidence = torch.tensor([[0.9, 0.1, 0.0]], dtype=torch.float64)
    found, _ = descend("rc", sets({0, 1}), epoch=0, confidences=evidence)
    assert_near(found, [0.9, 0.1, 0.0], atol=5e-3)


@pytest.mark.parametrize("name", ["lws", "cavl", "pop", "crdpll"])
def test_optimum_is_the_label_that_all_sets_share(name):
    params = {"ramp": 1} if name == "crdpll" else {}
    found, _ = descend(name, sets({0, 1}, {0, 2}, {0, 1}, {0, 2}), epoch=30, **params)
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
