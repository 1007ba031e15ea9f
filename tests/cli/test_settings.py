"""What the environment may say, and what is refused with a name and a remedy."""

from pathlib import Path

import pytest

from app.settings import Settings, default_data_dir, is_loopback, read_settings, require_redis
from training.errors import ConfigError


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"VLMSCOPE_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


def test_defaults_keep_everything_in_one_directory_and_on_this_machine(tmp_path: Path) -> None:
    settings = read_settings()
    assert settings.data_dir == tmp_path / ".data"
    assert settings.database_url == f"sqlite:///{tmp_path}/.data/vlmscope.sqlite3"
    assert settings.runs_dir == tmp_path / ".data" / "runs"
    assert settings.cache_dir == tmp_path / ".data" / "cache"
    assert settings.dataset_roots == (tmp_path / ".data" / "datasets", tmp_path)
    assert (settings.host, settings.port, settings.redis_url) == ("127.0.0.1", 7860, None)


def test_user_directory_stands_in_where_the_current_one_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/home/ada/share")
    assert default_data_dir() == Path("/home/ada/share/vlmscope")


def test_variables_are_read_and_options_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLMSCOPE_PORT", "8000")
    monkeypatch.setenv("VLMSCOPE_ALLOWED_HOSTS", "gpu1, gpu1.example.org")
    monkeypatch.setenv("VLMSCOPE_DATASET_ROOTS", "/data/sets:/mnt/images")
    monkeypatch.setenv("VLMSCOPE_REDIS_URL", "")
    settings = read_settings({"port": None, "data_dir": "below"})
    assert settings.port == 8000
    assert settings.allowed_hosts == ("gpu1", "gpu1.example.org")
    assert settings.dataset_roots == (Path("/data/sets"), Path("/mnt/images"))
    assert settings.redis_url is None
    assert settings.data_dir == Path.cwd() / "below"
    assert read_settings({"port": 9000}).port == 9000


def test_child_process_gets_the_same_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = read_settings(
        {
            "data_dir": tmp_path / "d",
            "host": "::1",
            "redis_url": "redis://:secret@127.0.0.1:1/0",
            "allowed_hosts": ("a", "b"),
            "dataset_roots": (tmp_path / "x", tmp_path / "y"),
        }
    )
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir("/")
    assert read_settings() == settings


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.20", "gpu1.example.org"])
def test_address_that_others_can_reach_is_refused_until_it_is_meant(host: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_settings({"host": host})
    for part in (f"VLMSCOPE_HOST (--host) = {host}", "no login yet", "VLMSCOPE_ALLOW_REMOTE=1", "SSH tunnel"):
        assert part in str(refused.value)
    assert read_settings({"host": host, "allow_remote": True}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    assert read_settings({"host": host}).host == host


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("port", "0", "VLMSCOPE_PORT: Input should be greater than or equal to 1"),
        ("port", "70000", "VLMSCOPE_PORT: Input should be less than or equal to 65535"),
        ("port", "http", "VLMSCOPE_PORT: Input should be a valid integer"),
        ("database_url", "mysql://ada:secret@db/x", "VLMSCOPE_DATABASE_URL: expected sqlite:///FILE or postgresql"),
        ("redis_url", "amqp://ada:secret@mq/", "VLMSCOPE_REDIS_URL: expected redis://"),
        ("data_dir", 5, "VLMSCOPE_DATA_DIR: "),
        ("colour", "red", "VLMSCOPE_COLOUR: Extra inputs are not permitted"),
    ],
)
def test_refusal_names_the_variable_and_repeats_no_secret(name: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_settings({name: value})
    assert str(refused.value).startswith(expected)
    assert "secret" not in f"{refused.value} {refused.value.__cause__}"


def test_refused_data_directory_is_the_only_thing_named() -> None:
    with pytest.raises(ConfigError) as refused:
        read_settings({"data_dir": 5})
    assert str(refused.value).count("VLMSCOPE_") == 1


def test_repr_shows_no_url_with_a_password() -> None:
    settings = read_settings({"redis_url": "redis://:secret@h/0", "database_url": "postgresql+psycopg://a:secret@h/x"})
    assert "secret" not in repr(settings)


def test_missing_queue_is_told_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"set VLMSCOPE_REDIS_URL .* or start `vlmscope up`"):
        require_redis(read_settings())
    assert require_redis(read_settings({"redis_url": "redis://h/0"})) == "redis://h/0"
