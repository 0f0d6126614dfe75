"""The tests, in rooms that mirror the code."""
