"""M3PL: maximum-margin partial-label learning."""

from __future__ import annotations

from typing import Any

from ._estimator import AlternatingMarginClassifier, ClassPrior, Init

__all__ = ["M3PL"]


class M3PL(AlternatingMarginClassifier):
    r"""Maximum-margin partial-label learning (M3PL).

    Use it for a linear model that decides each training label, with known class sizes.

    Finds a label for each training example and a multi-class support vector machine that keeps
    these labels apart from all others with a large margin:

    .. math:: \min_{W, b, y} \tfrac12 \|W\|^2
              + C \sum_i \max\bigl(0, 1 - [s_{y_i}(x_i) - \max_{p \ne y_i} s_p(x_i)]\bigr)
              \quad\text{s.t.}\quad y_i \in S_i,\ l_p \le \#\{i : y_i = p\} \le u_p.

    Machine and labels are updated in turn while the regularization constant grows from `C_start`
    times `C` up to `C`: early on, when the model is hardly trained, labels change easily.

    Features are not scaled; use ``make_pipeline(StandardScaler(), M3PL())``. Kernels come the same
    way: ``make_pipeline(StandardScaler(), Nystroem(), M3PL())``.

    Parameters
    ----------
    C : float, default=1.0
        The final regularization constant, C_max in the paper.
    C_start : float, default=1e-5
        Where C begins, as a share of `C`.
    C_growth : float, default=0.5
        Each C is larger than the one before by this share, Δ in the paper.
    class_prior : {"neighbors", "candidates", "rounded"}, dict, array or None, default="candidates"
        How many training examples each label takes. ``"candidates"``: what is expected if each
        candidate of an example were equally likely, rounded down and up, which can always be
        met; ``"neighbors"``: halfway between that and what the confidences of `IPAL` add up to;
        ``"rounded"``: one whole number for each label, as in the paper; a mapping from label
        to share, or q numbers: a share of the examples for each label; None: any number.
    prior_slack : float, default=0.0
        By which share of the expected number the bounds give.
    prior_price : float or None, default=None
        The loss at which an example may break the class prior: it takes a label that the model
        finds worse for the sake of the prior only if it is worse by no more than about this. None:
        the prior is binding, as in the paper.
    init : {"ridge", "neighbors", "uniform"}, default="ridge"
        Where the first labels come from: a ridge regression of the candidates on the features, the
        candidates of the nearest neighbours, or nowhere, as in the paper (all candidates alike).
    fit_intercept : bool, default=True
        Whether the model has intercepts. They are regularized like the other weights.
    tol : float, default=1e-4
        A stage ends when a pass over model and labels lowers the objective by less than this
        share of it; δ in the paper, where it is not a share.
    max_passes : int, default=20
        At most so many passes over model and labels in a stage.
    solver_tol : float, default=1e-3
        Relative duality gap to which the model is trained in every pass; the final model is
        trained to a tenth of it, and to the precision of the arithmetic where that is cheap.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    coef_ : array of shape (q, d)
        A weight vector for each class.
    intercept_ : array of shape (q,)
        The intercepts; minus infinity for a class that is nobody's candidate.
    transduction_ : array of shape (n,)
        The label decided for each training example: the candidate that the final model scores
        highest.
    training_labels_ : array of shape (n,)
        The label that the final model was trained with. These heed the class prior, and differ
        from `transduction_` where that asks for a label which the model contradicts.
    label_distributions_ : sparse array of shape (n, q)
        The confidence in each candidate: a softmax of their margins.
    n_iter_ : int
        Number of stages.
    history_ : list of dict
        A record of each stage: ``C``, ``pace``, ``objective``, ``admitted`` (share of the examples
        with a weight), ``mean_weight``, ``label_changes``, ``passes``, ``trace`` (the objective
        after every update) and ``seconds``.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.

    References
    ----------
    F. Yu, M.-L. Zhang: Maximum margin partial label learning. Machine Learning 106, 2017.

    Examples
    --------
    >>> from skpll import M3PL
    >>> from skpll.datasets import load_dataset, make_partial_labels
    >>> X, _, y = load_dataset("iris", return_X_S_y=True)
    >>> S = make_partial_labels(y, p=0.8, r=1, random_state=0)
    >>> bool(M3PL(C=10).fit(X, S).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_start: float = 1e-5,
        C_growth: float = 0.5,
        class_prior: ClassPrior = "candidates",
        prior_slack: float = 0.0,
        prior_price: float | None = None,
        init: Init = "ridge",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_passes: int = 20,
        solver_tol: float = 1e-3,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.C_start = C_start
        self.C_growth = C_growth
        self.class_prior = class_prior
        self.prior_slack = prior_slack
        self.prior_price = prior_price
        self.init = init
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_passes = max_passes
        self.solver_tol = solver_tol
        self.verbose = verbose

    def _pace(self, X: Any) -> None:
        del X
