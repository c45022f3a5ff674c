"""Measure the reference's tokenizer on the texts that tokenizer_bench reads, on one thread.

Usage: tokenizer_reference.py CHECKPOINT TEXTS MEGABYTES [ROUNDS]
One line of JSON a round and way: `call` (the transformers object, a prompt a call), `encode` (the
tokenizers object below it, a prompt a call) and `batch` (that object, all prompts in one call).
Versions used: tokenizers 0.23.2, transformers 5.17.0.
"""
import os
os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error")
import json, sys, time
from transformers import AutoTokenizer


def main():
    checkpoint, texts, megabytes = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    start = time.perf_counter()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    load_s = time.perf_counter() - start
    with open(texts, encoding="utf-8") as f:
        texts = [json.loads(line) for line in f]
    work, size = [], 0
    while size < float(megabytes) * 1e6:
        work.append(texts[len(work) % len(texts)])
        size += len(work[-1].encode())
    backend = tokenizer.backend_tokenizer

    def call(): return sum(len(tokenizer(t, add_special_tokens=False).input_ids) for t in work)
    def encode(): return sum(len(backend.encode(t, add_special_tokens=False).ids) for t in work)
    def batch(): return sum(len(e.ids) for e in backend.encode_batch_fast(work, add_special_tokens=False))

    for _ in range(rounds):
        for way in (call, encode, batch):
            start = time.perf_counter()
            tokens = way()
            seconds = time.perf_counter() - start
            print(json.dumps({"way": way.__name__, "load_s": round(load_s, 4), "bytes": size, "tokens": tokens,
                              "encode_s": round(seconds, 4), "mb_per_s": round(size / 1e6 / seconds, 2)}), flush=True)


main()
