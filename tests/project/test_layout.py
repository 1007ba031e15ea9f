"""What lies where: the top level, the packages, and what is installed."""

import importlib
import tomllib
from pathlib import Path

import pytest

from tests.project.repository import PACKAGES, ROOT, files, python_files

TOP_LEVEL = {
    ".ci", ".gitignore", "Dockerfile", "LICENSE", "Makefile", "README.md", "app", "compose.yaml", "docs", "migrations",
    "pyproject.toml", "tests", "training", "worker",
}  # fmt: skip

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_top_level_holds_exactly_the_agreed_names() -> None:
    assert {path.parts[0] for path in files()} == TOP_LEVEL


def test_nothing_else_lies_beside_the_ci_script() -> None:
    assert [path.as_posix() for path in files() if path.parts[0] == ".ci"] == [".ci/run"]


@pytest.mark.parametrize("name", PACKAGES)
def test_imported_package_is_the_one_of_this_repository(name: str) -> None:
    """Plain names such as `app` could be shadowed by another distribution's."""
    location = importlib.import_module(name).__file__
    assert location is not None
    assert Path(location).resolve() == ROOT / name / "__init__.py"


def test_distribution_with_such_plain_names_cannot_be_uploaded() -> None:
    assert "Private :: Do Not Upload" in PYPROJECT["project"]["classifiers"]


def test_installed_packages_are_the_packages_on_disk() -> None:
    on_disk = {".".join(path.parts[:-1]) for path in python_files(*PACKAGES)}
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == on_disk
    for package in on_disk:
        assert (ROOT / package.replace(".", "/") / "__init__.py").is_file(), f"{package} needs an __init__.py"


def test_installed_data_files_are_the_data_files_on_disk() -> None:
    declared = {
        path.relative_to(ROOT)
        for package, patterns in PYPROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    on_disk = {path for path in files() if path.parts[0] in PACKAGES and path.suffix != ".py"}
    assert declared == on_disk


def test_base_install_brings_no_torch() -> None:
    heavy = ("torch", "transformers", "accelerate", "peft", "vllm")
    assert not [line for line in PYPROJECT["project"]["dependencies"] if line.startswith(heavy)]


def test_tools_are_configured_in_pyproject_only() -> None:
    elsewhere = {
        ".coveragerc", ".importlinter", ".ruff.toml", "alembic.ini", "mypy.ini", "pyrightconfig.json", "pytest.ini",
        "ruff.toml", "setup.cfg", "setup.py", "tox.ini",
    }  # fmt: skip
    assert not [path for path in files() if path.name in elsewhere]


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "misc", "common"}
    assert not [path for path in files() if path.suffix == ".py" and (path.stem in empty or path.parent.name in empty)]
