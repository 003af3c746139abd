"""What kind of question a query is, without asking a model: what `diversity` counts."""

import re
from hashlib import sha256

_WORD = re.compile(r"\w+")
_FORMS = {
    "who": "who",
    "whose": "who",
    "whom": "who",
    "when": "when",
    "where": "where",
    "why": "why",
    "how": "how",
    "which": "which",
    "what": "what",
}
_TOPICS = 64


def query_kind(text: str) -> str:
    """The form of the question and one of 64 topics, from its telling words in any order.

    The same question, asked again or with its words in another order, is of the same kind.
    """
    words = _WORD.findall(text.casefold())
    form = next((_FORMS[word] for word in words if word in _FORMS), "question" if "?" in text else "statement")
    telling = " ".join(sorted({word for word in words if len(word) > 3 and word not in _FORMS}))
    topic = int(sha256(telling.encode()).hexdigest(), 16) % _TOPICS
    return f"{form}:{topic:02d}"
