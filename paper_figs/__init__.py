"""What is shown: the figures, each a file of its own, the report, and the pipeline that makes both."""
