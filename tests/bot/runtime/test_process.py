"""The process also runs on systems without uvloop."""

import asyncio
import sys

import pytest

from bot.runtime.process import run_loop


@pytest.mark.parametrize("has_uvloop", [True, False])
def test_without_uvloop_the_loop_is_asyncios(
    monkeypatch: pytest.MonkeyPatch, *, has_uvloop: bool
) -> None:
    loops: list[str] = []

    async def main() -> None:
        loops.append(type(asyncio.get_running_loop()).__module__)

    if not has_uvloop:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    run_loop(main())
    assert loops[0].startswith("uvloop" if has_uvloop else "asyncio")
