"""Executes runs: claims one, trains it in a child process, carries its records into the store."""
