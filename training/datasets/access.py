"""Which files of the machine a run may read."""

from dataclasses import dataclass
from pathlib import Path

from training.datasets.faults import DataFault


@dataclass(frozen=True, slots=True)
class Located:
    """A path that may be read, and the root that everything it refers to must lie in (None: anywhere)."""

    path: Path
    root: Path | None


@dataclass(frozen=True, slots=True)
class Access:
    """The folders that may be read from; `roots=None` means every path, for the owner of the machine."""

    roots: tuple[Path, ...] | None = None

    def locate(self, value: str, *, field: str) -> Located:
        """Resolve a path of a configuration; a relative one is looked for in each root in turn.

        Raises DataFault when it does not exist or leaves the roots; symbolic links are followed first.
        """
        try:
            return self._locate(value, field)
        except (OSError, RuntimeError, ValueError) as error:  # too long, NUL, a loop of links, no home folder
            if isinstance(error, DataFault):
                raise
            reason = getattr(error, "strerror", None) or error
            raise DataFault(f"{value!r:.100} is no usable path ({reason}); correct it", field=field) from error

    def _locate(self, value: str, field: str) -> Located:
        if self.roots is None:
            path = Path(value).expanduser().resolve()
            if path.exists():
                return Located(path, None)
            raise DataFault(f"there is no {path}; correct the path", field=field)
        inside = False
        for home in (root.resolve() for root in self.roots):
            path = (home / Path(value).expanduser()).resolve()
            if path.is_relative_to(home):
                inside = True
                if path.exists():
                    return Located(path, home)
        allowed = " or ".join(str(root) for root in self.roots) or "(no folder is allowed)"
        if inside:
            raise DataFault(f"there is no {value} in {allowed}; correct the path or put it there", field=field)
        raise DataFault(
            f"{value} lies outside the folders that may be read, {allowed}; move it into one of them or add its folder "
            "to VLMSCOPE_DATASET_ROOTS",
            field=field,
        )
