"""What the tests of explorations share: a server in a process of its own, and a page of it in a browser."""

import contextlib
import math
import re
import subprocess
import sys
import time
from pathlib import Path

from browsing import PATIENCE

TABLES = Path(__file__).parents[1] / "docs/data"
PATIENTS = [str(TABLES / "patients.csv"), "--background", str(TABLES / "healthy.csv"), "--id-column", "id"]
PATIENTS += ["--label-column", "subtype"]


@contextlib.contextmanager
def serving(*words, folder):
    """Run ``standout explore`` in a folder, and give the process and the address of its page."""
    command = [sys.executable, "-m", "standout", "explore", *words, "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line):
                yield process, found[0]
                break
        else:
            raise AssertionError("".join(said))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


class Visit:
    """A page of an exploration, with all that it complained of and asked for."""

    def __init__(self, context, address):
        self.page = context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type != "info" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.page.goto(address)
        self.page.wait_for_selector("body[data-ready]")
        self.wait_until(lambda: self.n_answered >= 1)

    @property
    def n_answered(self):
        return int(self.page.evaluate("document.body.dataset.answered || 0"))

    def wait_until(self, is_so):
        for _ in range(PATIENCE // 50):
            if is_so():
                return
            time.sleep(0.05)
        raise AssertionError("it has not come to that")

    def after(self, act):
        """Do something that asks for another answer, and wait until all of it is there."""
        before = self.n_answered
        act()
        self.wait_until(lambda: self.n_answered > before)

    def text(self, place):
        return self.page.locator(place).inner_text()

    def columns(self):
        return self.page.locator("#bars .feature").all_inner_texts()

    def sides(self):
        """The numbers of rows on each side."""
        return [int(n.replace(",", "")) for n in re.findall(r"\(([\d,]+) rows?\)", self.text("#sides-now"))]

    def lasso(self, left, top, width, height, *, key=None):
        """Draw an ellipse in the picture with the mouse; places are shares of its size."""
        box = self.page.locator("#plot").bounding_box()
        x, y = box["x"] + (left + width / 2) * box["width"], box["y"] + (top + height / 2) * box["height"]
        if key:
            self.page.keyboard.down(key)
        self.page.mouse.move(x + width / 2 * box["width"], y)
        self.page.mouse.down()
        for step in range(1, 25):
            angle = 2 * math.pi * step / 25
            dx, dy = math.cos(angle) * width / 2 * box["width"], math.sin(angle) * height / 2 * box["height"]
            self.page.mouse.move(x + dx, y + dy)
        self.page.mouse.up()
        if key:
            self.page.keyboard.up(key)

    def drag(self, slider, share):
        """Drag a slider to a share of its length."""
        self.page.locator(slider).scroll_into_view_if_needed()
        box = self.page.locator(slider).bounding_box()
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + box["width"] / 2, y)
        self.page.mouse.down()
        for step in range(1, 11):
            at = 0.5 + (share - 0.5) * step / 10
            self.page.mouse.move(box["x"] + at * box["width"], y)
        self.page.mouse.up()
