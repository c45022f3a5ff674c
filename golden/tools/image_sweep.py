"""Write random image files with what the pinned libraries make of them.

Usage: image_sweep.py OUT.jsonl --seed N --count N --preprocessor DIR [--max-bytes N] [--cjpeg PROGRAM]

Each line: {"name", "base64", and either "error" (the words after "image i ", or the aspect-ratio message) or
"width", "height", "rgb_sha256", "grid_thw", "pixel_values_sha256"}. Needs Pillow 12.3.0, torchvision 0.26.0,
Transformers 5.17.0; cjpeg of libjpeg-turbo is optional and adds the samplings and scans that Pillow does not write.
"""
import argparse, base64, hashlib, io, json, os, random, struct, subprocess, sys, tempfile, warnings, zlib

import numpy as np
import PIL
from PIL import Image

warnings.simplefilter("ignore")
MAX_PIXELS = 3145728
SCANS = tempfile.NamedTemporaryFile("w", suffix=".scans"); SCANS.write("0;\n1;\n2;\n"); SCANS.flush()  # a scan a component


# ------------------------------------------------------------------ the reference
def decode(data):
    """The RGB picture, or the words of the refusal."""
    try:
        im = Image.open(io.BytesIO(data))
    except Exception as e:
        return None, "could not be decoded", type(e).__name__
    if im.format not in ("PNG", "JPEG", "WEBP"): return None, "is not PNG, JPEG or WebP", im.format
    if im.width * im.height > MAX_PIXELS: return None, f"exceeds {MAX_PIXELS} pixels", ""
    try:
        return im.convert("RGB"), None, ""
    except Exception as e:
        return None, "could not be decoded", type(e).__name__


def expect(processor, data):
    im, error, why = decode(data)
    if error: return {"error": error, "why": why}
    out = {"width": im.width, "height": im.height, "rgb_sha256": hashlib.sha256(im.tobytes()).hexdigest()}
    try:
        enc = processor(images=[im], return_tensors="pt")
    except ValueError as e:
        return {"error": str(e), "why": "size"}
    out["grid_thw"] = enc["image_grid_thw"][0].tolist()
    out["pixel_values_sha256"] = hashlib.sha256(enc["pixel_values"].contiguous().numpy().astype("<f4").tobytes()).hexdigest()
    return out


# ------------------------------------------------------------------ pictures
def side(r):
    u = r.random()
    if u < 0.35: return r.randint(1, 40)
    if u < 0.65: return max(1, 32 * r.randint(1, 10) + r.choice([-17, -16, -15, -1, 0, 1, 15, 16, 17]))
    return r.randint(1, 330)


def size(r):
    u = r.random()
    if u < 0.04:  # near the ratio of 200
        s = r.randint(1, 3); l = 200 * s + r.choice([-1, 0, 0, 1]); return r.choice([(s, l), (l, s)])
    if u < 0.07:  # near 65536 pixels
        w = r.randint(120, 520); return w, max(1, 65536 // w + r.choice([-1, 0, 1]))
    if u < 0.075: return r.choice([(2048, 1536), (1536, 2048), (3072, 1024), (2049, 1536), (25000, 125), (15000, 209)])
    if u < 0.09: return r.randint(300, 1700), r.randint(300, 1700)
    return side(r), side(r)


def pixels(r, w, h, channels, dtype=np.uint8):
    g = np.random.default_rng(r.randrange(1 << 30)); top = np.iinfo(dtype).max
    kind = r.choice(["noise", "smooth", "flat", "edges", "mix"])
    if kind == "noise": a = g.integers(0, top + 1, (h, w, channels))
    elif kind == "flat": a = np.broadcast_to(g.integers(0, top + 1, (1, 1, channels)), (h, w, channels))
    else:
        y, x = np.mgrid[0:h, 0:w]
        a = np.stack([(np.sin(x / (3 + 40 * g.random()) + 6 * g.random()) + np.cos(y / (3 + 40 * g.random()))) / 4 + 0.5 for _ in range(channels)], -1) * top
        if kind == "edges": a = (a > top / 2) * float(top)
        if kind == "mix": a = np.where(g.random((h, w, 1)) < 0.1, g.integers(0, top + 1, (h, w, channels)), a)
    return np.clip(a, 0, top).astype(dtype)


# ------------------------------------------------------------------ PNG by hand
def chunk(t, body, crc=None): return struct.pack(">I", len(body)) + t + body + struct.pack(">I", zlib.crc32(t + body) if crc is None else crc)


PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def pack(a, depth):
    """[h, w, c] samples to rows of bytes."""
    if depth == 16: return [row.astype(">u2").tobytes() for row in a]
    if depth == 8: return [row.astype(np.uint8).tobytes() for row in a]
    rows = []
    for row in a.reshape(a.shape[0], -1):
        bits = ((row[:, None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8)
        rows.append(np.packbits(bits.reshape(-1)).tobytes())
    return rows


def paeth(a, b, c):
    pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def filtered(r, rows, bpp, mode):
    out, above = [], None
    for row in rows:
        f = r.randrange(5) if mode == "any" else mode
        above = above if above is not None else bytes(len(row))
        left = bytes(bpp)[: len(row)] + row[: max(0, len(row) - bpp)]; corner = bytes(bpp)[: len(row)] + above[: max(0, len(row) - bpp)]
        if f == 0: out.append(b"\0" + row)
        else:
            x, a, b = (np.frombuffer(v, np.uint8).astype(int) for v in (row, left, above))
            if f == 1: p = a
            elif f == 2: p = b
            elif f == 3: p = (a + b) // 2
            else:
                c = np.frombuffer(corner, np.uint8).astype(int); pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                p = np.where((pa <= pb) & (pa <= pc), a, np.where(pb <= pc, b, c))
            out.append(bytes([f]) + ((x - p) % 256).astype(np.uint8).tobytes())
        above = row
    return b"".join(out)


def ancillary(r):
    """A random harmless or harmful chunk for the place before IDAT, or after it."""
    word = r.choice([b"gAMA", b"cHRM", b"sRGB", b"pHYs", b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"iCCP", b"tIME", b"sBIT", b"prVt", b"CrIt", b"acTL", b"fcTL", b"bKGD", b"cICP", b"tRNS", b"PLTE", b"a_1Z"])
    good = {b"gAMA": struct.pack(">I", 45455), b"cHRM": struct.pack(">8I", *range(8)), b"sRGB": b"\0", b"pHYs": struct.pack(">IIB", 2835, 2835, r.choice([0, 1])),
            b"tEXt": b"Comment\0hello", b"zTXt": b"k\0\0" + zlib.compress(b"text" * r.choice([1, 100, 262144, 262145])), b"iTXt": b"k\0\0\0en\0k\0caf\xc3\xa9",
            b"eXIf": b"MM\0*\0\0\0\x08\0\0", b"iCCP": b"name\0\0" + zlib.compress(b"profile" * 20), b"acTL": struct.pack(">II", r.choice([0, 1, 2]), 0),
            b"fcTL": struct.pack(">IIIIIHHBB", 0, 1, 1, 0, 0, 1, 10, r.randrange(4), 0), b"PLTE": bytes(range(9))}.get(word, b"\0\1")
    u = r.random()
    if u < 0.75: return chunk(word, good)
    if u < 0.85: return chunk(word, good[: r.randint(0, len(good))])
    if u < 0.9: return chunk(word, b"")
    if u < 0.95: return chunk(word, bytes(r.randrange(256) for _ in range(r.randint(1, 40))))
    return chunk(word, good, crc=r.getrandbits(32))


def png(r):
    depth, color = r.choice([(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (8, 2), (8, 2), (16, 2), (1, 3), (2, 3), (4, 3), (8, 3), (8, 3), (8, 4), (16, 4), (8, 6), (8, 6), (16, 6)])
    w, h = size(r); n = CHANNELS[color]; interlace = r.random() < 0.3
    a = pixels(r, w, h, n, np.uint16 if depth == 16 else np.uint8)
    if depth == 16 and color == 0 and r.random() < 0.5: a = a % 512
    if depth < 8: a = a >> (8 - depth)
    bpp = max(1, depth * n // 8); mode = r.choice([0, 1, 2, 3, 4, "any", "any"])
    if interlace: raw = b"".join(filtered(r, pack(a[y::dy, x::dx], depth), bpp, mode) for x, y, dx, dy in PASSES if a[y::dy, x::dx].size)
    else: raw = filtered(r, pack(a, depth), bpp, mode)
    if r.random() < 0.03: raw = raw[: r.randrange(len(raw) + 1)]
    if r.random() < 0.02: raw = raw[: len(raw) // h * r.randrange(h)]
    if r.random() < 0.03: raw += bytes(r.randrange(200))
    if r.random() < 0.02 and raw: k = r.randrange(len(raw)); raw = raw[:k] + bytes([r.randrange(256)]) + raw[k + 1:]
    z = zlib.compressobj(r.choice([0, 1, 6, 9]), zlib.DEFLATED, r.choice([9, 12, 15]), 8, r.choice([0, 1, 2, 3, 4])); data = b""
    step = r.choice([len(raw) or 1, max(1, len(raw) // 7)])
    for k in range(0, len(raw), step): data += z.compress(raw[k:k + step]) + (z.flush(r.choice([zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH])) if r.random() < 0.3 else b"")
    data += z.flush()
    u = r.random()
    if u < 0.03: data = data[:-4] + bytes(4)
    elif u < 0.06: data = data[:-r.randint(1, 12)]
    elif u < 0.08: data += bytes(r.randrange(256) for _ in range(r.randrange(1, 60)))
    elif u < 0.09: data = data[: max(1, r.randrange(len(data)))]
    pieces, rest = [], data
    if r.random() < 0.5: pieces = [data]
    else:
        while rest:
            k = r.choice([0, 1, 2, 3, 5, 100, len(rest), max(1, len(rest) - 4), max(1, len(rest) - r.randint(1, 9))]) if len(pieces) < 60 else len(rest)
            pieces.append(rest[:k]); rest = rest[k:]
    idat = b"".join(chunk(b"IDAT", p, crc=r.getrandbits(32) if r.random() < 0.02 else None) for p in pieces)
    head = struct.pack(">IIBBBBB", w, h, depth, color, 0 if r.random() < 0.98 else 1, 0 if r.random() < 0.98 else 1, int(interlace))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    while r.random() < 0.2: out += ancillary(r)
    if color == 3 and r.random() < 0.97:
        entries = r.choice([1 << depth, 1 << depth, max(1, (1 << depth) - 1), r.randint(1, 256), 256, 257]); cut = r.choice([0, 0, 0, 0, 1, 2])
        out += chunk(b"PLTE", bytes(r.randrange(256) for _ in range(entries * 3 - cut)))
    if r.random() < 0.3:
        trns = {0: struct.pack(">H", r.choice([0, 1, 255, 65535])), 2: struct.pack(">HHH", 1, 2, r.choice([3, 65535]))}.get(color, r.choice([b"\0", b"\xff\0\xff", bytes(r.randrange(256) for _ in range(20)), b"\xff" * 300 + b"\0"]))
        out += chunk(b"tRNS", trns if r.random() < 0.95 else trns[:-1])
    while r.random() < 0.15: out += ancillary(r)
    apng = r.random()
    if apng < 0.06:
        fw, fh = (w, h) if r.random() < 0.5 else (r.randint(1, w), r.randint(1, h)); fx, fy = r.randint(0, w - fw), r.randint(0, h - fh)
        out += chunk(b"acTL", struct.pack(">II", r.choice([1, 2]), 0))
        if r.random() < 0.6: out += chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, fw, fh, fx, fy, 1, 10, r.randrange(3), r.randrange(2)))
        if r.random() < 0.2: idat = chunk(b"fdAT", struct.pack(">I", 1) + data)
    out += idat
    if apng < 0.06: out += chunk(b"fcTL", struct.pack(">IIIIIHHBB", 1, w, h, 0, 0, 1, 10, 0, 0)) + chunk(b"fdAT", struct.pack(">I", 2) + data)
    while r.random() < 0.12: out += ancillary(r)
    return out + (chunk(b"IEND", b"") if r.random() < 0.97 else b""), f"png {color}/{depth} {w}x{h}" + (" interlaced" if interlace else "") + (" apng" if apng < 0.06 else "")


def png_by_pillow(r):
    w, h = size(r); mode = r.choice(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]); b = io.BytesIO()
    im = Image.fromarray(pixels(r, w, h, 4), "RGBA").convert("RGB" if mode in ("P", "I;16", "1") else mode)
    if mode == "P": im = im.quantize(r.choice([2, 5, 16, 100, 256]))
    if mode == "1": im = im.convert("1")
    if mode == "I;16": im = Image.fromarray(pixels(r, w, h, 1, np.uint16)[:, :, 0])
    im.save(b, "PNG", compress_level=r.choice([0, 1, 6]), optimize=r.random() < 0.1, **({"transparency": 0} if r.random() < 0.2 and mode in ("P", "L", "1") else {}))
    return b.getvalue(), f"png pillow {mode} {w}x{h}"


# ------------------------------------------------------------------ JPEG
def segment(marker, body): return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def extra_segment(r):
    return r.choice([
        lambda: segment(0xE2, b"ICC_PROFILE\0" + bytes([1, 1]) + b"x" * 30), lambda: segment(0xE2, b"ICC_PROFILE\0" + b"\1" * r.randint(0, 2)),
        lambda: segment(0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([r.randrange(4)])), lambda: segment(0xEE, b"Adobe" + bytes(r.randrange(7))),
        lambda: segment(0xE0, b"JFIF\0" + bytes(r.randrange(10))), lambda: segment(0xFE, b"comment"), lambda: b"\xff" * r.randint(1, 5), lambda: b"junk",
        lambda: segment(0xED, b"Photoshop 3.0\0" + b"8BIM\x03\xed\0\0\0\0\0\x10" + bytes(r.choice([16, 4])) + b"8BIM"),
        lambda: segment(0xED, b"Photoshop 3.0\0" + bytes(r.choice(b"8BIM\0\3\xed") for _ in range(r.randint(0, 30)))),
        lambda: segment(0xE1, exif(r)), lambda: segment(0xE2, b"MPF\0" + mp_index(r)), lambda: segment(0xDD, struct.pack(">H", r.randrange(9))),
        lambda: segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x hdrgm:Version=\"1.0\"/>"), lambda: b"\xff\xf3", lambda: b"\xff\xd1", lambda: b"\xff\x02",
    ])()


def ifd(entries, order="<", head=b"II*\0"):
    body, extra, at = struct.pack(order + "H", len(entries)), b"", 8 + 2 + 12 * len(entries) + 4
    for tag, typ, count, data in entries:
        if len(data) > 4: body += struct.pack(order + "HHLL", tag, typ, count, at + len(extra)); extra += data
        else: body += struct.pack(order + "HHL", tag, typ, count) + data.ljust(4, b"\0")
    return head + struct.pack(order + "L", 8) + body + struct.pack(order + "L", 0) + extra


def exif(r):
    order, head = r.choice([("<", b"II*\0"), (">", b"MM\0*"), (">", b"MM*\0"), ("<", b"II+\0"), ("<", b"xx*\0")])
    x = r.choice([(5, 1, struct.pack(order + "LL", 72, r.choice([1, 0]))), (2, 1, b"\0"), (2, 2, b"7\0"), (2, 1, b"x"), (2, 3, b"72\0"), (3, 1, struct.pack(order + "H", 72)), (7, 1, b"\7"), (7, 2, b"\7\0"),
                  (1, 1, b"a"), (5, 2, struct.pack(order + "LLLL", 1, 2, 3, 4)), (12, 1, struct.pack(order + "d", float("nan"))), (5, 0, b""), (99, 1, b"a")])
    e = [(0x0112, 3, 1, struct.pack(order + "H", r.randint(1, 8)))] + [(0x011A, *x)] * (r.random() < 0.8) + [(0x0128, 3, 1, struct.pack(order + "H", r.choice([2, 3])))] * (r.random() < 0.8)
    out = b"Exif\0\0" + ifd(e, order, head)
    return out if r.random() < 0.8 else out[: r.randrange(len(out))]


def mp_index(r):
    order, head = r.choice([("<", b"II*\0"), ("<", b"II*\0"), (">", b"MM\0*"), (">", b"MM*\0"), ("<", b"II\0*"), ("<", b"II+\0")])
    n = r.choice([0, 1, 2, 2, 3]); attribute = r.choice([0, 0, 0, 0x20030000, 0x01000000])
    entries = b"".join(struct.pack(order + "LLLHH", attribute, 100, 0, 0, 0) for _ in range(n)); entries = entries[: len(entries) - r.choice([0, 0, 0, 1, 16])]
    count = r.choice([(4, 1, struct.pack(order + "L", n))] * 4 + [(3, 1, struct.pack(order + "H", n)), (4, 2, struct.pack(order + "LL", n, 1)), (11, 1, struct.pack(order + "f", n)), (1, 1, bytes([n])), (9, 1, struct.pack(order + "l", -1)), (2, 2, b"2\0")])
    e = [(0xB000, 7, 4, b"0100")] + [(0xB001, *count)] * (r.random() < 0.95) + [(0xB002, r.choice([7, 7, 7, 7, 1, 2]), len(entries), entries)] * (r.random() < 0.95)
    out = ifd(e, order, head)
    return out if r.random() < 0.9 else out[: r.randrange(len(out))]


def jpeg(r, cjpeg):
    w, h = size(r); mode = r.choice(["RGB", "RGB", "RGB", "L", "CMYK"]); b = io.BytesIO()
    note = f"jpeg {mode} {w}x{h}"
    if cjpeg and r.random() < 0.5:
        ppm = io.BytesIO(); im = Image.fromarray(pixels(r, w, h, 3)); im = im.convert("L") if mode == "L" else im; im.save(ppm, "PPM")
        args = ["-quality", str(r.choice([1, 25, 50, 75, 90, 97, 100]))]
        if mode != "L" and r.random() < 0.9: s = r.choice(["1x1", "2x1", "1x2", "2x2", "4x1", "1x4", "4x2", "2x4", "3x1", "2x2,2x1,1x1", "1x1,2x1,1x2", "2x2,1x1,2x1", "3x2,1x1,1x1"]); args += ["-sample", s]; note += " " + s
        if r.random() < 0.15 and mode != "L": args += ["-rgb"]; note += " rgb"
        if r.random() < 0.4: args += ["-progressive"]; note += " progressive"
        elif r.random() < 0.2 and mode != "L":
            args += ["-scans", SCANS.name]; note += " scans"
        if r.random() < 0.2: args += ["-arithmetic"]; note += " arithmetic"
        if r.random() < 0.2: args += ["-optimize"]
        if r.random() < 0.3: args += ["-restart", r.choice(["1", "1B", "3B", "7B"])]; note += " restart"
        p = subprocess.run([cjpeg, *args], input=ppm.getvalue(), capture_output=True); data = p.stdout
        if p.returncode: return jpeg(r, None)
    else:
        im = Image.fromarray(pixels(r, w, h, 4 if mode == "CMYK" else 3), "CMYK" if mode == "CMYK" else "RGB")
        if mode == "L": im = im.convert("L")
        kw = dict(quality=r.choice([1, 10, 50, 75, 90, 95, 100]), progressive=r.random() < 0.3, optimize=r.random() < 0.2)
        if mode == "RGB": kw["subsampling"] = r.choice([0, 1, 2]); kw["keep_rgb"] = r.random() < 0.1
        if r.random() < 0.3: kw["restart_marker_blocks"] = r.randint(1, 9)
        if r.random() < 0.1: kw["icc_profile"] = b"p" * r.choice([10, 70000])
        try: im.save(b, "JPEG", **kw)
        except OSError: return jpeg(r, cjpeg)
        data = b.getvalue()
        if mode == "CMYK":
            u = r.random(); k = data.find(b"\xff\xee")
            if u < 0.3: data = data[:k] + data[k + 2 + struct.unpack(">H", data[k + 2:k + 4])[0]:]; note += " no adobe"
            elif u < 0.6: data = data[:k + 15] + b"\2" + data[k + 16:]; note += " ycck"
    if r.random() < 0.25: data = data[:2] + extra_segment(r) + data[2:]; note += " segment"
    if r.random() < 0.1: k = data.find(b"\xff\xda"); data = data[:k] + extra_segment(r) + data[k:]; note += " segment before scan"
    if r.random() < 0.03: k = data.find(b"\xff\xc0"); data = data[:k + 4] + bytes([r.choice([12, 8])]) + data[k + 5:] if k > 0 else data
    return data, note


# ------------------------------------------------------------------ WebP
def riff(chunks):
    body = b"WEBP" + b"".join(t + struct.pack("<I", len(c)) + c + (b"\0" if len(c) % 2 else b"") for t, c in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def bitstreams(data):
    """The chunks of a simple or extended still file that make up its picture."""
    at, out = 12, []
    while at + 8 <= len(data):
        t, n = data[at:at + 4], struct.unpack("<I", data[at + 4:at + 8])[0]
        if t in (b"VP8 ", b"VP8L", b"ALPH"): out.append((t, data[at + 8:at + 8 + n]))
        at += 8 + n + n % 2
    return out


def webp(r):
    w, h = size(r); mode = r.choice(["RGB", "RGBA"]); b = io.BytesIO()
    if w > 16383 or h > 16383: w, h = 400, 300
    im = Image.fromarray(pixels(r, w, h, len(mode)), mode); note = f"webp {mode} {w}x{h}"
    kw = dict(lossless=r.random() < 0.4, quality=r.choice([0, 30, 75, 95, 100]), method=r.choice([0, 2, 4]), exact=r.random() < 0.5, alpha_quality=r.choice([100, 40]))
    if kw["lossless"]: note += " lossless"
    if r.random() < 0.15: im.save(b, "WEBP", save_all=True, append_images=[im.transpose(r.randrange(5)).resize((w, h)) for _ in range(r.randint(1, 3))], duration=50, background=(255, 9, 7, 255), **kw); note += " animated"
    else: im.save(b, "WEBP", **kw, **({"exif": b"Exif\0\0MM\0*"} if r.random() < 0.1 else {}), **({"icc_profile": b"p" * 50} if r.random() < 0.1 else {}))
    data = b.getvalue()
    if r.random() < 0.25 and " animated" not in note:
        cw, ch = w + r.randrange(60), h + r.randrange(60); x, y = r.randint(0, cw - w) // 2 * 2, r.randint(0, ch - h) // 2 * 2; note += f" frame at {x},{y} in {cw}x{ch}"
        frame = struct.pack("<I", x // 2)[:3] + struct.pack("<I", y // 2)[:3] + struct.pack("<I", w - 1)[:3] + struct.pack("<I", h - 1)[:3] + struct.pack("<I", 40)[:3] + bytes([r.randrange(4)])
        inner = b"".join(t + struct.pack("<I", len(c)) + c + (b"\0" if len(c) % 2 else b"") for t, c in bitstreams(data))
        anim = [(b"VP8X", struct.pack("<I", 0x12) + struct.pack("<I", cw - 1)[:3] + struct.pack("<I", ch - 1)[:3]), (b"ANIM", struct.pack("<IH", r.getrandbits(32), 0)), (b"ANMF", frame + inner)]
        if r.random() < 0.3: anim.append((b"ANMF", frame + inner[: r.randrange(len(inner))] if r.random() < 0.3 else frame + inner))
        data = riff(anim)
    return data, note


# ------------------------------------------------------------------ damage, other kinds
def damage(r, data):
    u = r.random()
    if u < 0.25: return data[: r.randrange(len(data) + 1)], "cut"
    if u < 0.35: return data[: max(0, len(data) - r.randint(1, 16))], "end cut"
    if u < 0.55:
        b = bytearray(data)
        for _ in range(r.choice([1, 1, 2, 5])): b[r.randrange(len(b))] = r.randrange(256)
        return bytes(b), "bytes"
    if u < 0.65:
        b = bytearray(data); k = r.randrange(min(len(b), 200)); b[k] ^= 1 << r.randrange(8); return bytes(b), "head bit"
    if u < 0.75: k = r.randrange(len(data)); return data[:k] + data[k + r.randint(1, 30):], "hole"
    if u < 0.85: k = r.randrange(len(data)); return data[:k] + bytes(r.randrange(256) for _ in range(r.randint(1, 9))) + data[k:], "insertion"
    if u < 0.93: return data + bytes(r.randrange(256) for _ in range(r.randint(1, 99))), "trailing"
    k = r.randrange(len(data)); return data[:k] + bytes(min(len(data) - k, r.randint(1, 200))) + data[k + 200:], "zeros"


def mend(data):
    """Sets every checksum of a damaged PNG right, so that the damage reaches the decoder."""
    out, at = data[:8], 8
    while at + 12 <= len(data):
        n = struct.unpack(">I", data[at:at + 4])[0]
        if at + 12 + n > len(data): break
        out += chunk(data[at + 4:at + 8], data[at + 8:at + 8 + n]); at += 12 + n
    return out + data[at:]


def other(r):
    im = Image.fromarray(pixels(r, side(r), side(r), 3)); b = io.BytesIO()
    fmt = r.choice(["GIF", "BMP", "TIFF", "ICO", "PPM", "TGA", "JPEG2000", "PCX", "SGI", "DDS", "QOI", "AVIF", "MPO", "DIB"])
    try: im.save(b, fmt, **({"save_all": True, "append_images": [im]} if fmt == "MPO" else {}))
    except Exception: return other(r)
    return b.getvalue(), "other " + fmt


def make(r, cjpeg):
    u = r.random()
    if u < 0.04: return other(r)
    if u < 0.055: return bytes(r.randrange(256) for _ in range(r.randrange(200))), "noise"
    data, note = png(r) if u < 0.4 else png_by_pillow(r) if u < 0.45 else jpeg(r, cjpeg) if u < 0.75 else webp(r)
    if r.random() < 0.3:
        data, how = damage(r, data); note += " damaged: " + how
        if data[:4] == b"\x89PNG" and r.random() < 0.6: data = mend(data); note += ", mended"
    return data, note


def main():
    p = argparse.ArgumentParser(); p.add_argument("out"); p.add_argument("--seed", type=int, required=True); p.add_argument("--count", type=int, required=True)
    p.add_argument("--preprocessor", required=True); p.add_argument("--max-bytes", type=int, default=1 << 30); p.add_argument("--cjpeg")
    a = p.parse_args(); r = random.Random(a.seed)
    import torch
    from transformers import Qwen2VLImageProcessor
    torch.set_num_threads(1)
    processor = Qwen2VLImageProcessor.from_pretrained(a.preprocessor)
    print("Pillow", PIL.__version__, file=sys.stderr)
    with open(a.out, "w") as f:
        n = 0
        while n < a.count:
            data, note = make(r, a.cjpeg)
            if len(data) > a.max_bytes: continue
            f.write(json.dumps({"name": f"{a.seed}-{n:05d} {note}", **expect(processor, data), "base64": base64.b64encode(data).decode()}) + "\n"); n += 1


if __name__ == "__main__":
    main()
