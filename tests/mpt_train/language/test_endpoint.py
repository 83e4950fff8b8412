"""Agents on a server: requests, retries, time-outs, concurrency, and evaluation through the CLI."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.main import main
from mpt_train.agents import build_agents
from mpt_train.coordination.market import LearnedBids
from mpt_train.flops import FlopCounter
from mpt_train.games import build_game
from mpt_train.language.config import LanguageConfig
from mpt_train.language.endpoint import Endpoint, EndpointPolicy
from mpt_train.language.errors import EndpointError
from mpt_train.loop import Trainer
from mpt_train.rollout import rollout
from tests.mpt_train.language.swarms import TASK, config

Reply = Callable[["Server", dict[str, Any]], tuple[int, bytes]]


class Server:
    """A chat-completions server on this machine; what it replies is up to a function."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
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
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
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
            agents.policy.action_loss(batch, batch.rewards, 0.0, FlopCounter(), None)


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
            client.close()


def test_what_stays_is_told_after_all_tries() -> None:
    with serving(lambda server, body: (500, b"broken inside")) as server:
        client = endpoint(server)
        with pytest.raises(EndpointError, match=r"in 3 tries \(status 500: broken inside\)"):
            client.complete([{}, {}])
        client.close()


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_will_not_pass_is_told_at_once(status: int) -> None:
    with serving(lambda server, body: (status, b'{"error": "no model m"}')) as server:
        client = endpoint(server)
        with pytest.raises(EndpointError, match=f"status {status}.*no model m"):
            client.complete([{}])
        assert len(server.bodies) == 1
        client.close()


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
        client.close()


def test_no_server_is_told() -> None:
    with serving(player) as server:
        url = server.url
    client = Endpoint(LanguageConfig(engine=url, engine_retries=1), sleep=lambda _: None)
    with pytest.raises(EndpointError, match="is the server running"):
        client.complete([{}])
    client.close()


def test_requests_at_a_time_are_limited() -> None:
    def slow(server: Server, body: dict[str, Any]) -> tuple[int, bytes]:
        time.sleep(0.05)
        return said(str(body["number"]))

    with serving(slow) as server:
        client = endpoint(server, engine_concurrency=3)
        replies = client.complete([{"number": i} for i in range(12)])
        assert [r["message"]["content"] for r in replies] == [str(i) for i in range(12)]
        assert 1 < server.most <= 3
        client.close()


def test_a_key_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda server, body: said("0.5")) as server:
        client = endpoint(server)
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
        client.complete([{}])
        monkeypatch.delenv("OPENAI_API_KEY")
        client.complete([{}])
        assert [h.get("Authorization") for h in server.headers] == ["Bearer not-a-real-key", None]
        client.close()


def test_an_endless_reply_is_refused() -> None:
    with serving(lambda server, body: (200, b" " * (5 << 20))) as server:
        client = endpoint(server, engine_retries=0)
        with pytest.raises(EndpointError, match="longer than"):
            client.complete([{}])
        client.close()


@pytest.mark.parametrize("engine", ["vllm", "ftp://x/v1", "http://", "file:///etc/passwd"])
def test_an_address_that_is_none_is_told(engine: str) -> None:
    with pytest.raises(ValueError, match="address of a server"):
        Endpoint(LanguageConfig(engine=engine))


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


def test_a_server_is_evaluated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with serving(player) as server:
        options = ["--engine", server.url, "--engine-model", "m", "--worlds", "2", "--repeats", "1"]
        assert main(["eval", TASK, *options, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["coordination"] == "learned"
        assert result["metrics"]["valid_bids"] == 1.0
        assert result["participation"]["logger"][0] > 0.3
        assert main(["eval", TASK, *options, "--coordination", "round-robin"]) == 0
        assert main(["eval", TASK, *options[:1], "nowhere", *options[2:]]) == 2
        assert "address of a server" in capsys.readouterr().err
