"""What the check says of a server whose certificate is not trusted."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography.x509 import DNSName, GeneralName, IPAddress

from bot.features.check.chat_model import check_chat
from bot.features.check.store import check_store
from bot.features.check.telegram import check_telegram
from bot.telegram.bot_api import TelegramClient
from bot.telegram.errors import Unreachable
from memory.store.client import RedisClient
from memory.store.errors import StoreUnavailable
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.certificates import certificate_of

HOST = "127.0.0.1"
OURS = IPAddress(ip_address(HOST))


@asynccontextmanager
async def serving(certificate: Path) -> AsyncIterator[str]:
    """Give the address of a server with this certificate, which closes each connection."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0, ssl=tls) as at:
        yield f"{HOST}:{at.sockets[0].getsockname()[1]}"


async def test_a_certificate_that_is_not_trusted_is_named_with_the_setting_to_look_at(
    settings_of: SettingsOf, tmp_path: Path
) -> None:
    async with serving(certificate_of(OURS, tmp_path)) as address:
        settings = settings_of(
            telegram_api_url=f"https://{address}", openai_base_url=f"https://{address}/v1"
        )
        rows = {
            **await rows_of(check_telegram(settings, "42:token")),
            **await rows_of(check_chat(settings)),
            **await rows_of(check_store(f"rediss://{address}", settings)),
        }
        client = TelegramClient("42:token", settings.telegram_api_url)
        with pytest.raises(Unreachable, match="self-signed certificate"):
            await client.identify()
        await client.close()
    assert {row.seen for row in rows.values()} == {
        "its certificate is not trusted: self-signed certificate"
    }
    assert {what: row.advice.split()[7] for what, row in rows.items()} == {
        "Telegram": "TELEGRAM_API_URL",
        "Model stream": "OPENAI_BASE_URL",
        "Redis": "REDIS_URL",
    }
    assert rows["Redis"].advice.endswith("or accept it with ?ssl_cert_reqs=none at its end")


@pytest.mark.parametrize(
    ("host", "days", "why"),
    [(OURS, -1, "has expired"), (DNSName("other.example"), 1, "IP address mismatch")],
)
async def test_the_reason_is_the_one_of_the_certificate(
    tmp_path: Path, host: GeneralName, days: int, why: str
) -> None:
    async with serving(certificate := certificate_of(host, tmp_path, days)) as address:
        with pytest.raises(StoreUnavailable, match=f"not trusted: .*{why}$"):
            await RedisClient.open(f"rediss://{address}?ssl_ca_certs={certificate}")
