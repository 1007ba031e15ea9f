"""Our numbers against the peer's own code: TRL 1.16.0, which is installed for these tests alone."""
