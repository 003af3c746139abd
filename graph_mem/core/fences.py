"""Fences around quoted text: a block that its content cannot close, whatever it holds."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256

_CODE_LENGTH = 8
_UNSAFE = re.compile("[<>\x7f-\x9f\u2028\u2029]")


def quoted(value: str) -> str:
    """`value` as a JSON string on one line that holds no `<` and no `>`, so that no name can look like a tag."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def fenced(tag: str, body: str, attributes: Mapping[str, str]) -> str:
    """`body`, byte for byte, between an opening and a closing line that carry a code found nowhere in `body`.

    The code is computed from the whole block, so the same block always has the same one.
    """
    named = "".join(f" {name}={quoted(value)}" for name, value in attributes.items())
    code = _code(f"{tag}{named}\n{body}", absent_from=body)
    return f"<{tag} {code}{named}>\n{body}\n</{tag} {code}>"


def _code(block: str, *, absent_from: str) -> str:
    code = sha256(block.encode()).hexdigest()[:_CODE_LENGTH]
    while code in absent_from:
        code = sha256(f"{code}{block}".encode()).hexdigest()[:_CODE_LENGTH]
    return code
