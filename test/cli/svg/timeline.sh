# A timeline is XML with a chart a device; the same file gives the same bytes; a part of the trace can be drawn; the
# default name says what it is.
# needs: python3
look() {
    python3 - "$1" <<'PYTHON'
import sys
import xml.etree.ElementTree as E
root = E.parse(sys.argv[1]).getroot()
svg = "{http://www.w3.org/2000/svg}"
named = {e.get("id"): e for e in root.iter() if e.get("id")}
print(named["title"].text)
print(named["sub"].text)
for g in root.iter(svg + "g"):
    if g.get("class") == "chart":
        print(g.find(svg + "text").text)
        print(sum(1 for p in g.iter(svg + "path") if p.get("data-b")), "bands",
              sum(1 for e in g.iter(svg + "g") if e.get("class") == "oom"), "failures")
print(named["caption"].text)
PYTHON
}
cp "$DATA/frag.pickle.gz" .
cudamem svg --timeline frag.pickle.gz
look frag.timeline.svg
cudamem svg --timeline frag.pickle.gz -o again.svg
cmp frag.timeline.svg again.svg
cudamem svg --timeline --x entries --detail 7 --entries 3000..6000 frag.pickle.gz -o part.svg
look part.svg
cudamem svg --timeline --x entries frag.pickle.gz@oom -o oom.svg
look oom.svg
cudamem svg --timeline --time 0.01..0.05 --size 1M.. frag.pickle.gz -o some.svg
look some.svg
