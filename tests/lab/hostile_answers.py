"""Answers of a malicious model server (chat streams, embeddings), and hostile page requests."""

import json
from base64 import b64encode

from tests.hostile.test_model_server import STREAMS, delta, end, event

_SAID = delta(content="Hello.")
CHATS: dict[str, list[bytes]] = {
    "half an emoji": [b'data: {"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}\n\n'],
    "NUL": [delta(content="a\0b"), end("stop")],
    "a list": [b"data: []\n\n", end("stop")],
    "choices that are no list": [event(choices=7), end("stop")],
    "a usage of texts": [_SAID, event(choices=[], usage={"prompt_tokens": "many"}), end("stop")],
    "a page": [b"<!doctype html><title>502</title>"],
    "nothing": [],
}
STREAM_COUNT = len(STREAMS) + len(CHATS)


def _rows(*vectors: object) -> bytes:
    rows = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": rows, "model": "m"}).encode()


EMBEDDINGS: dict[str, bytes] = {
    "NaN": _rows([float("nan")] * 8),
    "Infinity": _rows([float("inf")] * 8),
    "1e39": _rows([1e39] * 8),
    "zeros": _rows([0.0] * 8),
    "texts": _rows(["a"] * 8),
    "empty": _rows([]),
    "ragged": _rows([1.0] * 8, [1.0]),
    "none": _rows(None),
    "no rows": _rows(),
    "more rows": _rows([1.0] * 8, [1.0] * 8),
    "an object": _rows({"a": 1}),
    "base64 of NaN": _rows(b64encode(b"\xff" * 32).decode()),
    "bad base64": _rows("%%%"),
    "base64 of three bytes": _rows(b64encode(b"abc").decode()),
    "a bad index": b'{"data":[{"index":99,"embedding":[1.0,2.0]}]}',
    "denormal": _rows([5e-324] * 8),
    "deep nesting": b"[" * 60_000,
}

PAGES: tuple[tuple[str, str, dict[str, str]], ...] = (
    tuple(
        ("GET", "/", {"Host": host})
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "[::2]",
            "0",
            "localhost.",
            "10.0.0.1",
        )
    )
    + tuple(
        (method, path, {"Origin": origin} if origin else {})
        for method in ("POST",)
        for path in ("/say", "/start-over", "/press", "/clock")
        for origin in ("", "null", "http://evil.example", "http://127.0.0.1:1", "file://")
    )
    + tuple(
        ("GET", path, {})
        for path in (
            *("/../secret", "/web/../page.py", "/static/../../page.py", "/static/%2e%2e/page.py"),
            *("/static//etc/passwd", "/static/%00", "/nowhere", "/say", "/file/../x", "/%ff"),
            *(
                "/?at=<script>alert(1)</script>",
                "/?at=c:1:0'%22><script>",
                "/?turn=../..",
                "/?at=" + "a" * 5_000,
            ),
            *(
                "/events?at=<b>",
                "/metrics",
                "/healthz",
                "/bot123:x/getMe",
                "//evil.example/",
                "/?lang=../x",
            ),
            *("/?at=%00", "/?at=c:-1:0", "/?turn=-1", "/?at=c:99999999999999999999:0"),
        )
    )
)
