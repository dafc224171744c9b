"""Labels from tables: a column of candidates, votes of annotators, a person's decisions."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import chain, combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skpll._errors import ArgumentError
from skpll._labels import as_objects
from skpll._typing import Array as LabelArray
from skpll._typing import Label
from skpll.candidates import CandidateSets, CandidatesLike, as_candidates
from skpll.crowd import VoteTable

from ._extra import Plain, listed, note, pa, pd, short
from .columns import check_columns
from .reading import GAPS, Array, Table, gap_words, is_text, plain, text_of
from .votes import (
    Votes,
    class_probabilities,
    clean,
    item_names,
    note_gaps,
    plain_label,
    read_votes,
    same_labels,
    words_of,
)

Empty = Literal["error", "any"]

VOTE_COLUMNS = ("item", "annotator", "label")
MERGE_COLUMNS = ("spelling", "label")
_SEPARATORS = (";", "\t", "\n", ",", "/")
_MAX_LABEL = 1000
_MIN_PROBABILITY = 1e-9  # of a candidate
_MAX_COMPARED_LABELS = 300  # more labels are not compared for misspellings
_MIN_SIMILARITY = 0.88  # of a word and its misspelling
_MAX_MISSPELT_SHARE = 0.1  # of the rows with the right spelling

_LOOKED_AT = 2000  # cells that say whether a column has candidates
_MIN_ROWS = 10  # with fewer rows to compare, no leak is noted
_MIN_LABELS = 0.9  # share of the cells of a copy that are labels
_MIN_EXCESS = 0.3  # of agreement with the votes over chance
_MIN_AGREEMENT = 0.6
_EQUAL = 0.98  # share of rows in which a copy of the truth equals it
_ANY_SEPARATOR = re.compile(r"[|;,/\t\n]+")


@dataclass(frozen=True)
class Labels:
    """What is known of the labels of the rows.

    Parameters
    ----------
    candidates : CandidateSets
        The candidates of each row.
    decided : bool array of shape (n,)
        Which rows a person has decided.
    votes : Votes, optional
        The votes they come from.
    separator : str
        What separates the candidates in a cell; empty where nothing does.
    ids : list of str, optional
        The names of the rows.
    columns : tuple of str
        The columns of the table that say so; they are no features.
    """

    candidates: CandidateSets
    decided: NDArray[np.bool_]
    votes: Votes | None = None
    separator: str = ""
    ids: list[str] | None = None
    columns: tuple[str, ...] = ()

    def summary(self) -> Plain:
        """Return the main facts in plain values."""
        sets = self.candidates
        sizes, counts = np.unique(sets.sizes, return_counts=True)
        expected = sets.expected_counts()
        order = np.argsort(-expected, kind="stable")
        names = [str(label) for label in as_objects(sets.classes)]
        return {
            "rows": len(sets),
            "labels": len(names),
            "separator": self.separator,
            "expected_rows": {names[code]: round(float(expected[code]), 1) for code in order},
            "imbalance": float(expected.max() / max(expected.min(), 1e-9)),
            "sizes": dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
            "look_alike": [list(pair) for pair in look_alike(sets)],
            "seen_once": seen_once(sets),
        }


@dataclass(frozen=True)
class LabelSource:
    """Where the labels of the rows of a table are: in candidates, votes or annotators' columns.

    Parameters
    ----------
    candidates : str or candidate sets, optional
        The column with the candidates of each row; or the candidates themselves.
    sep : str, optional
        What separates candidates in a cell; detected by default.
    votes : Table, optional
        Instead of candidates: a long table with an item, an annotator and a label in each row.
    vote_columns : three str
        The names of its columns.
    annotators : sequence of str
        Instead of both: columns of the table, one for each annotator.
    decisions : Table, optional
        Labels that are known: the columns ``label`` and ``id``, or ``label`` and ``row`` (the first
        row is 1). Rows without a label don't count.
    id : str, optional
        The column that names the rows, by which votes and decisions find them.
    empty : {"error", "any"}, default="error"
        Whether a row without candidates or votes is an error, or may have any label.
    gaps : sequence of str, optional
        Words that are no labels but stand for an empty cell, instead of the usual ones; among votes
        "none", "unknown" and "missing" are labels by default.
    counts : sequence of str
        Instead of votes: columns with the number of votes for each class.
    probabilities : sequence of str
        Instead of votes: columns with the probability of each class.
    skip_unknown : bool, default=False
        Whether to skip votes on items that are not in the table.
    merge : mapping from str to str, optional
        Other spellings of labels, with the label that each of them means.
    """

    candidates: str | CandidatesLike | None = None
    sep: str | None = None
    votes: Table | None = None
    vote_columns: Sequence[str] = VOTE_COLUMNS
    annotators: Sequence[str] = ()
    decisions: Table | None = None
    id: str | None = None
    empty: Empty = "error"
    gaps: Iterable[str] | None = None
    counts: Sequence[str] = ()
    probabilities: Sequence[str] = ()
    skip_unknown: bool = False
    merge: Mapping[str, str] | None = None

    def read(self, table: Table) -> Labels:
        """Read what is known of the labels of the rows of a table."""
        given = {
            "candidates": self.candidates is not None,
            "votes": self.votes is not None,
            "annotators": bool(self.annotators),
            "counts": bool(self.counts),
            "probabilities": bool(self.probabilities),
        }
        if sum(given.values()) != 1:
            raise ArgumentError(", ".join(given), "give exactly one of them.")
        ids = None if self.id is None else item_names(table, self.id).tolist()
        sets = given["candidates"] or given["probabilities"]
        found = self._from_sets(table, ids) if sets else self._from_votes(table, ids)
        _note_doubts(found.candidates)
        return found

    def _from_sets(self, table: Table, ids: list[str] | None) -> Labels:
        column = [self.candidates] if isinstance(self.candidates, str) else []
        if self.probabilities:
            column, separator = list(self.probabilities), ""
            shares = class_probabilities(table, column)
            sets = CandidateSets.from_scores(shares, threshold=_MIN_PROBABILITY, classes=column)
        elif column:
            check_columns(table, column, "candidates")
            sets, separator = column_candidates(
                table.column(column[0]),
                sep=self.sep,
                name=column[0],
                empty=self.empty,
                gaps=self.gaps,
                merge=self.merge,
            )
        else:
            sets, separator = as_candidates(self.candidates), ""
        if len(sets) != table.n_rows:
            raise ArgumentError(
                "candidates",
                f"there are {len(sets)} sets for the {table.n_rows} rows of the table.",
            )
        decided = self._decided(ids, sets.classes, len(sets))
        sets = _with_decisions(sets, decided)
        return Labels(sets, decided >= 0, None, separator, ids, self._own(column))

    def _from_votes(self, table: Table, ids: list[str] | None) -> Labels:
        votes, rows = self._votes(table, ids)
        votes = _merged_votes(votes, self.merge or {})
        decided = self._decided(ids, votes.classes, table.n_rows)
        found = Votes.collect(votes, rows, decided, empty=self.empty)
        own = self._own((*self.annotators, *self.counts))
        return Labels(found.candidates, decided >= 0, found, "", ids, own)

    def _votes(self, table: Table, ids: list[str] | None) -> tuple[VoteTable, NDArray[np.int64]]:
        """Read the votes, and the row of the table that each of their items is."""
        if self.votes is not None and ids is None:
            raise ArgumentError("id", "name the column that the votes refer to.")
        votes = read_votes(
            self.votes or table,
            columns=self.vote_columns,
            annotators=self.annotators,
            counts=self.counts,
            id=self.id,
            gaps=self.gaps,
            argument="vote_columns",
        )
        row_of = _rows_by_name(ids, table.n_rows)
        rows = np.array([row_of.get(item, -1) for item in votes.items], np.int64)
        unknown = rows < 0
        if self.votes is None or not unknown.any():
            return votes, rows
        if self.skip_unknown and not unknown.all():
            kept = ~unknown[votes.item]
            note(
                f"votes on items that are not in the table are skipped: {int((~kept).sum())} "
                f"(items: {int(unknown.sum())})."
            )
            return votes.select(kept).without_empty_items(), rows[~unknown]
        items = words_of(self.votes.column(self.vote_columns[0]), ("",))
        place = next(place for place, item in enumerate(items, 1) if item and item not in row_of)
        raise ArgumentError(
            "votes",
            f"row {place} is about {short(items[place - 1])}, which is not in the table; votes on "
            "other items can be skipped",
            {"skip_unknown": True},
        )

    def _decided(
        self, ids: list[str] | None, classes: LabelArray, n_rows: int
    ) -> NDArray[np.int64]:
        """Read what a person has decided: the class of each row, −1 where nothing was."""
        decided = np.full(n_rows, -1)
        if self.decisions is None:
            return decided
        known = {str(label): code for code, label in enumerate(as_objects(classes))}
        merged = {a: known[b] for a, b in (self.merge or {}).items() if b in known}
        key = "row" if ids is None else "id"
        check_columns(self.decisions, [key, "label"], "decisions")
        keys, labels = (words_of(self.decisions.column(name), ("",)) for name in (key, "label"))
        row_of, code_of = _rows_by_name(ids, n_rows), merged | known
        for place, (which, label) in enumerate(zip(keys, map(clean, labels), strict=True), start=1):
            if not label:
                continue
            if which not in row_of:
                problem = f"the table has no row with the {key} {short(which or '')}."
            elif label not in code_of:
                problem = f"{short(label)} is not one of the labels in the table."
            else:
                decided[row_of[which]] = code_of[label]
                continue
            raise ArgumentError("decisions", f"row {place}: {problem}")
        return decided

    def _own(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of the table that are no features."""
        return (*(() if self.id is None else (self.id,)), *columns)


def column_candidates(
    column: Array,
    *,
    sep: str | None = None,
    name: str = "candidates",
    empty: Empty = "error",
    gaps: Iterable[str] | None = None,
    merge: Mapping[str, str] | None = None,
) -> tuple[CandidateSets, str]:
    """Read a column of candidate labels.

    Blanks around labels don't count, and several inside count as one.

    Parameters
    ----------
    column : Arrow array
        Text with `sep` between the labels, lists of labels, or plain labels.
    sep : str, optional
        What separates labels in text; found out by default.
    name : str
        What the column is called in messages.
    empty : {"error", "any"}, default="error"
        Whether a row without candidates is an error, or may have any label.
    gaps : sequence of str, optional
        Words that stand for an empty cell, instead of the usual ones.
    merge : mapping from str to str, optional
        Other spellings of labels, with the label that each of them means.

    Returns
    -------
    candidates : CandidateSets
    sep : str
        What separates labels; empty where nothing does.
    """
    if sep == "":
        raise ArgumentError("sep", "the separator is empty; use '|', for instance.")
    words, merge = gap_words(gaps), merge or {}
    codes, entries = _distinct(column)
    if not len(codes):
        raise ValueError("the table has no rows.")
    separator = _separator([entry for entry in entries if isinstance(entry, str)], sep, name)
    dropped: Counter[str] = Counter()
    counts = np.bincount(codes, minlength=len(entries)).tolist()
    sets = []
    for entry, count in zip(entries, counts, strict=True):
        labels, gone = _labels(entry, separator, words)
        sets.append(tuple(dict.fromkeys(merge.get(label, label) for label in labels)))
        dropped.update(dict.fromkeys(gone, count))
    note_gaps(dropped, f"column {short(name)}")
    _check_labels(sets, name)
    everything = tuple(dict.fromkeys(chain.from_iterable(sets)))
    bare = np.isin(codes, [code for code, labels in enumerate(sets) if not labels])
    if bare.any() and empty == "error":
        first, more = int(np.argmax(bare)), int(bare.sum()) - 1
        raise ArgumentError(
            "candidates",
            f"column {short(name)}: row {first + 1} has no candidate"
            f"{f', nor have {more} more' if more else ''}; fill it in, leave the row out, or allow "
            "any label there",
            {"empty": "any"},
        )
    try:
        found = as_candidates([frozenset(labels or everything) for labels in sets])[codes]
    except ValueError as error:
        raise ValueError(f"column {short(name)}: {error}") from None
    return found, separator


def find_separator(entries: Sequence[str]) -> str:
    """Find what separates the labels in different cells; empty if nothing seems to.

    A bar always does. Other characters do if the parts between them come back in other cells; a
    comma or a slash only if cells also have parts alone, or different numbers of them.
    """
    if any("|" in entry for entry in entries):
        return "|"
    for sep in _SEPARATORS:
        parts = [{part.strip() for part in entry.split(sep)} - {""} for entry in entries]
        joined = [found for found in parts if len(found) > 1]
        if not joined:
            continue
        counts = Counter(chain.from_iterable(parts))
        pieces = set(chain.from_iterable(joined))
        back = sum(counts[piece] > 1 for piece in pieces) > len(pieces) / 2
        alone = any(found <= pieces for found in parts if len(found) == 1)
        varied = len({len(found) for found in joined}) > 1
        if back and (sep not in ",/" or alone or varied):
            return sep
    return ""


def candidate_columns(table: Table) -> list[str]:
    """Return the columns that seem to hold candidate labels."""
    found = []
    for name in table.names:
        if pa.types.is_list(kind := table.column(name).type) or pa.types.is_large_list(kind):
            found += [name] if is_text(kind.value_type) else []
            continue
        cells = text_of(table.column(name).slice(0, _LOOKED_AT)).to_pylist()
        different = {cell for cell in cells if cell}
        sep = find_separator(sorted(different)) if len(different) <= len(cells) else ""
        if sep and sum(sep in cell for cell in different) >= len(different) / 10:
            parts = {part.strip() for cell in different for part in cell.split(sep)}
            if len(parts) <= max(20, len(cells) / 5):
                found.append(name)
    return found


def look_alike(candidates: CandidateSets) -> list[tuple[str, str]]:
    """Return pairs of labels that may be meant to be the same, the rarer one first."""
    names = [str(label) for label in as_objects(candidates.classes)]
    counts = _named_rows(candidates)
    keys = [_key(name) for name in names]
    close = []
    for a, b in combinations(range(len(names)), 2) if len(names) <= _MAX_COMPARED_LABELS else ():
        rare, usual = sorted((a, b), key=lambda code: counts[code])
        same = keys[a] == keys[b] and keys[a] != ""
        if same or (
            counts[rare] <= _MAX_MISSPELT_SHARE * counts[usual] and _misspelt(names[a], names[b])
        ):
            close.append((names[rare], names[usual]))
    return close


def seen_once(candidates: CandidateSets) -> list[str]:
    """Return the labels that are a candidate in one row only."""
    return [str(label) for label in as_objects(candidates.classes[_named_rows(candidates) == 1])]


def _named_rows(candidates: CandidateSets) -> NDArray[np.int64]:
    """Count the rows that have each label; a row that may be anything names none."""
    q = len(candidates.classes)
    said = np.repeat(candidates.sizes < q, candidates.sizes)
    return np.bincount(candidates.indices[said], minlength=q)


def _separator(entries: Sequence[str], sep: str | None, name: str) -> str:
    found = find_separator(entries) if entries else ""
    if sep is None:
        return found
    if entries and found and not any(sep in entry for entry in entries):
        note(f"column {short(name)}: no cell has the separator {sep!r}, but many have {found!r}.")
    return sep


def _check_labels(sets: Sequence[tuple[Label, ...]], name: str) -> None:
    labels = dict.fromkeys(chain.from_iterable(sets))
    for label in labels:
        if isinstance(label, str) and len(label) > _MAX_LABEL:
            raise ValueError(
                f"column {short(name)}: the label {short(label)} has {len(label)} characters; is "
                "it the right column, and the right separator?"
            )
    if len(labels) < 2:
        found = f"{short(next(iter(labels)))} is the only label" if labels else "there is no label"
        raise ValueError(
            f"column {short(name)}: {found} in it, so there is nothing to choose. Is it the right "
            "column, and the right separator?"
        )


def _note_doubts(candidates: CandidateSets) -> None:
    """Warn about labels that may be misspelt."""
    alike = [f"{short(a)} and {short(b)}" for a, b in look_alike(candidates)]
    if alike:
        note(f"labels that look alike: {', '.join(alike[:5])}{', …' * (len(alike) > 5)}.")
    once = seen_once(candidates)
    if once and len(candidates) >= 20:
        note(f"labels that only one row has: {listed(once)}.")


def _key(name: str) -> str:
    """Return what is left of a label without case, accents, blanks and punctuation."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in plain if letter.isalnum())


def _misspelt(a: str, b: str) -> bool:
    """Return whether two words differ by a slip; numbers never do, in or out of words."""
    digits = [[letter for letter in name if letter.isdigit()] for name in (a, b)]
    if digits[0] != digits[1] or min(len(a), len(b)) < 5:
        return False
    return SequenceMatcher(None, a.casefold(), b.casefold()).ratio() >= _MIN_SIMILARITY


def _rows_by_name(ids: list[str] | None, n_rows: int) -> dict[str, int]:
    """Return the place of each row, by its name or its number from 1."""
    names = ids or map(str, range(1, n_rows + 1))
    return {name: row for row, name in enumerate(names)}


def _with_decisions(candidates: CandidateSets, decided: NDArray[np.int64]) -> CandidateSets:
    """Return the rows that were decided one candidate: the class of that number."""
    known = np.flatnonzero(decided >= 0)
    if not len(known):
        return candidates
    # The decided labels come as further rows, which then take the place of those they decide.
    singles = CandidateSets(np.arange(len(known) + 1), decided[known], candidates.classes)
    rows = np.arange(len(candidates))
    rows[known] = len(candidates) + np.arange(len(known))
    return CandidateSets.concatenate([candidates, singles])[rows]


def _distinct(column: Array) -> tuple[NDArray[np.int64], list[Label]]:
    """Return a number to each different cell of a column, so that each is read only once."""
    column = plain(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_nested(column.type):
        if pa.types.is_nested(getattr(column.type, "value_type", column.type)):
            raise ValueError(
                f"a cell of candidates can't be a {column.type}; use a list of labels."
            )
        cells = [None if cell is None else tuple(cell) for cell in column.to_pylist()]
        code_of = {cell: code for code, cell in enumerate(dict.fromkeys(cells))}
        return np.fromiter(map(code_of.__getitem__, cells), np.int64, len(cells)), list(code_of)
    coded = column.dictionary_encode(null_encoding="encode")
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, coded.dictionary.to_pylist()


def _labels(entry: Label, sep: str, words: frozenset[str]) -> tuple[list[Label], list[str]]:
    """Read one cell: its labels, and the words that are no labels."""
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return [], []
    parts: Iterable[Label] = entry if isinstance(entry, tuple) else (entry,)
    if isinstance(entry, str):
        parts = _written_list(entry) or (entry.split(sep) if sep else (entry,))
    cleaned = [clean(part) for part in parts if part is not None]
    gone = [label for label in cleaned if isinstance(label, str) and label.lower() in words]
    return [label for label in cleaned if label not in gone], [label for label in gone if label]


def _written_list(entry: str) -> list[str]:
    """Read what Python or JSON writes for a list or a set of texts."""
    if (entry[:1], entry[-1:]) not in {("[", "]"), ("{", "}"), ("(", ")")}:
        return []
    try:
        found = ast.literal_eval(entry)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    several = isinstance(found, list | set | tuple)
    return list(found) if several and all(isinstance(part, str) for part in found) else []


def _merged_votes(votes: VoteTable, merge: Mapping[str, str]) -> VoteTable:
    """Return votes in which other spellings of a label are the label."""
    labels = [merge.get(label, label) for label in votes.classes.tolist()]
    if labels == votes.classes.tolist():
        return votes
    classes = np.array(sorted(set(labels)), dtype=votes.classes.dtype)
    codes = np.searchsorted(classes, labels).astype(np.int32)
    return replace(votes, classes=classes, label=codes[votes.label])


def read_merge(table: Table) -> dict[str, str]:
    """Read which spelling means which label, from the columns ``spelling`` and ``label``.

    Rows without a label don't count. A label that is itself a spelling of another is an error.
    """
    check_columns(table, MERGE_COLUMNS, "merge")
    spellings, labels = (map(clean, words_of(table.column(name), ("",))) for name in MERGE_COLUMNS)
    found = {a: b for a, b in zip(spellings, labels, strict=True) if a and b and a != b}
    for row, (spelling, label) in enumerate(found.items(), start=1):
        if label in found:
            raise ArgumentError(
                "merge",
                f"row {row}: {short(spelling)} means {short(label)}, which means "
                f"{short(found[label])}; name the last one.",
            )
    return found


def proposed_merge(candidates: CandidateSets) -> Table:
    """Return a table of spellings that seem to be the same label, for a person to correct."""
    alike = dict(look_alike(candidates))
    pairs = [(spelling, _last(spelling, alike)) for spelling in alike]
    columns = [pa.array(list(cells), pa.string()) for cells in zip(*pairs, strict=True)]
    return Table(list(MERGE_COLUMNS), columns or [pa.array([], pa.string())] * 2)


def _last(spelling: str, alike: Mapping[str, str]) -> str:
    """Follow spellings to the most frequent one."""
    seen = [spelling]
    while (label := alike.get(seen[-1])) is not None and label not in seen:
        seen.append(label)
    return seen[-1]


def note_copied_votes(table: Table, names: Iterable[str], labels: Labels) -> None:
    """Note those of some feature columns that have labels as cells, and agree with the votes."""
    if labels.votes is None:
        return
    counts = labels.votes.found.votes.counts
    top = counts.max(axis=1)
    clear = (top > 0) & ((counts == top[:, None]).sum(axis=1) == 1)
    majority = np.where(clear, counts.argmax(axis=1), -1)
    code_of = {
        plain_label(label): code for code, label in enumerate(as_objects(labels.candidates.classes))
    }
    for name in names:
        share = _agreement(words_of(table.column(name), GAPS), code_of, majority)
        if share is not None:
            _note_leak(
                name,
                "has labels as its cells, and they agree with the votes in "
                f"{share:.0%} of the rows. If it holds the truth or a copy of the votes, it",
            )


def note_copied_truth(table: Table, names: Iterable[str], truth: str) -> None:
    """Note those of some feature columns that equal the column of known labels."""
    known = words_of(table.column(truth), GAPS)
    for name in names:
        cells = words_of(table.column(name), GAPS)
        both = ~pd.isna(known) & ~pd.isna(cells)
        if both.sum() < _MIN_ROWS:
            continue
        share = float(same_labels(cells[both], known[both]).mean())
        if share >= _EQUAL:
            _note_leak(name, f"equals the truth in {share:.0%} of the rows, so it")


def _note_leak(name: str, what: str) -> None:
    note(f"column {short(name)} {what} is a leak: leave it out", {"exclude": name})


def _agreement(
    cells: NDArray[np.object_], code_of: dict[str, int], majority: NDArray[np.integer]
) -> float | None:
    """Return how often the labels in cells are those of the majority; None if they are no copy."""
    parts = [
        [code_of.get(plain_label(part.strip()), -1) for part in _ANY_SEPARATOR.split(cell)]
        if cell is not None
        else []
        for cell in cells
    ]
    filled = [found for found in parts if found]
    if len(filled) < _MIN_ROWS:
        return None
    named = np.array([bool(found) and min(found) >= 0 for found in parts])
    compared = np.flatnonzero(named & (majority >= 0))
    if named.sum() < _MIN_LABELS * len(filled) or len(compared) < _MIN_ROWS:
        return None
    share = float(np.mean([majority[row] in parts[row] for row in compared]))
    others = np.random.default_rng(0).permutation(compared)
    pairs = zip(compared, others, strict=True)
    chance = float(np.mean([majority[row] in parts[other] for row, other in pairs]))
    return share if share >= max(_MIN_AGREEMENT, chance + _MIN_EXCESS) else None
