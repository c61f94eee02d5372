"""The platforms' files name real settings and commands, and wait for a process that stops."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bot import app, costs
from bot.runtime import process, web, work
from tests.settings import Settings

ROOT = Path(__file__).parents[1]
STOPPING_S = 20  # the README promises this; a platform has to wait longer
RELEASE = "python -m bot check --release"


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


HEROKU: dict[str, Any] = json.loads(_text("app.json"))
RAILWAY: dict[str, Any] = json.loads(_text("railway.json"))
FLY: dict[str, Any] = tomllib.loads(_text("fly.toml"))
RENDER = _text("render.yaml")
PROCFILE = dict(line.split(": ", 1) for line in _text("Procfile").splitlines())


@pytest.mark.parametrize(
    "variables",
    [HEROKU["env"], FLY["env"], re.findall(r"- key: (\w+)", RENDER)],
    ids=["app.json", "fly.toml", "render.yaml"],
)
def test_every_variable_of_a_deploy_file_is_a_setting(variables: list[str]) -> None:
    assert variables
    assert {name.lower() for name in variables} <= set(Settings.model_fields)


def test_values_in_deploy_files_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {name: each["value"] for name, each in HEROKU["env"].items() if "value" in each}
    values |= FLY["env"]
    values |= re.findall(r"- key: (\w+)\n\s+value: \"?([^\"\n]*)", RENDER)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    for name, value in values.items():
        assert str(getattr(settings, name.lower())) == value


def test_every_platform_runs_the_same_command_after_a_check() -> None:
    assert PROCFILE == {"web": "python -m bot", "release": RELEASE}
    assert RAILWAY["deploy"]["startCommand"] == PROCFILE["web"]
    assert "preDeployCommand" not in RAILWAY["deploy"], "the image has no shell to run it"
    assert f"preDeployCommand: {RELEASE}\n" in RENDER
    assert FLY["deploy"]["release_command"] == RELEASE
    assert re.search(r"startCommand: .*&& exec python -m bot\n", RENDER)


def test_every_platform_waits_longer_than_a_stopping_process_needs() -> None:
    turns_and_learning = app._TURNS_GRACE_S + app._LEARNING_GRACE_S
    graces = work._GRACE_S + turns_and_learning + web.GRACE_S + costs._GRACE_S
    assert graces <= STOPPING_S < process._STOP_WITHIN_S
    waits = [FLY["kill_timeout"], RAILWAY["deploy"]["drainingSeconds"]]
    waits += map(int, re.findall(r"maxShutdownDelaySeconds: (\d+)", RENDER))
    assert len(waits) == 3
    assert min(waits) > STOPPING_S
    assert FLY["kill_signal"] == "SIGTERM"


def test_every_platform_asks_for_health_at_our_path() -> None:
    [check] = FLY["http_service"]["checks"]
    assert FLY["http_service"]["internal_port"] == int(FLY["env"]["PORT"])
    assert {check["path"], RAILWAY["deploy"]["healthcheckPath"]} == {"/healthz"}
    assert "healthCheckPath: /healthz\n" in RENDER


def test_stores_do_not_evict_and_are_closed_to_the_internet() -> None:
    assert HEROKU["addons"] == ["heroku-redis:mini"]  # noeviction by default
    assert "maxmemoryPolicy: noeviction\n" in RENDER
    assert re.search(r"ipAllowList: \[\]", RENDER)


def test_app_json_has_only_fields_that_heroku_describes() -> None:
    fields = {"name", "description", "keywords", "env", "addons", "formation", "buildpacks"}
    assert set(HEROKU) <= fields
    for variable in HEROKU["env"].values():
        assert set(variable) <= {"description", "value", "required", "generator"}
        assert isinstance(variable.get("value", ""), str)


def test_platforms_that_deploy_by_a_button_have_one_in_the_readme() -> None:
    readme = _text("README.md")
    for address in ("https://www.heroku.com/deploy", "https://render.com/deploy"):
        assert f".svg)]({address})" in readme


def test_railway_takes_seconds_as_numbers_only() -> None:
    deploy = RAILWAY["deploy"]
    for name in ("drainingSeconds", "overlapSeconds", "healthcheckTimeout"):
        assert isinstance(deploy[name], int)


def test_the_named_python_version_is_the_one_that_the_project_requires() -> None:
    needed = tomllib.loads(_text("pyproject.toml"))["project"]["requires-python"]
    assert needed == f">={_text('.python-version').strip()}"


def test_the_container_starts_the_same_without_root_and_without_a_shell() -> None:
    *before, image = _text("Dockerfile").split("\nFROM ")
    assert image.startswith("scratch\n")
    assert "\nRUN " not in image
    assert "\nUSER 10001:10001\n" in image
    assert image.index("USER") < image.index("CMD")
    assert image.endswith('CMD ["python", "-m", "bot"]\n')
    assert "\nSTOPSIGNAL SIGTERM\n" in image
    assert all(each.partition(" ")[0] != "ADD" for each in "\n".join(before).splitlines())


def test_the_container_holds_only_what_is_locked_and_copied_by_name() -> None:
    dockerfile = _text("Dockerfile")
    installs = re.findall(r"pip .*install (.*?)&&", dockerfile, re.DOTALL)
    assert [set(re.findall(r"--(?:require-hashes|only-binary)", each)) for each in installs] == [
        {"--require-hashes", "--only-binary"}
    ]
    assert "COPY ." not in dockerfile
    ignored = _text(".dockerignore").splitlines()
    lines = re.findall(r"^COPY (?!--)(.*) \S+$", dockerfile, re.MULTILINE)
    copied = [name for line in lines for name in line.split()]
    assert "*" in ignored
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied)
    assert not re.search(r"^(?:ARG|ENV) .*(?:TOKEN|KEY|PASSWORD|SECRET)", dockerfile, re.MULTILINE)


def test_the_program_that_writes_the_bytecode_of_the_container_runs() -> None:
    [program] = re.findall(r"python -c '([^']*)'", _text("Dockerfile"))
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_builder_of_each_platform_is_named_because_a_dockerfile_lies_in_the_root() -> None:
    assert RAILWAY["build"] == {"builder": "DOCKERFILE", "dockerfilePath": "Dockerfile"}
    assert FLY["build"] == {"dockerfile": "Dockerfile"}
    assert "runtime: python\n" in RENDER
    assert HEROKU["buildpacks"] == [{"url": "heroku/python"}]
    assert "dokku builder:set ricordo selected herokuish\n" in _text("docs/deploying.md")
    assert "\nVOLUME" not in _text("Dockerfile"), "Railway refuses it"


def test_the_buttons_ask_who_may_use_the_bot() -> None:
    assert HEROKU["env"]["ACCESS"]["value"] == "ask"
    assert HEROKU["env"]["ADMIN_USER_IDS"].get("required", True)
    assert re.search(r"- key: ACCESS .*\n\s+value: ask\n", RENDER)
    assert "- key: ADMIN_USER_IDS" in RENDER


def test_the_packages_of_traces_are_the_locked_ones_and_a_few_more() -> None:
    plain, traces = (
        set(re.findall(r"^([\w.-]+==\S+)", _text(name), re.MULTILINE))
        for name in ("requirements.txt", "requirements-traces.txt")
    )
    assert plain < traces
    more = {each.partition("==")[0] for each in traces - plain}
    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "sentry-sdk"} <= more
    assert traces <= set(
        re.findall(r"^([\w.-]+==\S+)", _text("requirements-dev.txt"), re.MULTILINE)
    )


def test_the_container_says_whether_it_is_healthy() -> None:
    dockerfile = _text("Dockerfile")
    [check] = re.findall(r"^HEALTHCHECK .*\\\n  CMD (\[.*\])$", dockerfile, re.MULTILINE)
    command = json.loads(check)
    assert command[:2] == ["python", "-c"]
    compile(command[2], "health check", "exec")
    assert "/healthz" in command[2]
    environment = re.findall(r"^ENV (.*(?:\\\n.*)*)$", dockerfile, re.MULTILINE)[0]
    port = re.findall(r"PORT=(\d+)", environment)[0]
    assert f"\nEXPOSE {port}\n" in dockerfile
    settings = set(Settings.model_fields) | {"path", "home", "ssl_cert_file"}
    named = {name.lower() for name in re.findall(r"(\w+)=", environment)}
    assert {name for name in named if not name.startswith("python")} <= settings


def test_compose_starts_a_valkey_that_keeps_its_data_and_is_not_published() -> None:
    bot, valkey = _text("compose.yaml").split("\n  valkey:\n", 1)
    assert "REDIS_URL: redis://:${VALKEY_PASSWORD:?" in bot
    assert "read_only: true" in bot
    assert int(re.findall(r"stop_grace_period: (\d+)s", bot)[0]) > STOPPING_S
    assert "--appendonly yes --maxmemory-policy noeviction" in valkey
    assert "requirepass" in valkey
    assert "ports:" not in valkey
