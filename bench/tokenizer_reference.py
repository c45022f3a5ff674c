"""Measure the tokenizer and the reference's side by side, on the same texts, each on one thread.

Usage: tokenizer_reference.py TOKENIZER_BENCH CHECKPOINT TEXTS MEGABYTES [ROUNDS]
TEXTS: JSON lines, each a string. Each round runs the program and then three ways of asking the reference: `call` (the
transformers object, a text a call), `encode` (the tokenizers object below it, a text a call) and `batch` (that object, all
texts in one call). Prints each run, then medians and their ratio to the reference's best way. `cpu_s` is the thread's own
time, which other work on the machine does not lengthen as it does `wall_s`.
Versions used: tokenizers 0.23.2, transformers 5.17.0.
"""
import os
os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error")
import json, statistics, subprocess, sys, time
from transformers import AutoTokenizer


def main():
    program, checkpoint, path, megabytes = sys.argv[1:5]
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 3
    start = time.process_time(), time.perf_counter()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    print(json.dumps({"way": "reference load", "cpu_s": round(time.process_time() - start[0], 3),
                      "wall_s": round(time.perf_counter() - start[1], 3)}))
    with open(path, encoding="utf-8") as f:
        texts = [json.loads(line) for line in f]
    work, size = [], 0
    while size < float(megabytes) * 1e6:
        work.append(texts[len(work) % len(texts)])
        size += len(work[-1].encode())
    backend = tokenizer.backend_tokenizer
    ways = {"call": lambda: sum(len(tokenizer(t, add_special_tokens=False).input_ids) for t in work),
            "encode": lambda: sum(len(backend.encode(t, add_special_tokens=False).ids) for t in work),
            "batch": lambda: sum(len(e.ids) for e in backend.encode_batch_fast(work, add_special_tokens=False))}
    found = {}

    def record(way, tokens, cpu, wall):
        found.setdefault(way, []).append((cpu, wall))
        print(json.dumps({"way": way, "bytes": size, "tokens": tokens, "cpu_s": round(cpu, 3), "wall_s": round(wall, 3)}), flush=True)

    for _ in range(rounds):
        ours = json.loads(subprocess.run([program, "speed", checkpoint, path, megabytes], capture_output=True, text=True, check=True).stdout)
        record("jemm", ours["tokens"], ours["cpu_s"], ours["wall_s"])
        record("jemm load", 0, ours["load_cpu_s"], ours["load_wall_s"])
        for way, run in ways.items():
            start = time.process_time(), time.perf_counter()
            tokens = run()
            assert tokens == ours["tokens"], (way, tokens, ours["tokens"])
            record(way, tokens, time.process_time() - start[0], time.perf_counter() - start[1])
    median = {way: [statistics.median(column) for column in zip(*runs)] for way, runs in found.items()}
    best = min(ways, key=lambda way: median[way][0])
    print(json.dumps({"median_cpu_s": {way: round(cpu, 3) for way, (cpu, _) in median.items()}, "best": best,
                      "cpu_ratio": round(median[best][0] / median["jemm"][0], 2), "wall_ratio": round(median[best][1] / median["jemm"][1], 2)}))


main()
