"""Sweeps: a grid of rules, steps, data and seeds, run in parallel, into one partitioned Parquet data set."""
