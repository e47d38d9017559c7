"""Who may ask: only pages of this server, only with the token of this start; and nothing larger than the cap."""

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-studio-token"
READING = ("GET", "HEAD")
MOST_BODY = 2**24  # bytes of a request that is no upload
PUBLIC = ("/static/", "/favicon.ico")
HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class TooLargeError(HTTPException):
    """A request is larger than the cap."""

    def __init__(self, most: int) -> None:
        super().__init__(413, too_large(most))


def too_large(most: int) -> str:
    return f"This is larger than {most / 2**20:g} MB, the cap of this studio. Start it with --max-upload, or take a part."


class Guard:
    """Around the whole application, for every request."""

    def __init__(self, app: ASGIApp, token: str, most_upload: int) -> None:
        self.app, self.token, self.most_upload = app, token, most_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            scope["studio_token"] = self.token  # for the page
            await self._http(scope, receive, with_headers(send))

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, most = Headers(scope=scope), self.most_upload if scope["path"].startswith("/upload") else MOST_BODY
        refusal = self._first_visit(scope) or self._refusal(scope, headers, most)
        await (refusal or self._capped(most))(scope, receive, send)

    def _capped(self, most: int) -> ASGIApp:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await self.app(scope, counting(receive, most), send)

        return app

    def _first_visit(self, scope: Scope) -> Response | None:
        """The link that the terminal shows carries the token: it goes into a cookie, and out of the address."""
        said = parse_qsl(scope["query_string"].decode("latin-1"))
        token = dict(said).get("token", "")
        if scope["method"] not in READING or not self._is_token(token):
            return None
        rest = urlencode([(name, value) for name, value in said if name != "token"])
        path = "/" + scope["path"].lstrip("/\\")  # nobody is sent to another host
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(self._cookie(scope), self.token, httponly=True, samesite="strict")
        return answer

    def _refusal(self, scope: Scope, headers: Headers, most: int) -> Response | None:
        """Why nothing is answered, if so. A cookie is enough to look; what changes something needs the header."""
        if scope["path"].startswith(PUBLIC):
            return None
        sent = self._is_token(headers.get(TOKEN_HEADER, ""))
        if scope["method"] in READING and not (sent or self._is_token(cookie_in(headers, self._cookie(scope)))):
            return error(401, "Open the link that `anyorder studio` printed: it holds the token of this start.")
        if scope["method"] not in READING and not sent:
            return error(
                403, "The token of this start is missing. Reload the page, from the link that `anyorder studio` printed."
            )
        length = headers.get("content-length", "0")
        return error(413, too_large(most)) if length.isdecimal() and int(length[:18]) > most else None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def _cookie(self, scope: Scope) -> str:
        """Cookies are shared by all ports of a host: two studios must not take each other's."""
        return f"anyorder-{(scope.get('server') or ('', 0))[1]}"


def cookie_in(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


def counting(receive: Receive, most: int) -> Receive:
    """The body as it comes, until it is too much: its length may have been told wrongly, or not at all."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise TooLargeError(most)
        return message

    return counted


def with_headers(send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Any = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return told
