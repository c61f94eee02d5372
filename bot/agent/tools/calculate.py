"""`calculate`: arithmetic, evaluated by a library that knows nothing but numbers.

No names, no attributes, no text: only numbers, operators and the functions listed here.
"""

import ast
import math
import operator
from collections.abc import Callable

import simpleeval
from pydantic import Field

from bot.agent.tool import Arguments, Tool, ToolError
from memory.context import AgentContext

_MOST_CHARS = 300
_MOST_DIGITS = 60
_BIGGEST_FACTORIAL = 200

Number = int | float


def _factorial(number: Number) -> int:
    if number > _BIGGEST_FACTORIAL:
        raise ValueError(f"factorial goes up to {_BIGGEST_FACTORIAL}")
    return math.factorial(int(number))


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
    "round": round,
}
_OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: simpleeval.safe_mult,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: simpleeval.safe_power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_NAMES = {"pi": math.pi, "e": math.e, "tau": math.tau}


class CalculateArguments(Arguments):
    """What to calculate."""

    expression: str = Field(
        description="Such as 12.5 * (3 + 4) ** 2, sqrt(2), round(10 / 3, 2); % is the remainder",
        min_length=1,
        max_length=_MOST_CHARS,
    )


async def _run(arguments: CalculateArguments, _: AgentContext) -> str:
    # People write powers with a caret and products with a cross.
    expression = arguments.expression.replace("^", "**").replace("×", "*").replace("÷", "/")
    evaluator = simpleeval.SimpleEval(_OPERATORS, _FUNCTIONS, _NAMES)
    try:
        return _shown(evaluator.eval(expression))
    except ZeroDivisionError as error:
        raise ToolError("division by zero") from error
    except (simpleeval.InvalidExpression, SyntaxError, TypeError, RecursionError) as error:
        known = ", ".join((*_FUNCTIONS, *_NAMES))
        raise ToolError(f"not an expression of numbers, operators and: {known}") from error
    except (ArithmeticError, ValueError) as error:
        raise ToolError("there is no such number, or it is too big") from error


def _shown(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError("the result is not a number")
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_MOST_DIGITS else f"{float(value):.12g}"
    if math.isnan(value) or math.isinf(value):
        raise ToolError("there is no such number, or it is too big")
    return f"{value:.12g}"


CALCULATE = Tool(
    "calculate",
    "Calculate an arithmetic expression exactly. Use it for every sum that is not trivial.",
    CalculateArguments,
    _run,
)
