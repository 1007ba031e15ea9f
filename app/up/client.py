"""The few REST calls that `vlmscope up` makes to its own web server."""

from typing import Any

import httpx

from training.config import RunConfig, dump_toml
from training.errors import VlmscopeError

_SECONDS = 5.0


class ApiRefused(VlmscopeError, RuntimeError):
    """The server answered with a refusal; the message is the server's."""


class Client:
    """REST on this machine.  Every method raises httpx.TransportError while the server does not answer."""

    def __init__(self, address: str) -> None:
        # trust_env=False: a proxy of the environment must not see calls to this machine
        self._http = httpx.Client(base_url=f"{address}/api/v1", timeout=_SECONDS, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def ready(self) -> bool:
        try:
            return self._http.get("/ready").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def has_worker(self, pid: int) -> bool:
        """Whether the worker with this process id has registered itself."""
        try:
            return any(worker["pid"] == pid for worker in self._get("/workers"))
        except httpx.TransportError:
            return False

    def submit(self, config: RunConfig, *, key: str) -> str:
        """Launch a run, once for each `key` however often it is asked; returns its id.  Raises ApiRefused."""
        headers = {"content-type": "application/toml", "idempotency-key": key}
        response = self._http.post("/runs", content=dump_toml(config), headers=headers, timeout=60.0)
        return _document(response)["id"]

    def unfinished(self, *, project: str, name: str) -> str | None:
        """The newest run of this name that waits or runs."""
        params = {"project": project, "state": ["queued", "starting", "running"], "limit": 100}
        runs = self._get("/runs", params)["items"]
        return next((run["id"] for run in runs if run["name"] == name), None)

    def run(self, run_id: str) -> dict[str, Any]:
        return self._get(f"/runs/{run_id}")

    def metric(self, run_id: str, name: str) -> list[tuple[int, float]]:
        """All (step, value) of one metric."""
        document = self._get(f"/runs/{run_id}/metrics", {"name": name, "max_points": 10_000}, timeout=30.0)
        return [(step, value) for step, value in document["series"].get(name, [])]

    def _get(self, path: str, params: dict[str, Any] | None = None, *, timeout: float = _SECONDS) -> Any:
        return _document(self._http.get(path, params=params, timeout=timeout))


def _document(response: httpx.Response) -> Any:
    if response.is_success:
        return response.json()
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = response.text[:500]
    raise ApiRefused(f"{response.request.method} {response.request.url.path}: {response.status_code}: {message}")
