"""A server that is spoken to over its stdin, as editors and agents speak to their helpers.

JSON-RPC 2.0, one message a line. Methods: `echo`, `reverse`; a notification `log`, written to stderr.
"""

import json
import sys

METHODS = {
    "echo": lambda params: params,
    "reverse": lambda params: {"text": params["text"][::-1]},
}


def answer(request):
    method = METHODS.get(request["method"])
    if method is None:
        return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": method(request["params"])}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        print(request["params"]["text"], file=sys.stderr, flush=True)
        continue
    reply = {"jsonrpc": "2.0", "id": request["id"], **answer(request)}
    print(json.dumps(reply, ensure_ascii=False), flush=True)
print("goodbye", file=sys.stderr)
