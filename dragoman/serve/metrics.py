"""The server's counters in Prometheus' text format, which is simple enough to need no library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Histogram:
    """Counts requests by how long they took."""

    def __init__(self) -> None:
        self.counts = [0] * len(_BOUNDS)
        self.count = 0
        self.sum_seconds = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum_seconds += seconds
        for place, bound in enumerate(_BOUNDS):
            self.counts[place] += seconds <= bound

    def lines(self, name: str) -> Iterator[str]:
        for bound, count in zip(_BOUNDS, self.counts, strict=True):
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f'{name}_bucket{{le="+Inf"}} {self.count}'
        yield f"{name}_sum {self.sum_seconds:.6f}"
        yield f"{name}_count {self.count}"


class Metrics:
    """The counters; change them only from the event loop's thread."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.translation = Histogram()  # seconds of successful translation requests
        self.texts: Counter[str] = Counter()  # by model
        self.characters: Counter[str] = Counter()
        self.batches: Counter[str] = Counter()
        self.engine_seconds: Counter[str] = Counter()
        self.waiting_texts = 0
        self.requests_under_way = 0

    def batch(self, model: str, texts: Sequence[str], seconds: float) -> None:
        self.batches[model] += 1
        self.texts[model] += len(texts)
        self.characters[model] += sum(map(len, texts))
        self.engine_seconds[model] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """All metrics in the exposition format, version 0.0.4."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield from _head("dragoman_requests_total", "counter", "Requests by path and status.")
        for (path, status), count in sorted(self.requests.items()):
            yield f'dragoman_requests_total{{path="{path}",status="{status}"}} {count}'
        name = "dragoman_translation_seconds"
        yield from _head(name, "histogram", "Seconds from a request's headers to its translation.")
        yield from self.translation.lines(name)
        by_model = (
            ("texts_total", "Texts translated.", self.texts),
            ("characters_total", "Characters translated.", self.characters),
            ("batches_total", "Engine calls, each with a batch of waiting texts.", self.batches),
            ("engine_seconds_total", "Seconds spent in engine calls.", self.engine_seconds),
        )
        for name, meaning, values in by_model:
            yield from _head(f"dragoman_{name}", "counter", meaning)
            for model, value in sorted(values.items()):
                yield f'dragoman_{name}{{model="{model}"}} {value:.12g}'
        for name, meaning, gauge in (
            ("waiting_texts", "Texts in the queue.", self.waiting_texts),
            (
                "requests_under_way",
                "Translation requests waiting or in an engine call.",
                self.requests_under_way,
            ),
        ):
            yield from _head(f"dragoman_{name}", "gauge", meaning)
            yield f"dragoman_{name} {gauge}"


def _head(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"
