"""Starts the tree, keeps it running, follows the demo run, stops everything."""

import importlib.util
import time
from contextlib import closing
from dataclasses import dataclass

from app.listening import address, listen
from app.processes import kill_marked, marked
from app.settings import Settings
from app.store import migrate
from app.store.states import RunState
from app.up.client import Client
from app.up.console import Console
from app.up.demo import Demo
from app.up.interrupts import Interrupts
from app.up.lock import lock
from app.up.services import mark, stages
from app.up.summary import Summary
from app.up.tree import MARKER, POLL_SECONDS, Interrupted, Tree
from training.config import RunConfig
from training.errors import ConfigError

_LEFTOVER_SECONDS = 15.0
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for: the run to submit, and whether to end with it."""

    demo: RunConfig | None = None
    exit_at_end: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended; `summary` when it was to end with the demo run and did."""

    exit_code: int
    summary: Summary | None = None


def run(settings: Settings, order: Order) -> Outcome:
    """Run the installation until told to stop.  Raises VlmscopeError for what it refuses."""
    began = time.monotonic()
    console, interrupts = Console(), Interrupts()
    _look_for_torch(order, console)
    where = address(settings.host, settings.port)
    with lock(settings.data_dir, address=where), closing(Client(where)) as client:
        listen(settings.host, settings.port).close()
        _end_leftovers(mark(settings), console, interrupts)
        migrate.upgrade(settings.database_url)
        services = stages(settings, client)
        tree = Tree(services, settings.data_dir / "logs", mark(settings), console, interrupts)
        demo = Demo(client, order.demo, console, began=began) if order.demo is not None else None
        try:
            tree.start()
            console.say(f"dashboard: {where}   data: {settings.data_dir}")
            _keep_running(tree, demo, order)
        except Interrupted as error:
            console.say(str(error))
        finally:
            _stop(tree, console, order)
    if order.exit_at_end and demo is not None and demo.summary is not None:
        return Outcome(0 if demo.summary.state == RunState.SUCCEEDED else 1, demo.summary)
    return Outcome(_INTERRUPTED if order.exit_at_end or interrupts.at_once else 0)


def _keep_running(tree: Tree, demo: Demo | None, order: Order) -> None:
    while not tree.interrupts.stop:
        tree.tick()
        if demo is not None:
            demo.advance()
            if order.exit_at_end and demo.summary is not None:
                return
        time.sleep(POLL_SECONDS)


def _stop(tree: Tree, console: Console, order: Order) -> None:
    if tree.interrupts.stop and not tree.interrupts.at_once:
        console.say(
            "stopping: a run under way writes a checkpoint and goes on at the next start (Ctrl-C again: at once)"
        )
    tree.stop()
    if not order.exit_at_end:
        console.say("stopped")


def _look_for_torch(order: Order, console: Console) -> None:
    if importlib.util.find_spec("torch") is not None:
        return
    missing = "training needs torch, which is not installed here: pip install '.[train]' in the repository"
    if order.demo is not None:
        raise ConfigError(missing)
    console.say(f"warning: {missing}; every run fails until then")


def _end_leftovers(mark: str, console: Console, interrupts: Interrupts) -> None:
    """Training that outlived a killed tree is on its way to a checkpoint: wait for it, but not for ever."""
    left = marked(MARKER, mark)
    if left:
        console.say(f"waiting for {len(left)} processes of an earlier start to end")
    deadline = time.monotonic() + _LEFTOVER_SECONDS
    while marked(MARKER, mark) and not interrupts.stop and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    kill_marked(MARKER, mark)
