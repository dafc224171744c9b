"""Tasks of Label Studio: its JSON export as a table of votes or candidates, and the way back.

An export is a list of tasks. Each has its ``data``, the ``annotations`` of people and the
``predictions`` of models; both hold results, of which those of the type ``choices`` are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from typing import NamedTuple

from skpll._labels import as_objects

from ._extra import Plain, listed, note, pa
from .blocks import kind_of
from .labels import VOTE_COLUMNS
from .learning import Learned
from .reading import Array, Table, Tasks, arrow_column, check_names, text_of

TASK_ID, CANDIDATES, TRUTH = "task_id", "candidates", "ground_truth"
"""The columns of a table of tasks beside their data."""

_PARTS = ("annotations", "completions", "predictions")  # the second in exports of old versions
_LOOKED_AT = 1000  # cells that say whether a column is text or pictures


class _Choices(NamedTuple):
    """The labels that someone chose for a task in one tag: a vote, the truth or a prediction."""

    task: int
    kind: str
    who: str
    labels: list[str]
    control: tuple[str, str]


def are_tasks(rows: Sequence[Plain]) -> bool:
    """Return whether JSON objects are tasks of Label Studio."""
    return all(isinstance(row.get("data"), dict) for row in rows)


def read_tasks(tasks: Sequence[Plain], where: object) -> Table:
    """Make a table of tasks.

    Annotations with one choice each are votes. If some have several, or if some tasks have
    predictions only, the choices of a task are its candidates. Skipped annotations don't count;
    those marked as ground truth are known labels, not votes.

    Parameters
    ----------
    tasks : list of dict
        The tasks.
    where : object
        What to call them in messages.

    Returns
    -------
    Table
        The data of the tasks, with the columns ``task_id`` and, where there are any, ``candidates``
        and ``ground_truth``.
    """
    given = list(_choices(tasks))
    control = _control(given)
    given = [choices for choices in given if choices.control[0] == control[0]]
    ids = [task.get("id", place) for place, task in enumerate(tasks, start=1)]
    votes = [choices for choices in given if choices.kind == "vote"]
    voted = {choices.task for choices in votes}
    truth: list[str | None] = [None] * len(tasks)
    candidates: list[dict[str, None]] = [{} for _ in tasks]
    for choices in given:
        if choices.kind == "truth":
            truth[choices.task] = truth[choices.task] or choices.labels[0]
        elif choices.kind == ("vote" if choices.task in voted else "prediction"):
            candidates[choices.task] |= dict.fromkeys(choices.labels)
    by_models = sum(map(bool, candidates)) - len(voted)
    if votes and by_models:
        note(f"tasks with predictions only: {by_models}; so all choices are candidates, not votes.")
    single = bool(votes) and not by_models and all(len(vote.labels) == 1 for vote in votes)
    columns = {TASK_ID: arrow_column(ids)}
    if not single and any(candidates):
        columns[CANDIDATES] = pa.array(list(map(list, candidates)))
    if any(truth):
        columns[TRUTH] = pa.array(truth)
    names = list(dict.fromkeys(chain.from_iterable(task["data"] for task in tasks)))
    check_names([*columns, *names], where)
    columns |= {name: arrow_column([task["data"].get(name) for task in tasks]) for name in names}
    table = Table(list(columns), list(columns.values()))
    table.tasks = Tasks(control)
    if single:
        rows = [(str(ids[vote.task]), vote.who, vote.labels[0]) for vote in votes]
        cells = [pa.array(column) for column in zip(*rows, strict=True)]
        table.tasks = Tasks(control, Table(list(VOTE_COLUMNS), cells))
    return table


def votes_in(table: Table) -> Table:
    """Return the votes of tasks; any other table as it is."""
    return (table.tasks and table.tasks.votes) or table


def own_labels(table: Table) -> Plain:
    """Return where the labels of tasks are, as options of `LabelSource`; empty for other tables."""
    if table.tasks is None:
        return {}
    if table.tasks.votes is not None:
        return {"votes": table.tasks.votes, "vote_columns": VOTE_COLUMNS, "id": TASK_ID}
    return {"candidates": CANDIDATES, "id": TASK_ID} if CANDIDATES in table.names else {}


def known_columns(table: Table) -> list[str]:
    """Return the columns of tasks that are no features, because they are what is asked for."""
    return [TRUTH] if table.tasks is not None and TRUTH in table.names else []


def task_columns(table: Table, learned: Learned) -> dict[str, Array]:
    """Return the candidates of each row as predictions, and labels a person decided as annotations.

    They are the columns ``annotations`` and ``predictions``, as Label Studio writes them.
    """
    resolution = learned.resolution
    sets = resolution.candidates
    classes = [str(label) for label in as_objects(sets.classes)]
    control = table.tasks.control if table.tasks else ("label", _shown(table, learned))
    model = f"skpll {learned.model.name}"
    annotations: list[list[Plain]] = []
    predictions: list[list[Plain]] = []
    for row in range(len(sets)):
        places = range(sets.indptr[row], sets.indptr[row + 1])
        shares = {classes[sets.indices[k]]: float(resolution.confidences[k]) for k in places}
        ordered = sorted(shares, key=lambda label: -shares[label])
        results = [_result(control, label, f"r{row + 1}c{k}") for k, label in enumerate(ordered)]
        decided = resolution.decided[row]
        annotations.append([{"result": results[:1]}] if decided else [])
        predictions.append(
            [
                {"model_version": model, "score": round(shares[label], 4), "result": [result]}
                for label, result in zip(ordered, results, strict=True)
                if not decided
            ]
        )
    return {"annotations": pa.array(annotations), "predictions": pa.array(predictions)}


def as_task(row: Plain) -> Plain:
    """Return a row of a table as a task to import; NaN, which JSON does not know, as null."""
    outside = {TASK_ID, CANDIDATES, TRUTH} if TASK_ID in row else set()
    outside |= {"annotations", "predictions"}
    data = {
        name: None if cell != cell else cell for name, cell in row.items() if name not in outside
    }
    task: Plain = {"id": row[TASK_ID]} if TASK_ID in row else {}
    more = {name: row[name] for name in ("annotations", "predictions") if row.get(name)}
    return {**task, "data": data, **more}


def _result(control: tuple[str, str], label: str, name: str) -> Plain:
    tags = dict(zip(("from_name", "to_name"), control, strict=True))
    return {"id": name, **tags, "type": "choices", "value": {"choices": [label]}}


def _choices(tasks: Iterable[Plain]) -> Iterator[_Choices]:
    """Yield what was chosen; what was not exported is there as a number only."""
    for (place, task), name in product(enumerate(tasks), _PARTS):
        for part in task.get(name) or ():
            if not isinstance(part, dict):
                continue
            who = part.get("completed_by", "annotator")
            if isinstance(who, dict):
                who = who.get("email") or who.get("id")
            by_people = "truth" if part.get("ground_truth") else "vote"
            kind = "prediction" if name == "predictions" else by_people
            for result in () if part.get("was_cancelled") else part.get("result") or ():
                labels = result.get("value", {}).get("choices")
                if result.get("type") == "choices" and labels:
                    control = str(result.get("from_name")), str(result.get("to_name"))
                    yield _Choices(place, kind, str(who), list(map(str, labels)), control)


def _control(given: Iterable[_Choices]) -> tuple[str, str]:
    """Return the tag that most choices were made in; note if there are others."""
    counts = Counter(choices.control for choices in given)
    if len(counts) > 1:
        first, *others = [name for (name, _), _ in counts.most_common()]
        note(f"choices of {listed([first])} are read; not those of {listed(others)}.")
    return counts.most_common(1)[0][0] if counts else ("label", "text")


def _shown(table: Table, learned: Learned) -> str:
    """Return the column that people look at: the first of text or pictures, if there is one."""
    names = [name for name in table.names if name not in learned.labels.columns]
    for name in names:
        if kind_of(text_of(table.column(name).slice(0, _LOOKED_AT)).to_pylist()):
            return name
    return names[0] if names else "text"
