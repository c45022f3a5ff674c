"""Writes requests of mixed sizes as JSON lines: python3 make_requests.py [options] > requests.jsonl

Each request asks a few questions about one of a number of states of words; lengths are log-uniform, so
that short ones are many. With --images some states show a screenshot too: rectangles on noise, PNG.
The same options give the same bytes.
"""

import argparse
import base64
import json
import math
import random
import struct
import sys
import zlib

WORDS = (
    "invoice order refund clerk window button menu page table client ticket server field report "
    "paid sent closed opened failed moved copied shown asked answered before after while the a of "
    "with without nine seven red blue left right first last total status draft final late early"
).split()


def words(random_, count):
    return " ".join(random_.choice(WORDS) for _ in range(count))


def log_uniform(random_, low, high):
    return round(math.exp(random_.uniform(math.log(low), math.log(high))))


def png(random_, width, height):
    rows = [bytearray(random_.randbytes(3) * width) for _ in range(height)]
    for _ in range(40):
        x, y = random_.randrange(width), random_.randrange(height)
        colour = random_.randbytes(3) * random_.randrange(1, width - x + 1)
        for row in rows[y : y + random_.randrange(1, 80)]:
            row[3 * x : 3 * x + len(colour)] = colour
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 1)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def question(random_):
    text = words(random_, random_.randint(6, 24)) + "?"
    kind = random_.choice(("choice", "noul", "score"))
    if kind == "noul":
        return {"type": kind, "instructions": text, "criteria": {"true": "yes", "false": "no"}}
    levels = [words(random_, random_.randint(1, 8)) for _ in range(random_.randint(2, 12))]
    if kind == "choice":
        levels = {f"option {i}": level for i, level in enumerate(levels)}
    return {"type": kind, "instructions": text, "criteria": levels}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--states", type=int, default=2000, help="states to take turns with")
    parser.add_argument("--words", type=int, nargs=2, default=(30, 1500), help="of a state, least and most")
    parser.add_argument("--questions", type=int, nargs=2, default=(1, 3), help="of a request, least and most")
    parser.add_argument("--images", type=float, default=0, help="share of the states with a screenshot")
    parser.add_argument("--size", type=int, nargs=2, default=(1280, 800), help="of a screenshot")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random_ = random.Random(args.seed)
    states = []
    for _ in range(args.states):
        state = {"state": words(random_, log_uniform(random_, *args.words))}
        if random_.random() < args.images:
            state["images"] = [base64.b64encode(png(random_, *args.size)).decode()]
        states.append(state)
    for i in range(args.requests):
        count = random_.randint(*args.questions)
        questions = {f"q{k}": question(random_) for k in range(count)}
        json.dump({"id": str(i), "request": {**states[i % args.states], "questions": questions}}, sys.stdout)
        print()


if __name__ == "__main__":
    main()
