"""The kinds of values that JSON knows, in words for messages."""


def kind_of(value: object) -> str:
    """What JSON calls `value`, with its article where it has one."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
