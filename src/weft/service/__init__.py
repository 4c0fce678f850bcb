"""A running job as a service: queries, plan, answers and metrics over HTTP. It alone imports FastAPI and uvicorn."""

from weft.service.answer_buffer import AnswerBuffer
from weft.service.auth import UnsafeHost, check_host
from weft.service.limits import Limits
from weft.service.routes import make_app
from weft.service.server import Server, open_socket
from weft.service.service import Service

__all__ = ["AnswerBuffer", "Limits", "Server", "Service", "UnsafeHost", "check_host", "make_app", "open_socket"]
