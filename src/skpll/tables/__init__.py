"""Candidate labels in tables: CSV and Parquet files, pandas and polars frames.

A file becomes a `Table` (`formats`, `reading`), whose columns become features (`columns`, `blocks`)
and whose candidates, votes and decisions become `Labels` (`labels`, `votes`). From both a model and
a label for each row are learned (`learning`). These go to a table, to Label Studio
(`label_studio`), to a page for people (`explaining`, `review`), or to a file of the model
(`models`, `trusted`).

The command line's `disambiguate`, `fit` and `predict` are thin wrappers of what is here.
"""
