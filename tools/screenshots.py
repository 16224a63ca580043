"""Takes the README's screenshots, the demo's report and the translation page, in a real browser.

Run after `make demo`: python tools/screenshots.py runs/demo. Needs chromium.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.serve import browser  # noqa: E402

IMAGES = ROOT / "docs" / "images"
WIDTH = 1000
SENTENCES = "Did the brave grandmother hear the woman?\nThe sick gardener started to sleep in the garden."
START_SECONDS = 60


def main(run: Path) -> None:
    IMAGES.mkdir(exist_ok=True)
    # The browser may still be writing its profile.
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        browser.opened(Path(folder)) as page,
    ):
        page.open((run / "report.html").resolve().as_uri(), width=WIDTH, height=1100)
        page.wait("document.querySelectorAll('.main-svg').length > 0")
        page.picture(IMAGES / "report.png")
        with served(run) as url:
            page.open(url, width=WIDTH, height=520)
            page.type(SENTENCES)
            page.wait("document.getElementById('target').textContent.trim().split('\\n').length > 1")
            page.picture(IMAGES / "translate.png")


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Serve this run with `dragoman serve`; yields the address."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "dragoman", "serve", str(run), "--port", str(port)])
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            assert process.poll() is None and time.monotonic() < deadline, "the service did not start"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    with closing(socket.socket()) as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
