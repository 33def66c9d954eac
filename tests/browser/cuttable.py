"""A wire that can be cut: raw TCP to the box and back, remembering what was asked."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class Wire:
    """Passes bytes both ways until `cut`; new connections are taken as before."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self.asked: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._to)
            self._open += [near, far]
            threading.Thread(target=self._pass, args=(near, far, self.asked), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, None), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, note: list[bytes] | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if note is not None:
                    note.append(data)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self) -> None:
        """Break every connection there is."""
        broken, self._open = self._open, []
        for end in broken:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut, and take no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def streams(self) -> list[bytes]:
        """Return what the requests for the event stream said, in order."""
        return [data for data in self.asked if data.startswith(b"GET /api/events")]
