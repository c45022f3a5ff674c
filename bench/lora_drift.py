#!/usr/bin/env python3
"""What merging the adapter into BF16 weights changes, beside the reference's own noise.

    lora_drift.py JEMM BASE ADAPTER GOLDEN NOISE

Exports BASE and ADAPTER both ways, answers GOLDEN's requests with each, and prints for each question
the largest difference of a candidate's probability: median, 90th percentile, maximum, and how often
the winner changes. NOISE is a golden of the same cases in another precision. docs/lora.md has the
result.
"""
import json
import pathlib
import subprocess
import sys
import tempfile


def lines(text):
    return [json.loads(line) for line in text.split("\n") if line]


def answers(jemm, model, cases):
    """(case, question) -> candidate -> probability"""
    text = "".join(json.dumps({"id": c["id"], "raw": c["raw"]}) + "\n" for c in cases)
    run = subprocess.run([jemm, "decide", "--model", model, "--progress", "none"], input=text.encode(),
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    assert run.returncode in (0, 3), run.returncode
    return collect((r["id"], r) for r in lines(run.stdout.decode()))


def collect(results):
    return {(name, q): a["probabilities"]
            for name, r in results if r.get("answers") for q, a in r["answers"].items()}


def golden_answers(directory):
    cases = lines((pathlib.Path(directory) / "cases.jsonl").read_text())
    return cases, collect((c["id"], c.get("response", {})) for c in cases)


def report(what, a, b):
    shared = sorted(set(a) & set(b))
    worst = sorted(max(abs(a[k][c] - b[k][c]) for c in a[k]) for k in shared)
    flips = sum(max(a[k], key=a[k].get) != max(b[k], key=b[k].get) for k in shared)
    n = len(worst)
    print(f"{what}: {n} questions, median {worst[n // 2]:.2e}, p90 {worst[n * 9 // 10]:.2e}, "
          f"max {worst[-1]:.2e}, winners changed {flips}")


def main():
    jemm, base, adapter, golden, noise = sys.argv[1:]
    cases, fp32 = golden_answers(golden)
    _, other = golden_answers(noise)
    with tempfile.TemporaryDirectory() as scratch:
        found = {}
        for mode in ("unmerged", "merged"):
            out = f"{scratch}/{mode}"
            subprocess.run([jemm, "export", "--base", base, "--adapter", adapter, "--out", out,
                            "--lora", mode], stderr=subprocess.DEVNULL, check=True)
            found[mode] = answers(jemm, out, cases)
    print(pathlib.Path(golden).name, "and", pathlib.Path(noise).name)
    report("  merged against unmerged", found["merged"], found["unmerged"])
    report("  unmerged against the reference in FP32", found["unmerged"], fp32)
    report("  merged against the reference in FP32", found["merged"], fp32)
    report("  the reference in BF16 against itself in FP32", other, fp32)


main()
