"""Times the reference's own forward on a GPU: the adapter unmerged (PEFT), one question a pass.

    reference.py MODEL [--lengths 98,278,512] [--image 1280x800 --text 150] [--between COMMAND]

MODEL holds `base` and `adapter` with their configs; weights come from the formula (golden/tools), BF16.
Times are wall clock of what the reference calls for a question, from token ids (and pixels) on the host
to label logits on the host. With flash-linear-attention installed its delta rule is used, as in the
reference; the first line says so. --between runs a command after half of the rounds, on the same GPU,
so that the two sides are measured in one session and a drift of the machine shows.

Prints a line a workload: median, least and most of each half in ms, and the first label logit (token
32), which shows that both sides computed the same thing. Needs torch, transformers and peft.
"""
from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "golden" / "tools"))

FIRST_LABEL = 32
MOST_TOKENS = 248_000


def build(directory: Path, device: str) -> Any:
    import synthetic
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoConfig, Qwen3_5ForConditionalGeneration
    config = AutoConfig.from_pretrained(directory / "base")
    config._attn_implementation = "sdpa"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = Qwen3_5ForConditionalGeneration(config)
    torch.set_default_dtype(torch.float32)
    model = get_peft_model(model.to(torch.bfloat16), LoraConfig.from_pretrained(directory / "adapter"))
    synthetic.fill(model, 1)
    return model.eval()


def tokens(count: int, vocabulary: int) -> list[int]:
    """The token ids that text_bench times."""
    import synthetic
    return [synthetic.scalar_h(i) % min(vocabulary, MOST_TOKENS) for i in range(count)]


def text_inputs(model: Any, count: int) -> dict[str, Any]:
    import torch
    return {"input_ids": torch.tensor([tokens(count, model.config.text_config.vocab_size)])}


def image_inputs(model: Any, width: int, height: int, n_text: int) -> dict[str, Any]:
    """One image of random pixels, its size as the processor would leave it, and text behind it."""
    import torch
    config = model.config
    vision = config.vision_config
    unit = vision.patch_size * vision.spatial_merge_size
    rows, columns = height // unit * vision.spatial_merge_size, width // unit * vision.spatial_merge_size
    values = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    n_pads = rows * columns // vision.spatial_merge_size**2
    text = tokens(n_text, config.text_config.vocab_size)
    ids = text[:4] + [config.vision_start_token_id] + [config.image_token_id] * n_pads
    ids += [config.vision_end_token_id] + text[4:]
    types = [int(token == config.image_token_id) for token in ids]
    generator = torch.Generator().manual_seed(1)
    return {"input_ids": torch.tensor([ids]), "mm_token_type_ids": torch.tensor([types]),
            "image_grid_thw": torch.tensor([[1, rows, columns]]),
            "pixel_values": torch.rand(rows * columns, values, generator=generator) * 2 - 1}


class Workload:
    def __init__(self, name: str, inputs: dict[str, Any]):
        self.name, self.inputs, self.halves, self.logit = name, inputs, [[], []], 0.0

    def run(self, model: Any, device: str) -> float:
        import torch
        torch.cuda.synchronize()
        start = time.perf_counter()
        inputs = {key: value.to(device, dtype=torch.bfloat16) if key == "pixel_values" else value.to(device)
                  for key, value in self.inputs.items()}
        with torch.inference_mode():
            logits = model(**inputs, use_cache=False, logits_to_keep=1).logits[0, -1]
        self.logit = logits[FIRST_LABEL:FIRST_LABEL + 32].float().cpu().tolist()[0]
        return (time.perf_counter() - start) * 1000

    def report(self) -> str:
        halves = ", then ".join(f"{statistics.median(half):.1f} ({min(half):.1f} to {max(half):.1f})"
                                for half in self.halves if half)
        return f"reference {self.name:>24}: {halves} ms, first logit {self.logit:.6f}"


def version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--lengths", default="98,278,512,1024,2048")
    parser.add_argument("--image", action="append", default=[], help="WIDTHxHEIGHT")
    parser.add_argument("--text", type=int, default=150, help="text tokens beside an image")
    parser.add_argument("--rounds", type=int, default=7, help="in each half")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--between", help="a shell command")
    args = parser.parse_args()
    import torch
    start = time.perf_counter()
    model = build(args.model, args.device)
    torch.cuda.synchronize()
    print(f"reference on {torch.cuda.get_device_name()}, built in {time.perf_counter() - start:.0f} s,",
          ", ".join(version(p) for p in ("torch", "transformers", "peft", "flash-linear-attention",
                                         "fla-core", "causal-conv1d")), flush=True)
    work = [Workload(f"{n} tokens", text_inputs(model, n)) for n in map(int, args.lengths.split(","))]
    for size in args.image:
        width, height = map(int, size.split("x"))
        work.append(Workload(f"{size} + {args.text} tokens", image_inputs(model, width, height, args.text)))
    for workload in work:  # compiles and tunes kernels
        first = workload.run(model, args.device)
        workload.run(model, args.device)
        print(f"reference {workload.name:>24}: first {first:.0f} ms", flush=True)
    for half in (0, 1):
        for workload in work:
            workload.halves[half] = [workload.run(model, args.device) for _ in range(args.rounds)]
        if half == 0 and args.between:
            torch.cuda.empty_cache()
            subprocess.run(args.between, shell=True, check=True)
    for workload in work:
        print(workload.report(), flush=True)


if __name__ == "__main__":
    main()
