"""Settings come from a file, then the environment, then arguments; the later ones win."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from duly.core.errors import ConfigurationError
from duly.settings import Settings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "duly.toml"
    path.write_text(
        '[duly]\npool_max = 20\npool_min = 2\ndatabase_url = "postgresql://file"\n', encoding="utf-8"
    )
    return path


def refusal(**arguments: object) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as refused:
        Settings.load(**{"environ": {}, **arguments})  # type: ignore[arg-type]
    return refused.value


def test_without_any_source_the_defaults_apply() -> None:
    assert Settings.load(environ={}) == Settings()


def test_arguments_override_the_environment_and_the_environment_overrides_the_file(file: Path) -> None:
    environ = {"DULY_POOL_MAX": "30", "DULY_DATABASE_URL": "postgresql://env"}
    loaded = Settings.load(file=file, environ=environ, database_url="postgresql://argument")
    assert (loaded.pool_min, loaded.pool_max, loaded.database_url) == (2, 30, "postgresql://argument")


def test_an_argument_of_none_is_ignored(file: Path) -> None:
    assert Settings.load(file=file, environ={}, database_url=None).database_url == "postgresql://file"


def test_duly_config_names_the_file(file: Path) -> None:
    assert Settings.load(environ={"DULY_CONFIG": str(file)}).pool_max == 20


def test_the_file_argument_overrides_duly_config(file: Path) -> None:
    assert Settings.load(file=file, environ={"DULY_CONFIG": "/nowhere.toml"}).pool_max == 20


def test_the_environment_of_the_process_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DULY_CONFIG", raising=False)
    monkeypatch.setenv("DULY_POOL_TIMEOUT", "2.5")
    assert Settings.load().pool_timeout == 2.5


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_field_can_be_set_by_an_environment_variable(name: str) -> None:
    default = getattr(Settings(), name)
    value, parsed = _other_value(name, default)
    assert getattr(Settings.load(environ={f"DULY_{name.upper()}": value}), name) == parsed != default


def _other_value(name: str, default: object) -> tuple[str, object]:
    match default:
        case bool():
            return "no", False
        case int() | float():
            return ("7777", 7777) if name == "result_max" else ("7", 7)
        case timedelta():
            return "7.75", timedelta(seconds=7.75)
        case dict():
            return "q:video=7, q:critical=PT8S", {
                **default,
                "q:video": timedelta(seconds=7),
                "q:critical": timedelta(seconds=8),
            }
        case tuple() if name == "webhook_allow":
            return "intranet, ::1, 10.0.0.0/8", ("intranet", "::1", "10.0.0.0/8")
        case tuple() if name == "alert_recipients":
            return "email:ops@example.com, pager:ops", ("email:ops@example.com", "pager:ops")
        case tuple():
            return "q:default, q:exports", ("q:default", "q:exports")
    others: dict[str, tuple[str, object]] = {
        "public_url": ("https://duly.example", "https://duly.example"),
        "metrics_port": ("9464", 9464),
        "traces": ("otlp", "otlp"),
        "log_format": ("json", "json"),
        "log_level": ("debug", "debug"),
        "job_log_level": ("off", "off"),
        "keep_audit": ("P800D", timedelta(days=800)),
        "smtp_url": ("smtp://mail.example", "smtp://mail.example"),
        "mail_from": ("Duly <duly@example.com>", "Duly <duly@example.com>"),
        "unstructured_url": ("https://reads.example", "https://reads.example"),
        "sign_in_scopes": ("openid email", "openid email"),
        "home": ("/somewhere", Path("/somewhere")),
        "secrets_dir": ("/secrets", Path("/secrets")),
    }
    return others.get(name, ("host=somewhere", "host=somewhere"))


def test_unknown_environment_variables_are_ignored() -> None:
    assert Settings.load(environ={"DULY_NO_SUCH_THING": "1", "POOL_MAX": "99"}) == Settings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DULY_POOL_MAX", "many"),
        ("DULY_POOL_MAX", "0"),
        ("DULY_POOL_MIN", "-1"),
        ("DULY_POOL_TIMEOUT", "0"),
        ("DULY_POOL_TIMEOUT", "nan"),
        ("DULY_PAYLOAD_INLINE_MAX", "32k"),
        ("DULY_ALERT_WAITS", "q:default"),
        ("DULY_SMTP_URL", "http://foo"),
        ("DULY_MAIL_FROM", "foo"),
        ("DULY_WEBHOOK_ALLOW", "http://foo/"),
        ("DULY_WEBHOOK_ALLOW", "10.0.0.0/33"),
        ("DULY_WEBHOOK_ALLOW", "10.0.0.300"),
        ("DULY_ALERT_RECIPIENTS", "ops@example.com"),
        ("DULY_UNSTRUCTURED_URL", "reads.example"),
    ],
)
def test_a_bad_value_names_its_field_and_its_variable(variable: str, value: str) -> None:
    refused = refusal(environ={variable: value})
    assert refused.field == variable.removeprefix("DULY_").lower()
    assert variable in str(refused)


@pytest.mark.parametrize("environ", [{"DULY_POOL_MIN": "5", "DULY_POOL_MAX": "4"}, {"DULY_POOL_MIN": "11"}])
def test_a_pool_smaller_than_its_minimum_is_refused(environ: dict[str, str]) -> None:
    refused = refusal(environ=environ)
    assert refused.field == "pool_max"
    assert f"pool_min, which is {environ['DULY_POOL_MIN']}" in str(refused)


def test_an_unknown_key_of_the_file_is_refused_and_the_known_ones_are_listed(file: Path) -> None:
    file.write_text("[duly]\npool_mxa = 20\n", encoding="utf-8")
    refused = refusal(file=file)
    assert refused.field == "pool_mxa"
    assert "pool_max" in str(refused)


def test_an_unknown_argument_is_refused() -> None:
    assert refusal(pool_mxa=20).field == "pool_mxa"


def test_other_tables_of_the_file_are_ignored(file: Path) -> None:
    file.write_text("[other]\nx = 1\n", encoding="utf-8")
    assert Settings.load(file=file, environ={}) == Settings()


@pytest.mark.parametrize(
    "content", [b"[duly", b"duly = 3", b"duly = ['pool_max']", b"[duly]\nhome = '\xff'", None]
)
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.toml"
    if content is not None:
        path.write_bytes(content)
    refused = refusal(environ={"DULY_CONFIG": str(path)})
    assert refused.field == "DULY_CONFIG"
    assert str(path) in str(refused)


def test_settings_are_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().pool_max = 3  # type: ignore[misc]


def test_an_empty_variable_is_ignored() -> None:
    settings = Settings.load(environ={"DULY_DATABASE_URL": "", "DULY_POOL_MAX": ""})
    assert (settings.database_url, settings.pool_max) == (None, 10)


def test_the_database_url_is_not_printed() -> None:
    settings = Settings.load(environ={"DULY_DATABASE_URL": "postgresql://app:hunter2@db/app"})
    assert "hunter2" not in repr(settings) + str(settings)


def test_a_tilde_in_home_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.load(environ={"DULY_HOME": "~/data"}).home == tmp_path / "data"


@pytest.mark.parametrize("url", ["garbage", "mysql://x", "postgresql://[host/x"])
def test_an_invalid_database_url_is_refused_by_field(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(environ={"DULY_DATABASE_URL": url})
    assert caught.value.field == "database_url"


def test_a_duration_is_given_in_seconds_or_iso_8601() -> None:
    settings = Settings.load(environ={"DULY_WORKER_LEASE": "45", "DULY_KEEP_EVENTS": "P60D"})
    assert (settings.worker_lease.total_seconds(), settings.retention.events.days) == (45, 60)


def test_jobs_must_be_retained_as_long_as_their_events() -> None:
    with pytest.raises(ConfigurationError) as caught:
        assert Settings.load(environ={"DULY_KEEP_JOBS": "P1D"}).retention
    assert caught.value.field == "keep_jobs"


def test_a_former_setting_name_works_with_a_deprecation_warning() -> None:
    with pytest.warns(DeprecationWarning, match="pool_patience is deprecated: use pool_timeout"):
        settings = Settings.load(environ={"DULY_POOL_PATIENCE": "3"})
    assert settings.pool_timeout == 3
    with pytest.warns(DeprecationWarning, match="upkeep is deprecated: use maintenance"):
        assert not Settings.load(environ={}, upkeep=False).maintenance  # type: ignore[call-arg]
