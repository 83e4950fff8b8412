"""Agents on a server: requests, retries, time-outs, concurrency, and evaluation through the CLI."""

from __future__ import annotations

import _thread
import contextlib
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpt_train.agents import build_agents
from mpt_train.cli.main import main
from mpt_train.coordination.market import LearnedBids
from mpt_train.evaluate import evaluate, evaluate_run, evaluate_server
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.language.config import LanguageConfig
from mpt_train.language.endpoint import Endpoint, EndpointPolicy
from mpt_train.language.errors import EndpointError
from mpt_train.loop import Trainer
from mpt_train.rollout import rollout
from mpt_train.runs.folder import RunFolder
from tests.mpt_train.language.swarms import TASK, config
from wrappers.errors import MarketError

Reply = Callable[["Server", dict[str, Any]], tuple[int, bytes]]


class Server:
    """A chat-completions server on this machine; what it replies is up to a function."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.extra: dict[str, str] = {}
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.running = self.most = 0
        lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.bodies.append({**body, "path": self.path})
                    outer.headers.append(dict(self.headers))
                    outer.running += 1
                    outer.most = max(outer.most, outer.running)
                try:
                    status, content = outer.reply(outer, body)
                finally:
                    with lock:
                        outer.running -= 1
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(content)))
                    for name, value in outer.extra.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def serving(reply: Reply) -> Iterator[Server]:
    server = Server(reply)
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def sending(pieces: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """The address of a server that sends these bytes to whoever connects, and then hangs up."""
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(1 << 16)
            for piece in pieces():
                connection.sendall(piece)
                if over.is_set():
                    break

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def said(text: str) -> tuple[int, bytes]:
    choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    return 200, json.dumps({"choices": choices}).encode()


def player(server: Server, body: dict[str, Any]) -> tuple[int, bytes]:
    user = body["messages"][-1]["content"]
    bidding = "If you win this turn" in user
    if bidding:
        return said('{"bid": 0.9}' if "chop_log" in user else '{"bid": 0.2}')
    return said('{"action": "chop_log"}' if "chop_log" in user else '{"action": "wait"}')


def language(server: Server, **changes: Any) -> LanguageConfig:
    settings: dict[str, Any] = {
        "engine": server.url,
        "engine_model": "some-model",
        "engine_timeout": 10.0,
        "engine_retries": 2,
    }
    return LanguageConfig(**{**settings, **changes})


def endpoint(server: Server, waits: list[float] | None = None, **changes: Any) -> Endpoint:
    record: list[float] = [] if waits is None else waits
    return Endpoint(language(server, **changes), sleep=record.append)


def test_a_server_plays() -> None:
    with serving(player) as server:
        run = config(engine=server.url, engine_model="swarm-{role}", profile=True, answers="json")
        game = build_game(run, 2)
        agents = build_agents(run, game)
        assert isinstance(agents.policy, EndpointPolicy) and not list(agents.policy.parameters())
        game.reset(np.arange(2))
        batch = rollout(game, agents.policy, LearnedBids(), FlopCounter())
        assert (batch.winners[0] == 0).all() and batch.transcript.valid_share("act") > 0.5
        assert {body["model"] for body in server.bodies} == {
            "swarm-logger",
            "swarm-miner",
            "swarm-smith",
        }
        first = server.bodies[0]
        assert first["path"] == "/v1/chat/completions" and first["max_tokens"] == 4
        assert [m["role"] for m in first["messages"]] == ["system", "user"]
        seeds = sorted(body["seed"] for body in server.bodies)
        assert len(set(seeds)) == len(seeds) and seeds[0] >= 0 and seeds[-1] < 2**31
        game.reset(np.arange(2))
        server.bodies.clear()
        again = rollout(game, agents.policy, LearnedBids(), FlopCounter())
        assert sorted(body["seed"] for body in server.bodies) == seeds
        assert np.array_equal(batch.actions, again.actions)
        with pytest.raises(EndpointError, match="cannot be updated"):
            agents.policy.action_loss(
                batch, agents.coordination.refine, batch.rewards, 0.0, FlopCounter()
            )


def test_what_passes_is_tried_again() -> None:
    troubles = [
        (500, b"oops"),
        (429, b"slow down"),
        (200, b"{"),
        (200, b'{"choices": []}'),
        (200, b'{"choices": [{"message": {"content": 7}}]}'),
        (503, b""),
    ]
    for trouble in troubles:

        def reply(
            server: Server, body: dict[str, Any], trouble: tuple[int, bytes] = trouble
        ) -> tuple[int, bytes]:
            return trouble if len(server.bodies) < 3 else said("0.5")

        waits: list[float] = []
        with serving(reply) as server:
            client = endpoint(server, waits)
            assert client.complete([{"model": "m"}])[0]["message"]["content"] == "0.5"
            assert len(server.bodies) == 3 and waits == [0.5, 1.0]


def test_what_stays_is_told_after_all_tries() -> None:
    with serving(lambda server, body: (500, b"broken inside")) as server:
        client = endpoint(server)
        with pytest.raises(EndpointError, match=r"in 3 tries \(status 500: broken inside\)"):
            client.complete([{}, {}])


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_will_not_pass_is_told_at_once(status: int) -> None:
    with serving(lambda server, body: (status, b'{"error": "no model m"}')) as server:
        client = endpoint(server)
        with pytest.raises(EndpointError, match=f"status {status}.*no model m"):
            client.complete([{}])
        assert len(server.bodies) == 1


def test_a_silent_server_times_out() -> None:
    def slow(server: Server, body: dict[str, Any]) -> tuple[int, bytes]:
        time.sleep(1.0)
        return said("0.5")

    with serving(slow) as server:
        client = endpoint(server, engine_timeout=0.2, engine_retries=1)
        start = time.perf_counter()
        with pytest.raises(EndpointError, match=r"in 2 tries.*timed out"):
            client.complete([{}])
        assert time.perf_counter() - start < 5.0


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SLOW: dict[str, tuple[bytes, bytes]] = {
    "silence": (b"", b""),
    "a status line": (b"", b"H"),
    "headers": (HEAD + b"X-Long: ", b"x"),
    "more and more headers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": (HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "a body of any length": (HEAD + b"\r\n", b" "),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a refusal": (b"HTTP/1.1 404 No\r\nContent-Length: 1999\r\n\r\n", b" "),
}


@pytest.mark.parametrize("what", SLOW)
def test_the_time_out_bounds_the_whole_request(what: str) -> None:
    first, again = SLOW[what]

    def pieces() -> Iterator[bytes]:
        yield first
        while True:
            time.sleep(0.05)
            yield again

    with sending(pieces) as url:
        client = Endpoint(LanguageConfig(engine=url, engine_timeout=0.4, engine_retries=0))
        start = time.perf_counter()
        with pytest.raises(EndpointError, match="timed out"):
            client.complete([{}, {}])
        assert time.perf_counter() - start < 5.0


def interrupted_after(seconds: float, client: Endpoint) -> None:
    """Ask for answers, interrupt as Ctrl-C does, and see that it ends at once."""
    threading.Timer(seconds, _thread.interrupt_main).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        client.complete([{}] * 4)
    assert time.perf_counter() - start < seconds + 3.0
    # Python waits for other threads before it ends.
    assert all(t.daemon for t in threading.enumerate() if t.name.startswith("endpoint"))


@pytest.mark.parametrize("limit", [1, 16])
def test_an_interruption_ends_requests_at_once(limit: int) -> None:
    hung_up = threading.Event()

    def pieces() -> Iterator[bytes]:
        with contextlib.suppress(GeneratorExit):
            while True:
                yield b" "
                time.sleep(0.05)
        hung_up.set()

    with sending(pieces) as url:
        interrupted_after(0.5, Endpoint(LanguageConfig(engine=url, engine_concurrency=limit)))
        assert hung_up.wait(5.0), "the connection was left open"


def test_an_interruption_ends_the_wait_between_tries_at_once() -> None:
    with serving(lambda server, body: (503, b"")) as server:
        interrupted_after(0.8, Endpoint(language(server, engine_retries=9)))
        sent = len(server.bodies)
        time.sleep(1.0)
        assert len(server.bodies) == sent, "what nobody waits for was sent"


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
def test_no_redirect_is_followed(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the key nor the prompts go to a host that was not named."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    with serving(lambda server, body: said("1.0")) as other:
        for target in (f"{other.url}/chat/completions", "//[", "file:///etc/passwd", ""):
            with serving(lambda server, body: (status, b"over there")) as server:
                server.extra = {"Location": target}
                with pytest.raises(EndpointError, match=f"redirects to .*status {status}"):
                    endpoint(server).complete([{}])
                assert len(server.bodies) == 1
        assert not other.bodies


def of(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "no http": b"\x00\xff\r\n\r\n",
    "another version": b"HTTP/9 200 OK\r\n\r\n",
    "a status that is none": b"HTTP/1.1 two OK\r\n\r\n",
    "too many headers": HEAD + b"X: y\r\n" * 500 + b"\r\n",
    "too long a header": HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    "headers that stop": HEAD,
    "a body that stops": HEAD + b"Content-Length: 50\r\n\r\n{",
    "chunks that stop": HEAD + CHUNKED + b"5\r\nab",
    "chunks that are none": HEAD + CHUNKED + b"five\r\n",
    "a refusal whose chunks stop": b"HTTP/1.1 503 No\r\n" + CHUNKED + b"5\r\nab",
    "a refusal whose chunks are none": b"HTTP/1.1 503 No\r\n" + CHUNKED + b"five\r\n",
    "deep lists": of(b"[" * 200_000),
    "deep objects": of(b'{"choices": ' * 50_000),
    "a deep field beside": of(
        b'{"choices": [{"message": {"content": "0.5"}}], "x": %s}' % (b"[" * 50_000 + b"]" * 50_000)
    ),
    "a long number": of(b'{"choices": %s}' % (b"9" * 10_000)),
    "no text": of(b"\xff\xfe\xfd" * 1000),
    "a list": of(b"[]"),
    "choices of another kind": of(b'{"choices": 3}'),
    "a message of another kind": of(b'{"choices": [{"message": []}]}'),
    "no message": of(b'{"choices": [{}]}'),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_reply_that_is_broken_is_told(what: str) -> None:
    with sending(lambda: iter([BROKEN[what]])) as url:
        client = Endpoint(LanguageConfig(engine=url, engine_retries=1), sleep=lambda _: None)
        with pytest.raises(EndpointError, match="in 2 tries") as caught:
            client.complete([{}, {}])
        assert str(caught.value).isprintable() and len(str(caught.value)) < 700


@pytest.mark.parametrize("status", [302, 400, 500])
def test_what_a_server_says_commands_no_terminal(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    text = "no \x1b[31mmodel\x07\x9b2J\u202e\r\n for not-a-real-key"
    with serving(lambda server, body: (status, text.encode())) as server:
        server.extra = {"Location": "/\x1b[2J\x9bm"}
        with pytest.raises(EndpointError) as caught:
            endpoint(server, engine_retries=0).complete([{}])
    message = str(caught.value)
    assert message.isprintable() and "not-a-real-key" not in message
    assert status == 302 or "model" in message


def test_no_server_is_told() -> None:
    with serving(player) as server:
        url = server.url
    client = Endpoint(LanguageConfig(engine=url, engine_retries=1), sleep=lambda _: None)
    with pytest.raises(EndpointError, match="is the server running"):
        client.complete([{}])


def test_requests_at_a_time_are_limited() -> None:
    def slow(server: Server, body: dict[str, Any]) -> tuple[int, bytes]:
        time.sleep(0.05)
        return said(str(body["number"]))

    with serving(slow) as server:
        client = endpoint(server, engine_concurrency=3)
        replies = client.complete([{"number": i} for i in range(12)])
        assert [r["message"]["content"] for r in replies] == [str(i) for i in range(12)]
        assert 1 < server.most <= 3


def test_a_key_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda server, body: said("0.5")) as server:
        client = endpoint(server)
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
        client.complete([{}])
        monkeypatch.delenv("OPENAI_API_KEY")
        client.complete([{}])
        assert [h.get("Authorization") for h in server.headers] == ["Bearer not-a-real-key", None]


@pytest.mark.parametrize("around", [" {}", "{}\n", "\t{}\r\n"])
def test_space_around_a_key_is_no_part_of_it(around: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", around.format("not-a-real-key"))
    with serving(lambda server, body: said("0.5")) as server:
        endpoint(server).complete([{}])
        assert server.headers[0]["Authorization"] == "Bearer not-a-real-key"


@pytest.mark.parametrize(
    "inside", ["\n", "\r\nX-Other: ", " ", "\x1b[31m", "\u20ac", "\udcff", "é"]
)
def test_a_key_that_is_none_is_refused_and_not_shown(
    inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"not-a-real{inside}key")
    with serving(lambda server, body: said("0.5")) as server:
        with pytest.raises(EndpointError, match="OPENAI_API_KEY") as caught:
            endpoint(server).complete([{}])
        assert not server.bodies and "not-a-real" not in str(caught.value)
        assert str(caught.value).isprintable()


def test_an_endless_reply_is_refused() -> None:
    with serving(lambda server, body: (200, b" " * (5 << 20))) as server:
        client = endpoint(server, engine_retries=0)
        with pytest.raises(EndpointError, match="longer than"):
            client.complete([{}])


@pytest.mark.parametrize("engine", ["vllm", "ftp://x/v1", "http://", "file:///etc/passwd"])
def test_an_address_that_is_none_is_told(engine: str) -> None:
    with pytest.raises(ValueError, match="address of a server"):
        Endpoint(LanguageConfig(engine=engine))


@pytest.mark.parametrize(
    "rest",
    [
        *("h/v1?x=1", "h/v1?", "h/v1#a", "h/v1#", "h?x=1", "h/v1/?x=/"),
        *("name:secret@h/v1", "secret@h", "h:99999/v1", "h:port/v1", "h:0/v1", ":80/v1", "[::1/v1"),
        *("h/v 1", "h/v\x1b[31m", "h/vé", "h/v1\n"),
    ],
)
def test_an_address_to_which_no_path_can_be_added_is_refused(rest: str) -> None:
    with pytest.raises(ValueError) as caught:
        Endpoint(LanguageConfig(engine=f"http://{rest}"))
    assert str(caught.value).isprintable() and "secret" not in str(caught.value)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/a%20b/v1"])
def test_requests_go_below_the_path_of_an_address(path: str) -> None:
    with serving(lambda server, body: said("0.5")) as server:
        root = server.url.removesuffix("/v1")
        Endpoint(LanguageConfig(engine=root + path)).complete([{}])
        assert server.bodies[0]["path"] == f"{path.rstrip('/')}/chat/completions"


def test_pictures_and_choices_are_sent() -> None:
    with serving(player) as server:
        run = config(engine=server.url, pictures=True, decoding="choice", answers="plain")
        game = build_game(run, 1)
        policy = build_agents(run, game).policy
        assert isinstance(policy, EndpointPolicy)
        game.reset([0])
        question = policy.question(game, 0, 0, 1, 0, "bid")  # type: ignore[arg-type]
        body = policy.request(question, np.uint64(4), 0)
        picture, text = body["messages"][-1]["content"]
        assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
        assert "chop_log" in text["text"]
        assert body["structured_outputs"]["choice"][7] == "0.7"


def test_training_on_a_server_is_refused_before_it_begins() -> None:
    with pytest.raises(ValueError, match="mpt eval"):
        Trainer(config(engine="http://localhost:1/v1"))


@pytest.mark.parametrize("eager", ["yyy", "ynn", "nyn", "nny", "nnn"])
def test_a_share_is_the_mean_over_the_repeats_that_have_it(eager: str) -> None:
    """Where nobody bids, nobody acts, and there is no share of valid actions."""
    repeat = 0

    def reply(server: Server, body: dict[str, Any]) -> tuple[int, bytes]:
        nonlocal repeat
        bidding = "If you win this turn" in body["messages"][-1]["content"]
        # One turn, one world, three agents: three bids in each repeat.
        repeat = sum(1 for sent in server.bodies if "If you win" in str(sent)) - 1
        if bidding:
            return said("1.0" if eager[repeat // 3] == "y" else "0")
        return said("chop_log" if repeat // 3 == 0 else "nonsense")

    with serving(reply) as server:
        run = config(turns=1, engine=server.url, engine_concurrency=1)
        game = build_game(run, 1)
        found = evaluate(game, build_agents(run, game).policy, LearnedBids(), repeats=3)
    shares = [1.0 if i == 0 else 0.0 for i, who in enumerate(eager) if who == "y"]
    assert found.metrics["valid_bids"] == 1.0
    assert found.metrics.get("valid_actions", "none") == (np.mean(shares) if shares else "none")


def test_what_a_server_cannot_honour_is_refused(tmp_path: Path) -> None:
    run = RunFolder.for_training(tmp_path / "run", config())
    engine = "http://localhost:1/v1"
    with pytest.raises(MarketError, match="no backend 'nowhere'"):
        evaluate_run(run.path, engine=engine, backend="nowhere")
    with pytest.raises(ValueError, match="no checkpoint 'cold_start'"):
        evaluate_run(run.path, engine=engine, checkpoint="cold_start")
    with pytest.raises(ValueError, match="give an engine"):
        evaluate_run(run.path, engine_model="m")
    with pytest.raises(ValueError, match="engine_timeout must be from"):
        evaluate_server(config(engine_timeout=1e300), engine)


def test_a_server_is_evaluated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with serving(player) as server:
        options = ["--engine", server.url, "--engine-model", "m", "--worlds", "2", "--repeats", "1"]
        assert main(["eval", TASK, *options, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["coordination"] == "learned"
        assert result["metrics"]["valid_bids"] == 1.0
        assert result["participation"]["logger"][0] > 0.3
        assert main(["eval", TASK, *options, "--coordination", "round-robin"]) == 0
        assert f"none, {server.url} answers" in capsys.readouterr().out
        assert main(["eval", TASK, *options[:1], "nowhere", *options[2:]]) == 2
        assert "address of a server" in capsys.readouterr().err
