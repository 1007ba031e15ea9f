"""Tests of the training library."""
