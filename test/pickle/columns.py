"""What the columns of a snapshot must have, by the object that Python sees, and what pickle_tool says they have."""

ACTIONS = ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
           "snapshot", "oom"]
STATES = ["inactive", "active_allocated", "active_pending_free"]


def word(words, text):
    return words.index(text) if text in words else len(words)


def state(text):
    return STATES.index("active_pending_free") if text == "active_awaiting_free" else word(STATES, text)


def total_size(segment):
    return min(segment.get("total_size", 0), (1 << 64) - 1 - segment.get("address", 0))


def is_stack(value):
    return isinstance(value, list) and all(isinstance(f, dict) for f in value)


def fitted(blocks, segment):
    """Blocks as the columns have them: cut to what fits."""
    at, end = segment.get("address", 0), segment.get("address", 0) + total_size(segment)
    for b in (b for b in blocks if isinstance(b, dict)):
        address = b.get("address", at)
        address = address if at <= address <= end else at
        size = min(b.get("size", 0), end - address)
        at = address + size
        yield [address, size, state(b.get("state"))]


def expected_lines(value):
    top = {"segments": value} if isinstance(value, list) else value
    lines = {"entries": [], "segments": [], "annotations": []}
    for device, trace in enumerate(top.get("device_traces", [])):
        for e in (e for e in trace or [] if isinstance(e, dict)):
            lines["entries"].append([word(ACTIONS, e.get("action")), device, e.get("addr", e.get("device_free", 0)),
                                     e.get("size", 0), e.get("stream", 0), e.get("time_us", 0), is_stack(e.get("frames"))])
    for s in (s for s in top.get("segments", []) if isinstance(s, dict)):
        lines["segments"].append([s.get("device", 0), s.get("address", 0), total_size(s), s.get("stream", 0),
                                  list(fitted(s.get("blocks", []), s))])
    for a in (a for a in top.get("external_annotations", []) if isinstance(a, dict)):
        lines["annotations"].append([{"START": 0, "END": 1}.get(a.get("stage"), 3), a.get("device", 0), a.get("time_us", 0)])
    return lines


def column_lines(text):
    lines = {"entries": [], "segments": [], "annotations": []}
    for line in text.splitlines():
        w = line.split()
        if w[0] == "entry":
            lines["entries"].append([int(w[i]) for i in (1, 2, 6, 8, 10, 12)] + [w[14] != "-1"])
        elif w[0] == "segment":
            lines["segments"].append([int(w[i]) for i in (1, 2, 4, 12)] + [[]])
        elif w[0] == "block":
            lines["segments"][-1][-1].append([int(w[i]) for i in (1, 3, 7)])
        elif w[0] == "annotation":
            lines["annotations"].append([int(w[i]) for i in (1, 2, 3)])
    lines["entries"].sort(key=lambda e: e[1])  # each device's own order
    return lines
