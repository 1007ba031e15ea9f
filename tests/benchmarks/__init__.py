"""Measurements against the peer, in one process and one thread; run by hand, `--smoke` in the tests."""
