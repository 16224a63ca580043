"""A real headless Chromium, driven through the pipe of its DevTools protocol: typing, keys, pictures."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run "
    "--disable-dev-shm-usage --remote-debugging-pipe"
)
WAIT_SECONDS = 60  # for what takes milliseconds: the machine may be busy


class Page:
    """One tab. `complaints` holds what the browser's console said: errors, refused scripts and loads."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO):
        self._commands = commands
        self._answers = answers
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requested: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, url: str, *, width: int = 1300, height: int = 800, scheme: str = "light") -> None:
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
        self._call("Emulation.setDeviceMetricsOverride", **shape)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", features=features)
        self._call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def forget(self) -> None:
        """Leaves the page and what it stored."""
        if self.run("location.protocol") == "http:":
            self.run("localStorage.clear(); sessionStorage.clear()")
        self._call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.complaints.clear()
        self.requested.clear()

    def type(self, text: str) -> None:
        # A page gets its first focus with its first picture: on a busy machine, after it has loaded.
        self.wait("document.activeElement && document.activeElement !== document.body")
        self._call("Input.insertText", text=text)

    def press(self, key: str, *, ctrl: bool = False) -> None:
        codes = {"Escape": 27, "Enter": 13, "Tab": 9}
        about = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": 2 * ctrl}
        text = (
            {"text": "\r"} if key == "Enter" else {}
        )  # a button is pressed by the character, not by the key
        self._call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", **about)

    def run(self, script: str) -> Any:
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.run(script):
            assert time.monotonic() < deadline, f"waited in vain: {script}; {self.complaints}"
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = json.loads(self._next())
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self._hear(answer)

    def _next(self) -> bytes:
        message = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has gone"
            message += byte
        return bytes(message)

    def _hear(self, event: dict[str, Any]) -> None:
        if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(event["params"]))
        if event["method"] == "Network.requestWillBeSent":
            self.requested.append(event["params"]["request"]["url"])


@contextmanager
def opened(folder: Path) -> Iterator[Page]:
    """A browser with an empty profile in this folder."""
    assert CHROMIUM
    (command_end, commands), (answers, answer_end) = os.pipe(), os.pipe()

    def as_chromium_wants_them() -> None:
        os.dup2(command_end, 103)  # 3 may be the other's end, so both go by way of numbers that are free
        os.dup2(answer_end, 104)
        os.dup2(103, 3)
        os.dup2(104, 4)

    process = subprocess.Popen(
        [CHROMIUM, *FLAGS.split(), f"--user-data-dir={folder / 'profile'}"],
        preexec_fn=as_chromium_wants_them,
        close_fds=False,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_end)
    os.close(answer_end)
    with os.fdopen(commands, "wb") as to_browser, os.fdopen(answers, "rb") as from_browser:
        try:
            yield Page(to_browser, from_browser)
        finally:
            process.kill()
            process.wait()
