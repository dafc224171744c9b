"""Make the tables of this example: digits labelled by three annotators of different skill.

The images are scikit-learn's 1797 handwritten digits, 64 grey values each. Three simulated
annotators label them: the careful one is right in 95 of 100 cases, the quick one in 80, the novice
in 60; a wrong answer is most often a digit that looks similar. Every label that a digit got
is a candidate. Now and then all three are wrong: then the truth is not among them.

    python make_table.py

writes `digits.csv` (one row a digit, with a column of candidates), `votes.csv` (one row a vote) and
`truth.csv` (the true digits, to check the result).
"""

import csv
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SKILLS = {"careful": 0.95, "quick": 0.80, "novice": 0.60}


def main(folder: Path = Path(), seed: int = 0) -> None:
    digits = load_digits()
    names = [f"digit-{number:04d}" for number in range(len(digits.target))]
    votes = simulate_votes(digits.data, digits.target, np.random.default_rng(seed))
    candidates = [
        "|".join(map(str, sorted(set(answers)))) for answers in zip(*votes.values(), strict=True)
    ]
    write(
        folder / "digits.csv",
        ["name", *digits.feature_names, "candidates"],
        zip(names, digits.data.astype(int).tolist(), candidates, strict=True),
    )
    write(
        folder / "votes.csv",
        ["item", "annotator", "label"],
        ((name, who, votes[who][row]) for row, name in enumerate(names) for who in votes),
    )
    write(folder / "truth.csv", ["name", "digit"], zip(names, digits.target.tolist(), strict=True))


def simulate_votes(X, y, random) -> dict[str, list[int]]:
    """Let each annotator answer; wrong answers follow how similar the digits look."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    similar = cross_val_predict(model, X, y, method="predict_proba") + 0.01
    similar[np.arange(len(y)), y] = 0
    similar /= similar.sum(axis=1, keepdims=True)
    return {
        who: [
            int(digit if random.random() < skill else random.choice(10, p=shares))
            for digit, shares in zip(y, similar, strict=True)
        ]
        for who, skill in SKILLS.items()
    }


def write(path: Path, header, rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for row in rows:
            writer.writerow(
                cell for part in row for cell in (part if isinstance(part, list) else [part])
            )


if __name__ == "__main__":
    main()
