"""Candidate labels in tables: CSV and Parquet files, pandas and polars frames.

The command line's `disambiguate`, `fit` and `predict` are thin wrappers of what is here.
"""
