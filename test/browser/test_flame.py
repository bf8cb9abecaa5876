#!/usr/bin/env python3
"""Flame graphs in a browser: nothing overlaps at any size, and zoom, search, keyboard and details work.

usage: test_flame.py CUDAMEM DATA SHOTS     (SHOTS: a folder for screenshots, to be looked at)
"""
import os
import pickle
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


# Every visible text and box of the page, as [kind, left, top, right, bottom, text, index of its box].
LAYOUT = """(() => {
  const out = [], round = v => Math.round(v * 100) / 100;
  const add = (kind, e, n) => {
    const r = e.getBoundingClientRect();
    if (r.width > 0 && r.height > 0) out.push([kind, round(r.left), round(r.top), round(r.right), round(r.bottom),
                                                e.textContent.slice(0, 80), n]);
  };
  for (const name of ['title', 'sub', 'info', 'foot']) {
    const e = document.getElementById(name);
    if (e) add('head', e, -1);
  }
  for (const e of document.querySelectorAll('input, button')) add('head', e, -1);
  for (const e of document.getElementById('legend').children) add('head', e, -1);
  let n = 0;
  for (const g of document.getElementById('frames').children) {
    const rect = g.querySelector('rect'), text = g.querySelector('text');
    add('box', rect, n);
    if (text && getComputedStyle(text).display !== 'none') add('label', text, n);
    n++;
  }
  return out;
})()"""


def overlap(a, b, slack=0.35):
    return a[1] < b[3] - slack and b[1] < a[3] - slack and a[2] < b[4] - slack and b[2] < a[4] - slack


def check_layout(page, name, width):
    things = page.evaluate(LAYOUT)
    heads = [t for t in things if t[0] == "head"]
    boxes = {t[6]: t for t in things if t[0] == "box"}
    labels = [t for t in things if t[0] == "label"]
    check(boxes, name + ": no boxes")
    for i, one in enumerate(heads):
        for other in heads[i + 1:]:
            check(not overlap(one, other), "%s: '%s' lies over '%s'" % (name, one[5], other[5]))
        for other in boxes.values():
            if overlap(one, other):
                check(False, "%s: '%s' lies over a box" % (name, one[5]))
                break
    for label in labels:
        box = boxes[label[6]]
        inside = label[1] >= box[1] - 0.5 and label[3] <= box[3] + 0.5
        if not inside or label[2] < box[2] - 1 or label[4] > box[4] + 1:
            check(False, "%s: label '%s' %s leaves its box %s" % (name, label[5], label[1:5], box[1:5]))
            break
    rows = {}
    for box in boxes.values():
        rows.setdefault(box[2], []).append(box)
    for row in rows.values():
        row.sort(key=lambda b: (b[1], b[3]))
        for one, other in zip(row, row[1:]):
            if one[3] > other[1] + 0.35:
                check(False, "%s: boxes overlap at %s and %s" % (name, one[1:4], other[1:4]))
                break
    for thing in things:
        if thing[1] < -0.5 or thing[3] > width + 0.5:
            check(False, "%s: '%s' leaves the page (%s)" % (name, thing[5], thing[1:5]))
            break
    return len(labels)


BOXES = """Array.from(document.getElementById('frames').children, g => {
  const r = g.querySelector('rect').getBoundingClientRect(), b = g.dataset.b.split(',');
  return {label: g.querySelector('title').textContent.split('\\n')[0], offset: +b[0], bytes: +b[1], left: r.left,
          right: r.right, top: r.top, seen: g.style.display !== 'none', hit: g.classList.contains('hit'),
          selected: g.classList.contains('sel'), up: g.classList.contains('up')};
})"""


def info(page):
    return page.evaluate("document.getElementById('info').textContent")


def check_zoom(page, name, width):
    boxes = page.evaluate(BOXES)
    deep = [b for b in boxes if b["seen"] and b["right"] - b["left"] > 12 and b["bytes"] < 0.6 * boxes[0]["bytes"]]
    check(deep, name + ": nothing to zoom to")
    if not deep:
        return
    target = max(deep, key=lambda b: (b["top"], b["bytes"]))
    number = boxes.index(target)
    page.evaluate("scrollTo(0, %f)" % max(0, target["top"] - 300))
    at = page.evaluate(BOXES)[number]
    page.click((at["left"] + at["right"]) / 2, at["top"] + 9)
    zoomed = page.evaluate(BOXES)
    now = zoomed[number]
    check(now["left"] < 13 and now["right"] > width - 14, "%s: a click does not zoom (%s)" % (name, now))
    check(zoomed[0]["up"] and zoomed[0]["right"] > width - 14, name + ": the callers are not kept above")
    for before, after in zip(boxes, zoomed):
        start, end = before["offset"], before["offset"] + before["bytes"]
        inside = start >= target["offset"] and end <= target["offset"] + target["bytes"]
        around = start <= target["offset"] and end >= target["offset"] + target["bytes"]
        if not inside and not around and after["seen"]:
            check(False, name + ": a box outside is still there: " + after["label"])
            break
    check_layout(page, name + " zoomed", width)
    check(target["label"][:20] in info(page), name + ": details of the box are not told: " + info(page))
    page.evaluate("scrollTo(0, 0)")
    where = page.evaluate("(r => [r.left + 5, r.top + 5])(document.getElementById('reset').getBoundingClientRect())")
    page.click(*where)
    back = page.evaluate(BOXES)
    check(abs(back[number]["left"] - target["left"]) < 0.1, name + ": reset does not go back")
    page.click((at["left"] + at["right"]) / 2, back[0]["top"] + 9)
    page.key("Escape", 27)
    page.key("Escape", 27)


def check_search(page, name, word):
    boxes = page.evaluate(BOXES)
    page.key("f", 70, control=True)
    check(page.evaluate("document.activeElement.id") == "search", name + ": Ctrl-F does not go to the search field")
    page.type(word)
    hits = page.evaluate(BOXES)
    expected = [b for b in boxes if word.lower() in b["label"].lower()]
    check([b["label"] for b in hits if b["hit"]] == [b["label"] for b in expected], name + ": wrong boxes are found")
    total = end = 0
    for box in expected:  # in drawing order: parents before children
        if box["offset"] >= end:
            total += box["bytes"]
            end = box["offset"] + box["bytes"]
    text = info(page)
    percent = "%.1f%%" % (100 * total / boxes[0]["bytes"])
    check(text.startswith("%d box" % len(expected)) and percent in text,
          "%s: the search says '%s', not %d boxes and %s" % (name, text, len(expected), percent))
    page.key("Enter", 13)
    chosen = [b["label"] for b in page.evaluate(BOXES) if b["selected"]]
    check(chosen == [expected[0]["label"]] if expected else not chosen, name + ": Enter does not go to the first hit")
    page.key("Escape", 27)
    check(not any(b["hit"] for b in page.evaluate(BOXES)), name + ": Escape does not end the search")


def check_keyboard(page, name, width):
    page.key("ArrowDown", 40)
    page.key("ArrowDown", 40)
    page.key("ArrowDown", 40)
    boxes = page.evaluate(BOXES)
    selected = [i for i, b in enumerate(boxes) if b["selected"]]
    check(len(selected) == 1 and selected[0] > 0, name + ": arrows do not walk")
    if not selected:
        return
    page.key("Enter", 13)
    box = page.evaluate(BOXES)[selected[0]]
    check(box["left"] < 13 and box["right"] > width - 14, name + ": Enter does not zoom")
    page.key("Backspace", 8)
    page.key("Escape", 27)
    page.key("Escape", 27)
    again = page.evaluate(BOXES)
    check(abs(again[selected[0]]["left"] - boxes[selected[0]]["left"]) < 0.1, name + ": Escape does not go back")


def hostile_pickle(path):
    """A snapshot whose names try everything."""
    names = ["<script>document.title='owned'</script>", "\" onload=\"alert(1)", "]]></script><script>alert(2)</script>",
             "&amp;&lt;", "\x00\x1b[31m\x07", "\u202egnp.exe", "日本語の関数名" * 12, "x" * 10000, "", "\ud800", "a\nb\nc",
             "\ufffe\uffff", "👩‍👩‍👧" * 9]
    blocks, at = [], 1 << 30
    for i, name in enumerate(names):
        frames = [{"name": n, "filename": "/a/%s.py" % n[:40], "line": i} for n in reversed(names[:i + 1])]
        blocks.append({"address": at, "size": 1 << 20, "requested_size": (1 << 20) - i, "state": "active_allocated",
                       "frames": frames})
        at += 1 << 20
    segment = {"device": 0, "address": 1 << 30, "total_size": len(names) << 20, "allocated_size": len(names) << 20,
               "active_size": len(names) << 20, "requested_size": len(names) << 20, "stream": 0,
               "segment_type": "large",
               "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
    with open(path, "wb") as file:
        pickle.dump({"segments": [segment], "device_traces": [[]]}, file, protocol=4)


def main():
    cudamem, data, shots = sys.argv[1:4]
    path = chromium.find()
    if not path:
        print("skipped: there is no Chromium here")
        return 77
    os.makedirs(shots, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cudamem-flame-") as folder:
        hostile = os.path.join(folder, "hostile.pickle")
        hostile_pickle(hostile)
        empty = os.path.join(folder, "empty.pickle")
        with open(empty, "wb") as file:
            pickle.dump({"segments": [], "device_traces": []}, file, protocol=4)
        pictures = []
        for name, source, word in [("mempool", None, "capture"), ("train", None, "_apply"), ("train_cpp", None, "at::"),
                                   ("hostile", hostile, "script"),
                                   ("empty", empty, None)]:
            for view in ("segments", "memory"):
                svg = os.path.join(folder, "%s.%s.svg" % (name, view))
                source_file = source or os.path.join(data, name + ".pickle.gz")
                subprocess.run([cudamem, "svg", "--" + view, source_file, "-o", svg], check=True)
                xml.dom.minidom.parse(svg)
                pictures.append((name + "-" + view, svg, word))
        page = chromium.Browser(path)
        try:
            for name, svg, word in pictures:
                url = "file://" + svg
                for width, dark in ((800, False), (1920, True)):
                    what = "%s-%d" % (name, width)
                    page.open(url, width, 900, dark)
                    labels = check_layout(page, what, width)
                    check(labels > 0, what + ": no labels")
                    page.screenshot(os.path.join(shots, what + ".png"))
                    if word and width == 1920:
                        check_zoom(page, what, width)
                        check_search(page, what, word)
                        check_keyboard(page, what, width)
                        page.resize(1000, 900)
                        page.evaluate("new Promise(done => setTimeout(done, 100))")
                        check_layout(page, name + " resized", 1000)
                    check(page.evaluate("document.title") != "owned", what + ": a name was run as a script")
                    for complaint in page.complaints():
                        check(False, what + ": " + complaint)
                page.open(url, 800, 900, scripts=False)
                check_layout(page, name + " without scripts", 800)
                check(not page.evaluate("!!document.getElementById('search')"), name + ": controls without a script")
                page.screenshot(os.path.join(shots, name + "-static.png"))
            html = os.path.join(folder, "page.html")
            with open(html, "w", encoding="utf-8") as file:
                file.write("<img src='train.memory.svg'>")
            page.open("file://" + html, 800, 600)
            check(page.evaluate("document.images[0].naturalWidth > 0"), "the picture is no image for a page")
        finally:
            page.close()
    print("%d pictures, %d failures; screenshots in %s" % (len(pictures), len(failures), shots))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
