"""M3PL: maximum-margin partial-label learning."""

from __future__ import annotations

from typing import Any, Self

from ._estimator import AS_PUBLISHED, AlternatingMarginClassifier

__all__ = ["M3PL"]


class M3PL(AlternatingMarginClassifier):
    r"""Maximum-margin partial-label learning (M3PL).

    Use it for a maximum-margin model that decides each training label, with known class sizes.

    Finds a label for each training example and a multi-class support vector machine that keeps
    these labels apart from all others with a large margin:

    .. math:: \min_{W, b, y} \tfrac12 \|W\|^2
              + C \sum_i \max\bigl(0, 1 - [s_{y_i}(x_i) - \max_{p \ne y_i} s_p(x_i)]\bigr)
              \quad\text{s.t.}\quad y_i \in S_i,\ l_p \le \#\{i : y_i = p\} \le u_p.

    Model and labels are updated in turn while the regularization constant grows from `C_start`
    times `C` up to `C`: early on, when the model is hardly trained, labels change easily. The
    defaults start from the labels of `PLLOO`, on the features of its kernel; `as_published` is the
    method of the paper.

    Features are not scaled; use ``make_pipeline(StandardScaler(), M3PL())``.

    Parameters
    ----------
    C : float, default=10.0
        The final regularization constant, C_max in the paper.
    kernel : {"auto", "laplacian", "rbf", "linear"}, default="auto"
        What scores are linear in: the features of a kernel, ``exp(-gamma d)`` ("laplacian") or
        ``exp(-gamma d²)`` ("rbf") of the distance d, or the features themselves. ``"auto"`` is
        the kernel that `PLLOO` chooses; for sparse features, ``"linear"``.
    gamma : float or "auto", default="auto"
        How fast the kernel falls with the distance, which is measured in units of the median
        distance between two examples. ``"auto"`` leaves it to `PLLOO`.
    n_landmarks : int, default=500
        Number of random examples that all others are compared with (Nyström).
    C_start : float, default=0.1
        Where C begins, as a share of `C`.
    C_growth : float, default=0.5
        Each C is larger than the one before by this share, Δ in the paper.
    class_prior : {"leave_one_out", "candidates", "rounded"}, dict, array or None
        How many training examples each label takes. ``"leave_one_out"`` (the default): what the
        confidences of `PLLOO` add up to; ``"candidates"``: what is expected if each candidate
        of an example were equally likely, rounded down and up, which can always be met;
        ``"rounded"``: one whole number for each label, as in the paper; a mapping from label
        to share, or q numbers: a share of the examples for each label; None: any number.
    prior_slack : float, default=0.0
        The share of the expected number by which the bounds are wider.
    prior_price : float or None, default=0.2
        The loss at which an example may break the class prior: it takes a label that the model
        finds worse for the sake of the prior only if it is worse by no more than about this. None:
        the prior is binding, as in the paper.
    init : {"leave_one_out", "ridge", "uniform"}, default="leave_one_out"
        Where the first labels come from: from `PLLOO`, a ridge regression of the candidates on the
        features, or nowhere, as in the paper (all candidates alike).
    tol : float, default=1e-4
        A stage ends when a pass over model and labels lowers the objective by less than this
        share of it; δ in the paper, where it is not a share.
    max_passes : int, default=20
        Largest number of passes over model and labels in a stage.
    solver_tol : float, default=1e-3
        Relative duality gap to which the model is trained in every pass; the final model is
        trained to a tenth of it, and to the precision of the arithmetic where that is cheap.
        From 2²² scores on (examples times classes) it is 0.1 in every pass, and this at the end.
    random_state : int, RandomState or None, default=0
        Seed of the landmarks and of `PLLOO`.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    coef_ : array of shape (q, d), or (q, m) with a kernel
        A weight vector for each class, in the space of the features or of the kernel's.
    intercept_ : array of shape (q,)
        The intercepts; minus infinity for a class that is no candidate of any example.
    kernel_ : str
        The kernel in use.
    transduction_ : array of shape (n,)
        The label decided for each training example: the candidate that the final model scores
        highest.
    training_labels_ : array of shape (n,)
        The label that the final model was trained with. These follow the class prior, and differ
        from `transduction_` where that asks for a label which the model contradicts.
    label_distributions_ : sparse array of shape (n, q)
        The confidence in each candidate: a softmax of their margins.
    n_iter_ : int
        Number of stages. From 2²² scores on, stages between are left out once one has changed less
        than a hundredth of the labels, where the first ones are PL-LOO's.
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

    @classmethod
    def as_published(cls, C: float = 1.0, **parameters: Any) -> Self:
        """Return the classifier that is nearest to the published algorithm.

        Scores are linear in the features, the first labels are arbitrary, C grows from a
        hundred-thousandth of its final value, and each label takes a whole number of examples.

        Parameters
        ----------
        C : float, default=1.0
            The final regularization constant.
        **parameters : object
            Other parameters, which override these.
        """
        return cls(C, **{**AS_PUBLISHED, **parameters})

    def _pacing(self) -> None:
        """Admit all examples at once."""
