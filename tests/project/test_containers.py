"""Dockerfile and compose.yaml, read without an engine: every path, command, name and reference in them is real."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings, read_settings
from app.web import create_rest, open_services
from tests.project.repository import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def read_stages() -> dict[str, list[tuple[str, str]]]:
    """The Dockerfile's stages by name, each with its instructions after those of the stage it builds on."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    stages: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            source, _, name = rest.partition(" AS ")
            current = stages[name] = list(stages.get(source, []))
        else:
            current.append((instruction, rest.strip()))
    return stages


STAGES = read_stages()
IMAGES = ("web", "worker")


def values(image: str, instruction: str) -> list[str]:
    return [rest for name, rest in STAGES[image] if name == instruction]


def assert_real_subcommand(command: list[str]) -> None:
    assert command[0] == "vlmscope"
    asked = [sys.executable, "-m", "app.cli", *command[1:], "--help"]
    assert subprocess.run(asked, cwd=ROOT, capture_output=True, timeout=60).returncode == 0, command


def assert_settings(names: set[str]) -> None:
    ours = {name for name in names if name.startswith("VLMSCOPE_")}
    assert ours <= {f"VLMSCOPE_{field.upper()}" for field in Settings.model_fields}


@pytest.mark.parametrize("image", IMAGES)
def test_copied_paths_exist(image: str) -> None:
    copies = values(image, "COPY")
    assert copies
    for copy in copies:
        *sources, _ = copy.split()
        assert not [source for source in sources if not (ROOT / source).exists()]


@pytest.mark.parametrize("image", IMAGES)
def test_image_starts_a_real_command_of_its_own_name(image: str) -> None:
    command = json.loads(values(image, "CMD")[-1])
    assert command == ["vlmscope", image]
    assert_real_subcommand(command)


@pytest.mark.parametrize("image", IMAGES)
def test_image_sets_only_real_settings(image: str) -> None:
    assert_settings({pair.partition("=")[0] for line in values(image, "ENV") for pair in line.split()})


@pytest.mark.parametrize("image", IMAGES)
def test_image_runs_as_a_user_without_rights(image: str) -> None:
    instructions = [name for name, _ in STAGES[image]]
    assert values(image, "USER") == ["vlmscope"]
    assert "RUN" not in instructions[instructions.index("USER") :]


@pytest.mark.parametrize("image", IMAGES)
def test_image_holds_no_secret(image: str) -> None:
    given = " ".join(values(image, "ENV") + values(image, "ARG")).lower()
    assert not [word for word in ("password", "secret", "token", "api_key") if word in given]


@pytest.mark.parametrize("image", IMAGES)
def test_image_tells_its_health(image: str) -> None:
    assert len(values(image, "HEALTHCHECK")) == 1


def test_web_health_check_asks_a_real_route(tmp_path: Path) -> None:
    asked = re.search(r"http://127\.0\.0\.1:7860(/[\w/]+)", values("web", "HEALTHCHECK")[0])
    assert asked is not None
    assert asked[1] in create_rest(open_services(read_settings({"data_dir": tmp_path}))).openapi()["paths"]


def test_worker_health_check_runs_a_real_module() -> None:
    command = json.loads(values("worker", "HEALTHCHECK")[0].partition("CMD ")[2])
    assert command[:2] == ["python", "-m"]
    assert importlib.util.find_spec(command[2]) is not None


def test_web_image_has_no_torch_and_worker_image_installs_it_first() -> None:
    assert [run for run in values("web", "RUN") if run.startswith("pip")] == ["pip install --editable ."]
    assert [run for run in values("worker", "RUN") if run.startswith("pip")] == [
        "pip install ${TORCH}",
        "pip install --editable '.[train]'",
    ]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    default = re.search(r"^TORCH \?= (.+)$", makefile, re.M)
    assert default is not None
    assert values("worker", "ARG") == [f'TORCH="{default[1]}"']


def test_compose_builds_targets_that_exist() -> None:
    built = {name: service["build"] for name, service in SERVICES.items() if "build" in service}
    assert built.keys() == set(IMAGES)
    for name, build in built.items():
        assert (ROOT / build["context"]).resolve() == ROOT
        assert build["target"] == name
        assert name in STAGES


def test_compose_sets_only_real_settings() -> None:
    for service in SERVICES.values():
        assert_settings(set(service.get("environment", {})))


def test_compose_overrides_with_real_commands_only() -> None:
    for image in IMAGES:
        if "command" in SERVICES[image]:
            assert_real_subcommand(SERVICES[image]["command"])


def test_compose_depends_on_services_that_report_their_health() -> None:
    for service in SERVICES.values():
        for target, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[target] or values(target, "HEALTHCHECK")


def test_compose_mounts_declared_volumes_only() -> None:
    mounted = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert mounted == COMPOSE["volumes"].keys()


def test_data_directory_is_a_volume_shared_by_web_and_worker() -> None:
    for image in IMAGES:
        assert "data:/data" in SERVICES[image]["volumes"]
        assert SERVICES[image]["environment"]["VLMSCOPE_DATA_DIR"] == values(image, "VOLUME")[0] == "/data"


def test_published_ports_are_on_loopback_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:7860:7860"]


def test_redis_drops_no_key_and_keeps_them_over_a_restart() -> None:
    command = SERVICES["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert (options["--maxmemory-policy"], options["--appendonly"]) == ("noeviction", "yes")


def test_passwords_come_from_the_environment() -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for line in text.splitlines():
        if re.search(r"(PASSWORD|AUTH|_URL|requirepass)\b.*[:,]", line) and not line.startswith("#"):
            assert re.search(r"\$\{(POSTGRES|REDIS)_PASSWORD:\?", line), line


def test_database_urls_name_services_and_drivers_that_are_installed() -> None:
    environment = SERVICES["web"]["environment"]
    assert environment["VLMSCOPE_DATABASE_URL"].startswith("postgresql+psycopg://")
    for name in ("VLMSCOPE_DATABASE_URL", "VLMSCOPE_REDIS_URL"):
        host = re.search(r"@([\w-]+)", environment[name])
        assert host is not None
        assert host[1] in SERVICES
