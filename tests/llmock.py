"""The `llmock` package as a server on loopback; it ends with the tests.

It is a third-party package. It breaks its answers as `/_llmock/scenario` asks, and reports at
`/_llmock/verdict` how its client reacted.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.store.embedded import die_with_parent
from tests.valkey import HOST, free_port

CHUNK_DELAY_MS = 10
_STOP_S = 30
_READY = b"Uvicorn running on"


@contextmanager
def llmock_served() -> Iterator[str]:
    """Yield the server's address; chunks of an answer are `CHUNK_DELAY_MS` apart.

    Raise `RuntimeError` if the server does not start.
    """
    port = free_port()
    llmock = str(Path(sys.executable).with_name("llmock"))
    options = ["--host", HOST, "--port", str(port), "--stream-chunk-delay-ms", str(CHUNK_DELAY_MS)]
    process = subprocess.Popen(
        [llmock, "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent(),  # noqa: PLW1509 - started from the main thread
    )
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line.decode())
        if _READY in line:
            break
    else:
        raise RuntimeError("".join(["llmock did not start:\n", *lines]))
    try:
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=_STOP_S)
