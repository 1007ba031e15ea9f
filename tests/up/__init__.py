"""The process tree of vlmscope up: order, restarts, demo run, nothing left behind."""
