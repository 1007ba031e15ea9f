"""What is submitted is what is stored, and a submission key makes one run."""

from concurrent.futures import ThreadPoolExecutor

from app.store import RunState, Store
from app.store.queries.runs import find_by_key, get_run
from app.store.run_writes import Created, create_run, create_run_once
from training.config import GRPOConfig, RewardConfig, RunConfig


def test_the_configuration_comes_back_as_it_was(store: Store):
    config = RunConfig(
        name="größer 颜色",
        tags=("a", "ß"),
        rewards=(RewardConfig(name="accuracy", weight=0.1, options={"z": [1, None, True], "a": "x"}),),
        algorithm=GRPOConfig(epsilon_high=0.28),
    )
    with store.write() as session:
        run_id = create_run(session, config, created_by="ada")
    with store.read() as session:
        run = get_run(session, run_id)
    assert run is not None
    assert run.config == config
    assert (run.name, run.tags, run.created_by) == ("größer 颜色", ["a", "ß"], "ada")
    assert (run.state, run.step, run.max_steps, run.attempt) == (RunState.QUEUED, 0, 100, 0)
    assert run.created_at.tzinfo is not None


def test_ids_are_never_given_twice_and_leave_room_for_rows(store: Store, config: RunConfig):
    with store.write() as session:
        ids = [create_run(session, config) for _ in range(3)]
    assert ids == sorted(set(ids))
    assert max(ids) < 2**31


def test_one_key_makes_one_run_however_many_try_at_once(store: Store, config: RunConfig):
    def submit(_: int) -> Created:
        with store.write() as session:
            return create_run_once(session, config, key="a-click")

    with ThreadPoolExecutor(16) as pool:
        created = list(pool.map(submit, range(32)))
    assert len({run_id for run_id, _ in created}) == 1
    assert sum(fresh for _, fresh in created) == 1
    with store.read() as session:
        assert find_by_key(session, "a-click") == created[0].run_id
        assert find_by_key(session, "another") is None


def test_runs_without_a_key_are_all_different(store: Store, config: RunConfig):
    with store.write() as session:
        assert create_run(session, config) != create_run(session, config)
