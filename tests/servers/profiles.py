"""The nine servers of docs/models.md as data: what each refuses, does not have and says.

Read in their sources, on their pages and in reports of their users; LiteLLM 1.106 was asked.
"""

from dataclasses import replace

from tests.servers.model_api import ApiError, ApiRequest, ChatRequest, Dialect, Quirk
from tests.servers.model_api.errors import bad_request
from tests.servers.model_api.requests import is_embeddings
from tests.servers.openai_models import refused_by_openai


def error(message: str, kind: str | None = None, code: object = None, **more: object) -> object:
    """Return the error body that most servers use."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def lacks_embeddings(request: ApiRequest) -> ApiError | None:
    """Refuse vectors as llama.cpp does when it was started for chat."""
    if not is_embeddings(request):
        return None
    message = "This server does not support embeddings. Start it with `--embeddings`"
    return ApiError(501, message, kind="not_supported_error", code="not_supported_error")


def lacks_tools(request: ApiRequest) -> ApiError | None:
    """Refuse tools as vLLM does when it was started without a parser for them."""
    if not (isinstance(request, ChatRequest) and request.tools):
        return None
    return ApiError(
        400,
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        kind="BadRequestError",
    )


def lacks_store(request: ApiRequest) -> ApiError | None:
    """Refuse `store` over chat completions as Groq does (Gitlawb/openclaude#983)."""
    if not (isinstance(request, ChatRequest) and request.api == "chat" and "store" in request.raw):
        return None
    return bad_request("", "store", "unsupported_parameter")


OPENAI = Dialect(
    server="OpenAI",
    strict_templates=False,
    refuses=refused_by_openai,
    headers={"openai-version": "2020-10-01", "openai-processing-ms": "12"},
    model_fields={"owned_by": "system"},
)
OPENROUTER = Dialect(
    server="OpenRouter",
    strict_templates=False,
    quirks=frozenset({Quirk.COMMENTS}),
    model_fields={"canonical_slug": "maker/model", "context_length": 131072},
    refusals={
        "401": (401, {"error": {"message": "No auth credentials found", "code": 401}}),
        "invalid_api_key": (401, {"error": {"message": "User not found.", "code": 401}}),
        "model_not_found": (400, {"error": {"message": "x is not a valid model ID", "code": 400}}),
        "404": (404, "<!DOCTYPE html><title>Not Found | OpenRouter</title>"),
        "context_length_exceeded": (
            400,
            {
                "error": {
                    "message": "This endpoint's maximum context length is 2000 tokens. However, "
                    "you requested about 3500 tokens. Please reduce the length of either one.",
                    "code": 400,
                }
            },
        ),
    },
)
AZURE = Dialect(
    server="Azure OpenAI",
    strict_templates=False,
    refuses=refused_by_openai,
    quirks=frozenset({Quirk.EMPTY_FIRST_CHUNK}),
    headers={"apim-request-id": "4f1c", "x-ms-region": "Sweden Central"},
    model_fields={"status": "succeeded", "lifecycle_status": "generally-available"},
    refusals={
        "invalid_api_key": (
            401,
            {
                "error": {
                    "code": "401",
                    "message": "Access denied due to invalid subscription key or wrong API "
                    "endpoint. Make sure to provide a valid key for an active subscription and "
                    "use a correct regional API endpoint for your resource.",
                }
            },
        ),
        "model_not_found": (
            404,
            {
                "error": {
                    "code": "DeploymentNotFound",
                    "message": "The API deployment for this resource does not exist. If you "
                    "created the deployment within the last 5 minutes, please wait a moment and "
                    "try again.",
                }
            },
        ),
        "404": (404, {"error": {"code": "404", "message": "Resource not found"}}),
    },
)
_NO_PROPERTY = (400, error("property '{param}' is unsupported", "invalid_request_error"))
GROQ = Dialect(
    server="Groq",
    missing_paths=frozenset({"/v1/embeddings"}),
    unsupported=frozenset({"include", "verbosity", "safety_identifier", "prompt_cache_key"}),
    refuses=lacks_store,
    headers={"x-groq-region": "fra"},
    model_fields={"owned_by": "Meta", "active": True, "context_window": 131072},
    refusals={
        "invalid_api_key": (
            401,
            error("Invalid API Key", "invalid_request_error", "invalid_api_key"),
        ),
        "unsupported_parameter": _NO_PROPERTY,
        "unknown_parameter": _NO_PROPERTY,
        "404": (
            404,
            error(
                "Unknown request URL: POST /openai/v1/x. Please check the URL for typos, or see "
                "the docs at https://console.groq.com/docs/",
                "invalid_request_error",
                "unknown_url",
            ),
        ),
    },
)
OLLAMA = Dialect(
    server="Ollama",
    cuts_front=True,
    quirks=frozenset({Quirk.BARE_USAGE}),
    model_fields={"owned_by": "library"},
    refusals={
        "model_not_found": (404, error("model 'x' not found", "not_found_error")),
        "404": (404, "404 page not found"),
    },
)
LLAMA_CPP = Dialect(
    server="llama.cpp",
    headers={"server": "llama.cpp"},
    model_fields={"owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}},
    refusals={
        "invalid_api_key": (401, error("Invalid API Key", "authentication_error", 401)),
        "context_length_exceeded": (
            400,
            error(
                "the request exceeds the available context size, try increasing it",
                "exceed_context_size_error",
                400,
                n_prompt_tokens=3500,
                n_ctx=2000,
            ),
        ),
        "404": (404, error("File Not Found", "not_found_error", 404)),
    },
)
VLLM = Dialect(
    server="vLLM",
    reads_arguments=True,
    quirks=frozenset({Quirk.REASONING}),
    headers={"server": "uvicorn"},
    model_fields={"owned_by": "vllm", "root": "/models/x", "max_model_len": 8192},
    refusals={
        "invalid_api_key": (401, {"error": "Unauthorized"}),
        "model_not_found": (404, error("The model `x` does not exist.", "NotFoundError", 404)),
        "context_length_exceeded": (
            400,
            error(
                "This model's maximum context length is 2000 tokens. However, your request has "
                "3500 input tokens. Please reduce the length of the input messages.",
                "BadRequestError",
                400,
            ),
        ),
        "404": (404, {"detail": "Not Found"}),
    },
)
LM_STUDIO = Dialect(
    server="LM Studio",
    response_formats=frozenset({"json_schema"}),
    headers={"x-powered-by": "Express"},
    model_fields={"owned_by": "organization_owner"},
    refusals={
        "context_length_exceeded": (
            400,
            {
                "error": "The number of tokens to keep from the initial prompt is greater than "
                "the context length (n_keep: 3500>= n_ctx: 2000). Try to load the model with a "
                "larger context length, or provide a shorter input."
            },
        ),
        "404": (200, {"error": "Unexpected endpoint or method. (POST /x)"}),
    },
)
LITELLM = Dialect(
    server="LiteLLM",
    strict_templates=False,
    quirks=frozenset({Quirk.BARE_USAGE}),
    headers={"x-litellm-call-id": "bda92ee3", "x-litellm-key-spend": "0.0"},
    model_fields={"owned_by": "openai"},
    refusals={
        "invalid_api_key": (400, error("No connected db.", "no_db_connection", "400")),
        "model_not_found": (
            400,
            error(
                "/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to "
                "view available models for your key.",
                "invalid_request_error",
                "400",
            ),
        ),
        "404": (404, {"detail": "Not Found"}),
    },
)

SERVERS = (OPENAI, OPENROUTER, AZURE, GROQ, OLLAMA, LLAMA_CPP, VLLM, LM_STUDIO, LITELLM)


def chat_only(dialect: Dialect) -> Dialect:
    """Return a server of an older version, without the Responses API."""
    return replace(dialect, missing_paths=dialect.missing_paths | {"/v1/responses"})
