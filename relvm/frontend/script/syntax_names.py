"""Names of Python's syntax for error messages, and what a script can contain instead."""

from __future__ import annotations

import ast

from relvm.ir.scalar_ops import FORMS

# For each kind of syntax tree: its name in Python's reference, and what to write in a script instead.
_STATEMENTS = {
    "AnnAssign": ("an annotation without a value", 'assign a value, as in y: "f32[n]" = x'),
    "Assert": ("assert on a value of the program", "return the condition, and check it in the caller"),
    "Assign": ("an assignment to several targets", "write one assignment for each target"),
    "AsyncFor": ("async for", "write for"),
    "AsyncFunctionDef": ("async def", "write def"),
    "AsyncWith": ("async with", "write its body without async with"),
    "AugAssign": ("an augmented assignment to an attribute", "assign to a variable"),
    "Break": ("break", "compute the condition of the loop with if"),
    "ClassDef": ("a class definition", "define the class outside"),
    "Continue": ("continue", "write the rest of the loop body in an if"),
    "Delete": ("del", "remove it; a value is freed after its last use"),
    "Expr": ("an expression whose value is not used", "assign the value to a variable, or remove the expression"),
    "For": ("for", "write for i in range(n)"),
    "FunctionDef": ("a nested function", "define the function outside"),
    "Global": ("global", "take the value as a parameter, and return the new value"),
    "If": ("if", "write a conditional expression"),
    "Import": ("import", "import the module outside the function"),
    "ImportFrom": ("import", "import the module outside the function"),
    "Match": ("match", "write if and elif"),
    "Nonlocal": ("nonlocal", "take the value as a parameter, and return the new value"),
    "Pass": ("pass", "remove it"),
    "Raise": ("raise", "return the condition, and raise the exception in the caller"),
    "Return": ("return", "assign the results to the last parameters"),
    "Try": ("try", "check the condition with if; the caller can catch the errors of a run"),
    "TryStar": ("try", "check the condition with if; the caller can catch the errors of a run"),
    "TypeAlias": ("a type alias", "define it outside the function"),
    "While": ("while", "write for i in range(n)"),
    "With": ("with", "write its body without with"),
}
_EXPRESSIONS = {
    "Attribute": ("an attribute", "assign its value to a variable outside the function"),
    "Await": ("await", "call the function outside"),
    "BinOp": ("a binary operator", "call a function"),
    "BoolOp": ("a boolean operator", "call a function"),
    "Call": ("a call with keywords", "pass the arguments by position"),
    "Compare": ("a comparison", "call a function"),
    "Constant": ("a constant of this type", "write a number"),
    "Dict": ("a dict", "write a tuple, or one variable for each item"),
    "DictComp": ("a dict comprehension", "write a list comprehension"),
    "FormattedValue": ("an f-string", "format the text outside the function"),
    "GeneratorExp": ("a generator expression", "write a loop"),
    "IfExp": ("a conditional expression", "write if and else"),
    "Interpolation": ("a template string", "format the text outside the function"),
    "JoinedStr": ("an f-string", "format the text outside the function"),
    "Lambda": ("lambda", "define the function with def outside"),
    "List": ("a list", "write one variable for each item"),
    "ListComp": ("a list comprehension", "write a loop"),
    "Name": ("a name", "write a number"),
    "NamedExpr": ("an assignment expression (:=)", "assign the value in a statement before"),
    "Set": ("a set", "write a tuple"),
    "SetComp": ("a set comprehension", "write a list comprehension"),
    "Slice": ("a slice", "write one index for each axis"),
    "Starred": ("an unpacked value (*)", "write the items one by one"),
    "Subscript": ("an index", "assign the item to a variable outside the function"),
    "TemplateStr": ("a template string", "format the text outside the function"),
    "Tuple": ("a tuple", "write one variable for each item"),
    "UnaryOp": ("a unary operator", "call a function"),
    "Yield": ("yield", "return the values as a tuple"),
    "YieldFrom": ("yield", "return the values as a tuple"),
}
_SYNTAX = _STATEMENTS | _EXPRESSIONS

OPERATOR_SYMBOLS: dict[type, str] = {
    ast.Add: "+",
    ast.And: "and",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Div: "/",
    ast.Eq: "==",
    ast.FloorDiv: "//",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.Invert: "~",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.LShift: "<<",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.MatMult: "@",
    ast.Mod: "%",
    ast.Mult: "*",
    ast.Not: "not",
    ast.NotEq: "!=",
    ast.NotIn: "not in",
    ast.Or: "or",
    ast.Pow: "**",
    ast.RShift: ">>",
    ast.Sub: "-",
    ast.UAdd: "+",
    ast.USub: "-",
}
# The operators that scalars of the program have, with the functions of csrc/tables/scalar_operators.def.
_FORM_OF = {node: (sign, 1 if issubclass(node, ast.unaryop) else 2) for node, sign in OPERATOR_SYMBOLS.items()}
SCALAR_OPERATORS = {node: FORMS[form] for node, form in _FORM_OF.items() if form in FORMS}


def syntax_name(node: ast.AST) -> str:
    """Return the name of a statement, an expression or an operator in Python, such as "a list comprehension"."""
    if type(node) in OPERATOR_SYMBOLS:
        return f"the operator {OPERATOR_SYMBOLS[type(node)]}"
    if isinstance(node, ast.Expr) and type(node.value).__name__ in ("Await", "Yield", "YieldFrom"):
        node = node.value
    return _SYNTAX[type(node).__name__][0]


def syntax_advice(node: ast.AST) -> str:
    """Return what to write instead of a statement or an expression that is not supported."""
    if isinstance(node, ast.Expr) and type(node.value).__name__ in ("Await", "Yield", "YieldFrom"):
        node = node.value
    return _SYNTAX[type(node).__name__][1]
