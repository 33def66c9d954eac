"""The box in a process of its own, with a fake model: `box_process.py [--seconds S] [--set PATH=JSON]...`.

Prints the address once it is ready, and serves until it is told to stop, by the same code as
`tailrace serve`.
"""

import argparse
import json
import logging

from boxes import SERVICE_S, make_box
from tailrace.apps.review.app import event_stream, review_app
from tailrace.apps.review.settings import BoxSettings
from tailrace.models.fake import FakeCrossEncoder
from tailrace.serve.runner import bind, run
from tailrace.serve.settings import load


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=SERVICE_S)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="PATH=JSON")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    given = (entry.split("=", 1) for entry in options.set)
    settings = load(
        BoxSettings, environ={}, overrides={path: json.loads(value) for path, value in given}
    )
    listener = bind(settings.server.host, options.port)
    model = FakeCrossEncoder(seconds=options.seconds)
    box, _ = make_box(settings, model, service_s=options.seconds)
    stream = event_stream(box)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    run(
        review_app(box, stream),
        listener,
        grace_s=settings.server.drain_grace_s,
        started=lambda: print(url, flush=True),
        stopping=stream.close,
    )


if __name__ == "__main__":
    main()
