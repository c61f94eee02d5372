"""Calls the bot's web pages as a platform or Telegram does."""

import asyncio

import httpx2

from tests.acceptance.rig import Rig


def page(rig: Rig, path: str) -> str:
    """Return the address of a page of the bot."""
    return f"http://127.0.0.1:{rig.environment['PORT']}{path}"


async def readiness(rig: Rig) -> tuple[int, dict[str, str]]:
    """Return status and states of `/readyz`; check that `/healthz` answers ok."""
    async with httpx2.AsyncClient(trust_env=False) as web:
        assert (await web.get(page(rig, "/healthz"))).text == "ok"
        ready = await web.get(page(rig, "/readyz"))
        states = {name: ready.json()[name] for name in ("redis", "telegram")}
        return ready.status_code, states


async def wait_until_ready(rig: Rig) -> None:
    """Wait until `/readyz` reports that all is well."""
    async with asyncio.timeout(60):
        while (await readiness(rig)) != (200, {"redis": "ok", "telegram": "ok"}):
            pass
