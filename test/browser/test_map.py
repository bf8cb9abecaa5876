#!/usr/bin/env python3
"""Maps and coloured, reversed and differential flame graphs in a browser: nothing overlaps at any size, and zoom, search,
keyboard and details work.

usage: test_map.py CUDAMEM DATA SHOTS     (SHOTS: a folder for screenshots, to be looked at)
"""
import os
import pickle
import subprocess
import sys
import tempfile
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium  # noqa: E402
import test_flame as flame  # noqa: E402

check, overlap = flame.check, flame.overlap

# Texts outside of blocks, and each visible block: its pieces, its label's box, where it is.
LAYOUT = """(() => {
  const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
  const heads = [], cells = [], top = document.getElementById('map').getBoundingClientRect();
  const ctm = document.getElementById('map').getScreenCTM();
  const seen = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  for (const e of document.querySelectorAll('#title, #sub, #info, #foot, input, button, #legend > g, #axis text, .h'))
    if (seen(e)) heads.push(['head', ...box(e), e.textContent.slice(0, 60)]);
  for (const g of document.querySelectorAll('#map g g g')) {
    if (!seen(g)) continue;
    const pieces = [], text = g.querySelector('text');
    for (const m of g.children[1].getAttribute('d').matchAll(/M([0-9.]+) ([0-9.]+)h([0-9.]+)v([0-9.]+)/g)) {
      const x = ctm.e + ctm.a * m[1], y = ctm.f + ctm.d * m[2];
      pieces.push(['piece', x, y, x + ctm.a * m[3], y + ctm.d * m[4]]);
    }
    cells.push({pieces: pieces, label: text && seen(text) ? ['label', ...box(text), text.textContent] : null,
                title: g.firstElementChild.textContent, class: g.getAttribute('class')});
  }
  return {heads: heads, cells: cells};
})()"""


def check_layout(page, name, width, bars=True):
    layout = page.evaluate(LAYOUT)
    heads, cells = layout["heads"], layout["cells"]
    pieces = sorted((p for c in cells for p in c["pieces"]), key=lambda p: (round(p[2]), p[1]))
    check(len(pieces) > 0 or not bars, name + ": no blocks")
    for i, one in enumerate(heads):
        for other in heads[i + 1:]:
            check(not overlap(one, other), "%s: '%s' lies over '%s'" % (name, one[5], other[5]))
        hit = [p for p in pieces if overlap(one, p)]
        check(not hit, "%s: '%s' lies over a block" % (name, one[5]))
    for one, other in zip(pieces, pieces[1:]):
        if overlap(one, other, 0.6):
            check(False, "%s: blocks overlap: %s %s" % (name, one, other))
            break
    for cell in cells:
        label = cell["label"]
        if label and not any(p[1] - 0.5 <= label[1] and label[3] <= p[3] + 0.5 and p[2] - 1 <= label[2] and label[4] <= p[4] + 1
                             for p in cell["pieces"]):
            check(False, "%s: label '%s' %s leaves its block %s" % (name, label[5], label[1:5], cell["pieces"][:3]))
            break
    for thing in heads + pieces:
        if thing[1] < -0.5 or thing[3] > width + 0.5:
            check(False, "%s: %s leaves the page" % (name, thing))
            break
    return sum(1 for c in cells if c["label"])


CELLS = """Array.from(document.querySelectorAll('#map g g g'), g => {
  const n = g.dataset.b.split(',').map(Number), box = document.getElementById('map').getScreenCTM();
  const d = /M([0-9.]+) ([0-9.]+)h([0-9.]+)/.exec(g.children[1].getAttribute('d')).map(Number); // of several rows the first
  const left = box.e + box.a * d[1];
  return {title: g.firstElementChild.textContent, bytes: n.length > 3 ? n[3] : n[0], left: left, right: left + box.a * d[3],
          top: box.f + box.d * d[2],
          seen: g.getClientRects().length > 0, hit: g.classList.contains('hit'), selected: g.classList.contains('sel'),
          unmapped: g.classList.contains('e')};
})"""


def click_cell(page, number):
    top = page.evaluate(CELLS)[number]["top"]
    page.evaluate("scrollTo(0, scrollY + %f)" % (top - 300))
    cell = page.evaluate(CELLS)[number]
    page.click(cell["left"] + min(3, (cell["right"] - cell["left"]) / 2), cell["top"] + 9)


def check_zoom(page, name, width):
    cells = page.evaluate(CELLS)
    number = min(range(len(cells)), key=lambda i: (cells[i]["right"] - cells[i]["left"] < 4, cells[i]["bytes"]))
    before = cells[number]
    for step in range(2):
        click_cell(page, number)
        page.move(5, 5)  # the picture has moved under the pointer
        check_layout(page, "%s zoomed %d" % (name, step + 1), width)
        check(before["title"].split(" (")[0] in flame.info(page), name + ": details of the block are not told: " + flame.info(page))
    now = page.evaluate(CELLS)
    check(now[number]["selected"] and now[number]["seen"], name + ": the block that was clicked is not seen")
    check(now[number]["right"] - now[number]["left"] > 2 * (before["right"] - before["left"]) or before["right"] - before["left"] > width / 3,
          "%s: a click does not zoom: %s, then %s" % (name, before, now[number]))
    check(not all(c["seen"] for c in now) or len(now) < 3, name + ": other segments are still there")
    page.screenshot(os.path.join(sys.argv[3], name + "-zoomed.png"))
    page.key("Escape", 27)
    page.key("Backspace", 8)
    page.key("Escape", 27)
    page.evaluate("scrollTo(0, 0)")
    back = page.evaluate(CELLS)
    check(all(c["seen"] for c in back) and abs(back[number]["left"] - before["left"]) < 0.1 and not back[number]["selected"],
          name + ": Escape does not go back")


def check_search(page, name, word):
    cells = page.evaluate(CELLS)
    page.key("f", 70, control=True)
    check(page.evaluate("document.activeElement.id") == "search", name + ": Ctrl-F does not go to the search field")
    page.type(word)
    found = [c["title"] for c in page.evaluate(CELLS) if c["hit"]]
    expected = [c for c in cells if word.lower() in c["title"].lower()]
    check(expected and found == [c["title"] for c in expected], name + ": wrong blocks are found")
    total, whole = (sum(c["bytes"] for c in some if not c["unmapped"]) for some in (expected, cells))
    text = flame.info(page)
    check(text.startswith("%d block" % len(expected)) and "%.1f%%" % (100 * total / whole) in text,
          "%s: the search says '%s'" % (name, text))
    page.key("Enter", 13)
    chosen = [c["title"] for c in page.evaluate(CELLS) if c["selected"]]
    check(chosen == [expected[0]["title"]], name + ": Enter does not go to the first hit")
    page.key("Escape", 27)
    page.key("Escape", 27)
    check(not any(c["hit"] or c["selected"] for c in page.evaluate(CELLS)), name + ": Escape does not end the search")


def check_keyboard(page, name):
    for key, code in (("ArrowRight", 39), ("ArrowRight", 39), ("ArrowDown", 40), ("ArrowUp", 38), ("ArrowLeft", 37)):
        page.key(key, code)
        chosen = [c for c in page.evaluate(CELLS) if c["selected"]]
        check(len(chosen) == 1 and chosen[0]["seen"], "%s: %s selects %d blocks" % (name, key, len(chosen)))
    page.key("Enter", 13)
    check(not page.evaluate("document.getElementById('reset').disabled"), name + ": Enter does not zoom")
    page.evaluate("document.getElementById('reset').click()")
    page.key("Escape", 27)


def odd_pickle(path, streams):
    """Segments of many sizes, streams and pools, expandable ones with gaps, and names that try everything."""
    names = ["<script>document.title='owned'</script>", "]]></script><b>", "\x00\x1b[31m", "\u202egnp.exe", "日本語" * 20, "f" * 3000]
    segments = []
    for i in range(streams):
        for size, is_expandable in ((2, False), (20, True), (20, True)):
            address = (i + 1 << 36) + (len(segments) % 3) * (30 << 20)
            frames = [{"name": names[i % len(names)], "filename": "/a/%s.py" % names[i % len(names)][:20], "line": i}]
            blocks = [{"address": address + (k * size << 18), "size": size << 18, "requested_size": (size << 18) - (k << 16),
                       "state": ("active_allocated", "inactive", "active_pending_free", "active_allocated")[k], "frames": frames}
                      for k in range(4)]
            segments.append({"device": i % 2, "address": address, "total_size": size << 20, "allocated_size": 0, "active_size": 0,
                             "requested_size": 0, "stream": i, "segment_type": "large", "segment_pool_id": (0, i % 3),
                             "is_expandable": is_expandable, "frames": [], "blocks": blocks})
    with open(path, "wb") as file:
        pickle.dump({"segments": segments, "device_traces": [[]]}, file, protocol=4)


def check_page(page, name, svg, layout, more):
    """The picture at all sizes; more(name) is done at the largest."""
    for width, dark in ((800, False), (1920, True)):
        what = "%s-%d" % (name, width)
        page.open("file://" + svg, width, 900, dark)
        layout(page, what, width)
        page.screenshot(os.path.join(sys.argv[3], what + ".png"))
        if more and width == 1920:
            more(what)
            page.resize(1000, 900)
            page.evaluate("new Promise(done => setTimeout(done, 100))")
            layout(page, name + " resized", 1000)
        check(page.evaluate("document.title") != "owned", what + ": a name was run as a script")
        for complaint in page.complaints():
            check(False, what + ": " + complaint)
    page.open("file://" + svg, 800, 900, scripts=False)
    layout(page, name + " without scripts", 800)
    check(not page.evaluate("!!document.getElementById('search')"), name + ": controls without a script")
    page.screenshot(os.path.join(sys.argv[3], name + "-static.png"))


def main():
    cudamem, data, shots = sys.argv[1:4]
    path = chromium.find()
    if not path:
        print("skipped: there is no Chromium here")
        return 77
    os.makedirs(shots, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cudamem-map-") as folder:
        page = chromium.Browser(path)

        def draw(name, *words):
            svg = os.path.join(folder, name + ".svg")
            subprocess.run([cudamem, *words, "-o", svg], check=True)
            xml.dom.minidom.parse(svg)
            return svg

        def file(name):
            return os.path.join(data, name + ".pickle.gz")

        try:
            for name, source, color, word in (("mempool", None, "state", "capture"), ("train", None, "stack", "capture.py:69"),
                                              ("frag", None, "age", "inactive"), ("expandable", None, "size", "forward"),
                                              ("odd", 9, "stack", "script"), ("streams", 120, "state", "not mapped"), ("empty", 0, "state", None)):
                where = os.path.join(folder, name + ".pickle")
                if source is not None:
                    odd_pickle(where, source)
                svg = draw("map-" + name, "svg", "--map", "--color", color, where if source is not None else file(name))

                def more(what):
                    check_zoom(page, what, 1920)
                    check_search(page, what, word)
                    check_keyboard(page, what)
                check_page(page, "map-" + name, svg, lambda p, n, w: check_layout(p, n, w, word is not None), word and more)
            for name, word, words in (("reverse", "_apply", ("svg", "--memory", "--reverse", "--color", "age", file("train") + "@peak")),
                                      ("diff", "step", ("diff", "--svg", file("leak_before"), file("leak_after")))):
                svg = draw(name, *words)

                def more(what):
                    flame.check_zoom(page, what, 1920)
                    flame.check_search(page, what, word)
                    flame.check_keyboard(page, what, 1920)
                check_page(page, name, svg, flame.check_layout, more)
        finally:
            page.close()
    print("%d failures; screenshots in %s" % (len(flame.failures), shots))
    return 1 if flame.failures else 0


if __name__ == "__main__":
    sys.exit(main())
