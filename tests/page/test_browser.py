"""The page in a real browser: no message in its console, and nothing wider than the window."""

from __future__ import annotations

import html as escaping
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import startups

from brigade.page import html

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = (1280, 700, 390)
# wide things scroll in boxes of their own; a heading, a card or a picture that is cut is a defect
MEASURE = """
<script>
addEventListener("load", () => setTimeout(() => {
  const said = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, root = page.documentElement;
    const cut = [...page.querySelectorAll("h1,h2,h3,p,dd,.insight,figure,.area,summary .n,.bar")]
      .filter((one) => one.getClientRects().length && !one.closest(".scroll"))
      .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1)
      .map((one) => one.className || one.tagName);
    return {width: frame.clientWidth, over: root.scrollWidth - root.clientWidth, cut,
            buttons: page.querySelectorAll("button.do").length};
  });
  document.body.textContent = "MEASURED" + JSON.stringify(said) + "END";
}, 300));
</script>
"""

pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(not BROWSER, reason="needs chromium"),
]


def browse(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
    ]
    command += [f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=4000", "--dump-dom"]
    return subprocess.run([*command, f"file://{page}"], capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("name", ["numpy", "quiet", "hostile"])
def test_the_page_fits_at_every_width_and_the_console_stays_empty(name, tmp_path: Path):
    text = html.render(getattr(startups, name)())
    frames = "".join(
        f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{escaping.escape(text)}">'
        "</iframe>"
        for width in WIDTHS
    )
    page = tmp_path / "page.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}{MEASURE}", encoding="utf-8")
    done = browse(page, tmp_path)
    found = re.search("MEASURED(.*)END", done.stdout)
    assert found, done.stderr
    said = json.loads(escaping.unescape(found[1]))
    assert [one["width"] for one in said] == list(WIDTHS)
    assert [(one["over"], one["cut"]) for one in said] == [(0, [])] * len(WIDTHS)
    assert all(one["buttons"] for one in said) or name == "quiet"  # its script ran
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []


USE = """
<script>
addEventListener("load", () => setTimeout(() => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument;
  const said = {}, shown = (some) => [...page.querySelectorAll(some)]
    .filter((one) => one.getClientRects().length).map((one) => one.textContent.trim());
  const area = page.querySelector(".area"), box = area.getBoundingClientRect();
  area.dispatchEvent(new PointerEvent("pointermove",
    {clientX: box.left + box.width * 0.3, clientY: box.top + 5}));
  said.tip = page.querySelector(".tip").textContent;
  area.dispatchEvent(new PointerEvent("pointerleave"));
  said.gone = page.querySelectorAll(".tip").length;
  const input = page.querySelector("#tree input");
  const before = shown(".leaf b").length;
  const narrow = (text) => { input.value = text; input.dispatchEvent(new Event("input")); };
  narrow("umath");
  said.found = shown("#tree b");
  narrow("");
  said.back = shown(".leaf b").length === before;
  page.querySelectorAll("section > details").forEach((one) => { one.open = true; });
  const column = () => [...page.querySelectorAll(".filterable tbody tr")]
    .map((row) => Number(row.cells[5].textContent.replace(",", "")));
  const head = page.querySelectorAll(".filterable thead th")[5];
  head.click();
  said.down = column();
  head.click();
  said.up = column();
  document.body.textContent = "USED" + JSON.stringify(said) + "END";
}, 300));
</script>
"""


def test_values_under_the_pointer_filters_and_sorting_work(tmp_path: Path):
    text = escaping.escape(html.render(startups.numpy()))
    page = tmp_path / "page.html"
    frame = f'<iframe style="width:1200px;height:900px" srcdoc="{text}"></iframe>'
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frame}{USE}", encoding="utf-8")
    done = browse(page, tmp_path)
    found = re.search("USED(.*)END", done.stdout, re.DOTALL)
    assert found, done.stderr
    said = json.loads(escaping.unescape(found[1]))
    assert re.match(r"from \d\.\d\d s: [\d,]+ a second\n[\d,]+ lookup", said["tip"])
    assert said["gone"] == 0 and said["back"]
    assert "numpy.core._multiarray_umath" in said["found"] and "site" not in said["found"]
    assert said["down"] == sorted(said["down"], reverse=True) != said["up"]
    assert said["up"] == sorted(said["up"])
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
