"""The tools that the model has in every bot: `current_time`, `calculate` and `search_memory`."""

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, tzinfo
from math import inf
from zoneinfo import ZoneInfo

import simpleeval
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from bot.prompt.memory_context import RecallPacker, with_dates
from bot.prompt.sections import codes_of
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError
from memory.search.message_search import SearchFilter
from memory.search.question import as_question
from memory.text.tokens import TokenCounter


class CurrentTimeArguments(Arguments):
    """The time zone."""

    timezone: str | None = Field(
        default=None, description="IANA name such as Europe/Berlin; else the bot's", max_length=64
    )


def current_time_tool(default_zone: tzinfo) -> Tool[CurrentTimeArguments]:
    """Return the tool; it uses `default_zone` if the model names no zone."""

    async def run(arguments: CurrentTimeArguments, context: AgentContext) -> str:
        zone, name = default_zone, arguments.timezone
        try:
            zone = ZoneInfo(name) if name else default_zone
        except (KeyError, ValueError, OSError) as error:
            advice = "use an IANA name such as Asia/Tokyo"
            raise ToolError(f"unknown time zone {name!r}; {advice}") from error
        now = datetime.fromtimestamp(context.now, zone)
        return f"{now.strftime('%A')}, {now.isoformat(timespec='seconds')} ({zone})"

    return Tool(
        "current_time",
        "Tell the current date, weekday and time.",
        CurrentTimeArguments,
        run,
        is_untrusted=False,
        is_reader=True,
        uses_memory=False,
    )


# An expression may hold only numbers, operators, and the functions and constants listed here: no
# other names, no attributes and no strings.
_MAX_CHARS = 300
_MAX_DIGITS = 60
_MAX_BITS = 10_000
"""Of a power. Such a number is too long to be shown, but many of them are computed quickly."""

Number = int | float


def _power(base: Number, exponent: Number) -> Number:
    is_whole = isinstance(base, int) and isinstance(exponent, int)
    if is_whole and abs(base) > 1 and math.log2(abs(base)) * exponent > _MAX_BITS:
        raise OverflowError
    result: Number = base**exponent
    return result


def _factorial(number: Number) -> int:
    if not float(number).is_integer() or number > 1000:
        raise ValueError
    return math.factorial(int(number))


def _round(number: Number, digits: int = 0) -> Number:
    if abs(digits) > _MAX_CHARS:
        raise ValueError
    return round(number, digits) if digits else round(number)


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{name: getattr(math, name) for name in ("sqrt", "exp", "log2", "log10", "floor", "ceil")},
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: getattr(math, name) for name in ("degrees", "radians", "hypot")},
    "abs": abs,
    "factorial": _factorial,
    "ln": math.log,
    "log": math.log,
    "max": max,
    "min": min,
    "round": _round,
}
_OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_NAMES = {"pi": math.pi, "e": math.e, "tau": math.tau}
_SYNTAX = (
    *(ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop),
    *(ast.Call, ast.Name, ast.Load, ast.Constant),
)


class CalculateArguments(Arguments):
    """What to calculate."""

    expression: str = Field(
        description="Such as round(sqrt(2) * (3 + 4) ** 2, 1); % is the remainder",
        min_length=1,
        max_length=_MAX_CHARS,
    )


def evaluate(expression: str) -> str:
    """Return the value, with 15 digits if it is not a whole number; raise `ToolError`.

    No expression takes noticeable time.
    """
    # People write powers with a caret and products with a cross.
    expression = expression.replace("^", "**").replace("×", "*").replace("÷", "/")
    evaluator = simpleeval.SimpleEval(_OPERATORS, _FUNCTIONS, _NAMES)
    try:
        return _shown(evaluator.eval(expression, _parsed(expression)))
    except ZeroDivisionError as error:
        raise ToolError("division by zero") from error
    except (simpleeval.InvalidExpression, SyntaxError, TypeError, RecursionError) as error:
        names = ", ".join((*_FUNCTIONS, *_NAMES))
        raise ToolError(f"not an expression of numbers, operators and: {names}") from error
    except (ArithmeticError, ValueError) as error:
        raise ToolError("there is no such number, or it is too big") from error


def _parsed(expression: str) -> ast.expr:
    """Return the expression's tree; raise `SyntaxError` if it holds more than arithmetic."""
    tree = ast.parse(expression.strip(), mode="eval").body
    for node in ast.walk(tree):
        is_other = isinstance(node, ast.Constant) and type(node.value) not in (int, float)
        if is_other or not isinstance(node, _SYNTAX):
            raise SyntaxError
    return tree


def _shown(value: object) -> str:
    if not isinstance(value, int | float):
        raise ToolError("the result is not a real number")
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_MAX_DIGITS else f"{float(value):.15g}"
    if math.isnan(value) or math.isinf(value):
        raise ToolError("there is no such number, or it is too big")
    return f"{value:.15g}"


async def _run(arguments: CalculateArguments, _: AgentContext) -> str:
    return evaluate(arguments.expression)


CALCULATE = Tool(
    "calculate",
    "Calculate exactly. Use it for all but trivial sums.",
    CalculateArguments,
    _run,
    is_untrusted=False,
    is_reader=True,
    uses_memory=False,
)

_MAX_TOKENS = 1_000
_NUMBER = re.compile(r" \(\d{1,6}\)\Z")
"""A number after a name that several people of a group have. The stored name has no number."""

_FURTHER = (
    "(To look further: other words, `since` and `until` for a time, `speaker` for one person, or "
    "`like` with a number from above for more like that message.)"
)


class SearchMemoryArguments(Arguments):
    """Query, kind, first and last day, speaker, a message to resemble, and number of results.

    With a `kind` the messages that facts of it were learned from come first. The model is not told
    of `k`: the tokens of the output are the tighter limit.
    """

    query: str = Field(description="The words probably used", min_length=1, max_length=500)
    kind: str = Field(default="", description="All of a kind: restaurant", max_length=64)
    since: date | None = None
    until: date | None = None
    speaker: str = Field(default="", description="Who said it; `assistant` is you", max_length=64)
    like: int | None = Field(default=None, description="More like the message #12: 12")
    k: SkipJsonSchema[int] = Field(default=20, ge=1, le=40)


def search_memory_tool(
    zone: tzinfo, counter: TokenCounter, behaviors: Sequence[AIContextBehavior] = ()
) -> Tool[SearchMemoryArguments]:
    """Return the tool; `zone` is the time zone of days and of the dates in results.

    What `behaviors` that search (`on_search`) find comes below the messages.
    """
    finds_nothing = AIContextBehavior.on_search
    searching = [each for each in behaviors if type(each).on_search is not finds_nothing]
    packer = RecallPacker(counter, zone, is_numbered=True)

    async def run(arguments: SearchMemoryArguments, context: AgentContext) -> str:
        history, text = context.chat_history, arguments.query
        if arguments.like is not None:
            await history.fill()
            alike = (each.text for each in history.messages if each.seq == arguments.like)
            text = next(alike, text)
        text = as_question(text)
        known = () if arguments.like is None else (arguments.like,)
        since, until = arguments.since, arguments.until
        search_filter = SearchFilter(
            since=datetime.combine(since, time.min, zone).timestamp() if since else -inf,
            until=datetime.combine(until, time.max, zone).timestamp() if until else inf,
            speaker=_NUMBER.sub("", arguments.speaker),
        )
        results = await history.search(
            text, arguments.k, exclude=known, search_filter=search_filter
        )
        if context.uses_memory:
            if arguments.kind:
                of_kind = await history.of_kind(arguments.kind, arguments.k, search_filter)
                results = [*of_kind, *results]
            results = await history.with_facts(results)
        lines = with_dates(packer.ranked(context, results, text, _MAX_TOKENS, known))
        further: list[str] = []
        codes = [*codes_of(results, lines)]
        for each in searching if context.uses_memory else ():
            found = await each.on_search(
                context.call_context, text, arguments.k, _MAX_TOKENS // 2, search_filter
            )
            if found:
                further += [each.search_heading, *found.values()]
                codes += found
        if not lines and not further:
            return "Nothing was found about this in earlier messages."
        context.call_context.used.update(dict.fromkeys(codes, ""))
        return "\n".join((*lines.values(), *further, _FURTHER))

    return Tool(
        "search_memory",
        "Search everything ever said here, for what neither recent messages nor <memory> hold.",
        SearchMemoryArguments,
        run,
        is_untrusted=False,  # lines with untrusted text are marked
        is_reader=True,
    )
