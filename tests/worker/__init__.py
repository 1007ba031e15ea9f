"""Executing runs: claim, child process, records, stop and recovery."""
