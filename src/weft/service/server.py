"""The service in its own thread: the main thread handles signals and the end of the run."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from weft.model import WeftError

STOP_SECONDS = 10
"""How long readers have to finish when the service stops."""


class AddressInUse(WeftError):
    """The service cannot listen on this address."""


def open_socket(host: str, port: int) -> socket.socket:
    """Bound before anything else starts, so that a port in use is reported at once; port 0 takes any free port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressInUse(f"cannot listen on {host}, port {port}: {reason}; choose another --host or --port") from None
    return bound


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _WithoutSignals(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """Serves from `start` to `stop`."""

    def __init__(self, app: FastAPI, bound: socket.socket) -> None:
        self.url = url_of(bound)
        self._bound = bound
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=STOP_SECONDS
        )
        self._server = _WithoutSignals(config)
        self._thread = threading.Thread(target=self._server.run, args=([bound],), name="weft-service", daemon=True)

    def start(self) -> None:
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Let requests end, and wait for that."""
        self._server.should_exit = True
        self._thread.join()
        self._bound.close()
