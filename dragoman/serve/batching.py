"""Translates the texts of many requests together.

While every thread translates a batch, further texts wait and form the next batch. So an idle server answers
at once, and a busy one works on full batches.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dragoman.decode.engine import Options, Translation
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import Served

Translations = list[Translation]  # of one text, best first

# Clients answered together often send their next requests together. Without a short pause the first of these
# would be translated alone, or all would stay apart from texts already waiting.
_LONGEST_PAUSE_SECONDS = 0.01
_PAUSE_SHARE = 0.1  # of the time the previous batch took


@dataclass(eq=False)
class _QueuedText:
    """One text in the queue."""

    text: str
    model: Served
    options: Options
    answer: asyncio.Future[Translations]

    def goes_with(self, other: _QueuedText) -> bool:
        return self.model is other.model and self.options == other.options


class Batcher:
    """The queue and its threads. Call every method from the event loop's thread."""

    def __init__(self, limits: Limits, metrics: Metrics, threads: int):
        self._limits = limits
        self._metrics = metrics
        self._queue: deque[_QueuedText] = deque()
        self._has_text = asyncio.Event()
        self._threads = ThreadPoolExecutor(threads, "translate")
        self._idle = threads

    async def translate(self, model: Served, texts: Sequence[str], options: Options) -> list[Translations]:
        """The translations of each text; cancelling the call removes its texts from the queue."""
        loop = asyncio.get_running_loop()
        waiting = [_QueuedText(text, model, options, loop.create_future()) for text in texts]
        self._queue.extend(waiting)
        self._metrics.waiting_texts = len(self._queue)
        self._has_text.set()
        try:
            return await asyncio.gather(*(text.answer for text in waiting))
        finally:
            for text in waiting:
                text.answer.cancel()  # no effect if it is done
            if any(text.answer.cancelled() for text in waiting):
                self._queue = deque(text for text in self._queue if not text.answer.done())
                self._metrics.waiting_texts = len(self._queue)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Translate queued texts while the context lasts."""
        workers = [asyncio.create_task(self._work()) for _ in range(self._idle)]
        try:
            yield
        finally:
            for worker in workers:
                worker.cancel()
            self._threads.shutdown()

    async def _work(self) -> None:
        """Feed one thread, batch after batch."""
        pause_seconds = 0.0
        while True:
            await self._has_text.wait()
            await asyncio.sleep(pause_seconds)
            if not (batch := self._next_batch()):
                continue
            self._idle -= 1
            seconds = await self._translate(batch)
            self._idle += 1
            pause_seconds = min(_LONGEST_PAUSE_SECONDS, _PAUSE_SHARE * seconds) if len(batch) > 1 else 0

    def _next_batch(self) -> list[_QueuedText]:
        """The oldest text and later ones that can go with it, up to this thread's share of the queue."""
        most = min(self._limits.batch_texts, -(-len(self._queue) // self._idle))
        batch: list[_QueuedText] = []
        left: deque[_QueuedText] = deque()
        characters = 0
        for text in self._queue:
            if not batch or (
                text.goes_with(batch[0])
                and len(batch) < most
                and characters + len(text.text) <= self._limits.batch_characters
            ):
                batch.append(text)
                characters += len(text.text)
            else:
                left.append(text)
        self._queue = left
        self._metrics.waiting_texts = len(left)
        if not left:
            self._has_text.clear()
        return batch

    async def _translate(self, batch: Sequence[_QueuedText]) -> float:
        """Answer every text of a batch; returns the seconds this took."""
        model, options = batch[0].model, batch[0].options
        texts = [text.text for text in batch]
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        try:
            results = await loop.run_in_executor(self._threads, model.engine.translate, texts, options)
        except Exception as error:  # the server survives a failed batch; its callers get the error
            for text in batch:
                if not text.answer.done():
                    text.answer.set_exception(error)
            return 0.0
        seconds = time.monotonic() - began
        self._metrics.batch(model.name, texts, seconds)
        for text, translations in zip(batch, results, strict=True):
            if not text.answer.done():
                text.answer.set_result(translations)
        return seconds
