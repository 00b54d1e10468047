"""A browser without a window, by the WebDriver protocol (W3C) and Python's standard library alone."""

import base64
import ctypes
import http.client
import json
import shutil
import signal
import socket
import subprocess
import tempfile
import time

CONTROL, ENTER, SHIFT = "\ue009", "\ue007", "\ue008"


class WebDriverError(RuntimeError):
    pass


def find_browser():
    """(browser, driver), or a reason why there is none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver") or shutil.which("chromium-driver")
    if not browser:
        return "no Chromium here (Debian: chromium)"
    if not driver:
        return "no chromedriver here (Debian: chromium-driver)"
    return browser, driver


def end_with_parent():
    """In a child, before its program starts: a parent that is killed cannot close anything (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Browser:
    """with Browser(width, height) as browser: browser.open(path)"""

    def __init__(self, width=1280, height=800, dark=False, scale=1):
        found = find_browser()
        if isinstance(found, str):
            raise WebDriverError(found)
        self.binary, driver = found
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.home = tempfile.TemporaryDirectory(prefix="hotpack-browser-", ignore_cleanup_errors=True)
        self.process = subprocess.Popen([driver, f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=end_with_parent)
        self.session = None
        try:
            self._start(width, height, dark, scale)
        except BaseException:
            self.close()
            raise

    def _start(self, width, height, dark, scale):
        # The tests' own files only, in a throw-away profile; containers have no namespaces for a sandbox. A pipe to the driver
        # instead of a port: the browser ends when the driver does, however that came about.
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
                     "--disable-background-networking", f"--user-data-dir={self.home.name}", f"--window-size={width},{height}",
                     f"--force-device-scale-factor={scale}"]
        if dark:
            arguments.append("--force-dark-mode")
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"binary": self.binary, "args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except (ConnectionRefusedError, http.client.RemoteDisconnected):
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise WebDriverError("chromedriver does not answer") from None
                time.sleep(0.1)
        self.session = answer["sessionId"]
        self.size(width, height)

    def size(self, width, height):
        """Of the page itself."""
        self._devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=0, mobile=False)

    def media(self, name):
        """As if on `name`, such as print; "": on the screen."""
        self._devtools("Emulation.setEmulatedMedia", media=name)

    def _devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise WebDriverError(f"{method} {path}: {value['error']}: {value['message'].splitlines()[0]}")
        return value

    def call(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def open(self, path):
        self.call("POST", "/url", {"url": f"file://{path}"})

    def run(self, script, *arguments):
        """The value that the script returns; a promise is waited for."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def frame(self):
        """Waits until what is to be drawn has been drawn."""
        self.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def pointer(self, *actions):
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": list(actions)}]})

    def move(self, x, y):
        self.pointer({"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)})

    def click(self, x, y):
        self.pointer({"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def drag(self, x, y, dx, dy):
        self.pointer({"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0},
                     {"type": "pointerMove", "duration": 50, "x": round(x + dx), "y": round(y + dy)}, {"type": "pointerUp", "button": 0})

    def wheel(self, x, y, delta):
        self.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "duration": 0, "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta}]}]})

    def keys(self, text):
        presses = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": presses}]})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def whole_page(self, path):
        """The page from top to bottom, whatever the window's height."""
        size = self.run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        taken = self._devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                               clip={"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(taken["data"]))

    def pdf(self):
        return base64.b64decode(self.call("POST", "/print", {"background": True}))

    def log(self):
        """What the console has said since the last call, but for the browser's own pages (without a network its start page complains)."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.call("POST", "/se/log", {"type": "browser"})
                if not entry["message"].startswith("chrome://")]

    def close(self):
        if self.session is not None:
            try:
                self.call("DELETE", "")
            except (WebDriverError, OSError):
                pass
            self.session = None
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.home.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
