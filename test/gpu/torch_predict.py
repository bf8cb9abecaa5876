"""Programs whose requests are the same under every setting: leaves NAME.pickle, NAME.stats.json, NAME.summary.txt here.

usage: torch_predict.py PROGRAM NAME [FRACTION]     PREDICT_SEED: another run of the random ones
PROGRAM: random, streams, pools, special, capture, train, images, language, or serve
"""
import json
import os
import random
import sys
import torch

program, name = sys.argv[1], sys.argv[2]
torch.cuda.init()
if len(sys.argv) > 3:
    torch.cuda.set_per_process_memory_fraction(float(sys.argv[3]))
torch.cuda.memory._record_memory_history(context="all", stacks="python")
seed = int(os.environ.get("PREDICT_SEED", "11"))
random.seed(seed)
torch.manual_seed(seed)


def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def churn(steps, streams=(None,), most=26.0, live_most=80, share=0.0):
    live = []
    for _ in range(steps):
        stream = random.choice(streams)
        if random.random() < 0.55 or not live:
            size = int(2 ** random.uniform(7, most)) + random.randrange(500)
            with torch.cuda.stream(stream):
                live.append(take(size))
        else:
            block = live.pop(random.randrange(len(live)))
            if random.random() < share:
                block.record_stream(random.choice([s for s in streams if s]))
                torch.cuda.synchronize()
            del block
        if len(live) > live_most:
            del live[random.randrange(live_most // 2):]
    return live


def use_random():
    return churn(6000)


def use_streams():
    streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    return churn(6000, streams, 25.0, 60, 0.1)


def use_pools():
    """Two pools beside the default one; one of them goes away in between."""
    kept = churn(500)
    for turn in range(3):
        pool, other = torch.cuda.MemPool(), torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            inside = churn(300, most=24.0, live_most=30)
        kept += churn(200)
        with torch.cuda.use_mem_pool(other):
            more = churn(200, most=24.0, live_most=20)
        if turn < 2:
            del inside
            kept += [block for block in more[:2]]
            more = None
            del pool
            kept += churn(100)
            del other
        else:
            kept += inside + more + [pool, other]
    return kept


def use_special():
    """Pools that do not split, and that lend; blocks outlive their pool's handle; flushes in between."""
    kept = churn(400)
    for turn in range(3):
        whole, lends = torch.cuda.MemPool(no_split=True), torch.cuda.MemPool(use_on_oom=True)
        with torch.cuda.use_mem_pool(whole):
            inside = churn(120, most=24.0, live_most=20)
        with torch.cuda.use_mem_pool(lends):
            more = churn(120, most=24.0, live_most=20)
        kept += churn(150) + inside[:3] + more[:1]
        del inside, more, whole
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        kept = kept[len(kept) // 3:] + [lends]
    return kept


def use_capture():
    """Graphs that share a pool, captured and replayed between ordinary work."""
    layers = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    kept, graphs, handle = [torch.randn(512, 1024, device="cuda")], [], torch.cuda.graph_pool_handle()
    with torch.no_grad():
        layers(kept[0])
        torch.cuda.synchronize()
        for size in (512, 256, 128):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=handle):
                out = layers(kept[0][:size])
            graphs.append(graph)
            kept += [out] + churn(50)
            graph.replay()
    return kept + graphs + [layers]


def use_train():
    model = torch.nn.Transformer(256, 4, 3, 3, 1024, batch_first=True).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(6):
        length = 64 + 48 * step
        loss = model(torch.randn(16, length, 256, device="cuda"), torch.randn(16, length, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [model, optimizer]


def use_images():
    layers, width = [], 3
    for wider in (32, 64, 128, 256):
        layers += [torch.nn.Conv2d(width, wider, 3, stride=2, padding=1), torch.nn.BatchNorm2d(wider), torch.nn.ReLU()]
        width = wider
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    torch.backends.cudnn.benchmark = False
    for batch in (8, 24, 40, 64):
        loss = model(torch.randn(batch, 3, 224, 224, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [model, optimizer]


def use_language():
    """A small language model with growing sequences, and an evaluation without gradients."""
    layers = torch.nn.ModuleList([torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True) for _ in range(6)]).cuda()
    embedding, head = torch.nn.Embedding(8000, 512).cuda(), torch.nn.Linear(512, 8000).cuda()
    parameters = [*layers.parameters(), *embedding.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters)
    for step in range(4):
        tokens = torch.randint(8000, (8, 128 + 96 * step), device="cuda")
        hidden = embedding(tokens)
        for layer in layers:
            hidden = layer(hidden)
        loss = torch.nn.functional.cross_entropy(head(hidden).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            hidden = embedding(tokens[:2])
            for layer in layers:
                hidden = layer(hidden)
            head(hidden).argmax(-1)
    return [layers, embedding, head, optimizer]


def use_serve():
    """Caches of requests that grow by steps and end at random."""
    caches, kept = {}, []
    for step in range(400):
        if random.random() < 0.2 or not caches:
            caches[step] = [take(1 << 20) for _ in range(4)]
        for key in list(caches):
            caches[key] = [torch.empty(block.numel() + (1 << 17), dtype=torch.uint8, device="cuda") for block in caches[key]]
            if random.random() < 0.06:
                del caches[key]
        if len(caches) > 24:
            caches.pop(next(iter(caches)))
    return [caches, kept]


kept = {"random": use_random, "streams": use_streams, "pools": use_pools, "capture": use_capture, "train": use_train,
        "images": use_images, "serve": use_serve, "special": use_special, "language": use_language}[program]()
torch.cuda.synchronize()
torch.cuda.memory._dump_snapshot(name + ".pickle")
with open(name + ".stats.json", "w", encoding="utf-8") as file:
    json.dump(torch.cuda.memory_stats(), file)
with open(name + ".summary.txt", "w", encoding="utf-8") as file:
    file.write(torch.cuda.memory_summary())
