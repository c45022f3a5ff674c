"""Write the image cases that were chosen by hand, with what the pinned libraries make of them.

Usage: image_cases.py FOLDER --preprocessor DIR [--cjpeg PROGRAM]

FOLDER/chosen.jsonl: files in the format of image_sweep.py; a case named "NN ..." stands for entry NN of the log of
public bug reports. FOLDER/resize.jsonl: {"pattern", "in": [w, h], "out": [w, h], "sha256"} of the resized RGB bytes.
"""
import argparse, base64, hashlib, io, json, os, random, struct, subprocess, tempfile, zlib

import numpy as np
from PIL import Image

import image_sweep as sweep
from image_sweep import chunk, riff, segment

HEAD = b"\x89PNG\r\n\x1a\n"


def save(im, fmt, **kw):
    b = io.BytesIO(); im.save(b, fmt, **kw); return b.getvalue()


def png(w, h, depth, color, rows, before=b"", after=b"", interlace=0, data=None):
    return HEAD + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, interlace)) + before + chunk(b"IDAT", zlib.compress(rows) if data is None else data) + after + chunk(b"IEND", b"")


def noise(w, h, seed=1, channels=3):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (h, w, channels)).astype(np.uint8))


def without(data, marker):
    k = data.find(marker); return data[:k] + data[k + 2 + struct.unpack(">H", data[k + 2:k + 4])[0]:]


def cmyk():
    a = save(Image.new("CMYK", (8, 8), (10, 60, 200, 30)), "JPEG", quality=95); k = a.find(b"\xff\xee")
    yield "16 CMYK as saved", a
    yield "16 CMYK without Adobe marker", without(a, b"\xff\xee")
    yield "16 CMYK as YCCK", a[:k + 15] + b"\2" + a[k + 16:]
    n = save(Image.fromarray(np.random.default_rng(3).integers(0, 256, (19, 23, 4)).astype(np.uint8), "CMYK"), "JPEG", quality=80); k = n.find(b"\xff\xee")
    yield "16 CMYK noise", n
    yield "16 YCCK noise", n[:k + 15] + b"\2" + n[k + 16:]


def alpha():
    yield "18 RGBA", png(2, 1, 8, 6, bytes([0, 10, 20, 30, 0, 40, 50, 60, 128]))
    yield "18 LA", png(1, 1, 8, 4, bytes([0, 200, 0]))
    yield "18 palette and tRNS", png(2, 1, 8, 3, bytes([0, 0, 1]), chunk(b"PLTE", bytes([1, 2, 3, 4, 5, 6])) + chunk(b"tRNS", b"\0\x80"))
    yield "18 RGB and tRNS", png(1, 1, 8, 2, bytes([0, 9, 8, 7]), chunk(b"tRNS", struct.pack(">HHH", 9, 8, 7)))
    yield "18 grey and tRNS", png(1, 1, 8, 0, bytes([0, 77]), chunk(b"tRNS", struct.pack(">H", 77)))
    yield "18 index beyond the palette", png(2, 1, 8, 3, bytes([0, 0, 7]), chunk(b"PLTE", bytes([1, 2, 3])))
    yield "18 no palette", png(2, 1, 8, 3, bytes([0, 0, 7]))
    yield "18 no palette, one transparent entry", png(2, 1, 8, 3, bytes([0, 0, 7]), chunk(b"tRNS", b"\0"))
    yield "18 palette of 257", png(1, 1, 8, 3, bytes([0, 0]), chunk(b"PLTE", bytes(771)))
    yield "18 16-bit grey", png(3, 1, 16, 0, struct.pack(">BHHH", 0, 200, 256, 65535))
    yield "18 16-bit grey with alpha", png(2, 1, 16, 4, struct.pack(">BHHHH", 0, 0x1234, 0, 0xFFEE, 9))
    yield "18 16-bit RGB", png(1, 1, 16, 2, struct.pack(">BHHH", 0, 0x0102, 0x7F80, 0xFFFF))
    for depth in (1, 2, 4): yield f"18 {depth}-bit grey", png(8 // depth, 1, depth, 0, bytes([0, 0x1B]))


def damaged():
    j = save(noise(33, 31), "JPEG", quality=80); p = save(noise(33, 31), "JPEG", quality=80, progressive=True); e = png(2, 2, 8, 0, bytes([0, 1, 2, 0, 3, 4])); idat = e.find(b"IDAT"); n = struct.unpack(">I", e[idat - 4:idat])[0]
    yield "19 JPEG without its last 2 bytes", j[:-2]
    yield "19 JPEG cut in half", j[: len(j) // 2]
    yield "19 progressive JPEG cut", p[: len(p) * 2 // 3]
    yield "19 JPEG cut, with EOI", j[: len(j) // 2] + b"\xff\xd9"
    yield "19 JPEG and junk behind EOI", j + b"junk"
    yield "19 a byte before SOI", b"x" + j
    k = j.find(b"\xff\xc0"); yield "19 12-bit JPEG", j[:k + 4] + b"\x0c" + j[k + 5:]
    yield "19 JPEG of height 0", j[:k + 5] + b"\0\0" + j[k + 7:]
    yield "19 JPEG of 2 components", j[:k + 9] + b"\2" + j[k + 10:]
    yield "19 short ICC segment", j[:2] + segment(0xE2, b"ICC_PROFILE\0\1") + j[2:]
    yield "19 corrupt EXIF", j[:2] + segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\xff") + j[2:]
    yield "19 EXIF resolution of one digit", j[:2] + segment(0xE1, b"Exif\0\0" + sweep.ifd([(0x011A, 2, 2, b"7\0"), (0x0128, 3, 1, b"\2\0")])) + without(j, b"\xff\xe0")[2:]
    yield "19 tables, EOI, picture", j[:2] + j[20:j.find(b"\xff\xc0")] + b"\xff\xd9" + j
    yield "19 PNG without IEND", e[:-12]
    yield "19 PNG cut in IEND", e[:-6]
    yield "19 PNG cut before the checksum of IDAT", e[: idat + 4 + n]
    yield "19 PNG cut in the Adler sum", e[: idat + 4 + n - 1]
    yield "19 wrong checksum of IDAT", e[: idat + 4 + n] + bytes(4) + e[idat + 8 + n:]
    yield "19 trailing bytes", e + b"trailing"
    yield "19 wrong checksum of IHDR", e[:29] + bytes(4) + e[33:]
    good = zlib.compress(bytes([0, 1, 2, 0, 3, 4])); rows = lambda data, **kw: png(2, 2, 8, 0, b"", data=data, **kw)
    yield "19 bad deflate data", rows(good[:3] + b"\xff\xff\xff" + good[6:])
    yield "19 bad Adler sum", rows(good[:-1] + bytes([good[-1] ^ 1]))
    yield "19 bad Adler sum in the next IDAT", HEAD + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) + chunk(b"IDAT", good[:-4]) + chunk(b"IDAT", bytes(4)) + chunk(b"IEND", b"")
    yield "19 too few rows, the stream ends on one", png(2, 2, 8, 0, bytes([0, 1, 2]))
    yield "19 too few rows, the stream ends in one", png(2, 2, 8, 0, bytes([0, 1, 2, 0, 3]))
    yield "19 too few rows with a palette", png(2, 2, 8, 3, bytes([0, 1, 1]), chunk(b"PLTE", bytes([9, 8, 7, 6, 5, 4])))
    yield "19 too many rows", png(2, 2, 8, 0, bytes(60))
    yield "19 unknown filter", png(2, 2, 8, 0, bytes([0, 1, 2, 5, 3, 4]))
    yield "19 unknown critical chunk", png(2, 2, 8, 0, bytes(6), chunk(b"ABCD", b"x"))
    yield "19 type that is no word", png(2, 2, 8, 0, bytes(6), chunk(b"a b!", b"x"))
    yield "19 type that is no word behind IDAT", png(2, 2, 8, 0, bytes(6), b"", chunk(b"a b!", b"x"))
    yield "19 chunk cut behind IDAT", rows(good)[:-12] + struct.pack(">I", 99) + b"tEXtabc"
    yield "19 IDAT cut behind the rows", HEAD + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) + struct.pack(">I", 999) + b"IDAT" + good
    for t, body in ((b"sRGB", b""), (b"pHYs", bytes(8)), (b"acTL", bytes(7)), (b"fcTL", bytes(25)), (b"gAMA", bytes(3)), (b"cHRM", bytes(5)), (b"tRNS", b"\0"), (b"iCCP", b"n\0\1x"), (b"iCCP", b""), (b"iCCP", b"n\0\0corrupt"), (b"zTXt", b"k\0\1x")):
        yield f"19 {t.decode()} of {len(body)} bytes", png(2, 2, 8, 0, bytes(6), chunk(t, body))
        yield f"19 {t.decode()} of {len(body)} bytes behind IDAT", png(2, 2, 8, 0, bytes(6), b"", chunk(t, body))
    for size in (1 << 20, (1 << 20) + 1):
        for t, head in ((b"iCCP", b"n\0\0"), (b"zTXt", b"k\0\0"), (b"iTXt", b"k\0\1\0en\0k\0")): yield f"19 {t.decode()} of {size} inflated", png(2, 2, 8, 0, bytes(6), chunk(t, head + zlib.compress(bytes(size))))
    yield "19 zTXt of 64 MiB together", png(1, 1, 8, 0, bytes(2), chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(1 << 20))) * 64)
    yield "19 zTXt of over 64 MiB together", png(1, 1, 8, 0, bytes(2), chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(1 << 20))) * 65)
    for w, h in ((0, 5), (20000, 20000), (13377, 13377), (13378, 13378), (2048, 1537), (65535, 48), (1 << 31, 2), (4294967295, 4294967295)): yield f"19 claims {w} x {h}", png(w, h, 8, 2, b"")
    yield "19 compression method 1", HEAD + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 1, 0, 0)) + chunk(b"IDAT", good) + chunk(b"IEND", b"")
    yield "19 filter method 1", HEAD + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 1, 0)) + chunk(b"IDAT", good) + chunk(b"IEND", b"")
    yield "19 IHDR second", HEAD + chunk(b"tIME", bytes(7)) + e[8:]
    yield "19 no IDAT", HEAD + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) + chunk(b"IEND", b"")
    v = save(noise(20, 20), "WEBP", quality=50); yield "19 WebP cut", v[: len(v) // 2]
    yield "19 WebP without its last byte", v[:-1]
    yield "19 WebP and trailing bytes", v + b"trailing"
    yield "19 WebP of a wrong RIFF size", v[:4] + struct.pack("<I", len(v)) + v[8:]


def metadata():
    im = noise(24, 16); ex = Image.Exif(); ex[0x0112] = 6
    yield "20 JPEG of orientation 6", save(im, "JPEG", exif=ex)
    rgb = bytes([0, 100, 150, 200])
    for t, body in ((b"gAMA", struct.pack(">I", 100000)), (b"sRGB", b"\0"), (b"cICP", bytes([9, 16, 0, 1])), (b"eXIf", b"MM\0*\0\0\0\x08\0\0"), (b"iCCP", b"p\0\0" + zlib.compress(b"profile"))): yield f"20 PNG with {t.decode()}", png(1, 1, 8, 2, rgb, chunk(t, body))
    yield "20 JPEG with ICC", save(im, "JPEG", icc_profile=b"p" * 100)
    yield "20 MPO", save(im, "MPO", save_all=True, append_images=[im])
    m = save(im, "MPO", save_all=True, append_images=[im]); k = m.find(b"MPF\0")
    yield "20 MPO with a malformed index", m[:k + 4] + b"xx" + m[k + 6:]
    yield "20 MPO and Ultra HDR", m[:2] + segment(0xE1, b'x hdrgm:Version="1.0"') + m[2:]
    yield "20 MPO of one picture", save(im, "MPO")
    # An animation's first frame or its default image.
    rows = b"".join(b"\0" + bytes([k] * 12) for k in range(4)); z = zlib.compress(rows); frame = lambda n, w, h, x, y: chunk(b"fcTL", struct.pack(">IIIIIHHBB", n, w, h, x, y, 1, 10, 0, 0))
    two = chunk(b"acTL", struct.pack(">II", 2, 0)); rest = frame(1, 4, 4, 0, 0) + chunk(b"fdAT", struct.pack(">I", 2) + z)
    yield "20 APNG", png(4, 4, 8, 2, rows, two + frame(0, 4, 4, 0, 0), rest)
    yield "20 APNG with a separate default image", png(4, 4, 8, 2, rows, two, frame(0, 4, 4, 0, 0) + chunk(b"fdAT", struct.pack(">I", 1) + z))
    yield "20 APNG whose first frame is small", png(4, 4, 8, 2, b"\0" + bytes(range(6)) + b"\0" + bytes(range(6, 12)), two + frame(0, 2, 2, 1, 2), rest)
    yield "20 APNG out of sequence", png(4, 4, 8, 2, rows, two + frame(1, 4, 4, 0, 0), rest)
    yield "20 APNG with a frame off the canvas", png(4, 4, 8, 2, rows, two + frame(0, 4, 4, 1, 0), rest)


def webps():
    clear = Image.new("RGBA", (2, 2), (200, 100, 50, 0))
    yield "21 lossless, hidden colour kept", save(clear, "WEBP", lossless=True, exact=True)
    yield "21 lossless, hidden colour dropped", save(clear, "WEBP", lossless=True)
    red, blue = Image.new("RGB", (4, 4), (255, 0, 0)), Image.new("RGB", (4, 4), (0, 0, 255)); two = save(red, "WEBP", lossless=True, save_all=True, append_images=[blue])
    yield "21 red frame, blue frame", two
    bits = sweep.bitstreams(save(red, "WEBP", lossless=True)); inner = b"".join(t + struct.pack("<I", len(c)) + c + (b"\0" if len(c) % 2 else b"") for t, c in bits)
    place = lambda x, y: struct.pack("<I", x // 2)[:3] + struct.pack("<I", y // 2)[:3] + struct.pack("<I", 3)[:3] * 2 + struct.pack("<I", 40)[:3]
    for flags in range(4): yield f"21 small first frame on a coloured background, flags {flags}", riff([(b"VP8X", struct.pack("<I", 0x12) + struct.pack("<I", 9)[:3] + struct.pack("<I", 7)[:3]), (b"ANIM", struct.pack("<IH", 0xFF336699, 0)), (b"ANMF", place(2, 4) + bytes([flags]) + inner)])
    yield "21 frame off the canvas", riff([(b"VP8X", struct.pack("<I", 0x12) + struct.pack("<I", 9)[:3] + struct.pack("<I", 7)[:3]), (b"ANIM", struct.pack("<IH", 0, 0)), (b"ANMF", place(8, 4) + b"\0" + inner)])
    rgba = np.random.default_rng(4).integers(0, 256, (13, 21, 4)).astype(np.uint8)
    yield "21 lossy with alpha", save(Image.fromarray(rgba), "WEBP", quality=60)
    yield "21 lossy, odd size", save(noise(21, 13), "WEBP", quality=60)
    yield "21 a bad later frame", two[:4] + two[4:-12] + bytes(12)


def upsampling(cjpeg):
    for w, h in ((17, 9), (16, 8), (1, 1), (2, 1), (1, 2), (33, 31)):
        im = noise(w, h, w * 100 + h); ppm = save(im, "PPM"); grey = save(im.convert("L"), "PPM")
        run = lambda source, *args: subprocess.run([cjpeg, "-quality", "85", *args], input=source, capture_output=True, check=True).stdout
        for sample in ("1x1", "2x1", "2x2", "1x2", "4x1"):
            yield f"22 {w}x{h} {sample}", run(ppm, "-sample", sample)
            yield f"22 {w}x{h} {sample} progressive", run(ppm, "-sample", sample, "-progressive")
            yield f"22 {w}x{h} {sample} restarts", run(ppm, "-sample", sample, "-restart", "3B")
        yield f"22 {w}x{h} grey", run(grey)
        yield f"22 {w}x{h} RGB", run(ppm, "-rgb", "-sample", "1x1")
        with tempfile.NamedTemporaryFile("w", suffix=".scans") as scans:
            scans.write("0;\n1;\n2;\n"); scans.flush(); yield f"22 {w}x{h} a scan a component", run(ppm, "-scans", scans.name)
    yield "22 arithmetic", run(ppm, "-arithmetic")
    big = save(noise(420, 420, 9), "PPM"); yield "22 arithmetic over one block of input", run(big, "-arithmetic", "-quality", "100")


def unfinished(cjpeg):
    """Progressive files without their refinement scans: block smoothing, which changed in libjpeg-turbo 3.0.1."""
    y, x = np.mgrid[0:48, 0:64]; im = Image.fromarray(np.stack([x * 4 % 256, y * 5 % 256, (x + y) * 2 % 256], -1).astype(np.uint8)); p = save(im, "JPEG", quality=60, progressive=True); scans = [k for k in range(len(p) - 1) if p[k:k + 2] == b"\xff\xda"]
    for n in (1, 2, 4): yield f"allowed: {n} scans of a progressive JPEG", p[: scans[n]] + b"\xff\xd9"


def kinds():
    im = noise(20, 10)
    for fmt in ("GIF", "BMP", "DIB", "TIFF", "ICO", "PPM", "TGA", "JPEG2000", "PCX", "SGI", "DDS", "QOI", "AVIF"): yield f"kind {fmt}", save(im, fmt)
    yield "kind EPS", save(im, "EPS"); yield "kind XBM", save(im.convert("1"), "XBM"); yield "kind MSP", save(im.convert("1"), "MSP")
    gif = save(im, "GIF"); yield "kind GIF, header only", gif[:13]
    yield "kind text", b"hello"; yield "kind nothing", b""; yield "kind RIFF that is no WebP", b"RIFF\x24\0\0\0WAVEfmt " + bytes(40)


def shapes():
    for w, h in ((200, 1), (201, 1), (1, 200), (1, 201), (400, 2), (401, 2), (256, 256), (255, 256), (257, 255), (16, 16), (48, 48), (80, 1000), (2048, 1536), (3072, 1024), (25000, 125)):
        yield f"shape {w}x{h}", png(w, h, 1, 0, (b"\0" + bytes([0b10110010] * ((w + 7) // 8))) * h)


def pattern(name, w, h):
    y, x = np.mgrid[0:h, 0:w]
    if name == "checkerboard": a = (x + y) % 2 * 255
    elif name == "point": a = ((x == w // 2) & (y == h // 2)) * 255
    elif name == "columns": a = x % 2 * 255
    elif name == "rows": a = y % 2 * 255
    else:
        s, v = np.zeros(w * h * 3, np.int64), 1
        for k in range(w * h * 3): v = (v * 1664525 + 1013904223) % (1 << 32); s[k] = v >> 24
        return s.reshape(h, w, 3).astype(np.uint8)
    return np.repeat(a[:, :, None], 3, 2).astype(np.uint8)


def resizes():
    import torch
    from torchvision.transforms.v2 import functional as F
    r = random.Random(5)
    sizes = [("checkerboard", (8, 8), (32, 32)), ("checkerboard", (64, 64), (32, 32)), ("noise", (33, 17), (64, 32)), ("noise", (64, 32), (64, 32)), ("noise", (3000, 32), (64, 32)), ("noise", (3000, 32), (3008, 32))]
    for p in ("point", "columns", "rows"): sizes += [(p, (31, 29), (64, 96)), (p, (97, 65), (32, 32)), (p, (64, 64), (96, 64)), (p, (64, 64), (64, 96))]
    for _ in range(150):
        n = int(2 ** r.uniform(0, 13)); m = max(32, 32 * round(n * r.choice([1, 1, 1, r.uniform(0.5, 4)]) / 32)); k = r.randint(1, 4)
        sizes.append(("noise", *(((n, k), (m, k)) if r.random() < 0.5 else ((k, n), (k, m)))))
    for name, (w, h), (ow, oh) in sizes:
        t = torch.from_numpy(pattern(name, w, h)).permute(2, 0, 1).contiguous()
        out = F.resize(t, [oh, ow], interpolation=F.InterpolationMode.BICUBIC, antialias=True).permute(1, 2, 0).contiguous().numpy()
        yield {"pattern": name, "in": [w, h], "out": [ow, oh], "sha256": hashlib.sha256(out.tobytes()).hexdigest()}


def main():
    p = argparse.ArgumentParser(); p.add_argument("folder"); p.add_argument("--preprocessor", required=True); p.add_argument("--cjpeg", default="cjpeg"); a = p.parse_args()
    import torch
    from transformers import Qwen2VLImageProcessor
    processor = Qwen2VLImageProcessor.from_pretrained(a.preprocessor); os.makedirs(a.folder, exist_ok=True)
    with open(f"{a.folder}/chosen.jsonl", "w") as f:
        for cases in (cmyk(), alpha(), damaged(), metadata(), webps(), upsampling(a.cjpeg), unfinished(a.cjpeg), kinds(), shapes()):
            for name, data in cases:
                line = {"name": name, **sweep.expect(processor, data), "base64": base64.b64encode(data).decode()}
                if name.startswith("allowed: "): line["allowed"] = "libjpeg-turbo older than 3.0.1 smooths blocks otherwise"
                f.write(json.dumps(line) + "\n")
    with open(f"{a.folder}/resize.jsonl", "w") as f:
        for line in resizes(): f.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
