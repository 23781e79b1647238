"""Pictures of all kinds in a real browser, light and dark: legible, and within their bounds.

The browser is Debian's Chromium (``apt-get install chromium``).
"""

import json
import re
import shutil
import subprocess

import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.tools.conventions import Level, write_multiscales

#: Measures what the browser has drawn, and writes it into the page.
SCRIPT = """
const found = {};
for (const part of document.querySelectorAll("section")) {
  const problems = [], texts = [];
  for (const svg of part.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
          box.bottom > frame.bottom + 1)
        problems.push("outside: " + text.textContent);
      for (const other of texts) {
        const [w, h] = [Math.min(box.right, other.right) - Math.max(box.left, other.left),
                        Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top)];
        if (w > 2 && h > 4) problems.push("overlap: " + text.textContent);
      }
      texts.push(box);
    }
  }
  if (part.getBoundingClientRect().right > document.body.getBoundingClientRect().right + 1 ||
      part.scrollWidth > part.clientWidth + 1)
    problems.push("wider than the page");
  const page = getComputedStyle(document.body);
  for (const element of part.querySelectorAll("td, summary, pre, svg")) {
    const style = getComputedStyle(element);
    if (style.color !== page.color) problems.push("colour of its own: " + element.tagName);
  }
  for (const details of part.querySelectorAll("details")) {
    details.open = false;
    const folded = part.getBoundingClientRect().height;
    details.open = true;
    if (part.getBoundingClientRect().height <= folded) problems.push("does not fold");
  }
  found[part.id] = {problems, height: part.getBoundingClientRect().height};
}
document.querySelector("#found").textContent = JSON.stringify(found);
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Return the HTML of everything that shows itself in notebooks, by name."""
    place = tmp_path_factory.mktemp("pictures")
    root = zarrdask.create_group(place / "data.zarr")
    t = root.create_array(
        "ocean/t",
        shape=(365, 90, 180),
        dtype="f4",
        chunks=(1, 45, 90),
        shards=(73, 90, 180),
        dimension_names=("time", "latitude", "longitude"),
    )
    t[:100] = 1
    mask = root.create_array("mask", shape=(3000, 3000), dtype="u1", chunks=(30, 40))
    mask[:700, 900:2000] = mask[1500, :] = 1
    many = root.create_array(
        "many", shape=(4, 3, 20, 512, 512), dtype="u2", chunks=(4, 3, 20, 128, 128)
    )
    months = root.create_array(
        "months", shape=(60, 8), dtype="f4", chunks=((31, 29), 8), dimension_names=("day", None)
    )
    x = zarrdask.from_zarr(t, chunks=(100, 50, 100))
    found = {
        "array": t,
        "mask": mask,
        "axes": many,
        "months": months,
        "scalar": root.create_array("scalar", shape=(), dtype="i1"),
        "vector": root.create_array("vector", shape=10**9, dtype="i1", chunks=10**6),
        "narrow": root.create_array("narrow", shape=(10**8, 3), dtype="i1", chunks=(10**5, 3)),
        "group": root,
        "tree": root.tree(),
        "info": t.info,
        "write": zarrdask.plan_write(da.ones((150, 150), chunks=50), chunks=64),
        "read": zarrdask.plan_read(x[:, 10:60, 20:120]),
        "rechunk": zarrdask.rechunk(t, place / "b.zarr", chunks=(365, 9, 9), max_mem="20 MB"),
        "rechunk-group": zarrdask.rechunk(root["ocean"], place / "c.zarr", chunks=45),
        "verify": zarrdask.verify(root),
        "compare": zarrdask.compare(t, root["many"]),
        "copy": zarrdask.copy(root, place / "d.zarr"),
    }
    found["pyramid"] = image = root.create_group("image")
    for name, n in ("0", 64), ("1", 32):
        level = image.create_array(name, shape=(2, n, n), dtype="u1", dimension_names=tuple("cyx"))
        level[...] = np.arange(n)
    levels = [Level("0", (1, 1, 1)), Level("1", (1, 2, 2))]
    write_multiscales(image, levels, convention="ome")
    return {name: value._repr_html_() for name, value in found.items()}


def measured(pictures, scheme, place):
    """Return what the browser says of each picture."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "apt-get install chromium"
    colours = {"light": "#fff; color: #111", "dark": "#111; color: #eee"}[scheme]
    parts = "".join(f'<section id="{name}">{html}</section>' for name, html in pictures.items())
    page = place / f"{scheme}.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><style>:root {{ color-scheme: {scheme} }} '
        f"body {{ background: {colours}; font: 13px sans-serif; width: 1000px }}</style>"
        f'{parts}<script id="found" type="text/plain"></script><script>{SCRIPT}</script>'
    )
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        env={"HOME": str(place), "PATH": "/usr/bin:/bin"},
    )
    [text] = re.findall(
        r'<script id="found" type="text/plain">(.*?)</script>', done.stdout, re.DOTALL
    )
    return json.loads(text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_are_legible(pictures, scheme, tmp_path):
    found = measured(pictures, scheme, tmp_path)
    assert found.keys() == pictures.keys()
    assert {name: part["problems"] for name, part in found.items() if part["problems"]} == {}
    assert all(part["height"] > 10 for part in found.values())


def test_pictures_are_small_and_have_no_scripts(pictures):
    assert {name: len(html) for name, html in pictures.items() if len(html) > 60_000} == {}
    assert not re.search(
        "<script|<style|http(?!://www.w3.org/2000/svg)", "".join(pictures.values())
    )
    assert np.median([len(html) for html in pictures.values()]) < 6000
