"""One request to a peer: {"texts": [...]} on stdin, {"vectors": n, "dim": d} on stdout."""

import http.client
import json
import os
import sys
from pathlib import Path

from peer_shapes import body, read_peer, vectors


def main() -> None:
    """Ask; exit 1 with the answer on stderr where it is not 200."""
    peer = read_peer(Path(sys.argv[1]).resolve())
    texts = json.load(sys.stdin)["texts"]
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["PORT"]), timeout=30)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", peer.path, body(peer.shape, peer.model, texts), headers)
        answer = connection.getresponse()
        raw = answer.read()
    except OSError as fault:
        raise SystemExit(f"{peer.name} does not answer: {fault}") from None
    if answer.status != 200:
        raise SystemExit(
            f"{peer.name} answered {answer.status}: {raw[:500].decode(errors='replace')}"
        )
    made = vectors(peer.shape, raw)
    print(json.dumps({"vectors": len(made), "dim": len(made[0]) if made else 0}))


if __name__ == "__main__":
    main()
