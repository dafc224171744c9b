"""`skpll disambiguate`: which of the candidates is right, for every row of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .aggregate import print_aggregation
from .options import one_column, taking, written_file
from .tables import EscapeFormulas, Request, Show, display, reporting, score_of

if TYPE_CHECKING:
    from skpll.tables.labels import Labels
    from skpll.tables.learning import Learned
    from skpll.tables.reading import Table
    from skpll.tables.review import Display


@dataclass(frozen=True, kw_only=True)
class Resolving(Request):
    """What the user asks of a table, and what is to be written: each field is an option."""

    out: Annotated[Path, written_file("The table to write, with labels; - is standard output.")]
    page: Annotated[
        Path | None, written_file("An HTML page to write for reviewing the rows.", "--report")
    ] = None
    show: Show = None
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Explain each label, in extra columns and on the page."),
    ] = False
    ask: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of rows to ask people about."),
    ] = None
    ask_out: Annotated[
        Path | None, written_file("The questions to write (default: next to --out).")
    ] = None
    truth: Annotated[
        str | None,
        one_column("Column with the right label of some rows, to score by; not a feature."),
    ] = None
    escape_formulas: EscapeFormulas = False

    @property
    def questions(self) -> Path | None:
        """The table of questions to write, if any are asked."""
        from skpll.tables.formats import known_suffix

        if not self.ask:
            return None
        if self.ask_out is not None or str(self.out) == "-":
            return self.ask_out or Path("questions.csv")
        suffix = known_suffix(self.out)
        return self.out.with_name(f"{self.out.name.removesuffix(suffix)}-questions{suffix}")

    def write(self, source: Table, learned: Learned, shown: Display) -> dict[str, object]:
        """Write labels, questions and the page; return what there is to report."""
        from skpll.tables.formats import known_suffix, write_table
        from skpll.tables.inspecting import note_copied_truth
        from skpll.tables.label_studio import task_columns

        sep = learned.labels.separator or "|"
        explanations = None
        if self.explain:
            from skpll.tables.explaining import Explanations

            explanations = Explanations.of(source, learned)
        more = None if explanations is None else explanations.columns()
        added = learned.resolution.columns(source.names, more)
        score = None
        if self.truth is not None:
            note_copied_truth(source, learned.model.columns.columns, self.truth)
            score = score_of(source, self.truth, added)
        written: list[Path] = []
        try:
            tasks = known_suffix(self.out) in (".json", ".json.gz")
            columns = task_columns(source, learned) if tasks else added
            write_table(self.out, source, columns, sep=sep, escape_formulas=self.escape_formulas)
            written.append(self.out)
            if self.questions is not None:
                from skpll.tables.auditing import questions as ask_about

                asked = ask_about(source, learned, self.ask or 0)
                asked[0].delimiter = source.delimiter
                write_table(self.questions, *asked, sep=sep, escape_formulas=self.escape_formulas)
                written.append(self.questions)
            if self.page is not None:
                from skpll.tables.review import write_review

                write_review(self.page, source, learned, display=shown, explanations=explanations)
        except OSError as error:
            before = ", ".join(map(str, written))
            raise OSError(f"{error} Written before: {before or 'nothing'}.") from None
        return {
            "columns_added": list(added),
            "truth": score,
            "report": None if self.page is None else str(self.page),
            "questions": None if self.questions is None else str(self.questions),
        }

    def votes_alone(self, source: Table, labels: Labels) -> dict[str, object]:
        """Write the labels that the votes alone give; return what there is to report."""
        from skpll.tables.formats import write_table
        from skpll.tables.learning import resolved_by_votes
        from skpll.tables.votes import describe, read_truth

        options = {
            "--report": self.page is not None,
            "--ask": self.questions is not None,
            "--explain": self.explain,
        }
        refused = [name for name, given in options.items() if given]
        if refused:
            raise ValueError(
                f"{', '.join(refused)}: there is no feature column, so labels come from the votes "
                "alone; leave the option out, and see skpll audit for a page to check them."
            )
        resolution = resolved_by_votes(labels)
        added = resolution.columns(source.names)
        write_table(self.out, source, added, escape_formulas=self.escape_formulas)
        assert labels.votes is not None
        found = labels.votes.with_names(labels.ids)
        truth = None if self.truth is None else read_truth(source, self.truth)
        return {**describe(found, found, truth), "columns_added": list(added)}


@taking(Resolving)
def disambiguate(request: Resolving) -> None:
    """Find the right label among the candidate labels of every row.

    The table is written again, with its rows in order and these columns added: label, confidence,
    runner_up, and unanimous (whether there was one candidate from the start). If there are votes
    but no column to learn from, the labels come from the votes alone, as with skpll aggregate.

    Example: skpll disambiguate people.csv --candidates names --out resolved.csv
    """
    from skpll.tables.columns import NoFeaturesError
    from skpll.tables.formats import known_suffix

    if str(request.out) == "-":
        request = replace(request, quiet=True, as_json=False)
    if request.truth is not None:
        request = replace(request, exclude=[*(request.exclude or []), request.truth])
    known_suffix(request.out)
    request.check_outputs(request.out, request.page, request.questions)
    if request.questions is not None:
        known_suffix(request.questions)
    with reporting(request.quiet) as notes:
        source = request.read()
        shown = display(source, request.table, request.show)
        labels = request.labels(source)
        try:
            learned = request.learn(source, labels)
        except NoFeaturesError:
            if labels.votes is None:
                raise
            result = request.votes_alone(source, labels)
        else:
            result = request.write(source, learned, shown)
    result |= {"notes": notes, "out": str(request.out)}
    if "rules" in result:
        print_aggregation(result, as_json=request.as_json, quiet=request.quiet)
    else:
        request.report(learned, **result)
