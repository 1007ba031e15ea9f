"""The schema of the database, revision by revision; `vlmscope migrate` applies them."""
