"""What leaves for an operator's monitoring: traces and errors, and no word of anybody."""

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.acceptance.rig import Rig
from tests.servers.model_api import Reply, tool_call
from tests.servers.monitoring import MonitoringServer

CANARY = "Quetzalcoatlus"


async def test_a_message_is_one_trace_over_two_processes_and_an_error_is_reported_without_words(
    rig: Rig,
) -> None:
    async with MonitoringServer() as server:
        rig.environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": server.url,
            "SENTRY_DSN": server.dsn,
            "BEHAVIORS": "tests.acceptance.operator_parts:Shipwreck",
        }
        [worker] = await rig.start_apart()
        rig.script.on(
            CANARY,
            Reply(tool_calls=(tool_call("sink_ship", ship=CANARY), tool_call(CANARY))),
            f"The {CANARY} sails on.",
        )
        person, chat = rig.person(1001, CANARY, "en")
        assert CANARY in (await rig.ask(person, chat, f"Sink the {CANARY}!")).text
        await worker.wait_for_log("learned")
        assert (await rig.bot.stop(), await worker.stop()) == (0, 0)
        worker.raw.clear()  # it holds the traceback of the tool

    names = {span.span_id: span.name for span in server.spans}
    parents = {(span.name, names.get(span.parent_span_id)) for span in server.spans}
    assert parents == {
        ("intake", None),
        ("turn", "intake"),
        ("recall", "turn"),
        ("chat gpt-5.4-mini", "turn"),
        ("execute_tool sink_ship", "turn"),
        ("deliver", "turn"),
        ("learning", "turn"),
        ("embeddings hashed-words", "learning"),
    }
    assert len({span.trace_id for span in server.spans}) == 1
    assert "ricordo" in server.services
    chats = [_attributes(span) for span in server.spans if span.name == "chat gpt-5.4-mini"]
    assert len(chats) == 2
    for call in chats:
        assert (call["gen_ai.operation.name"], call["gen_ai.provider.name"]) == ("chat", "openai")
        assert call["gen_ai.request.model"] == "gpt-5.4-mini"
        assert int(call["gen_ai.usage.input_tokens"]) > 0
        assert int(call["gen_ai.usage.output_tokens"]) > 0
    [tool] = [_attributes(span) for span in server.spans if "sink" in span.name]
    assert (tool["gen_ai.tool.name"], tool["error.type"]) == ("sink_ship", "ToolError")

    [error] = server.errors
    [raised] = error["exception"]["values"]
    assert (raised["type"], error["logger"]) == ("ValueError", "bot.agent.agent")
    assert raised["stacktrace"]["frames"][-1]["filename"] == "tests/acceptance/operator_parts.py"
    for body in server.bodies:
        assert CANARY.encode() not in body
        assert b"1001" not in body


async def test_a_collector_that_never_answers_delays_neither_a_turn_nor_the_end(rig: Rig) -> None:
    """Who waited for it would wait for a minute, which is longer than any wait here."""
    async with MonitoringServer() as server:
        server.is_silent = True
        person, chat = await rig.start_with_anna(
            otel_exporter_otlp_endpoint=server.url,
            sentry_dsn=server.dsn,
            otel_bsp_schedule_delay=10,
            otel_exporter_otlp_timeout=60,
        )
        await rig.ask(person, chat, "Hello?")
        await server.asked.wait()
        await rig.ask(person, chat, "Still there?")
        assert await rig.bot.stop() == 0


def _attributes(span: Span) -> dict[str, str]:
    return {one.key: one.value.string_value or str(one.value.int_value) for one in span.attributes}
