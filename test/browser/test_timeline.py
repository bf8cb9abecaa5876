#!/usr/bin/env python3
"""Timelines in a browser: nothing overlaps at any size, and zoom, search, keyboard and details work.

usage: test_timeline.py CUDAMEM DATA SHOTS     (SHOTS: a folder for screenshots, to be looked at)
"""
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium  # noqa: E402

failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED: " + what)


# Every text and control that is seen, as [left, top, right, bottom, text].
TEXTS = """Array.from(document.querySelectorAll('text, input, button'), e => {
  const r = e.getBoundingClientRect();
  return [r.left, r.top, r.right, r.bottom, e.textContent.slice(0, 60)];
}).filter(t => t[2] > t[0] && t[3] > t[1])"""
# The plots, and the bands in sight: what each covers.
PLOTS = """Array.from(document.querySelectorAll('.plot'), e => {
  const m = e.parentNode.getScreenCTM(), v = e.getAttribute('viewBox').split(' ').map(Number);
  const [x, y, w, h] = ['x', 'y', 'width', 'height'].map(name => +e.getAttribute(name));
  return {left: m.e + x, top: m.f + y, right: m.e + x + w, bottom: m.f + y + h, from: v[0], columns: v[2]};
})"""
BANDS = """Array.from(document.querySelectorAll('.bands path'), e => {
  const b = e.dataset.b.split(',').map(Number);
  return {from: b[0], to: b[1], bytes: b[2], title: e.querySelector('title').textContent,
          hit: e.classList.contains('hit'), selected: e.classList.contains('sel')};
})"""


def overlap(a, b, slack=1.2):
    return a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack


def check_layout(page, name, width):
    texts = page.evaluate(TEXTS)
    check(len(texts) > 5, name + ": hardly any text")
    for i, one in enumerate(texts):
        check(one[0] > -0.5 and one[2] < width + 0.5, "%s: '%s' leaves the page %s" % (name, one[4], one[:4]))
        for other in texts[i + 1:]:
            if overlap(one, other):
                check(False, "%s: '%s' lies over '%s'" % (name, one[4], other[4]))
    for plot in page.evaluate(PLOTS):
        check(plot["left"] > 80 and plot["right"] < width + 0.5, name + ": the plot leaves the page")


def info(page):
    return page.evaluate("document.getElementById('info').textContent")


def view(page):
    plot = page.evaluate(PLOTS)[0]
    return plot["from"], plot["columns"]


def check_zoom(page, name, width):
    whole, plot = view(page), page.evaluate(PLOTS)[0]
    y = plot["bottom"] - 4
    page.move(plot["left"] + 300, plot["top"] + 1)
    check("allocated" in info(page), name + ": the pointer is not told the sum: " + info(page))
    x = plot["left"] + 200
    page.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 50, y=y, button="left", buttons=1)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 100, y=y, button="left", buttons=1)
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=x + 100, y=y, button="left", clickCount=1)
    start, columns = view(page)
    scale = whole[1] / (plot["right"] - plot["left"])
    check(abs(columns - 100 * scale) < 3 and abs(start - 200 * scale) < 3, "%s: dragging shows %s" % (name, (start, columns)))
    check_layout(page, name + " zoomed", width)
    where = page.evaluate("(r => [r.left + 5, r.top + 5])(document.getElementById('reset').getBoundingClientRect())")
    page.click(*where)
    check(view(page) == whole, name + ": reset does not go back")
    bands = page.evaluate(BANDS)
    band = max((b for b in bands if b["to"] - b["from"] < whole[1] * 0.6), key=lambda b: b["bytes"] * (b["to"] - b["from"]))
    at = page.evaluate("""(n => { const e = document.querySelectorAll('.bands path')[n], r = e.getBoundingClientRect();
      for (let y = r.top; y < r.bottom; y += 0.5) for (let x = r.left + 1; x < r.right; x += r.width / 20)
        if (document.elementFromPoint(x, y) === e) return [x, y];
      return null; })(%d)""" % bands.index(band))
    check(at, name + ": the band is nowhere")
    if at:
        page.click(*at)
        check(view(page)[1] < whole[1] and view(page)[0] <= band["from"], name + ": a click does not zoom")
        check([b["selected"] for b in page.evaluate(BANDS)].index(True) == bands.index(band), name + ": another band is chosen")
        page.move(1, 1)
        check(band["title"].split(" (")[0] in info(page), name + ": the band is not told: " + info(page))
    page.key("Escape", 27)
    page.key("Escape", 27)
    check(view(page) == whole, name + ": Escape does not go back")


def check_search(page, name, word):
    bands = page.evaluate(BANDS)
    page.key("f", 70, control=True)
    check(page.evaluate("document.activeElement.id") == "search", name + ": Ctrl-F does not go to the search field")
    page.type(word)
    expected = [word.lower() in b["title"].lower() for b in bands]
    check(any(expected) and not all(expected), name + ": the word tells nothing")
    check([b["hit"] for b in page.evaluate(BANDS)] == expected, name + ": wrong bands are found")
    check(" match" in info(page), name + ": the search says nothing: " + info(page))
    page.key("Enter", 13)
    check([b["selected"] for b in page.evaluate(BANDS)].index(True) == expected.index(True), name + ": Enter does not go to a hit")
    page.key("Escape", 27)
    check(not any(b["hit"] for b in page.evaluate(BANDS)), name + ": Escape does not end the search")
    page.key("Escape", 27)


def check_keyboard(page, name):
    whole = view(page)
    page.key("ArrowUp", 38)
    page.key("ArrowRight", 39)
    check(sum(b["selected"] for b in page.evaluate(BANDS)) == 1, name + ": arrows do not walk")
    page.key("+", 187, text="+")
    check(view(page)[1] < whole[1], name + ": + does not zoom")
    page.key("Backspace", 8)
    check(view(page) == whole, name + ": Backspace does not go back")
    page.key("Escape", 27)


def main():
    cudamem, data, shots = sys.argv[1:]
    path = chromium.find()
    if not path:
        print("skipped: no browser")
        return 77
    os.makedirs(shots, exist_ok=True)
    names = sorted(n[:-len(".pickle.gz")] for n in os.listdir(data) if n.endswith(".pickle.gz"))
    pictures = 0
    with tempfile.TemporaryDirectory() as folder:
        page = chromium.Browser(path)
        try:
            for name in names:
                for axis in ("time", "entries") if name in ("train", "frag") else ("entries",):
                    what = name + "-" + axis
                    svg = os.path.join(folder, what + ".svg")
                    subprocess.run([cudamem, "svg", "--timeline", "--x", axis, os.path.join(data, name + ".pickle.gz"),
                                    "-o", svg], check=True)
                    xml.dom.minidom.parse(svg)
                    pictures += 1
                    for width, dark in ((800, False), (1920, True)):
                        page.open("file://" + svg, width, 900, dark)
                        check_layout(page, "%s-%d" % (what, width), width)
                        page.screenshot(os.path.join(shots, "timeline-%s-%d.png" % (what, width)))
                        if name in ("train", "frag"):
                            check_zoom(page, what, width)
                        if what == "train-entries":
                            check_search(page, what, "forward")
                            check_keyboard(page, what)
                        for complaint in page.complaints():
                            check(False, what + ": " + complaint)
                    page.open("file://" + svg, 1200, 900, scripts=False)
                    check_layout(page, what + " without scripts", 1200)
        finally:
            page.close()
    print("%d pictures, %d failures; screenshots in %s" % (pictures, len(failures), shots))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
