"""What a peer's driver does: it answers requests, one JSON object a line, until its input ends.

Drivers run in a Python of the peer's own, which has neither zarrdask nor its tests. Values come
and go as ``.npy`` files.
"""

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any


def serve(**verbs: Callable[..., Any]) -> None:
    """Answer requests with the functions of these names."""
    # What a library prints must not stand between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": verbs[request.pop("verb")](**request)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
