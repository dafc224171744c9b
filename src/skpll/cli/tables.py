"""What the commands for tables share: their options, how they read, and how they report."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options as opt
from .exits import counted, say
from .output import believed, percent, print_table, progress_bar, scored

if TYPE_CHECKING:
    from skpll.tables._extra import Plain
    from skpll.tables.columns import ColumnOptions
    from skpll.tables.labels import Labels
    from skpll.tables.learning import Learned
    from skpll.tables.reading import Array, Table
    from skpll.tables.review import Display


_SHORT = 5000
"""Tables with at most this number of rows are learned from with one thread of BLAS per fold."""


class Empty(StrEnum):
    """What a row without candidates means."""

    error = "error"
    any = "any"


@contextmanager
def reporting(quiet: bool) -> Iterator[list[str]]:
    """Run the work of a command: show progress, end it on an interrupt, collect warnings as notes.

    Parameters
    ----------
    quiet : bool
        Whether to show nothing.

    Yields
    ------
    notes : list of str
        The warnings, without repetitions; complete after the work only.
    """
    from skpll._errors import ArgumentError
    from skpll._iteration import InterruptedFitWarning
    from skpll._progress import watched

    notes: list[str] = []
    with (
        warnings.catch_warnings(record=True) as caught,
        progress_bar(not quiet, compiles=True) as show,
        watched(show),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield notes
        except ArgumentError as error:
            raise ValueError(_in_options(error)) from error
    notes += dict.fromkeys(" ".join(_in_options(item.message).split()) for item in caught)
    if not quiet:
        for note in notes:
            say(f"skpll: note: {note}", error=True)


@dataclass(frozen=True, kw_only=True)
class Source(opt.Printing):
    """Which table is read and how: each field is an option of the command line."""

    table: opt.TableFile
    delimiter: opt.Delimiter = None
    header: Annotated[
        int | None, opt.number("Line or row that names the columns (default: the first).", min=1)
    ] = None
    embeddings: Annotated[
        Path | None, opt.given_file("A .npy file with a vector for each row, to learn from.")
    ] = None

    def read(self) -> Table:
        """Read the table, and the vectors of its rows."""
        from skpll.tables.formats import read_table
        from skpll.tables.reading import embedded

        found = read_table(self.table, delimiter=self.delimiter, header=self.header)
        return embedded(found, self.embeddings)


@dataclass(frozen=True, kw_only=True)
class Request(Source):
    """What the user asks of a table: each field is an option of the command line."""

    candidates: Annotated[
        str | None, opt.column("Column with the candidate labels of each row.")
    ] = None
    sep: Annotated[
        str | None, opt.value("TEXT", "Separator of the candidates in a cell (default: detected).")
    ] = None
    id_column: Annotated[
        str | None, opt.column("Column that names the rows; not a feature.", "--id")
    ] = None
    features: Annotated[
        list[str] | None, opt.columns("Columns to use as features (default: all others).")
    ] = None
    exclude: Annotated[
        list[str] | None, opt.columns("Columns that are not features.", "--exclude", "--ignore")
    ] = None
    text: Annotated[
        list[str] | None, opt.columns("Features that are free text (others are detected).")
    ] = None
    method: Annotated[
        str,
        opt.value(
            "NAME",
            "A method of `skpll methods`, or auto to choose one on held-out rows.",
            autocompletion=opt.method_names,
        ),
    ] = "plloo"
    parameters: Annotated[
        list[str] | None,
        opt.value(
            "NAME=VALUE", "A parameter of the method, such as C=1; can be repeated.", "--set"
        ),
    ] = None
    votes: Annotated[
        Path | None, opt.given_file("A table of votes, instead of --candidates; needs --id.")
    ] = None
    vote_columns: Annotated[
        str, opt.columns("The columns of item, annotator and label in the table of votes.")
    ] = "item,annotator,label"
    annotators: opt.Annotators = None
    counts: opt.Counts = None
    probabilities: opt.Probabilities = None
    skip_unknown: Annotated[
        bool,
        opt.flag("--skip-unknown", "Skip votes on items that are not in the table."),
    ] = False
    decisions: Annotated[
        Path | None,
        opt.given_file(
            "Labels that are known: decisions from the review page, or answered questions."
        ),
    ] = None
    merge: Annotated[
        Path | None,
        opt.given_file(
            "Labels that are spelled in several ways: a table with the columns spelling and label."
        ),
    ] = None
    empty: Annotated[
        Empty,
        typer.Option(help="What a row without candidates means: an error, or any label."),
    ] = Empty.error
    gaps: Annotated[
        str | None,
        opt.value(
            "WORD,…",
            "Words that mark an empty cell (default: ?, NA and similar; in candidates also "
            "none and unknown; among votes also -1 if other labels are 0, 1, …).",
        ),
    ] = None
    seed: opt.Seed = 0

    @property
    def inputs(self) -> list[Path | None]:
        """The files that are read."""
        return [self.table, self.votes, self.decisions, self.embeddings, self.merge]

    def labels(self, source: Table) -> Labels:
        """Read what is known of the labels of the table's rows."""
        from skpll.tables.formats import read_table
        from skpll.tables.label_studio import own_labels
        from skpll.tables.labels import LabelSource, read_merge

        def read(path: Path | None) -> Table | None:
            return None if path is None else read_table(path, delimiter=self.delimiter)

        merge = read(self.merge)
        labels = LabelSource(
            self.candidates,
            sep=self.sep,
            votes=read(self.votes),
            vote_columns=self.vote_columns.split(","),
            annotators=column_names(source, self.annotators) or (),
            decisions=read(self.decisions),
            id=self.id_column,
            empty=self.empty.value,
            gaps=self.gap_words,
            counts=column_names(source, self.counts) or (),
            probabilities=column_names(source, self.probabilities) or (),
            skip_unknown=self.skip_unknown,
            merge=None if merge is None else read_merge(merge),
        )
        return (labels if self.names_labels else replace(labels, **own_labels(source))).read(source)

    @property
    def names_labels(self) -> bool:
        """Whether it is said where the labels are."""
        return any((self.candidates, self.votes, self.annotators, self.counts, self.probabilities))

    @property
    def gap_words(self) -> list[str] | None:
        """The words that stand for an empty cell, if they are given."""
        return None if self.gaps is None else self.gaps.split(",")

    def columns(self, source: Table) -> ColumnOptions:
        """Return which columns are features."""
        from skpll.tables.label_studio import known_columns

        return {
            "features": column_names(source, self.features),
            "exclude": [*(column_names(source, self.exclude) or []), *known_columns(source)],
            "text": column_names(source, self.text) or [],
        }

    def learn(self, source: Table, labels: Labels | None = None) -> Learned:
        """Learn from a table and its labels, which are read if they are not given."""
        from skpll._threads import small_products
        from skpll.tables.learning import learn_from_table

        with small_products() if source.n_rows <= _SHORT else nullcontext():
            return learn_from_table(
                source,
                self.labels(source) if labels is None else labels,
                **self.columns(source),
                method=self.method,
                parameters=parsed_settings(self.parameters),
                seed=self.seed,
                inspected=None if self.as_json or self.quiet else print_opening,
            )

    def report(self, learned: Learned, **more: object) -> None:
        """Print what was learned and which files were written, as JSON or as text."""
        self.print_result({**_describe(learned), **more}, _print_description)


def print_opening(summary: Plain) -> None:
    """Print in a few lines how a table was read, see `skpll.tables.learning.inspection`."""
    kinds = Counter(column["kind"] for column in summary["columns"] if column["used"])
    what = ", ".join(counted(count, f"{kind} column") for kind, count in kinds.items())
    say(f"{counted(summary['rows'], 'row')}; features: {what or 'none'}.")
    labels = summary["labels"]
    if labels is None:
        return
    sizes = ", ".join(
        f"{counted(count, 'row')} with {size}" for size, count in list(labels["sizes"].items())[:4]
    )
    between = f"separator {labels['separator']!r}, " if labels["separator"] else ""
    more = ", …" if len(labels["sizes"]) > 4 else ""
    say(f"Candidates: {between}{counted(labels['labels'], 'label')}; {sizes}{more}.")
    expected = list(labels["expected_rows"].items())
    (most, most_rows), (least, least_rows) = expected[0], expected[-1]
    say(
        f"Most frequent label, if all candidates count the same: {most} "
        f"({counted(round(most_rows), 'row')}); least frequent: {least} ({least_rows:.0f})."
    )
    seconds = summary["seconds"]
    if seconds > 10:
        time = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
        say(f"This will take about {time}.")


_OPTIONS = {field.name: f"--{field.name.replace('_', '-')}" for field in fields(Request)} | {
    **{name: f"--{name}" for name in ("id", "columns", "confidence", "truth", "show")},
    "table": "TABLE",
    "parameters": "--set",
    "y": "--method auto",
}
"""The options that arguments of the library come from."""


def _in_options(told: object) -> str:
    """Return an error or a warning with the names of options instead of those of arguments."""
    from skpll._errors import ArgumentError
    from skpll.tables._extra import TableWarning

    if not isinstance(told, ArgumentError | TableWarning):
        return str(told)
    options = {_OPTIONS.get(name, f"--{name}"): value for name, value in told.remedy.items()}
    remedies = [
        name if value is True else f"{name}{'=' if str(value).startswith('-') else ' '}{value}"
        for name, value in options.items()
    ]
    if isinstance(told, TableWarning):
        return told.named(remedies)
    names = [_OPTIONS.get(name, name) for name in told.argument.split(", ")]
    return told.named(", ".join(names), remedies)


def _describe(learned: Learned) -> Plain:
    """Return what was learned in plain values, for scripts and for `_print_description`."""
    resolution, choice, labels = learned.resolution, learned.choice, learned.labels
    return {
        **resolution.summary(),
        "separator": labels.separator,
        **learned.model.summary(),
        "annotators": [asdict(annotator) for annotator in learned.annotators()],
        "choice": None
        if choice is None
        else {"reason": choice.reason, "trials": [asdict(trial) for trial in choice.trials]},
    }


def _print_description(result: Plain) -> None:
    """Print what was learned as text."""
    if result["choice"] is not None:
        print_table(
            "Methods compared on held-out rows",
            ["method", "parameters", "log-likelihood", "± error", "covering rate", "seconds"],
            [
                [
                    trial["method"],
                    ", ".join(f"{name}={value}" for name, value in trial["parameters"].items()),
                    *list(trial.values())[2:],
                ]
                for trial in result["choice"]["trials"]
            ],
        )
        say(result["choice"]["reason"])
    decided = f", {result['decided']} decided by you" if result["decided"] else ""
    say(
        f"{counted(result['rows'], 'row')}, {counted(result['classes'], 'class')}; "
        f"{counted(result['unanimous'], 'row')} with a single candidate{decided}."
    )
    say(
        f"Candidates per row: {result['candidates_before']:.2f} before, "
        f"{result['candidates_after']:.2f} after (effective)."
    )
    checked = result.get("truth") is not None
    assumption = "the votes or candidates err independently"
    say(believed(result["mean_confidence"], assumption, checked=checked))
    if checked:
        say(scored(result["truth"]))
    new = result.get("new_rows")
    if new is not None:
        say(
            f"Believed to be right for new rows: {percent(new['accuracy'])} ± "
            f"{percent(new['error'])}, from {counted(new['rows'], 'held-out row')}."
        )
    if result["annotators"]:
        print_table(
            "Annotators",
            ["annotator", "votes", "agree with the label", "estimated to be right"],
            result["annotators"],
        )
    written = [result[name] for name in ("out", "report", "questions") if result.get(name)]
    say(f"Written: {', '.join(written)}")


def display(source: Table, file: Path, show: Sequence[str] | None) -> Display:
    """Return what a page shows of the rows of a table that was read from a file."""
    from skpll.tables.columns import check_columns
    from skpll.tables.review import Display

    names = column_names(source, show)
    check_columns(source, names or (), "show")
    return Display(names, file.parent, file.name)


def column_names(table: Table, words: Sequence[str] | None) -> list[str] | None:
    """Read names of columns; commas separate them, unless a column is so called."""
    if words is None:
        return None
    names: list[str] = []
    for word in words:
        names += [word] if word in table.names else [part.strip() for part in word.split(",")]
    return names


def parsed_settings(settings: Sequence[str] | None) -> dict[str, object]:
    """Read parameters such as ``C=1``; what is no Python literal is text."""
    parameters: dict[str, object] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set: {setting!r} is not of the form name=value.")
        try:
            parameters[name.strip()] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name.strip()] = value
    return parameters


def score_of(source: Table, truth: str, added: Mapping[str, Array]) -> Plain:
    """Compare the labels, the first of the added columns, with a column of right ones."""
    from skpll.tables.votes import read_truth, score, words_of  # which take a while to import

    return score(words_of(next(iter(added.values())), ("",)), read_truth(source, truth))


def check_outputs(
    inputs: Sequence[Path | None], tables: Sequence[Path | None], others: Sequence[Path | None] = ()
) -> None:
    """Refuse to write a table of no known format, over an input, twice to one place, or nowhere."""
    from skpll.tables.formats import check_writable, known_suffix

    for path in filter(None, tables):
        known_suffix(path)
    taken = {path.resolve() for path in filter(None, inputs)}
    for path in filter(None, (*tables, *others)):
        if str(path) == "-":
            continue
        check_writable(path)
        if path.resolve() in taken:
            raise ValueError(f"{path}: is in use already; choose another name for the output.")
        taken.add(path.resolve())
