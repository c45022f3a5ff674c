"""Time Pillow and the image processor on the files that image_bench times, one thread, in processor time.

Usage: image_reference.py --make DIR            write the files
       image_reference.py --preprocessor DIR FILE...
"""
import argparse, io, os, statistics, time

import numpy as np
from PIL import Image, ImageDraw


def photo(w, h):
    """Smooth light, edges and sensor noise."""
    g = np.random.default_rng(7); y, x = np.mgrid[0:h, 0:w]
    a = np.stack([110 + 70 * np.sin(x / 170 + c) * np.cos(y / 130 - c) + 40 * (((x // 90) + (y // 70)) % 2) for c in range(3)], -1) + g.normal(0, 7, (h, w, 3))
    return Image.fromarray(np.clip(a, 0, 255).astype(np.uint8))


def screenshot(w, h):
    """Flat panels and lines of text."""
    im = Image.new("RGB", (w, h), (246, 247, 249)); d = ImageDraw.Draw(im); g = np.random.default_rng(8)
    for _ in range(40):
        x, y = int(g.integers(0, w)), int(g.integers(0, h)); d.rectangle((x, y, x + int(g.integers(40, 400)), y + int(g.integers(20, 160))), fill=tuple(int(v) for v in g.integers(120, 256, 3)), outline=(90, 90, 90))
    for y in range(6, h, 14): d.text((8 + int(g.integers(0, 30)), y), " ".join("status service error deploy restart logs".split()[int(k)] for k in g.integers(0, 6, w // 45)), fill=(30, 30, 40))
    return im


def make(folder):
    os.makedirs(folder, exist_ok=True)
    for name, draw in (("photo", photo), ("screenshot", screenshot)):
        draw(1280, 800).save(f"{folder}/{name}-1280x800.png")
        draw(1280, 800).save(f"{folder}/{name}-1280x800.jpg", quality=88)
        draw(3000, 1000).save(f"{folder}/{name}-3000x1000.webp", quality=80)


def main():
    p = argparse.ArgumentParser(); p.add_argument("--make"); p.add_argument("--preprocessor"); p.add_argument("files", nargs="*"); a = p.parse_args()
    if a.make: return make(a.make)
    import torch
    from transformers import Qwen2VLImageProcessor
    torch.set_num_threads(1); processor = Qwen2VLImageProcessor.from_pretrained(a.preprocessor)
    for path in a.files:
        data, decode, total = open(path, "rb").read(), [], []
        for _ in range(15):
            t = time.thread_time(); im = Image.open(io.BytesIO(data)).convert("RGB"); decode.append((time.thread_time() - t) * 1e3)
            processor(images=[im], return_tensors="pt"); total.append((time.thread_time() - t) * 1e3)
        total.sort(); print(f"{os.path.basename(path):28} decode {statistics.median(decode):6.1f}  total {statistics.median(total):6.1f} ms (p10 {total[1]:.1f}, p90 {total[13]:.1f}, n 15)")


if __name__ == "__main__":
    main()
