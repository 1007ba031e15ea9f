"""Ready-made runs: TOML files that the launch form, REST and `vlmscope up --demo` offer by name."""

from importlib.resources import files

from training.config import RunConfig, load_toml
from training.errors import ConfigError

_FOLDER = files("training.demo") / "presets"


def preset_names() -> list[str]:
    """All names; the demo's first run is the first."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))


def load_preset(name: str) -> RunConfig:
    """Raises ConfigError that lists the names."""
    if name not in preset_names():
        raise ConfigError(f"there is no preset {name!r}; expected one of {', '.join(preset_names())}")
    return load_toml((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
