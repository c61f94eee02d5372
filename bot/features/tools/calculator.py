"""`calculate`: arithmetic without `eval`."""

import ast
import math
from collections.abc import Callable

import simpleeval
from pydantic import Field

from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError

# An expression may hold only numbers, operators, and the functions and constants listed here: no
# other names, no attributes and no strings.
_MAX_CHARS = 300
_MAX_DIGITS = 60
_MAX_BITS = 10_000  # of a power: too long to be shown, but many such numbers are computed quickly

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
_TAKEN = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.UAdd, ast.USub)
_OPERATORS = {kind: simpleeval.DEFAULT_OPERATORS[kind] for kind in _TAKEN} | {ast.Pow: _power}
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
