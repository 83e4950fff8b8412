"""The comparison of methods at equal compute: experiments, statistics, tables, plots, a report.

What `mpt compare` does. Nothing else of `mpt_train` knows of it.
"""
