"""A running job as a service: queries, plan, answers and metrics over HTTP. It alone imports FastAPI and uvicorn."""

from weft.service.answers import AnswerBuffer
from weft.service.app import make_app
from weft.service.guard import UnsafeHost, check_host
from weft.service.jobs import Service
from weft.service.limits import Limits
from weft.service.server import Server, open_socket

__all__ = ["AnswerBuffer", "Limits", "Server", "Service", "UnsafeHost", "check_host", "make_app", "open_socket"]
