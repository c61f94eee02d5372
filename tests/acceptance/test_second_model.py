"""If the first model fails, the second one answers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, open_rig
from tests.acceptance.talk import said
from tests.servers.model_api import Dialect, ModelApiServer, Scripted, server_error

SPARE_KEY = "sk-of-the-spare"


@pytest.fixture
async def spare() -> AsyncIterator[ModelApiServer]:
    async with ModelApiServer(Scripted("Spare."), dialect=Dialect(api_key=SPARE_KEY)) as server:
        yield server


@pytest.fixture
async def fallback_rig(valkey: str, tmp_path: Path, spare: ModelApiServer) -> AsyncIterator[Rig]:
    """Give a rig whose bot knows a second model."""
    async with open_rig(valkey, tmp_path, "webhook") as rig:
        rig.environment |= {
            "FALLBACK_MODEL": "spare",
            "FALLBACK_BASE_URL": spare.base_url,
            "FALLBACK_API_KEY": SPARE_KEY,
        }
        yield rig


async def test_an_outage_of_the_first_model_is_not_noticed(
    fallback_rig: Rig, spare: ModelApiServer
) -> None:
    rig = fallback_rig
    await rig.start()
    anna, chat = rig.anna()
    assert (await rig.ask(anna, chat, "One")).text == "All right."
    rig.model.faults.add(server_error(), times=None)
    assert (await rig.ask(anna, chat, "Two")).text == "Spare."
    assert (await rig.ask(anna, chat, "Three")).text == "Spare."
    assert len(rig.requests) == 2
    assert [each.model for each in spare.log.chats] == ["spare", "spare"]
    assert [text for _, text in said(spare.log.chats[1])[1:-1]] == [
        *("One", "All right."),
        *("Two", "Spare."),
    ]
