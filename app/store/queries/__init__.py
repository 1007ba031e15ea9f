"""Reads the store: functions take a session of Store.read() and give back frozen rows."""
