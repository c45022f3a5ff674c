"""PyTorch's float32 forward with the unmerged adapter beside ours, on the same weights, alternately.

Usage: cpu_reference.py --bench build/release/bin/cpu_bench [--model bench/mid] [--threads 2] [--repeats 5] [--lengths 64,256,1024]
Needs torch, transformers and peft as golden/*/manifest.json names them. Weights come from the formula
(golden/tools/synthetic.py), so nothing is downloaded. Prints, for each length, both medians, their
ratio and the two sides' first label logit.
"""
import argparse, pathlib, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "golden" / "tools"))


def reference_model(directory, threads):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoConfig, Qwen3_5ForConditionalGeneration
    import synthetic
    torch.set_num_threads(threads)
    config = AutoConfig.from_pretrained(directory / "base")
    config._attn_implementation = "sdpa"
    model = Qwen3_5ForConditionalGeneration(config).float()
    model = get_peft_model(model, LoraConfig.from_pretrained(directory / "adapter"))
    synthetic.fill(model, 1)
    return model.eval()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "bench" / "mid")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--lengths", default="64,256,1024")
    args = parser.parse_args()
    import torch
    ours = subprocess.Popen([args.bench, str(args.model), str(args.threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    model = reference_model(args.model, args.threads)
    print(ours.stdout.readline().strip(), "| torch", torch.__version__, flush=True)

    def run_ours(length):
        ours.stdin.write(f"{length}\n"); ours.stdin.flush()
        seconds, logit = ours.stdout.readline().split()
        return float(seconds), float(logit)

    @torch.inference_mode()
    def run_reference(length):
        ids = torch.tensor([[(i * 7919 + 13) % 2000 for i in range(length)]])
        start = time.perf_counter()
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits
        return time.perf_counter() - start, float(logits[0, -1, 0])

    for length in map(int, args.lengths.split(",")):
        run_ours(length), run_reference(length)
        pairs = [(run_ours(length), run_reference(length)) for _ in range(args.repeats)]
        a, b = ([pair[side][0] for pair in pairs] for side in (0, 1))
        print(f"{length:5d} tokens: ours {statistics.median(a):.3f} s ({min(a):.3f} to {max(a):.3f}), torch {statistics.median(b):.3f} s "
              f"({min(b):.3f} to {max(b):.3f}), ratio {statistics.median(a) / statistics.median(b):.2f}; logit {pairs[0][0][1]:.6f} and {pairs[0][1][1]:.6f}", flush=True)


if __name__ == "__main__":
    main()
