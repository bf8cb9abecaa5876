/* The frame of a picture.  Uses src/base and render/svg. */
#include "render/svg_page.h"

#include "render/svg.h"

#include <inttypes.h>
#include <string.h>

#define TITLE_COLUMNS 600u
#define LEGEND_ROW 20u
#define LEGEND_GAP 44u /* the square, and room to the next */

/* Colours after Okabe and Ito: sky blue, orange, bluish green, reddish purple, yellow; states that are no memory of anybody
 * are hatched, so that they differ without colour, too. */
static const char page_style[] =
    "<defs><pattern id=\"hi\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
    "<rect class=\"hi1\" width=\"6\" height=\"6\"/><path class=\"hi2\" d=\"M0 0V6\"/></pattern>\n"
    "<pattern id=\"hg\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\">"
    "<rect class=\"hg1\" width=\"5\" height=\"5\"/><path class=\"hg2\" d=\"M0 0V5\"/></pattern></defs>\n"
    "<style>\n"
    ":root{background:#fff;color-scheme:light dark}\n"
    ".b{fill:#fff}\n"
    "text{font:12px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,\"Liberation Mono\",monospace;fill:#14171c;white-space:pre}\n"
    "#title{font-size:17px;font-weight:600}\n"
    "#sub,#foot,#info,.l{fill:#4c5561}\n"
    ".a,.a0 rect{fill:#9fd0f1}.w,.w0 rect{fill:#dfaecb}\n"
    ".i,.i0 rect{fill:url(#hi)}.g,.g0 rect{fill:url(#hg)}.u,.u0 rect{fill:#cfd2d6}\n"
    ".hi1{fill:#eceef1}.hi2{stroke:#cdd2d9}.hg1{fill:#f6f0b3}.hg2{stroke:#d6cb62}\n"
    "#legend rect{rx:1.5px}\n"
    "input,button{font:12px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace;height:24px;box-sizing:border-box;border:1px solid #9aa4b1;border-radius:4px;background:#fff;color:#14171c;padding:0 8px;margin:0}\n"
    "input{width:210px}button{margin-left:6px;cursor:pointer}button:disabled{opacity:.45;cursor:default}\n"
    "input:focus-visible,button:focus-visible{outline:2px solid #0072b2;outline-offset:-1px}\n"
    "@media (prefers-color-scheme:dark){\n"
    ":root{background:#14171c}\n"
    ".b{fill:#14171c}\n"
    "text{fill:#e8ebef}\n"
    "#sub,#foot,#info,.l{fill:#a3adba}\n"
    ".a,.a0 rect{fill:#2f7fb0}.w,.w0 rect{fill:#a2648a}.u,.u0 rect{fill:#5a6068}\n"
    ".hi1{fill:#262c34}.hi2{stroke:#414955}.hg1{fill:#5b5622}.hg2{stroke:#8b8336}\n"
    "input,button{background:#1f242b;color:#e8ebef;border-color:#55606d}\n"
    "}\n"
    "</style>\n";

const char svg_shade_style[] =
    "<style>\n"
    ".y0{fill:#fdf0d2}.y1{fill:#fbdc9b}.y2{fill:#f5bf5a}.y3{fill:#e39a2c}.y4{fill:#bb7410}.y5{fill:#b9bfc8}\n"
    ".z0{fill:#e4eefa}.z1{fill:#c3dcf3}.z2{fill:#96c4ea}.z3{fill:#63a6da}.z4{fill:#3a83bd}.z5{fill:#1c5f97}\n"
    ".k0{fill:#8fcaf2}.k1{fill:#f5bf5a}.k2{fill:#74c9a9}.k3{fill:#dfaecb}.k4{fill:#f3ea86}.k5{fill:#e8946a}.k6{fill:#9aa8dc}.k7{fill:#b9bfc8}.k8{fill:#dfe3e8}\n"
    ".body .y4 text,.body .z4 text,.body .z5 text{fill:#fff}\n"
    "@media (prefers-color-scheme:dark){\n"
    ".y0{fill:#f6e3b4}.y1{fill:#eec673}.y2{fill:#d99f35}.y3{fill:#a97413}.y4{fill:#74500f}.y5{fill:#5a6370}\n"
    ".z0{fill:#d5e6f7}.z1{fill:#a3cbee}.z2{fill:#6aabde}.z3{fill:#3f86bd}.z4{fill:#285f8e}.z5{fill:#1d4264}\n"
    ".k0{fill:#2f7fb0}.k1{fill:#cf9426}.k2{fill:#1f8f6b}.k3{fill:#a2648a}.k4{fill:#b5aa37}.k5{fill:#b9572c}.k6{fill:#5a6cba}.k7{fill:#5a6370}.k8{fill:#3a424d}\n"
    ".body .y0 text,.body .y1 text,.body .y2 text,.body .z0 text,.body .z1 text,.body .z2 text,.body .k1 text,.body .k4 text{fill:#0c0d10}\n"
    "}\n"
    "</style>\n";

/* Opens the closure that the view's script and page_script_end close.  Makes no request and evaluates nothing; names
 * become text nodes only.  Controls exist only where this runs. */
static const char page_script[] =
    "<script><![CDATA[\n"
    "(function () {\n"
    "'use strict';\n"
    "var svg = document.documentElement, NS = svg.namespaceURI, XH = 'http://www.w3.org/1999/xhtml';\n"
    "var M = 12, COL = 7.3, width = 0;\n"
    "function id(name) { return document.getElementById(name); }\n"
    "function make(name) { return document.createElementNS(NS, name); }\n"
    "var box = svg.querySelector('.body'), title = id('title'), sub = id('sub'), foot = id('foot'), legend = id('legend');\n"
    "function wide(c) { return c >= 0x1100 && (c < 0x2010 || c > 0x2027); }\n"
    "function columns(text) {\n"
    "  var n = 0;\n"
    "  for (var c of text) n += wide(c.codePointAt(0)) ? 2 : 1;\n"
    "  return n;\n"
    "}\n"
    "function fit(text, room) {\n"
    "  if (columns(text) <= room) return text;\n"
    "  var out = '', n = 1;\n"
    "  for (var c of text) {\n"
    "    n += wide(c.codePointAt(0)) ? 2 : 1;\n"
    "    if (n > room) break;\n"
    "    out += c;\n"
    "  }\n"
    "  return room > 0 ? out + '\\u2026' : '';\n"
    "}\n"
    "function size(bytes) {\n"
    "  var units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'], u = 0;\n"
    "  while (bytes >= 1024 && u < 5) { bytes /= 1024; u++; }\n"
    "  return (u ? bytes.toFixed(2) : bytes) + ' ' + units[u];\n"
    "}\n"
    "function percent(part, whole) { return (whole ? 100 * part / whole : 0).toFixed(1) + '%'; }\n"
    "var info = make('text');\n"
    "info.id = 'info';\n"
    "info.setAttribute('x', M);\n"
    "svg.insertBefore(info, box);\n"
    "var holder = make('foreignObject');\n"
    "holder.setAttribute('x', M);\n"
    "holder.setAttribute('height', 28);\n"
    "var bar = document.createElementNS(XH, 'div');\n"
    "bar.setAttribute('style', 'white-space:nowrap;line-height:0');\n"
    "var field = document.createElementNS(XH, 'input'), reset = document.createElementNS(XH, 'button');\n"
    "field.id = 'search';\n"
    "field.type = 'search';\n"
    "field.placeholder = 'Search (Ctrl-F)';\n"
    "field.setAttribute('aria-label', 'Search');\n"
    "field.setAttribute('autocomplete', 'off');\n"
    "field.setAttribute('spellcheck', 'false');\n"
    "reset.id = 'reset';\n"
    "reset.textContent = 'Reset zoom';\n"
    "bar.append(field, reset);\n"
    "holder.append(bar);\n"
    "svg.insertBefore(holder, box);\n"
    "function cut(text, room) { text.textContent = fit(text.dataset.t, Math.floor(room)); }\n"
    "/* In as many lines as it takes; returns how many are more than one. */\n"
    "function wrap(text) {\n"
    "  var room = Math.floor((width - 2 * M) / COL), rest = text.dataset.t, lines = 0;\n"
    "  text.textContent = '';\n"
    "  do {\n"
    "    var line = rest, at = rest.length;\n"
    "    if (columns(rest) > room) {\n"
    "      at = rest.lastIndexOf(' ', room);\n"
    "      line = at > 0 ? rest.slice(0, at) : fit(rest, room);\n"
    "      if (at <= 0) at = rest.length;\n"
    "    }\n"
    "    var part = make('tspan');\n"
    "    part.setAttribute('x', M);\n"
    "    if (lines) part.setAttribute('dy', 17);\n"
    "    part.textContent = fit(line, room);\n"
    "    text.append(part);\n"
    "    rest = rest.slice(at + 1);\n"
    "    lines++;\n"
    "  } while (rest && lines < 4);\n"
    "  return lines - 1;\n"
    "}\n"
    "function head() {\n"
    "  width = Math.max(320, svg.clientWidth || window.innerWidth || 1200);\n"
    "  var x = M, y = 62;\n"
    "  cut(title, (width - 2 * M) / (COL * 1.5));\n"
    "  y += 17 * wrap(sub);\n"
    "  for (var item of legend.children) {\n"
    "    var w = columns(item.textContent) * COL + 44;\n"
    "    if (x > M && x + w - 24 > width - M) { x = M; y += 20; }\n"
    "    item.setAttribute('transform', 'translate(' + x.toFixed(1) + ',' + y + ')');\n"
    "    x += w;\n"
    "  }\n"
    "  holder.setAttribute('y', y + 26);\n"
    "  holder.setAttribute('width', width - 2 * M);\n"
    "  info.setAttribute('y', y + 70);\n"
    "  box.setAttribute('transform', 'translate(0,' + (y + 82) + ')');\n"
    "  return y + 82;\n"
    "}\n"
    "function finish(bottom) {\n"
    "  foot.setAttribute('y', bottom + 18);\n"
    "  bottom += 28 + 17 * wrap(foot);\n"
    "  svg.setAttribute('height', bottom);\n"
    "  svg.setAttribute('viewBox', '0 0 ' + width + ' ' + bottom);\n"
    "  reset.disabled = isHome();\n"
    "  tell();\n"
    "}\n"
    "function tell() { info.textContent = fit(status(), Math.floor((width - 2 * M) / COL)); }\n"
    "function find(word) {\n"
    "  svg.classList.toggle('searching', word !== '');\n"
    "  search(word.toLowerCase());\n"
    "}\n"
    "svg.addEventListener('click', function (e) { if (!holder.contains(e.target)) click(e.target); });\n"
    "svg.addEventListener('mouseover', function (e) { hover(e.target); tell(); });\n"
    "svg.addEventListener('mouseleave', function () { hover(null); tell(); });\n"
    "field.addEventListener('input', function () { find(field.value); });\n"
    "reset.addEventListener('click', function () { home(); });\n"
    "window.addEventListener('keydown', function (e) {\n"
    "  var typing = document.activeElement === field, key = e.key;\n"
    "  if ((key === 'f' && (e.ctrlKey || e.metaKey) && !e.altKey) || (key === '/' && !typing)) {\n"
    "    field.focus();\n"
    "    field.select();\n"
    "  } else if (key === 'Escape') {\n"
    "    if (field.value) { field.value = ''; find(''); }\n"
    "    else escape();\n"
    "    field.blur();\n"
    "  } else if (typing) {\n"
    "    if (key !== 'Enter') return;\n"
    "    nextHit();\n"
    "  } else if (e.ctrlKey || e.metaKey || e.altKey || !press(key)) return;\n"
    "  e.preventDefault();\n"
    "});\n";

static const char page_script_end[] = "window.addEventListener('resize', layout);\n"
                                      "layout();\n"
                                      "})();\n"
                                      "]]></script>\n";

/* Text twice: whole, for the script, which fits it to the window, and as much as the page has room for. */
static void write_line(struct output *output, const char *id, unsigned y, const char *text, size_t columns)
{
    output_printf(output, "<text id=\"%s\" x=\"%d\" y=\"%u\" data-t=\"", id, SVG_PAGE_MARGIN, y);
    svg_text(output, text, strlen(text), TITLE_COLUMNS);
    output_text(output, "\">");
    svg_text(output, text, strlen(text), columns);
    output_text(output, "</text>\n");
}

/* Writes the legend, or (output NULL) only counts its rows. */
static unsigned legend_rows(struct output *output, const struct svg_page *page)
{
    unsigned x = SVG_PAGE_MARGIN, rows = 1;
    for (size_t i = 0; i < page->legend_count; i++) {
        const struct svg_legend *item = &page->legend[i];
        size_t length = strlen(item->text);
        unsigned room = (unsigned)(svg_columns(item->text, length) * SVG_COLUMN_TENTHS / 10) + LEGEND_GAP;
        if (x > SVG_PAGE_MARGIN && x + room - 24 > SVG_PAGE_WIDTH - SVG_PAGE_MARGIN) {
            x = SVG_PAGE_MARGIN;
            rows++;
        }
        if (output) {
            output_printf(output, "<g class=\"%s\" transform=\"translate(%u,%u)\"><rect width=\"14\" height=\"14\"/><text class=\"l\" x=\"20\" y=\"11\">",
                          item->class, x, SVG_PAGE_LEGEND + (rows - 1) * LEGEND_ROW);
            svg_text(output, item->text, length, SIZE_MAX);
            output_text(output, "</text></g>\n");
        }
        x += room;
    }
    return rows;
}

static unsigned page_top(const struct svg_page *page)
{
    return SVG_PAGE_TOP + (legend_rows(NULL, page) - 1) * LEGEND_ROW;
}

void svg_page_begin(struct output *output, const struct svg_page *page)
{
    unsigned top = page_top(page), height = top + page->height + SVG_PAGE_FOOTER;
    output_printf(output,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" height=\"%u\" viewBox=\"0 0 %d %u\" "
                  "preserveAspectRatio=\"xMidYMin meet\" aria-label=\"",
                  height, SVG_PAGE_WIDTH, height);
    svg_text(output, page->title, strlen(page->title), TITLE_COLUMNS);
    output_text(output, "\">\n");
    output_text(output, page_style);
    output_text(output, page->style);
    if (page->more_style)
        output_text(output, page->more_style);
    output_text(output, "<rect class=\"b\" width=\"100%\" height=\"100%\"/>\n");
    write_line(output, "title", 28, page->title, SVG_PAGE_INNER * 10 / (SVG_COLUMN_TENTHS * 15 / 10)); /* larger letters */
    write_line(output, "sub", 49, page->subtitle ? page->subtitle : "", SVG_PAGE_INNER * 10 / SVG_COLUMN_TENTHS);
    output_text(output, "<g id=\"legend\">\n");
    legend_rows(output, page);
    output_printf(output, "</g>\n<g id=\"%s\" class=\"body\" transform=\"translate(0,%u)\">\n", page->body, top);
}

void svg_page_end(struct output *output, const struct svg_page *page, const char *note)
{
    output_text(output, "</g>\n");
    write_line(output, "foot", page_top(page) + page->height + 18, note, SVG_PAGE_INNER * 10 / SVG_COLUMN_TENTHS);
    output_text(output, page_script);
    output_text(output, page->script);
    output_text(output, page_script_end);
    output_text(output, "</svg>\n");
}
