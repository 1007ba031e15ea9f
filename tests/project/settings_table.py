"""The table of settings in docs/configuration.md: `python -m tests.project.settings_table` writes it anew."""

from app.settings import PREFIX, Settings
from tests.project.repository import ROOT, with_block

DOCUMENT = ROOT / "docs" / "configuration.md"


def table() -> str:
    """One row a setting, made from the field's description and default."""
    rows = ["| variable | what it is |", "| --- | --- |"]
    for name, field in Settings.model_fields.items():
        plain = field.default_factory is None and field.default not in (None, (), False)
        default = f" Default: `{field.default}`." if plain else ""
        rows.append(f"| `{PREFIX}{name.upper()}` | {field.description}{default} |")
    return "\n".join(rows) + "\n"


def with_table(document: str) -> str:
    """The document's text with its table replaced by the present one."""
    return with_block(document, "settings", table())


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
