"""A real HTTP server that speaks as much of the OpenAI API as a test tells it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[dict[str, Any]], object]


@dataclass
class Asked:
    path: str
    authorization: str | None
    body: dict[str, Any]


@dataclass
class FakeApi:
    """`reply` makes the answer; `status` other than 200 answers nothing else; `delay_s` comes before it."""

    reply: Reply
    url: str = ""
    status: int = 200
    delay_s: float = 0.0
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def serve(api: FakeApi) -> Iterator[FakeApi]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            api.asked.append(Asked(self.path, self.headers["authorization"], body))
            time.sleep(api.delay_s)
            answer = api.reply(body) if api.status == 200 else {"error": {"message": "no"}}
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(api.status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
