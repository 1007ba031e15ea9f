"""The exceptions that training raises on purpose; each also is the standard error that it stands for."""


class VlmscopeError(Exception):
    """Base of every error that carries a message meant for the user."""


class ConfigError(VlmscopeError, ValueError):
    """A configuration that cannot be read or that contradicts itself."""


class DatasetError(VlmscopeError, ValueError):
    """A dataset, a row or an image that cannot be used; the message names the row and the remedy."""


class RewardError(VlmscopeError, RuntimeError):
    """A reward function that failed too often to go on."""


class ModelError(VlmscopeError, RuntimeError):
    """A model or processor that cannot be loaded or does not do what its family promises."""


class CheckpointError(VlmscopeError, RuntimeError):
    """A checkpoint that is torn, missing or belongs to another run."""


class TrainingDiverged(VlmscopeError, ArithmeticError):
    """Loss or gradients stayed non-finite; the last good checkpoint was kept."""


class OutOfMemory(VlmscopeError, MemoryError):
    """One completion at a time is too much for the device; the message names the prompt and the settings to lower."""
