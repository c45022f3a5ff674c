"""Rows of the vision tower at full size: golden/vision-27b.safetensors.

Transformers' Qwen3_5VisionModel in float32, in the sizes of a config.json, with weights from the
formula (synthetic.py, seed 1); one tensor "ROWSxCOLUMNS" for each grid below. Element i of an image's
values is ((7919 i + 31 i // 1000) mod 256 - 127.5) / 127.5.

usage: make_vision_golden.py CONFIG.json OUT.safetensors
"""
import json, sys

import torch
from safetensors.torch import save_file
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5VisionConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5VisionModel

import synthetic

GRIDS = [(4, 6), (2, 50)]


def pixel_values(n):
    i = torch.arange(n, dtype=torch.int64)
    return (((7919 * i + 31 * i // 1000) % 256).float() - 127.5) / 127.5


class Named(torch.nn.Module):
    """Gives the tower the names that it has in a checkpoint."""
    def __init__(self, tower):
        super().__init__()
        self.model = torch.nn.Module()
        self.model.visual = tower


def main(config_file, out):
    config = Qwen3_5VisionConfig(**json.load(open(config_file))["vision_config"])
    tower = Qwen3_5VisionModel(config).float().eval()
    synthetic.fill(Named(tower), seed=1, step=1 << 22)
    width = config.in_channels * config.temporal_patch_size * config.patch_size**2
    rows = {}
    with torch.no_grad():
        for h, w in GRIDS:
            values = pixel_values(h * w * width).view(h * w, width)
            result = tower(values, grid_thw=torch.tensor([[1, h, w]]))
            rows[f"{h}x{w}"] = result.pooler_output.contiguous()
    save_file(rows, out)


main(*sys.argv[1:])
