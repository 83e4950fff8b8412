"""Agents on a server: any endpoint that speaks OpenAI's chat completions, e.g. vLLM's.

The server answers in evaluations and plays; what it serves is not changed from here. Requests of a
turn go out together, at most ``engine_concurrency`` at a time. What may pass by itself (no
connection, a time-out, status 408, 409, 429 or 5xx, an answer that is no JSON) is tried again; what
will not (an unknown model, a wrong key) is told at once. A key is taken from the environment
variable OPENAI_API_KEY, if there is one.

Sampling is seeded by (episode, turn, agent) as far as the server honours ``seed``. Operations on a
server are not known, and count as 0.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.flops import FlopCounter
from mpt_train.language.asking import AskingPolicy, Question
from mpt_train.language.config import LanguageConfig
from mpt_train.language.errors import EndpointError
from mpt_train.language.game import TextVectorGame
from mpt_train.language.transcript import Answer
from wrappers.rng import hash4

if TYPE_CHECKING:
    from mpt_train.branches import Pairs
    from mpt_train.cold_start import Demonstrations
    from mpt_train.config import BidLearning, ColdStartConfig
    from mpt_train.rollout import Batch
    from wrappers.vector import VectorGame

KEY = "OPENAI_API_KEY"
MAX_REPLY = 4 << 20
"""Longer replies of a server, in bytes, are refused."""
_PASSING = frozenset((408, 409, 425, 429))
_FIRST_WAIT = 0.5
_STRIDE = 64


class Endpoint:
    """A client of a chat-completions server.

    Args:
        config: address, concurrency, time-out and retries.
        sleep: waits between tries.

    Raises:
        ValueError: the address is none.
    """

    def __init__(self, config: LanguageConfig, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urllib.parse.urlsplit(config.engine)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(
                f"language.engine must be 'transformers' or the address of a server, such as "
                f"http://localhost:8000/v1; got {config.engine!r}"
            )
        self._url = config.engine.rstrip("/") + "/chat/completions"
        self._timeout = config.engine_timeout
        self._retries = config.engine_retries
        self._pool = ThreadPoolExecutor(config.engine_concurrency, "endpoint")
        self._sleep = sleep

    def complete(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send requests (bodies of chat completions) and return the first choice of each.

        Raises:
            EndpointError: one was refused, or had no answer after all tries.
        """
        futures = [self._pool.submit(self._one, body) for body in requests]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _one(self, body: dict[str, Any]) -> dict[str, Any]:
        problem = ""
        for attempt in range(self._retries + 1):
            if attempt:
                self._sleep(_FIRST_WAIT * 2 ** (attempt - 1))
            try:
                return self._choice(self._post(json.dumps(body).encode()))
            except urllib.error.HTTPError as error:
                problem = f"status {error.code}: {_told(error)}"
                if error.code not in _PASSING and error.code < 500:
                    raise EndpointError(f"{self._url} refused a request with {problem}") from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = str(getattr(error, "reason", None) or error) or repr(error)
        raise EndpointError(
            f"{self._url} has not answered in {self._retries + 1} tries ({problem}); is the server "
            "running? --language.engine-timeout and --language.engine-retries allow more"
        )

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {os.environ[KEY]}"
        request = urllib.request.Request(self._url, body, headers)
        with urllib.request.urlopen(request, timeout=self._timeout) as reply:
            content: bytes = reply.read(MAX_REPLY + 1)
        if len(content) > MAX_REPLY:
            raise ValueError(f"the reply is longer than {MAX_REPLY} bytes")
        return content

    @staticmethod
    def _choice(content: bytes) -> dict[str, Any]:
        """The first choice of a reply, checked."""
        try:
            choice = json.loads(content)["choices"][0]
            if not isinstance(choice["message"].get("content"), (str, type(None))):
                raise TypeError("the message is no text")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(f"the reply is no chat completion: {error!r}") from error
        found: dict[str, Any] = choice
        return found


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

    def lower_bids(
        self,
        batch: Batch,
        config: BidLearning,
        counter: FlopCounter,
        turns: NDArray[np.int64],
        worlds: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """Not possible."""
        raise _cannot_learn()

    def action_loss(
        self,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None,
    ) -> tuple[Tensor, float]:
        """Not possible."""
        raise _cannot_learn()

    def bid_loss(
        self,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None,
    ) -> tuple[Tensor, dict[str, float]]:
        """Not possible."""
        raise _cannot_learn()

    def preference_loss(
        self, pairs: Pairs, responses: Sequence[Any], counter: FlopCounter
    ) -> tuple[Tensor, dict[str, float]]:
        """Not possible."""
        raise _cannot_learn()

    def fit(
        self,
        demonstrations: Demonstrations,
        game: VectorGame,
        config: ColdStartConfig,
        seed: int,
        counter: FlopCounter,
    ) -> dict[str, float]:
        """Not possible."""
        raise _cannot_learn()


def _cannot_learn() -> Exception:
    return EndpointError(
        "a server's models cannot be updated from here; train with --language.engine transformers"
    )


def _fitting(users: Sequence[str], max_tokens: int) -> str:
    """The fullest form of a user message that should fit; a token is at least two characters."""
    return next((user for user in users if len(user) <= 2 * max_tokens), users[-1])


def _data_url(picture: NDArray[np.uint8]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _told(error: urllib.error.HTTPError) -> str:
    """What a server says about an error, shortened."""
    try:
        return error.read(2000).decode("utf-8", "replace").strip()[:300] or str(error.reason)
    except OSError:
        return str(error.reason)
