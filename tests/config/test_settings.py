"""What operators may set, and what a refusal says."""

import inspect
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from zoneinfo import ZoneInfo

import pytest
from openai.types import embedding_model
from openai.types.shared import chat_model
from pydantic import SecretStr, ValidationError
from pydantic_core import PydanticUndefined

from bot.runtime.process import memory_options
from config.loading import SettingsError, allowed, hide_secrets, load_settings
from tests.settings import Settings

ROOT = Path(__file__).parents[2]
TOKEN = "123456:AAbb_cc-dd"
README_SETTINGS = (
    "telegram_bot_token", "openai_api_key", "openai_base_url", "openai_model",
    "openai_embedding_model", "redis_url", "webhook_url", "admin_user_ids", "allowed_user_ids",
    "access", "memory_ttl_days",
)  # fmt: skip

Loader = Callable[..., Settings]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Loader:
    """Load settings from exactly the variables given."""
    for name in os.environ:
        monkeypatch.delenv(name)

    def load_from(env_file: str | None = None, **variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return load_settings(env_file, Settings)

    return load_from


def test_every_setting_has_a_default(load: Loader) -> None:
    settings = load(HOME="/home/ada")
    assert settings.telegram_bot_token is None
    assert settings.webhook_secret is None
    assert settings.redis_url is None
    assert settings.timezone == ZoneInfo("UTC")
    assert settings.data_dir == Path("/home/ada/.local/share/ricordo")


def test_every_setting_has_a_description_of_one_line() -> None:
    for field in Settings.model_fields.values():
        assert field.description
        assert "\n" not in field.description


def test_settings_cannot_be_changed(load: Loader) -> None:
    with pytest.raises(ValidationError):
        load().port = 1  # type: ignore[misc]


WRITTEN: dict[str, list[tuple[str, str, object]]] = {
    "an empty value counts as not set": [
        ("PORT", "", 8080),
        ("TELEGRAM_BOT_TOKEN", "  ", None),
        ("OPENAI_MODEL", "\n", "gpt-5.4-mini"),
    ],
    "spaces around a value are dropped": [
        ("OPENAI_API_KEY", " key\n", SecretStr("key")),
        ("OPENAI_MODEL", " model ", "model"),
        ("PORT", " 80 ", 80),
    ],
    "ids are separated by commas or spaces": [
        ("ADMIN_USER_IDS", ids, frozenset({7, 8})) for ids in ("7,8", "7 8", " 7 ,\t8, ")
    ],
    "choices may be written in any case": [
        ("OPENAI_VERBOSITY", "HIGH", "high"),
        ("OPENAI_EMBEDDING_MODEL", "Off", None),
    ],
    "a slash at the end of an address is dropped": [
        ("OPENAI_BASE_URL", "http://x/v1/", "http://x/v1")
    ],
}


@pytest.mark.parametrize("rule", WRITTEN)
def test_a_value_may_be_written_in_several_ways(load: Loader, rule: str) -> None:
    for variable, text, value in WRITTEN[rule]:
        assert getattr(load(**{variable: text}), variable.lower()) == value


def test_the_environment_wins_over_the_file(load: Loader, tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("PORT=1000\nRECALL_K=3\nSOMEBODY_ELSES=1\n")
    settings = load(str(env_file), PORT="2000")
    assert (settings.port, settings.recall_k) == (2000, 3)


@pytest.mark.parametrize("model", ["FALLBACK", "OPENAI_EMBEDDING"])
def test_another_model_has_the_first_ones_server_and_key_but_no_other_server_gets_this_key(
    load: Loader, model: str
) -> None:
    def server_and_key(**variables: str) -> tuple[str, SecretStr | None]:
        settings = load(FALLBACK_MODEL="spare", OPENAI_API_KEY="key", **variables)
        name = model.lower()
        return getattr(settings, f"{name}_base_url"), getattr(settings, f"{name}_api_key")

    there = "http://other/v1"
    assert server_and_key(OPENAI_BASE_URL="http://x/v1") == ("http://x/v1", SecretStr("key"))
    assert server_and_key(**{f"{model}_BASE_URL": there}) == (there, None)
    assert server_and_key(**{f"{model}_API_KEY": "own"}) == (there, SecretStr("own"))


def test_a_fallback_server_needs_a_fallback_model(load: Loader) -> None:
    with pytest.raises(SettingsError, match="need FALLBACK_MODEL"):
        load(FALLBACK_BASE_URL="http://x/v1")


BAD_VALUES = """
    ADMIN_USER_IDS=7,ada; ALLOWED_USER_IDS=-7; COALESCE_S=2.1; LEASE_S=0.5;
    OPENAI_VERBOSITY=all; MEMORY_TTL_DAYS=forever; OPENAI_BASE_URL=api.openai.com/v1;
    OPENAI_BASE_URL=https://me:pass@api.openai.com/v1; OPENAI_EMBEDDING_DIMENSIONS=0;
    PORT=65536; REDIS_MAX_CONNECTIONS=1; REDIS_URL=http://host;
    REDIS_URL=redis://; REDIS_URL=redis://host:port; REDIS_URL=unix://;
    REDIS_URL=redis://a?memory_mb=much; SEARCH=https://me:pass@searx; SEARCH=ftp://searx;
    SEARCH=searx.example.org; REDIS_URL=redis://a?memory_mb=26214400;
    SYSTEM_PROMPT_FILE=/no/such/file; TELEGRAM_API_URL=ftp://host; TELEGRAM_BOT_TOKEN=AAbb;
    TIMEZONE=Europe; TIMEZONE=Mars/Olympus; TIMEZONE=../etc/passwd; WEBHOOK_SECRET=with space;
    WEBHOOK_URL=http://bot.example.org
"""


@pytest.mark.parametrize("bad", [each.strip() for each in BAD_VALUES.split(";")])
def test_a_refusal_names_the_variable_of_a_bad_value(load: Loader, bad: str) -> None:
    variable, _, value = bad.partition("=")
    with pytest.raises(SettingsError) as refusal:
        load(**{variable: value})
    [line] = str(refusal.value).splitlines()
    assert line.startswith(f"{variable} takes ")


def test_one_refusal_names_all_bad_values_and_shows_none(load: Loader) -> None:
    value = "hush" + "!"  # so that the line of code itself does not show it
    with pytest.raises(SettingsError) as refusal:
        load(TELEGRAM_BOT_TOKEN=value, WEBHOOK_SECRET=value, REDIS_URL=value, PORT=value)
    shown = "".join(traceback.format_exception(refusal.value))
    named = ["PORT", "REDIS_URL", "TELEGRAM_BOT_TOKEN", "WEBHOOK_SECRET"]
    assert [line.split()[0] for line in str(refusal.value).splitlines()] == named
    assert value not in shown


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"PROMPT_TOKENS": "2000", "REPLY_TOKENS": "1000"},
            "REPLY_TOKENS must be less than half of PROMPT_TOKENS: lower it, or raise the other",
        ),
        ({"WEBHOOK_URL": "https://bot.example.org"}, "WEBHOOK_URL needs TELEGRAM_BOT_TOKEN"),
        (
            {"TURN_TIMEOUT_S": "10"},
            "TURN_TIMEOUT_S must be at least TOOL_TIMEOUT_S and MODEL_TIMEOUT_S",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    load: Loader, variables: dict[str, str], expected: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        load(**variables)
    assert str(refusal.value) == expected


def test_an_address_may_tell_the_memory_of_a_redis_plan(load: Loader) -> None:
    assert load().redis_memory_mb == load(REDIS_URL="redis://a").redis_memory_mb == 0
    given = load(REDIS_URL="redis://:p@a/0?memory_mb=25")
    assert given.redis_memory_mb == 25
    assert memory_options(given).redis_bytes == 25 * 2**20


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:8080"])
def test_a_webhook_on_loopback_needs_no_https(load: Loader, host: str) -> None:
    settings = load(TELEGRAM_BOT_TOKEN=TOKEN, WEBHOOK_URL=f"http://{host}/")
    assert settings.webhook_url == f"http://{host}"


def test_the_webhook_secret_is_derived_from_the_token(load: Loader) -> None:
    first = load(TELEGRAM_BOT_TOKEN=TOKEN).webhook_secret
    again = load(TELEGRAM_BOT_TOKEN=TOKEN).webhook_secret
    other = load(TELEGRAM_BOT_TOKEN=TOKEN + "x").webhook_secret
    assert first is not None
    assert first == again
    assert first != other
    assert load(WEBHOOK_SECRET=first.get_secret_value()).webhook_secret == first
    assert load(WEBHOOK_SECRET="own").webhook_secret == SecretStr("own")


MARKS = {"DYNO": "heroku", "RENDER": "render", "RAILWAY_ENVIRONMENT_ID": "railway"}
MARKS |= {"FLY_APP_NAME": "fly"}


@pytest.mark.parametrize("variable", [*MARKS, "SHELL"])
def test_a_platform_is_recognised_by_its_variables(load: Loader, variable: str) -> None:
    assert load(**{variable: "x"}).platform == MARKS.get(variable)


def test_certificates_are_checked_except_on_heroku(load: Loader) -> None:
    assert load().verifies_redis_tls
    assert not load(DYNO="web.1").verifies_redis_tls


def test_the_data_folder_follows_xdg_data_home(load: Loader) -> None:
    assert load(XDG_DATA_HOME="/data").data_dir == Path("/data/ricordo")
    assert load(DATA_DIR="/volume").data_dir == Path("/volume")


def test_the_repr_of_settings_shows_no_secret(load: Loader) -> None:
    shown = repr(
        load(
            TELEGRAM_BOT_TOKEN=TOKEN,
            OPENAI_API_KEY="hush",
            OPENAI_EMBEDDING_API_KEY="hush",
            REDIS_URL="redis://:hush@host",
            WEBHOOK_SECRET="hush",
        )
    )
    assert "hush" not in shown
    assert TOKEN not in shown


def test_there_are_at_most_78_settings() -> None:
    assert len(Settings.model_fields) <= 78  # only lowered


def settings_table(names: Collection[str] = tuple(Settings.model_fields)) -> str:
    """Return a Markdown table of these settings in the order of the class."""
    rows = [("variable", "default", "allowed", "meaning"), ("---", "---", "---", "---")]
    for name, field in Settings.model_fields.items():
        if name in names:
            given = field.default
            words = given if isinstance(given, tuple) else (given,)
            is_shown = given is not PydanticUndefined and given not in (None, (), frozenset())
            default = f"`{' '.join(map(str, words))}`" if is_shown else ""
            rows.append((f"`{name.upper()}`", default, allowed(field), field.description or ""))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def test_the_readmes_show_the_tables() -> None:
    of_config, ours = (ROOT / path / "README.md" for path in ("config", ""))
    assert settings_table() in of_config.read_text("utf-8")
    assert settings_table(README_SETTINGS) in ours.read_text("utf-8")


def test_the_example_file_names_only_settings_and_loads(load: Loader) -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assignments = [
        line.removeprefix("#") for line in example.splitlines() if "=" in line and " " not in line
    ]
    assert assignments
    assert {line.partition("=")[0].lower() for line in assignments} <= set(Settings.model_fields)
    assert load(str(ROOT / ".env.example")).telegram_bot_token is None


def test_an_env_file_that_is_not_text_is_refused_in_one_line(load: Loader, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"OPENAI_MODEL=\xff\xfe\n")
    with pytest.raises(SettingsError, match=r"^\S+\.env is not UTF-8 text: save it as UTF-8$"):
        load(str(tmp_path / ".env"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_env_file_is_refused_in_one_line(load: Loader, tmp_path: Path) -> None:
    (tmp_path / ".env").touch(mode=0)
    with pytest.raises(SettingsError, match=r"^\S+\.env cannot be read: Permission denied$"):
        load(str(tmp_path / ".env"))


def test_secrets_leave_the_environment_and_are_still_known_when_settings_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("config.loading._hidden", {})
    servers = '{"a": {"command": ["a"], "env": {"KEY": "$SHOP_KEY"}}}'
    given = {
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "openai_api_key": "k",
        "SHOP_KEY": "shop-key-0123456789",
        "MCP_SERVERS": servers,
        "OPENAI_MODEL": "m",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(None, Settings)
    hide_secrets(settings)
    assert {name for name in given if name in os.environ} == {"OPENAI_MODEL", "MCP_SERVERS"}
    shown = "import os; print(os.environ)"
    child = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=True
    )
    assert TOKEN not in child.stdout
    assert "shop-key" not in child.stdout
    assert load_settings(None, Settings) == settings
    assert TOKEN not in str(os.environ)


_QUOTED = re.compile(r'"([^"\s]+)"')


def ending(module: ModuleType) -> frozenset[str]:
    """Return the models that a module of the SDK names in the docstrings of its types."""
    texts = re.findall(r'"""(.*?)"""', inspect.getsource(module), re.DOTALL)
    return frozenset(name for text in texts for name in _QUOTED.findall(text))


def test_the_sdks_docstrings_name_models_that_end() -> None:
    assert {"gpt-4.1-mini", "gpt-5-mini", "gpt-3.5-turbo"} <= ending(chat_model)


@pytest.mark.parametrize(
    ("setting", "module"),
    [("openai_model", chat_model), ("openai_embedding_model", embedding_model)],
)
def test_a_default_model_is_known_to_the_sdk_and_its_end_is_not_announced(
    setting: str, module: ModuleType
) -> None:
    default = str(Settings.model_fields[setting].default)
    assert f'"{default}"' in inspect.getsource(module)
    assert default not in ending(module)
