"""Agents on a server: any endpoint that speaks OpenAI's chat completions, e.g. vLLM's.

The server answers in evaluations; what it serves is not changed from here. Requests of a turn go
out together, at most ``engine_concurrency`` at a time, each for at most ``engine_timeout`` seconds
(`mpt_train.language.post`). What may pass by itself (no connection, a time-out, status 408, 409,
429 or 5xx, an answer that is no JSON) is tried again; what will not (an unknown model, a wrong key,
a redirect, which is not followed) is told at once. A key is taken from the environment variable
OPENAI_API_KEY, if there is one.

Sampling is seeded by (episode, turn, agent) as far as the server honours ``seed``. Operations on a
server are not known, and count as 0.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import os
import queue
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_train.flops import FlopCounter
from mpt_train.language.asking import AskingPolicy, Question
from mpt_train.language.config import LanguageConfig
from mpt_train.language.errors import EndpointError
from mpt_train.language.game import TextVectorGame
from mpt_train.language.post import GivenUp, Post, Reply
from mpt_train.language.transcript import Answer
from wrappers.rng import hash4

KEY = "OPENAI_API_KEY"
MAX_REPLY = 4 << 20
"""Longer replies of a server, in bytes, are refused."""
_PASSING = frozenset((408, 409, 425, 429))
_PATIENCE = 0.5
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0
_STRIDE = 64


class Endpoint:
    """A client of a chat-completions server.

    Args:
        config: address, concurrency, time-out and retries.
        sleep: waits between tries; None: for real, and no longer than somebody wants the answers.

    Raises:
        ValueError: the address is none.
    """

    def __init__(
        self, config: LanguageConfig, sleep: Callable[[float], None] | None = None
    ) -> None:
        _check_address(config.engine)
        self._url = config.engine.rstrip("/") + "/chat/completions"
        self._timeout = config.engine_timeout
        self._retries = config.engine_retries
        self._concurrency = config.engine_concurrency
        self._sleep = sleep

    def complete(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send requests (bodies of chat completions) and return the first choice of each.

        An exception that reaches the waiting thread, Ctrl-C above all, gives up the requests that
        are under way.

        Raises:
            EndpointError: one was refused, or had no answer after all tries; or the key is none.
        """
        work = _Round(list(requests), _key())
        for _ in range(min(self._concurrency, len(requests))):
            # Daemons, and not of an executor, whose threads Python waits for when it ends.
            threading.Thread(target=self._serve, args=(work,), name="endpoint", daemon=True).start()
        choices: list[dict[str, Any]] = [{}] * len(requests)
        try:
            for _ in requests:
                index, outcome = work.wait()
                if isinstance(outcome, BaseException):
                    raise outcome
                choices[index] = outcome
        finally:
            work.give_up()
        return choices

    def _serve(self, work: _Round) -> None:
        """Answer requests of a round until none is left."""
        while (index := work.next()) is not None:
            try:
                work.finished.put((index, self._one(work, work.requests[index])))
            except BaseException as error:  # raised where the answers are waited for
                work.finished.put((index, error))

    def _one(self, work: _Round, body: dict[str, Any]) -> dict[str, Any]:
        problem = ""
        for attempt in range(self._retries + 1):
            if attempt:
                wait = min(_FIRST_WAIT * 2.0 ** (attempt - 1), _LONGEST_WAIT)
                (self._sleep or work.given_up.wait)(wait)
            try:
                reply = work.send(self._url, json.dumps(body).encode(), self._timeout)
                if 200 <= reply.status < 300:
                    return self._choice(reply.content)
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = _told(str(getattr(error, "reason", None) or error) or repr(error), work)
                continue
            if 300 <= reply.status < 400:
                raise EndpointError(
                    f"{self._url} redirects to {_told(reply.location, work) or 'nowhere'} (status "
                    f"{reply.status}), and redirects are not followed: the key and the prompts go "
                    "to no other host than the one that was named; name the right one"
                )
            said = reply.content.decode("utf-8", "replace").strip() or reply.reason
            problem = f"status {reply.status}: {_told(said, work)}"
            if reply.status not in _PASSING and reply.status < 500:
                raise EndpointError(f"{self._url} refused a request with {problem}")
        raise EndpointError(
            f"{self._url} has not answered in {self._retries + 1} tries ({problem}); is the server "
            "running? --language.engine-timeout and --language.engine-retries allow more"
        )

    @staticmethod
    def _choice(content: bytes) -> dict[str, Any]:
        """The first choice of a reply, checked."""
        try:
            choice = json.loads(content)["choices"][0]
            if not isinstance(choice["message"].get("content"), (str, type(None))):
                raise TypeError("the message is no text")
        except (
            ValueError,
            KeyError,
            IndexError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise ValueError(f"the reply is no chat completion: {error!r}") from error
        found: dict[str, Any] = choice
        return found


class _Round:
    """Requests that are waited for together.

    Args:
        requests: bodies.
        key: of the server; "": none.

    Attributes:
        finished: index and outcome of each request that is done.
        given_up: set once nobody waits any more.
    """

    def __init__(self, requests: list[dict[str, Any]], key: str) -> None:
        self.requests = requests
        self.key = key
        self.finished: queue.SimpleQueue[tuple[int, dict[str, Any] | BaseException]] = (
            queue.SimpleQueue()
        )
        self.given_up = threading.Event()
        self._order = iter(range(len(requests)))
        self._running: set[Post] = set()
        self._lock = threading.Lock()

    def next(self) -> int | None:
        """The next request to be sent; None: there is none."""
        with self._lock:
            return None if self.given_up.is_set() else next(self._order, None)

    def wait(self) -> tuple[int, dict[str, Any] | BaseException]:
        """Index and outcome of the request that is done next."""
        while True:
            # Not in one wait: there are systems on which Ctrl-C does not interrupt a wait.
            with contextlib.suppress(queue.Empty):
                return self.finished.get(timeout=_PATIENCE)

    def send(self, url: str, body: bytes, timeout: float) -> Reply:
        """As `Post.send`.

        Raises:
            GivenUp: nobody waits for it any more.
        """
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        post = Post(url, body, headers, MAX_REPLY)
        with self._lock:
            if self.given_up.is_set():
                raise GivenUp
            self._running.add(post)
        try:
            return post.send(timeout)
        finally:
            with self._lock:
                self._running.discard(post)

    def give_up(self) -> None:
        """End everything that is under way."""
        with self._lock:
            self.given_up.set()
            running = list(self._running)
        for post in running:
            post.give_up()


class EndpointPolicy(AskingPolicy):
    """Agents whose answers come from a server; they cannot learn.

    Args:
        game: gives names, roles, profiles and sizes.
        config: see `LanguageConfig`.
        bids: whether agents bid.
        endpoint: the client; None makes one.
    """

    def __init__(
        self,
        game: TextVectorGame,
        config: LanguageConfig,
        bids: bool,
        endpoint: Endpoint | None = None,
    ) -> None:
        super().__init__(game, config, bids)
        self._endpoint = endpoint or Endpoint(config)
        name = config.engine_model or config.model
        self._models = [
            name.replace("{agent}", agent).replace("{role}", role)
            for agent, role in zip(game.possible_agents, game.roles, strict=True)
        ]

    def request(self, question: Question, stream: np.uint64, attempt: int) -> dict[str, Any]:
        """The body of a chat completion for a question."""
        text = _fitting(question.users, self.config.max_prompt_tokens)
        content: Any = text
        if question.picture is not None:
            content = [
                {"type": "image_url", "image_url": {"url": _data_url(question.picture)}},
                {"type": "text", "text": text},
            ]
        system = [{"role": "system", "content": question.system}] if question.system else []
        index = attempt * _STRIDE + question.agent
        body: dict[str, Any] = {
            "model": self._models[question.agent],
            "messages": [*system, {"role": "user", "content": content}],
            "max_tokens": self.config.max_answer_tokens,
            "temperature": self.config.temperature,
            "seed": int(hash4(np.uint64(question.key), question.turn, stream, index)) >> 33,
        }
        if question.choices:
            # vLLM's constrained decoding.
            body["structured_outputs"] = {"choice": list(question.choices)}
        return body

    def _draw(
        self,
        questions: list[Question],
        phase: str,
        stream: np.uint64,
        attempt: int,
        counter: FlopCounter,
        part: str,
    ) -> list[Answer]:
        counter.add(f"{part}_{phase}", 0)
        replies = self._endpoint.complete([self.request(q, stream, attempt) for q in questions])
        nothing = np.zeros(0, np.int32)
        return [
            Answer(
                agent=question.agent,
                prompt=nothing,
                tokens=nothing,
                log_prob=float("nan"),
                text=reply["message"].get("content") or "",
                picture=question.picture,
            )
            for question, reply in zip(questions, replies, strict=True)
        ]

    # -- learning, which is not for here ---------------------------------------------------------

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        """Not possible."""
        raise EndpointError(
            "a server's models cannot be updated from here; train with --language.engine "
            "transformers"
        )

    lower_bids = action_loss = bid_loss = preference_loss = _refuse
    read_demonstrations = watch = fit_flop = fit = _refuse


def _fitting(users: Sequence[str], max_tokens: int) -> str:
    """The fullest form of a user message that should fit; a token is at least two characters."""
    return next((user for user in users if len(user) <= 2 * max_tokens), users[-1])


def _data_url(picture: NDArray[np.uint8]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _check_address(address: str) -> None:
    """Refuse what is no address to which a path can be added.

    Raises:
        ValueError: with what is wrong.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"language.engine must be 'transformers' or the address of a server, such as "
            f"http://localhost:8000/v1; got {address!r}"
        )
    if "@" in parts.netloc:
        # The address itself stays untold: it may hold a password.
        raise ValueError(
            f"the address of a server must hold no name and no password; a key is read from {KEY}"
        )
    if "?" in address or "#" in address:
        raise ValueError(
            f"the address of a server must end with its path, such as http://localhost:8000/v1: "
            f"{address!r} has a query or a fragment"
        )
    if not (address.isascii() and address.isprintable()) or " " in address:
        raise ValueError(
            f"the address of a server must be plain ASCII without spaces (others in their encoded "
            f"form), got {address!a}"
        )
    try:
        valid = parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"the address of a server has a port from 1 to 65535, got {address!r}")


def _key() -> str:
    """The key of the server, "" if there is none.

    Raises:
        EndpointError: it has characters that no header can carry; the message does not show it.
    """
    key = os.environ.get(KEY, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise EndpointError(
            f"{KEY} holds a space, a line break or another character that no key has; set it again "
            "(it is not shown here)"
        )
    return key


def _told(text: str, work: _Round) -> str:
    """What a server says, shortened, for people to read.

    What would command a terminal becomes a question mark, and a key that it says back is hidden.
    """
    if work.key:
        text = text.replace(work.key, f"[{KEY}]")
    short = " ".join(text[:2000].split())[:300]
    return "".join(character if character.isprintable() else "?" for character in short)
