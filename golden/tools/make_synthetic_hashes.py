"""Write synthetic-hashes.json: SHA-256 of the bytes of tensors that the formula makes for tiny-a.

Usage: make_synthetic_hashes.py BASE ADAPTER OUT
For each seed one hash over all tensors (a line "sha256 name" each, sorted by name; base tensors BF16, pairs float32,
named as in their files), and the single hashes of one tensor of every kind.
"""
import hashlib, json, sys
import torch
from peft import PeftModel
from transformers import Qwen3_5ForConditionalGeneration
import synthetic

KINDS = ["lm_head.weight", "model.language_model.embed_tokens.weight", "model.language_model.norm.weight",
         "model.language_model.layers.0.linear_attn.A_log", "model.language_model.layers.0.linear_attn.dt_bias",
         "model.language_model.layers.0.linear_attn.conv1d.weight", "model.language_model.layers.0.linear_attn.norm.weight",
         "model.language_model.layers.0.linear_attn.in_proj_qkv.weight", "model.language_model.layers.3.self_attn.q_norm.weight",
         "model.visual.patch_embed.proj.weight", "model.visual.patch_embed.proj.bias", "model.visual.pos_embed.weight",
         "model.visual.blocks.0.norm1.weight", "model.visual.merger.linear_fc1.weight",
         "base_model.model.model.language_model.layers.3.self_attn.q_proj.lora_A.weight",
         "base_model.model.model.language_model.layers.3.self_attn.q_proj.lora_B.weight"]


def main():
    base, adapter, out = sys.argv[1:]
    result = {"tensors": {}, "all": {}}
    for seed in (1, 20240229, 0xFFFFFFFF):
        model = PeftModel.from_pretrained(Qwen3_5ForConditionalGeneration.from_pretrained(base, dtype=torch.bfloat16), adapter)
        synthetic.fill(model, seed)
        hashes = {}
        for name, p in model.named_parameters():
            lora = "lora_" in name
            key = name.replace(".default", "") if lora else name.removeprefix("base_model.model.").replace(".base_layer", "")
            assert p.dtype == (torch.float32 if lora else torch.bfloat16), (name, p.dtype)
            hashes[key] = hashlib.sha256(p.data.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
        lines = "".join(f"{hashes[k]} {k}\n" for k in sorted(hashes))
        result["all"][str(seed)] = {"tensors": len(hashes), "sha256": hashlib.sha256(lines.encode()).hexdigest()}
        if seed == 1:
            result["tensors"] = {k: hashes[k] for k in KINDS}
    json.dump(result, open(out, "w"), indent=1); open(out, "a").write("\n")


if __name__ == "__main__":
    main()
