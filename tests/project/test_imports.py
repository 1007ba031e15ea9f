"""Which module may import which: the contracts of pyproject.toml, and the few imports inside functions."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.project.repository import ROOT, python_files

COMPUTED = "(computed)"
# Imports stand at the top of a file, these excepted: (file, imported module) -> why.
LAZY_IMPORTS: dict[tuple[str, str], str] = {
    ("app/api/trackio_mount.py", "trackio.server"): "optional: what it lacks must not stop the server",
    ("app/cli/__init__.py", COMPUTED): "only the subcommand that is asked for is imported",
    ("app/cli/migrate.py", "app.store"): "help must not wait for SQLAlchemy",
    ("app/cli/torch_import.py", COMPUTED): "help must not wait for torch, and its absence is told in words",
    ("app/cli/up.py", "app.up.run"): "help must not wait for SQLAlchemy",
    ("app/cli/web.py", "app.store"): "help, and the refusal of a taken port, must not wait for the web's imports",
    ("app/cli/web.py", "app.web"): "help, and the refusal of a taken port, must not wait for the web's imports",
    ("app/cli/web.py", "uvicorn"): "help, and the refusal of a taken port, must not wait for the web's imports",
    ("app/cli/worker.py", "worker.host"): "help must not wait for Celery",
    ("training/tracking.py", "trackio"): "optional: only for runs that mirror their metrics",
}

WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "accelerate", "peft", "safetensors", "vllm"):
    sys.modules[name] = None  # an import of it fails, as where it is not installed

import worker.host, worker.supervisor, worker.tasks
from app.settings import read_settings
from app.store.migrate import upgrade
from app.web import create_app

settings = read_settings({"data_dir": sys.argv[1]})
upgrade(settings.database_url)
print(create_app(settings).title)
"""


def test_import_contracts_hold() -> None:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_web_and_worker_load_where_torch_is_not_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "vlmscope"


def test_imports_inside_functions_are_the_listed_ones() -> None:
    sources = python_files("app", "worker", "training")
    found = {(path.as_posix(), module) for path in sources for module in _inner_imports(path)}
    assert found == LAZY_IMPORTS.keys()


def _inner_imports(path: Path) -> set[str]:
    """Modules that a file imports inside a function."""
    functions = [
        node
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    modules: set[str] = set()
    for node in (inner for function in functions for inner in ast.walk(function)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or ".")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            name = node.args[0]
            modules.add(str(name.value) if isinstance(name, ast.Constant) else COMPUTED)
    return modules
