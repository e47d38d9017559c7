"""The server: one workspace, its endpoints, one static page; on this machine only, unless told otherwise."""

import asyncio
import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import uvicorn
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..errors import AnyOrderError, InputError
from .endpoints import DOING, FILES, LOOKING, VIEWS, Endpoint, arguments, description, json_in
from .guard import Guard, TooLargeError
from .jobs import OVER, UNEXPECTED
from .notes import heard, remarks_are_heard
from .uploads import Part, keep_upload, open_upload
from .workspace import NotThereError, Workspace

PAGE = Path(__file__).parent / "page"
THINKING, LOOKING_UP = 2, 8  # questions to models at the same time, and other requests
MOST_FILES = 20_000  # of an upload
MOST_WATCHING = 50  # streams of progress at the same time
BETWEEN_LOOKS, BETWEEN_SIGNS = 0.1, 10.0  # seconds between two looks at a job, and two signs of life
GONE = 499  # the browser does not wait any more
log = logging.getLogger("anyorder.studio")
Answer = Callable[[Request], Awaitable[Response]]


class Limits(NamedTuple):
    """How much goes on at the same time."""

    thinking: anyio.CapacityLimiter
    looking: anyio.CapacityLimiter
    watching: anyio.Semaphore


def build_app(space: Workspace, token: str, hosts: list[str] | None = None, most_upload: int = 512 * 2**20) -> Starlette:
    """The application: what it shows is in `space`."""
    limits = Limits(anyio.CapacityLimiter(THINKING), anyio.CapacityLimiter(LOOKING_UP), anyio.Semaphore(MOST_WATCHING))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with remarks_are_heard():
            yield
        space.close()

    routes = [
        *(Route(path, page, methods=["GET"]) for path in VIEWS),
        *(Route(one.path, looking(space, one, limits), methods=["GET"]) for one in LOOKING),
        *(Route(one.path, doing(space, one, limits), methods=["POST"]) for one in DOING),
        *(Route(one.path, sending(space, one, limits), methods=["GET"]) for one in FILES),
        Route("/saved.ao", saved_model(space, limits), methods=["GET"]),
        Route("/openapi.json", described, methods=["GET"]),
        Route("/events", watching(space, limits), methods=["GET"]),
        Route("/upload/open", uploading(space, open_upload, limits), methods=["POST"]),
        Route("/upload/keep", uploading(space, keep_upload, limits), methods=["POST"]),
        Mount("/static", StaticFiles(directory=PAGE)),
    ]
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=hosts or ["127.0.0.1", "localhost"], www_redirect=False),
        Middleware(Guard, token=token, most_upload=most_upload),
    ]
    handlers: dict[Any, Any] = {AnyOrderError: told, HTTPException: told_http, MemoryError: told, Exception: told}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)


def serve(space: Workspace, host: str, port: int, most_upload: int, opened: Callable[[str], None], address: str = "/") -> None:
    """Answer until interrupted; `opened` is told the link, once the server listens."""
    listening = bound(host, port)
    token, number = secrets.token_urlsafe(24), listening.getsockname()[1]
    names = sorted({"127.0.0.1", "localhost", socket.gethostname() if host in ("0.0.0.0", "::") else host})
    app = build_app(space, token, names, most_upload)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1, server_header=False)
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    mark = "&" if "?" in address else "?"
    opened(f"http://{shown}:{number}{address}{mark}token={token}")
    uvicorn.Server(config).run(sockets=[listening])


def bound(host: str, port: int) -> socket.socket:
    """A socket at this port, or at any free one if it is taken."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            found.bind((host, port))
        except OSError:
            found.bind((host, 0))
    except OSError as error:
        found.close()
        raise InputError(f"Cannot listen at {host!r}: {error.strerror}. Expected an address of this machine.") from error
    found.listen(128)
    return found


# Answers


async def page(request: Request) -> Response:
    """The one page, with the token that it sends when it does something."""
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace("{{token}}", request.scope["studio_token"]))


async def described(request: Request) -> Response:
    return JSONResponse(description())


def looking(space: Workspace, one: Endpoint, limits: Limits) -> Answer:
    async def answer(request: Request) -> Response:
        query = request.query_params
        many = {name: query.getlist(name) for name in query}
        said = {name: values if len(values) > 1 else values[0] for name, values in many.items()}
        return await answered(space, one, said, limits, request)

    return answer


def doing(space: Workspace, one: Endpoint, limits: Limits) -> Answer:
    async def answer(request: Request) -> Response:
        said = json_in(await request.body() or b"{}", "The body of the request")
        if not isinstance(said, dict):
            raise InputError("The body of the request is no JSON object.")
        return await answered(space, one, said, limits, request)

    return answer


async def answered(space: Workspace, one: Endpoint, said: dict[str, Any], limits: Limits, request: Request) -> Response:
    """What the function says; nothing, if the browser gave up while the question waited for its turn."""
    made = arguments(one.function, said)
    with heard() as notes:
        if not one.thinks:
            found = await run_sync(lambda: one.function(space, **made), limiter=limits.looking)
            return document(found | {"notes": notes})
        async with limits.thinking:
            if await request.is_disconnected():
                return Response(status_code=GONE)
            found = await run_sync(lambda: one.function(space, **made), limiter=anyio.CapacityLimiter(1))
            return document(found | {"notes": notes})


def document(content: Any) -> Response:
    return Response(json.dumps(content, ensure_ascii=False, allow_nan=False), media_type="application/json")


def sending(space: Workspace, one: Endpoint, limits: Limits) -> Answer:
    """A file to keep."""

    async def answer(request: Request) -> Response:
        made = arguments(one.function, dict(request.query_params))
        return attachment(*await run_sync(lambda: one.function(space, **made), limiter=limits.looking))

    return answer


def saved_model(space: Workspace, limits: Limits) -> Answer:
    """The file of a model."""

    def content(model: str) -> tuple[str, bytes]:
        import tempfile

        kept = space.model(model)
        with tempfile.TemporaryDirectory(prefix="anyorder-studio-") as folder:
            path = Path(folder) / "model.ao"
            kept.model.save(path)
            return f"{kept.name.removesuffix('.ao')}.ao", path.read_bytes()

    async def answer(request: Request) -> Response:
        made = arguments(content, dict(request.query_params))
        return attachment(*await run_sync(lambda: content(**made), limiter=limits.looking))

    return answer


def attachment(name: str, content: bytes) -> Response:
    plain = name.encode("ascii", "replace").decode().replace("?", "_").replace('"', "_")
    return Response(
        content, media_type="application/octet-stream", headers={"content-disposition": f'attachment; filename="{plain}"'}
    )


def uploading(space: Workspace, function: Callable[..., Any], limits: Limits) -> Answer:
    async def answer(request: Request) -> Response:
        if not request.headers.get("content-type", "").startswith("multipart/form-data"):
            raise InputError("Expected files, as multipart/form-data.")
        async with request.form(max_files=MOST_FILES, max_fields=1) as form:
            files = [one for one in form.getlist("file") if not isinstance(one, str)]
            parts = [Part(one.filename or "file", one.file) for one in files]
            with heard() as notes:
                found = await run_sync(lambda: function(space, parts), limiter=limits.looking)
            return document(found | {"notes": notes})

    return answer


def watching(space: Workspace, limits: Limits) -> Answer:
    """How far a job is, as server-sent events, until it is over."""

    async def answer(request: Request) -> Response:
        job = space.job(request.query_params.get("job", ""))
        if limits.watching.value == 0:
            raise InputError("Too many watch jobs already. Close some pages of the studio.")

        async def events() -> AsyncIterator[str]:
            seen, silent = -1, 0.0
            async with limits.watching:
                while True:
                    if job.version != seen:
                        over, seen, silent = job.state in OVER, job.version, 0.0
                        yield f"data: {json.dumps(job.document(), ensure_ascii=False)}\n\n"
                        if over:
                            return
                    elif silent >= BETWEEN_SIGNS:
                        silent = 0.0
                        yield ": still here\n\n"
                    await asyncio.sleep(BETWEEN_LOOKS)
                    silent += BETWEEN_LOOKS

        return StreamingResponse(events(), media_type="text/event-stream")

    return answer


# Errors


async def told(request: Request, error: Exception) -> Response:
    """What is wrong and what to do, for a person; the log has what only a developer understands."""
    if isinstance(error, NotThereError):
        return JSONResponse({"error": str(error)}, 404)
    if isinstance(error, AnyOrderError):
        return JSONResponse({"error": str(error)}, 400)
    if isinstance(error, MemoryError):
        return JSONResponse({"error": "There is not enough memory for this. Try with less."}, 507)
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    return JSONResponse({"error": UNEXPECTED.format(type(error).__name__)}, 500)


async def told_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, text = error.status_code, str(error.detail)
    if isinstance(error.__context__, MultiPartException) or isinstance(error.__cause__, MultiPartException):
        text = "The upload cannot be read. Drop the file again."
    words = {404: "There is no such page. The studio begins at /.", 405: "This address does not answer to such a request."}
    return JSONResponse({"error": words.get(status, text)}, status)


__all__ = ["TooLargeError", "build_app", "serve"]
