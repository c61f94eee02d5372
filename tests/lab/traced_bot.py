"""The bot with a trace of our own functions: `python -m tests.lab.traced_bot`.

The trace begins with the process. Both signals write it to `trace.json` in the home folder, and
after SIGUSR1 a new one begins. It has every function of ours that ran, as `file:function`, and our
frames between the event loop and the first call of the SDK, of the chat model and of an internal
call.
"""

import importlib
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / package}{os.sep}" for package in ("bot", "memory", "config"))
SDK = f"{os.sep}site-packages{os.sep}openai{os.sep}"

CHAT_MODEL = "OpenAIChatModel."
INTERNAL_MODEL = "StructuredModel."

functions: set[str] = set()
to_the_sdk: dict[str, list[str]] = {CHAT_MODEL: [], INTERNAL_MODEL: []}
"""Our frames of the first call by each of these classes."""


def look(frame: FrameType, event: str, _: object) -> None:
    if event != "call":
        return
    path = frame.f_code.co_filename
    if path.startswith(OURS):
        name = _name(frame)
        if "<" not in name:
            functions.add(name)
    elif SDK in path and not all(to_the_sdk.values()):
        stack = _stack(frame)
        for caller, frames in to_the_sdk.items():
            if not frames and any(caller in name for name in stack):
                at_loop = max(at for at, name in enumerate(stack) if name.endswith("run_loop"))
                frames.extend(stack[at_loop + 1 :])


def begin(*_: object) -> None:
    """Write the trace and begin a new one."""
    write()
    functions.clear()
    for frames in to_the_sdk.values():
        frames.clear()


def write(*_: object) -> None:
    counted = {
        "functions": sorted(functions),
        "to_the_sdk": to_the_sdk[CHAT_MODEL],
        "internal_to_the_sdk": to_the_sdk[INTERNAL_MODEL],
    }
    written = Path.home() / "trace.json.new"
    written.write_text(json.dumps(counted))
    written.rename(Path.home() / "trace.json")


def _stack(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            names.append(_name(frame))
        frame = frame.f_back
    return names[::-1]


def _name(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename).relative_to(ROOT)
    return f"{path}:{frame.f_code.co_qualname}"


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, write)
    # The trace would make these imports take three times as long, and none of them is ours.
    for name in ("openai.lib.streaming.chat", "openai.resources.chat.completions"):
        importlib.import_module(name)
    threading.setprofile(look)
    sys.setprofile(look)
    from bot.__main__ import main  # the start is traced from its imports on

    main()
