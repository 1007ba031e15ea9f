"""What a run left, read back: numbers, texts, rewards and images are those that were recorded."""

import hashlib

from fastapi.testclient import TestClient

from app.runs import Services
from app.store.run_writes import add_log_lines
from tests.api.rows import png


def _get(client: TestClient, path: str, **query: object) -> dict:
    answer = client.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_finished_run_shows_its_progress_and_end(client: TestClient, run_id: int):
    run = _get(client, f"runs/{run_id}")
    assert run["id"] == str(run_id)
    assert (run["state"], run["step"], run["max_steps"], run["attempt"]) == ("succeeded", 2, 2, 1)
    assert (run["reward_first"], run["reward"]) == (0.25, 0.5)
    assert (run["completions"], run["images"], run["exit_code"]) == (8, 2, 0)
    assert run["ended_at"] >= run["started_at"] >= run["created_at"]


def test_runs_are_listed_by_state_project_and_text(client: TestClient, run_id: int):
    def names(**query: object) -> list[str]:
        return [run["name"] for run in _get(client, "runs", **query)["items"]]

    assert names() == names(state="succeeded") == names(project="default") == names(q="colours") == ["colours"]
    assert names(state=["queued", "running"]) == names(project="other") == names(q="shapes") == []


def test_pages_of_runs_follow_each_other(client: TestClient, services: Services, config, run_id: int):
    ids = [str(services.runs.launch(config)) for _ in range(3)]
    first = _get(client, "runs", limit=3)
    second = _get(client, "runs", limit=3, after=first["next"])
    assert [run["id"] for run in first["items"]] == ids[::-1]
    assert [run["id"] for run in second["items"]] == [str(run_id)]
    assert second["next"] is None


def test_metrics_are_points_of_step_and_value(client: TestClient, run_id: int):
    metrics = _get(client, f"runs/{run_id}/metrics")
    assert {"reward", "loss", "eval_accuracy"} <= set(metrics["names"])
    assert metrics["series"]["reward"] == [[1, 0.25], [2, 0.5]]
    assert metrics["series"]["loss"] == [[1, -0.125], [2, -0.125]]
    assert metrics["series"]["eval_accuracy"] == [[0, 0.5]]
    assert set(_get(client, f"runs/{run_id}/metrics", name=["loss", "no such"])["series"]) == {"loss"}


def test_a_group_shows_prompt_images_and_every_completion_side_by_side(client: TestClient, run_id: int):
    page = _get(client, f"runs/{run_id}/groups", step=1)
    assert len(page["items"]) == 2
    group = next(group for group in page["items"] if group["sample"]["columns"]["answer"] == "red")
    assert group["sample"]["messages"][0]["content"][1]["text"] == "Which colour?"
    sha256 = hashlib.sha256(png("red")).hexdigest()
    assert group["sample"]["images"] == [
        {
            "sha256": sha256,
            "width": 32,
            "height": 24,
            "position": 0,
            "urls": {size: f"/media/{sha256}/{size}" for size in ("thumb", "md", "full")},
        }
    ]
    right, wrong = group["completions"]
    assert (right["text"], right["reward"], right["advantage"], right["num_tokens"]) == ("red", 1.0, 0.5, 3)
    assert (wrong["text"], wrong["reward"], wrong["advantage"]) == ("<img src=x onerror=alert(1)>", 0.0, -0.5)
    assert right["rewards"] == [{"name": "accuracy", "value": 1.0, "error": None, "parsed": "red"}]
    assert (group["reward_mean"], group["reward_std"], group["zero_signal"]) == (0.5, 0.5, False)
    assert _get(client, f"groups/{group['id']}") == group


def test_ids_are_strings_as_javascript_has_no_large_numbers(client: TestClient, run_id: int):
    group = _get(client, f"runs/{run_id}/groups")["items"][0]
    assert int(group["id"]) >> 32 == run_id
    assert all(isinstance(group[name], str) for name in ("id", "run_id"))
    assert all(isinstance(group["completions"][0][name], str) for name in ("id", "run_id", "group_id"))


def test_groups_come_in_pages_without_gap_or_repeat(client: TestClient, run_id: int):
    seen, after = [], None
    while True:
        page = _get(client, f"runs/{run_id}/groups", limit=1, **({"after": after} if after else {}))
        seen += [group["id"] for group in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 4


def test_completions_are_searched_and_sorted(client: TestClient, run_id: int):
    def texts(**query: object) -> list[str]:
        return [row["text"] for row in _get(client, f"runs/{run_id}/completions", **query)["items"]]

    assert len(texts()) == 8
    assert texts(q="blue") == ["blue"] * 3
    assert texts(q="purple") == []
    assert texts(step=1, q="onerror") == ["<img src=x onerror=alert(1)>"] * 2
    rewards = [row["reward"] for row in _get(client, f"runs/{run_id}/completions", sort="reward")["items"]]
    assert rewards == [1.0] * 6 + [0.0] * 2
    lengths = _get(client, f"runs/{run_id}/completions", sort="num_tokens", descending=False)["items"]
    assert [row["num_tokens"] for row in lengths] == [3] * 4 + [4] * 4


def test_search_text_is_never_a_query_language(client: TestClient, run_id: int):
    for text in ('"', "'", "a OR", "NOT", "*", "(", "col:x", "-", "^", "\\", "%", "a" * 400, "NEAR(", "{", "+", " "):
        _get(client, f"runs/{run_id}/completions", q=text)
        _get(client, "runs", q=text)


def test_steps_say_where_completions_are(client: TestClient, run_id: int):
    assert _get(client, f"runs/{run_id}/steps") == {"first": 1, "last": 2, "count": 2}


def test_events_hold_state_moves_and_warnings_and_go_on_from_a_cursor(client: TestClient, run_id: int):
    page = _get(client, f"runs/{run_id}/events")
    assert any(row["code"] == "shared_path_fallback" and row["level"] == "warning" for row in page["items"])
    rest = _get(client, f"runs/{run_id}/events", after=page["items"][0]["id"])
    assert rest["items"] == page["items"][1:]
    assert _get(client, f"runs/{run_id}/events", after=page["next"]) == {"items": [], "next": page["next"]}


def test_a_log_is_followed_by_its_cursor(client: TestClient, services: Services, run_id: int):
    with services.store.write() as session:
        add_log_lines(session, run_id, 1, [f"line {number}" for number in range(5)])
    first = _get(client, f"runs/{run_id}/logs", limit=3)
    assert [row["text"] for row in first["items"]] == ["line 0", "line 1", "line 2"]
    rest = _get(client, f"runs/{run_id}/logs", after=first["next"])
    assert [row["text"] for row in rest["items"]] == ["line 3", "line 4"]
    tail = _get(client, f"runs/{run_id}/logs", limit=2, tail=True)
    assert [row["text"] for row in tail["items"]] == ["line 3", "line 4"]
    with services.store.write() as session:
        add_log_lines(session, run_id, 1, ["line 5"])
    assert [row["text"] for row in _get(client, f"runs/{run_id}/logs", after=rest["next"])["items"]] == ["line 5"]
