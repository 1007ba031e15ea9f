"""The repository itself: layout, imports, README, docs, Makefile, images of the two containers."""
