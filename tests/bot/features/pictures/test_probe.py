"""What the check finds out about photos."""

import pytest

from bot.features.pictures.probes import PROBES
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.model_api import ApiError, ModelApiServer


@pytest.mark.parametrize(
    ("error", "verdict", "seen"),
    [
        (None, "ok", "eyes sees pictures (low detail)"),
        (
            ApiError(500, "image input is not supported - hint: you may need the mmproj"),
            "ok",
            "eyes cannot see pictures: people are told so",
        ),
        (ApiError(401, "Incorrect key"), "warn", "the key was refused"),
    ],
)
async def test_a_small_picture_is_sent(
    settings_of: SettingsOf,
    model_api: ModelApiServer,
    error: ApiError | None,
    verdict: str,
    seen: str,
) -> None:
    if error:
        model_api.dialect = type(model_api.dialect)(
            refuses=lambda asked: error if "data:image/png" in str(asked.raw) else None
        )
    settings = settings_of(openai_base_url=model_api.base_url, openai_model="eyes")
    [row] = (await rows_of(PROBES[0].run(settings))).values()
    assert (row.verdict, row.seen) == (verdict, seen)
    asked = len(model_api.log.calls)
    off = settings_of(openai_base_url=model_api.base_url, image_detail="off")
    [row] = (await rows_of(PROBES[0].run(off))).values()
    assert (row.verdict, len(model_api.log.calls)) == ("ok", asked)
