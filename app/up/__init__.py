"""`vlmscope up`: the whole installation as one process tree on one machine."""
