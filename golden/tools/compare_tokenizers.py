"""Compare the tokenizer with the reference's on random strings, for every class that has rules.

Usage: compare_tokenizers.py TOKENIZER_BENCH CHECKPOINT_BASE COUNT [SEED]
TOKENIZER_BENCH: the program of bench/. Needs transformers 5.17.0 and tokenizers 0.23.2.
Prints the first differences of each class and the number of strings compared; exit status 1 for any difference.
"""
import os
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import json, pathlib, random, shutil, subprocess, sys, tempfile
from transformers import AutoTokenizer

CLASSES = ["Qwen2Tokenizer", "Qwen2TokenizerFast", "Qwen3_5Tokenizer", "Qwen3_5TokenizerFast", None,
           "PreTrainedTokenizerFast", "TokenizersBackend"]
RANGES = [(0x20, 0x7E)] * 6 + [
    (0x0, 0x1F), (0x80, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF),
    (0x7C0, 0x7FF), (0x840, 0x8FF), (0x900, 0x97F), (0x980, 0xDFF), (0xE00, 0xE7F), (0xF00, 0xFFF), (0x1000, 0x109F), (0x1100, 0x11FF),
    (0x1780, 0x17FF), (0x1AB0, 0x1AFF), (0x1B00, 0x1B7F), (0x1DC0, 0x1EFF), (0x2000, 0x206F), (0x20D0, 0x20FF), (0x2100, 0x2BFF),
    (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xA640, 0xA69F), (0xA8E0, 0xA8FF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF),
    (0xFE00, 0xFFFF), (0x10A00, 0x10A4F), (0x10D20, 0x10EFF), (0x11000, 0x11FFF), (0x16100, 0x16E9F), (0x1D100, 0x1D1FF),
    (0x1D400, 0x1D7FF), (0x1E000, 0x1E2FF), (0x1F300, 0x1FAFF), (0x20000, 0x20FFF), (0x2F800, 0x2FA1F), (0x30000, 0x323AF), (0xE0000, 0xE01EF),
    (0, 0x10FFFF)]
PIECES = ["'s", "'S", "'t", "'re", "'VE", "'m", "'ll", "'lL", "'d", "'ſ", "'K", "’s", " '", " ", "  ", "   ", "\n", "\r\n", "\n\n", " \n", "\t",
          "\u00a0", "\u3000", "\u2028", "\u0085", "\u001c", "\u001f", "\x00", "\u200d", "\ufeff", "1", "23", "½", "१", "!!", "...", " (", "the", " the",
          " state", "Candidate", "किताब", "e\u0301", "ซิ่", "한", "\u1112\u1161\u11ab", "ａ", "ﬁ", "Å", "\u212b", "\u0344", "\u0f73", "\u0958", "\u1e9b\u0323",
          "<|im_start|>", "<|im_end|>", "<|im_end|", "<|im_", "<|", "|>", "<think>", "</think>", "<think", "<", "<<", "<|image_pad|>",
          "<|vision_start|>", "<tool_call>", "<|endoftext|>", "<|IM_END|>", "<|im_start |>"]


def character(rng):
    lo, hi = rng.choice(RANGES)
    c = rng.randint(lo, hi)
    return chr(c) if not 0xD800 <= c <= 0xDFFF else "x"


def text(rng):
    kind = rng.random()
    if kind < 0.4:  # pieces and characters of everywhere
        return "".join(rng.choice(PIECES) if rng.random() < 0.5 else character(rng) for _ in range(rng.randint(1, 24)))
    if kind < 0.7:  # one script, with marks, spaces and punctuation
        lo, hi = rng.choice(RANGES)
        own = [c for c in (chr(rng.randint(lo, hi)) for _ in range(8)) if not "\ud800" <= c <= "\udfff"] or ["x"]
        return "".join(rng.choice(own) if rng.random() < 0.7 else rng.choice([" ", "\n", ".", "'s", "\u0301", "\u0327", "\u093c", "a", "1"])
                       for _ in range(rng.randint(1, 40)))
    if kind < 0.85:  # base and combining sequences
        marks = "\u0300\u0301\u0308\u0323\u0327\u0338\u0345\u031b\u3099\u309a\u1161\u11a8\u0b3e\u0bd7\u0dcf\u0f71\u0f72\u0f74\u05b4\u064b\u0655\u07fd\u08d3\U00011930\U0001e4ec"
        return "".join(character(rng) + "".join(rng.choice(marks) for _ in range(rng.randint(0, 4))) for _ in range(rng.randint(1, 8)))
    return rng.choice(PIECES + ["a", "ab", "z", "中"]) * rng.randint(1, 120)


def main():
    program, base, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    different = total = 0
    config = json.loads((base / "tokenizer_config.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tokenizer.json", "config.json", "chat_template.jinja"):
            shutil.copy(base / name, folder)
        for cls in CLASSES:
            config.pop("tokenizer_class", None)
            if cls: config["tokenizer_class"] = cls
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(config))
            reference = AutoTokenizer.from_pretrained(folder)
            texts = [text(rng) for _ in range(count // len(CLASSES) + 1)]
            run = subprocess.run([program, "ids", folder], input="\n".join(map(json.dumps, texts)), capture_output=True, text=True)
            if run.returncode: sys.exit(run.stderr)
            ours = run.stdout.split("\n")[:-1]
            assert len(ours) == len(texts), (len(ours), len(texts))
            bad = 0
            for t, line in zip(texts, ours):
                want = reference(t, add_special_tokens=False).input_ids
                if want != [int(x) for x in line.split()]:
                    bad += 1
                    if bad <= 3: print(cls, ascii(t), "reference", want, "ours", line)
            print(f"{cls}: {len(texts)} strings, {bad} different", flush=True)
            different += bad; total += len(texts)
    print(f"{total} strings, {different} different")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
