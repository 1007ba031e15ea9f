"""Tests of the REST interface, in process."""
