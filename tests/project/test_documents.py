"""README and docs say what is true: the tree, the commands and their options, the links, the settings."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import Settings
from tests.project.readme_tree import with_tree
from tests.project.repository import ROOT, files
from tests.project.settings_table import DOCUMENT, with_table
from training.config import load_toml

DOCUMENTS = [path for path in files() if path.suffix == ".md"]
CODE_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
COMMENT = re.compile(r"\s#\s.*")


def read(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def commands(path: Path) -> list[list[str]]:
    """Every `make ...` and `vlmscope ...` of a document, in its shell blocks and its inline code, as words."""
    text = read(path)
    lines = [line for language, block in CODE_BLOCK.findall(text) if language == "sh" for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", CODE_BLOCK.sub("", text))
    words = [COMMENT.sub("", line).replace(".venv/bin/", "").split() for line in lines]
    return [command for command in words if len(command) > 1 and command[0] in ("make", "vlmscope")]


@functools.cache
def help_of(subcommand: str) -> str | None:
    """The help of a subcommand, or None when there is no such thing."""
    asked = [sys.executable, "-m", "app.cli", subcommand, "--help"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else None


def anchors(path: Path) -> set[str]:
    """The anchors that a Markdown file's headings give."""
    headings = re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", read(path)), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_tree_in_the_readme_is_the_tree_on_disk() -> None:
    text = read(Path("README.md"))
    assert text == with_tree(text), "python -m tests.project.readme_tree brings it up to date"


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_make_targets_and_variables_exist(document: Path) -> None:
    makefile = read(Path("Makefile"))
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    variables = set(re.findall(r"^([A-Z]+) \?=", makefile, re.M))
    for command in (words[1:] for words in commands(document) if words[0] == "make"):
        assert command[0] in targets
        assert {word.partition("=")[0] for word in command[1:] if re.match(r"[A-Z]+=", word)} <= variables


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_subcommands_and_their_options_exist(document: Path) -> None:
    for _, subcommand, *rest in (words for words in commands(document) if words[0] == "vlmscope"):
        shown = help_of(subcommand)
        assert shown is not None, f"vlmscope {subcommand}"
        assert not [word for word in rest if word.startswith("--") and word not in shown]


def test_readme_leads_with_the_two_commands() -> None:
    named = [" ".join(words) for words in commands(Path("README.md"))]
    assert named[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE_BLOCK.sub("", read(document))):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = (ROOT / document.parent / name).resolve() if name else ROOT / document
        assert linked.is_relative_to(ROOT), target
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked.relative_to(ROOT)), target


def test_configuration_page_has_every_setting_as_it_is() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == with_table(text), "python -m tests.project.settings_table brings it up to date"


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_settings_named_in_a_document_exist(document: Path) -> None:
    named = set(re.findall(r"\bVLMSCOPE_[A-Z_]+[A-Z]\b", read(document)))
    # not settings: what a run's process is marked with, and what tests are given
    named -= {"VLMSCOPE_RUN", "VLMSCOPE_ATTEMPT", "VLMSCOPE_TEST_POSTGRES_URL"}
    assert named <= {f"VLMSCOPE_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_example_runs_are_valid(document: Path) -> None:
    for language, block in CODE_BLOCK.findall(read(document)):
        if language == "toml":
            load_toml(block)
