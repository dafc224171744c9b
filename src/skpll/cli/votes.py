"""`skpll aggregate` and `skpll audit`: labels from votes alone, and how many labels are right."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from . import options as opt
from .exits import counted, say
from .output import believed, percent, print_table
from .tables import check_outputs, column_names, display, reporting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from skpll.crowd import VoteTable
    from skpll.tables._extra import Plain
    from skpll.tables.reading import Table

_SHOWN = 10  # rows of the tables of differences and of annotators


class Rule(StrEnum):
    """The rules that turn votes into labels."""

    auto = "auto"
    majority = "majority"
    one_coin = "one-coin"
    dawid_skene = "dawid-skene"


@dataclass(frozen=True, kw_only=True)
class VoteRequest(opt.Printing):
    """What the user says of the votes: each field is an option."""

    votes: opt.TableFile
    columns: Annotated[
        str, opt.columns("The columns of item, annotator and label, in this order.")
    ] = "item,annotator,label"
    annotators: opt.Annotators = None
    id_column: Annotated[
        str | None,
        opt.column("The column that names the items, in tables with one row per item.", "--id"),
    ] = None
    counts: opt.Counts = None
    probabilities: opt.Probabilities = None
    gaps: Annotated[
        str | None,
        opt.value(
            "WORD,…",
            "Labels that mean no vote, as in --gaps=-1,none (default: ?, NA and similar, and "
            "-1, -9, -99, -999 where all other labels are 0, 1, 2, …).",
        ),
    ] = None
    truth: Annotated[
        str | None,
        opt.column(
            "Column with right labels to score by, or a file with an item and a label per row."
        ),
    ] = None
    delimiter: opt.Delimiter = None

    def read(self) -> tuple[VoteTable, NDArray[Any] | None]:
        """Read the votes, and the known labels if there are any."""
        from skpll.tables._extra import note
        from skpll.tables.formats import read_table
        from skpll.tables.label_studio import votes_in
        from skpll.tables.votes import read_votes

        if sum(map(bool, (self.annotators, self.counts, self.probabilities))) > 1:
            raise ValueError("--annotators, --counts, --probabilities: give one of them.")
        table = votes_in(read_table(self.votes, delimiter=self.delimiter))
        votes = read_votes(
            table,
            columns=self._columns,
            annotators=column_names(table, self.annotators) or (),
            counts=column_names(table, self.counts) or (),
            probabilities=column_names(table, self.probabilities) or (),
            id=self.id_column,
            gaps=None if self.gaps is None else self.gaps.split(","),
        )
        if self.counts:
            votes = votes.without_empty_items()
        without = table.n_rows - len(votes.items)
        if self.annotators and without:
            note(f"{without} of {table.n_rows} rows have no vote, so they get no label.")
        return votes, None if self.truth is None else self._truth(table, votes)

    @property
    def _columns(self) -> list[str]:
        return [name.strip() for name in self.columns.split(",")]

    def _truth(self, table: Table, votes: VoteTable) -> NDArray[Any]:
        """Read known labels from a column of the votes, or from another file."""
        from skpll.tables.formats import read_table
        from skpll.tables.votes import read_truth

        name = str(self.truth)
        wide = self.annotators or self.counts or self.probabilities
        item = self.id_column if wide else self._columns[0]
        if name in table.names:
            return read_truth(table, name, item, votes.items)
        if not Path(name).exists():
            raise ValueError(f"--truth: {name!r} is no column of {self.votes}, and no file.")
        other = read_table(Path(name), delimiter=self.delimiter)
        item = item if item in other.names else other.names[0]
        rest = [column for column in other.names if column != item]
        likely = [column for column in rest if column.lower() in ("truth", "gold", "label")]
        if not rest:
            raise ValueError(f"--truth: {name} has one column; an item and a label are needed.")
        return read_truth(other, (likely or rest)[0], item, votes.items)


@opt.taking(VoteRequest)
def aggregate(
    request: VoteRequest,
    out: Annotated[Path, opt.written_file("The table of labels to write; - is standard output.")],
    method: Annotated[
        Rule,
        opt.value(
            "NAME",
            "How votes become labels: majority, one-coin, dawid-skene, or auto (the average of "
            "these).",
        ),
    ] = Rule.auto,
    escape_formulas: opt.EscapeFormulas = False,
) -> None:
    """Find one label per item from the votes of annotators, without features.

    The columns item, label, confidence and runner_up are written. Where the methods (majority,
    one-coin and dawid-skene) differ, and how well annotators agree, is printed.

    Example: skpll aggregate votes.csv --columns item,annotator,label --out labels.csv
    """
    from skpll.crowd import aggregate_votes
    from skpll.tables.formats import write_table
    from skpll.tables.votes import describe, label_table, note_truth_from_votes

    check_outputs([request.votes], [out])
    with reporting(request.quiet or str(out) == "-") as notes:
        votes, truth = request.read()
        found = aggregate_votes(votes, method.value)
        others = found if method is Rule.auto else aggregate_votes(votes)
        description = describe(found, others, truth)
        if truth is not None:
            note_truth_from_votes(others, truth)
        table, added = label_table(found)
        write_table(out, table, added, escape_formulas=escape_formulas)
    request.print_result({**description, "notes": notes, "out": str(out)}, print_aggregation)


def print_aggregation(result: Plain) -> None:
    """Print what came of votes.

    Parameters
    ----------
    result : dict
        What `skpll.tables.votes.describe` says, and ``out``, the file that was written.
    """
    if result["votes"]:
        _print_votes(result)
        assumption = "annotators err independently of each other"
    else:
        say(
            f"{counted(result['items'], 'item')}, {counted(result['classes'], 'class')}; the label "
            "of each item is its most probable class."
        )
        assumption = "the probabilities are right"
    checked = any("accuracy" in rule for rule in result["rules"])
    say(believed(result["believed"], assumption, checked=checked))
    say(f"Check it: skpll audit {result['out']} --rows 100 --out check.html")
    say(f"Written: {result['out']}")


def _print_votes(result: Plain) -> None:
    of = f" of {counted(result['n_annotators'], 'annotator')}" if result["annotators"] else ""
    say(
        f"{counted(result['votes'], 'vote')}{of} on {counted(result['items'], 'item')}, "
        f"{counted(result['classes'], 'class')}; {counted(result['unanimous'], 'item')} unanimous."
    )
    _print_rules(result["rules"])
    differ = result["differ"]
    if differ["items"]:
        say(f"The rules differ on {counted(differ['items'], 'item')}; the least certain first:")
        print_table("Where they differ", list(differ["first"][0]), differ["first"])
    else:
        say("The rules agree on all items.")
    print_agreement(result)


def _print_rules(rules: list[Plain]) -> None:
    columns = ["rule", "unlike the majority", "log-likelihood of held-out votes"]
    rows: list[list[Any]] = [
        [rule["rule"], rule["unlike_majority"], rule["held_out"]] for rule in rules
    ]
    if "accuracy" in rules[0]:
        columns += [f"accuracy on {rules[0]['known']} known items", "95 % interval"]
        for row, rule in zip(rows, rules, strict=True):
            row += [rule["accuracy"], f"{rule['low']:.3f} to {rule['high']:.3f}"]
    print_table("Rules", columns, rows)


def print_agreement(result: Plain) -> None:
    """Print how well annotators agree, and those who cost most agreement.

    Parameters
    ----------
    result : dict
        What `skpll.tables.votes.describe_agreement` says.
    """

    def shown(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.3f}"

    say(
        f"Agreement: Krippendorff's alpha {shown(result['alpha'])}, mean kappa "
        f"{shown(result['kappa'])} over {counted(result['pairs'], 'pair')} (1 perfect, 0 chance)."
    )
    print_table("Agreement by class", ["class", "alpha"], result["class_alpha"].items())
    first = result["annotators"][:_SHOWN]
    if first:
        columns = ["annotator", "votes", "estimated to be right", "mean kappa"]
        columns += ["alpha without, minus alpha"]
        print_table("Annotators who cost most agreement", columns, first)
    if result["alike"]:
        print_table(
            "Annotators who agree more than their agreement with others explains: did they copy?",
            ["annotator", "other", "items", "agree on", "expected"],
            result["alike"][:_SHOWN],
        )


@dataclass(frozen=True, kw_only=True)
class LabelFile(opt.Printing):
    """A table of labels with confidences, as options."""

    labels: opt.TableFile
    label_column: Annotated[str, opt.column("The column of the labels.", "--label")] = "label"
    confidence_column: Annotated[
        str, opt.column("The column of the confidences.", "--confidence")
    ] = "confidence"
    delimiter: opt.Delimiter = None


@opt.taking(LabelFile)
def audit(
    request: LabelFile,
    rows: Annotated[
        int | None, opt.number("Number of rows to draw, for a person to decide.", min=1)
    ] = None,
    decisions: Annotated[
        Path | None, opt.given_file("The drawn rows, with the right labels in the column label.")
    ] = None,
    target: Annotated[
        float, opt.value("SHARE", "The accuracy that a review should lead to.", min=0, max=1)
    ] = 0.95,
    out: Annotated[
        Path | None,
        opt.written_file(
            "With --rows, the table or page (.html) of the drawn rows to write; with "
            "--decisions, the table with checked confidences added."
        ),
    ] = None,
    show: opt.Show = None,
    seed: opt.Seed = 0,
    escape_formulas: opt.EscapeFormulas = False,
) -> None:
    """Measure the accuracy of labels by a random sample that a person decides.

    First draw rows: skpll audit labels.csv --rows 100 --out check.html. Pick the right label of
    each row on that page, which does not show the guesses, and download check.csv. Then:
    skpll audit labels.csv --decisions check.csv

    With --out check.csv, a table is written instead: put the right labels into its column label.

    Rows are drawn at random within strata of similar confidence. Decisions on rows that were
    chosen because they are uncertain are not a random sample, so they are refused.
    """
    from skpll.tables._extra import pa
    from skpll.tables.formats import read_table, write_table
    from skpll.tables.reading import free_names
    from skpll.tables.review import audit_rows, read_audit, write_check

    if (rows is None) == (decisions is None):
        raise ValueError("give either --rows, to draw rows, or --decisions, to evaluate them.")
    page = False
    if out is not None:
        page = rows is not None and out.suffix.lower() in (".html", ".htm")
        tables, pages = ([], [out]) if page else ([out], [])
        check_outputs([request.labels, decisions], tables, pages)
    columns = (request.label_column, request.confidence_column)
    with reporting(request.quiet) as notes:
        table = read_table(request.labels, delimiter=request.delimiter)
        if decisions is not None:
            decided = read_table(decisions, delimiter=request.delimiter)
            result, corrected = read_audit(table, columns, decided, target)
            result["out"] = None if out is None else str(out)
            if out is not None:
                added = free_names({"checked_confidence": pa.array(corrected)}, table.names)
                write_table(out, table, added, escape_formulas=escape_formulas)
                result["added"] = next(iter(added))
        elif out is None or rows is None:
            raise ValueError("--rows needs --out, a file for the drawn rows.")
        else:
            asked, cells = audit_rows(table, columns, rows, seed=seed)
            if page:
                shown = display(table, request.labels, show)
                write_check(out, table, columns, asked, display=shown)
            else:
                write_table(out, asked, cells, escape_formulas=escape_formulas)
            result = {"rows": table.n_rows, "drawn": asked.n_rows, "out": str(out)}
            result |= {"labels": str(request.labels), "page": page}
    request.print_result(result | {"notes": notes}, _print_audit)


def _print_audit(result: Plain) -> None:
    if "drawn" in result:
        say(
            f"{result['drawn']} of {result['rows']} rows drawn at random, stratified by confidence."
        )
        decisions = Path(result["out"])
        if result["page"]:
            decisions = decisions.with_suffix(".csv")
            say("Open the page, pick the right label of each row and download the decisions, then:")
        else:
            say("Fill in the column label with the right label of each row, then:")
        say(f"skpll audit {result['labels']} --decisions {decisions}")
        say(f"Written: {result['out']}")
        return
    say(
        f"Accuracy: {percent(result['accuracy'])}, 95 % interval {percent(result['low'])} to "
        f"{percent(result['high'])}, from {result['decided']} decided rows of {result['rows']}."
    )
    say(f"The confidences alone say {percent(result['believed'])}.")
    review, careful = result["review"], result["review_careful"]
    target = percent(result["target"])
    if not review["rows"]:
        say(f"By the estimate the labels reach {target} without a review.")
    else:
        say(
            f"To reach {target}: review {counted(review['rows'], 'row')} "
            f"{_below(review['below'])}, if every reviewed row is right then."
        )
    if careful["rows"] > review["rows"]:
        say(
            "If the accuracy is at the lower end of the interval: "
            f"{counted(careful['rows'], 'row')} {_below(careful['below'])}."
        )
    if result["out"]:
        say(f"Written: {result['out']}, with the column {result['added']}.")


def _below(confidence: float | None) -> str:
    return "(all)" if confidence is None else f"with a confidence below {confidence:.4g}"
