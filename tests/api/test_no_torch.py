"""The web process never loads torch: it starts in seconds and cannot spoil a forked worker's CUDA."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path

from app.settings import Settings
from app.store.migrate import upgrade
from app.web import create_app

settings = Settings(data_dir=Path(sys.argv[1]))
upgrade(settings.database_url)
app = create_app(settings)
paths = {getattr(route, "path", "") for route in app.routes}
assert "/api/v1/runs" in str(app.openapi()["paths"].keys()), paths
print([name for name in ("torch", "transformers", "accelerate", "peft", "vllm") if name in sys.modules])
"""


def test_building_the_whole_app_in_a_fresh_interpreter_loads_no_torch(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"
