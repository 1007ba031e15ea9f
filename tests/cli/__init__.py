"""The vlmscope command and the settings."""
