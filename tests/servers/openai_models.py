"""What OpenAI's models refuse, by family, with the texts of the service.

Sources: BerriAI/litellm#34569 (measured on the live service), livekit/agents#7169, Vane#1173,
egoist/chatwise-releases#1256.
"""

from dataclasses import dataclass

from tests.servers.model_api import ApiError, ApiRequest, ChatRequest
from tests.servers.model_api.errors import bad_request

_TODAY = ("none", "low", "medium", "high", "xhigh")


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose name begins with `prefix`.

    `efforts` are the reasoning efforts it takes; none means that it does not reason. `tools` says
    when chat completions take function tools: `always`, `unless reasoning` (the effort may be
    left out), `only none` (the effort must be given as none).
    """

    prefix: str
    efforts: tuple[str, ...] = ()
    tools: str = "always"
    is_chat_model: bool = True


FAMILIES = (
    Family("gpt-6", (*_TODAY, "max"), "only none"),
    Family("gpt-5.6", _TODAY, "only none"),
    Family("gpt-5.5", _TODAY, "unless reasoning"),
    Family("gpt-5.4", _TODAY, "unless reasoning"),
    Family("gpt-5.3-codex", _TODAY, is_chat_model=False),
    Family("gpt-5.2", _TODAY, "unless reasoning"),
    Family("gpt-5.1", ("none", "low", "medium", "high")),
    Family("gpt-5", ("minimal", "low", "medium", "high")),
    Family("gpt-4.1"),
    Family("gpt-4o"),
)
"""The first matching family counts; other models refuse nothing."""


def refused_by_openai(request: ApiRequest) -> ApiError | None:
    """Return the error with which the model refuses a valid request, or `None`."""
    family = next((each for each in FAMILIES if request.model.startswith(each.prefix)), None)
    if family is None or not isinstance(request, ChatRequest):
        return None
    if request.api == "chat" and not family.is_chat_model:
        return ApiError(
            404,
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint. "
            "Did you mean to use v1/completions?",
            param="model",
        )
    return _effort(request, family) or _tools(request, family) or _parameters(request, family)


def _effort(request: ChatRequest, family: Family) -> ApiError | None:
    if not request.effort or request.effort in family.efforts:
        return None
    param = "reasoning_effort" if request.api == "chat" else "reasoning.effort"
    if not family.efforts:
        message = f"Unsupported parameter: '{param}' is not supported with this model."
        return bad_request(message, param, "unsupported_parameter")
    supported = ", ".join(f"'{effort}'" for effort in family.efforts)
    message = (
        f"Unsupported value: '{param}' does not support '{request.effort}' with this model. "
        f"Supported values are: {supported}."
    )
    return bad_request(message, param, "unsupported_value")


def _tools(request: ChatRequest, family: Family) -> ApiError | None:
    reasons = request.effort not in ("", "none")
    if request.api == "responses" or not request.tools:
        return None
    if family.tools == "only none" and request.effort != "none":
        advice = "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
    elif family.tools == "unless reasoning" and reasons:
        advice = "Please use /v1/responses instead."
    else:
        return None
    return bad_request(
        "Function tools with reasoning_effort are not supported for "
        f"{request.model} in /v1/chat/completions. {advice}",
        "reasoning_effort",
    )


def _parameters(request: ChatRequest, family: Family) -> ApiError | None:
    if not family.efforts:
        return None
    if "max_tokens" in request.raw:
        return bad_request(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    temperature = request.raw.get("temperature", 1)
    if temperature != 1:
        return bad_request(
            f"Unsupported value: 'temperature' does not support {temperature} with this model. "
            "Only the default (1) value is supported.",
            "temperature",
            "unsupported_value",
        )
    return None
