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

    .. math:: &\min_{W, b, y} \tfrac12 \|W\|^2 \\
              &\quad + C \sum_i \max\bigl(0, 1 - [s_{y_i}(x_i)
              - \max_{p \ne y_i} s_p(x_i)]\bigr) \\
              &\text{s.t.}\quad y_i \in S_i,\ l_p \le \#\{i : y_i = p\} \le u_p.

    Model and labels are updated in turn while the regularization constant grows from `C_start`
    times `C` up to `C`: early on, when the model is hardly trained, labels change easily. The
    defaults start from the labels of `PLLOO`, on the features of its kernel; `as_published` is the
    method of the paper.

    Features are not scaled; use ``make_pipeline(StandardScaler(), M3PL())``.

    <<Parameters: margin.model>>
    <<margin.labels>>

    <<Attributes: margin.found>>
    <<margin.stages>>

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
