"""Three hundred hostile requests, and fifty people who ask at once: no trace, no path of this machine, no failure."""

import json
import random
import socket
import statistics
import threading
import time

import pytest

from anyorder.studio.endpoints import DOING, FILES, LOOKING, own_parameters
from anyorder.studio.server import build_app
from studio_client import TOKEN

HOSTILE = [
    "", " ", "../../etc/passwd", "/etc/passwd", "%00", "\x00", "'; drop table people; --", "<script>alert(1)</script>",
    "é" * 300, "[" * 5000, "{" * 5000, '{"a":' * 2000, "1e999", "-1", "NaN", "Infinity", "9" * 400, "null", "true", "[]",
    "{}", '{"age": null}', '{"age": {"low": "x"}}', '{"age": {"in": []}}', '{"city": {"in": [[]]}}', '{"__class__": 1}',
    "d1", "m3", "m4", "j1", "income", '{"income": {"low": 1e308, "high": -1e308}}', '{"joined": {"low": "9999-99-99"}}',
    "A" * 3000, "\u200b\u202e", '{"costs": {}}', '["a", 1]', "0", "1", "500", "-5.5", "2147483648", "9007199254740993",
]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("always::UserWarning")
TRACES = ("Traceback", 'File "', "/work", "/tmp", "/home", "site-packages", ".py")


def hostile_requests(rng, count):
    """Every endpoint with strange values for its own parameters, some missing, some that it has not."""
    endpoints = [("GET", one) for one in LOOKING + FILES] + [("POST", one) for one in DOING]
    for _ in range(count):
        method, endpoint = rng.choice(endpoints)
        names = [name for name in own_parameters(endpoint.function) if rng.random() < 0.9]
        said = {name: usual(name) if rng.random() < 0.5 else rng.choice(HOSTILE) for name in names}
        if rng.random() < 0.1:
            said[rng.choice(HOSTILE)[:20] or "x"] = rng.choice(HOSTILE)
        yield method, endpoint.path, said


def usual(name):
    return {"model": "m3", "data": "d1", "target": "income", "column": "income", "row": 1, "effort": 0.01}.get(name, "1")


def decoded(text):
    """As a program that sends JSON means it."""
    try:
        return json.loads(text) if isinstance(text, str) and len(text) < 400 else text
    except ValueError:
        return text


def test_hostile_requests_get_a_sentence_and_nothing_else(studio):
    rng, statuses = random.Random(0), []
    for number, (method, path, said) in enumerate(hostile_requests(rng, 300)):
        if method == "GET":
            answer = studio.get(path, **said)
        else:
            body = {name: decoded(value) if rng.random() < 0.5 else value for name, value in said.items()}
            answer = studio.client.post(path, content=json.dumps(body), headers=studio.headers)
        statuses.append(answer.status_code)
        assert answer.status_code in (200, 400, 404), (number, path, said, answer.text[:300])
        if answer.status_code != 200:
            told = answer.json()["error"]
            assert told
            assert not any(trace in told for trace in TRACES), (path, said, told)
            assert len(told) < 4000
        for job in studio.space.jobs.all():
            studio.space.jobs.cancel(job)
    assert statuses.count(200) > 10
    assert statuses.count(400) > 100


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /open.json HTTP/1.1\r\n\r\n",
        b"GET /open.json HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: \xff\xfe=\x01; ;;=\r\n\r\n",
        b"POST /do/train HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /upload/open HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data\r\nX-Studio-Token: "
        + TOKEN.encode()
        + b"\r\nContent-Length: 5\r\n\r\nabcde",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nX-Studio-Token: " + TOKEN.encode() + b"\r\n\r\n",
    ],
)
def test_nonsense_on_the_wire_leaves_the_server_alone(studio, raw):
    with running(studio) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
            wire.sendall(raw)
            wire.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: wire.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 4") or not answer
        assert b"Traceback" not in answer
        assert asked(port) == 200


class running:
    """The server on a port of its own, in a thread."""

    def __init__(self, studio):
        import uvicorn

        config = uvicorn.Config(build_app(studio.space, TOKEN), host="127.0.0.1", port=0, log_level="critical", lifespan="off")
        self.server = uvicorn.Server(config)
        self.server.install_signal_handlers = lambda: None
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self.server.servers[0].sockets[0].getsockname()[1]

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(timeout=10)


def asked(port, path="/open.json"):
    import http.client

    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    wire.request("GET", path, headers={"X-Studio-Token": TOKEN})
    answer = wire.getresponse()
    answer.read()
    wire.close()
    return answer.status


@pytest.mark.slow
def test_fifty_ask_at_once_for_a_minute(studio):
    seconds, statuses = list[float](), list[int]()
    with running(studio) as port:
        end = time.monotonic() + 60

        def asker(number):
            rng = random.Random(number)
            while time.monotonic() < end:
                start = time.monotonic()
                given = json.dumps({"age": rng.randint(20, 59)}).replace('"', "%22").replace(" ", "")
                statuses.append(asked(port, f"/ask.json?model=m3&target=income&given={given}"))
                seconds.append(time.monotonic() - start)

        threads = [threading.Thread(target=asker, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    cuts = statistics.quantiles(seconds, n=100)
    print(f"{len(seconds)} answers in 60 s to 50 askers, median {cuts[49]:.2f} s, p95 {cuts[94]:.2f} s")
    assert set(statuses) == {200}
