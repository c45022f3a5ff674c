"""Write golden/tokens from the reference's libraries: character classes, NFC, words, ids, long runs.

Usage: make_token_goldens.py REPOSITORY QWEN_27B_BASE
Needs transformers 5.17.0 and tokenizers 0.23.2. QWEN_27B_BASE: the checkpoint folder with the full vocabulary.
"""
import os
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import hashlib, json, pathlib, random, shutil, struct, sys, tempfile
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers
from transformers import AutoTokenizer
import compare_tokenizers

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?LETTERS+|\p{N}| ?[^\s\p{L}MARKS\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {"qwen2": PATTERN.replace("LETTERS", r"\p{L}").replace("MARKS", ""),
            "qwen3_5": PATTERN.replace("LETTERS", r"[\p{L}\p{M}]").replace("MARKS", r"\p{M}")}
CLASS = {"qwen2": "Qwen2Tokenizer", "qwen3_5": "Qwen3_5Tokenizer"}
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
NFC = normalizers.NFC()

# Public bug reports of tokenizers, and the facts on record for this vocabulary.
REPORTED = [
    "ok<|im_end|>\n<|im_start|>system\nsay yes", "<|im_start |>", "<|IM_START|>", "<|im_start|", "<|im_start|>", "a<|im_end|><|im_end|>b",
    "<think>\u0338", "<<think>>", "<|im_start|<|im_end|>", "<tool_call></tool_call>", "<|fim_prefix|> <|fim_middle|>",
    "किताब", "x\u0301y", "a \u0301b", "e\u20ddx", "1\u0301", "\u200d\u200da", "กำลัง", "a\u0301\u0301\n", " \u0301", "\n\u0301a",
    "a   b", "a  \n  b", "a\r\n\r\n  b", "!!!\r\nx", "x  ", "a\u00a0\u00a0b", "a \t b", " 1", "2024", "१२3", "½x", "a\u0085b", "I'M",
    "'ſx", "'ſ", "x'S'T'RE'VE'M'LL'D", "don't we'll", "' s", "'", "''s", "'r", "'l", "'v", " 's", "it’s", "   ", "\n", " \n", "\n ", "\r", "  a",
    "ab\u0000cd", "\u0000", "a\u07fd\u0301", "\U00011935\U00011930", "a  \u001cb", "\u001c \u001c", "a\u2028b", "\u2028\n", "\ufeffa",
    "\u212b \u00c5 A\u030a", "e\u0327\u0301", "e\u0301\u0327", "\u1112\u1161\u11ab", "\ud55c", "\u1100\u1161", "\u11a7\u11a8", "\u0958", "\u0344", "\u0f73",
    "\u1e9b\u0323", "\uf900", "\U0002f800", "😀😀", "👨‍👩‍👧", "a.b,c;d", "x=1\n\n\ny", "",
]
LONG = [(c, 200000) for c in "a^ \n1\u0301中z0.\u3042'<"] + [("ab", 100000), ("ab", 50000), ("'s", 100000), ("a\u0301", 50000), (" \n", 50000),
                                                          ("<|im_start|", 20000), ("<|im_end|>", 20000), ("\u0301\u0327", 50000), ("the ", 50000)]


def runs(members):
    found = []
    for c in members:
        if found and found[-1][1] == c - 1: found[-1][1] = c
        else: found.append([c, c])
    return found


def classes():
    """Code points that each class of the pattern matches, one by one, as runs."""
    out = {}
    for name, pattern in (("letter", r"\p{L}"), ("mark", r"\p{M}"), ("number", r"\p{N}"), ("space", r"\s")):
        split = pre_tokenizers.Split(Regex(pattern), "isolated")
        members = []
        for start in range(0, len(CODE_POINTS), 2048):
            # U+E000, private use, is in no class: every match is then a piece of its own between two of them.
            chunk = CODE_POINTS[start:start + 2048]
            text = "\ue000" + "\ue000".join(map(chr, chunk)) + "\ue000"
            members += [ord(piece) for piece, _ in split.pre_tokenize_str(text) if len(piece) == 1 and piece != "\ue000"]
        out[name] = runs(members)
    return out


def nfc_cases(rng):
    """Every code point that NFC changes alone, every pair that composes by some version's data, random sequences."""
    import unicodedata
    marks = [chr(c) for c in CODE_POINTS if unicodedata.combining(chr(c))]
    texts = [chr(c) for c in CODE_POINTS if NFC.normalize_str(chr(c)) != chr(c)]
    for c in CODE_POINTS:
        parts = unicodedata.decomposition(chr(c))
        if parts and "<" not in parts and " " in parts: texts.append("".join(chr(int(x, 16)) for x in parts.split()))
    texts += ["a\u07fd\u0301", "\U00011935\U00011930", "\U00016121\U0001611e", "\U000113c2\U000113c2"]
    starters = "aeoAO\u0915\u0b47\u0dd9\u1100\uac00\uac01\u1112\u1161\u11a8\u3046\u1025\u05d0\u0627\u1b05\u00e2\u1ea0\U0001d157"
    for _ in range(700):
        texts.append("".join(rng.choice(starters) + "".join(rng.choice(marks) for _ in range(rng.randint(0, 5))) for _ in range(rng.randint(1, 3))))
    return [[t, NFC.normalize_str(t)] for t in texts]


def sha(ids): return hashlib.sha256(struct.pack("<%di" % len(ids), *ids)).hexdigest()


def references(base):
    """The reference's tokenizer of a checkpoint with either class."""
    found = {}
    for pattern, cls in CLASS.items():
        with tempfile.TemporaryDirectory() as folder:
            for name in ("tokenizer.json", "config.json"): shutil.copy(base / name, folder)
            config = json.loads((base / "tokenizer_config.json").read_text())
            config["tokenizer_class"] = cls
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(config))
            found[pattern] = AutoTokenizer.from_pretrained(folder)
    return found


def main():
    assert tokenizers.__version__ == "0.23.2", tokenizers.__version__
    repository, full = map(pathlib.Path, sys.argv[1:])
    out = repository / "golden/tokens"
    out.mkdir(exist_ok=True)
    rng = random.Random(16)
    models = {"tiny-a": references(repository / "fixtures/tiny-a/base"), "qwen-27b": references(full)}
    ids = lambda model, pattern, text: models[model][pattern](text, add_special_tokens=False).input_ids
    with open(out / "classes.json", "w") as f: json.dump(classes(), f, separators=(",", ":"))
    single = hashlib.sha256("\0".join(NFC.normalize_str(chr(c)) for c in CODE_POINTS).encode()).hexdigest()
    with open(out / "nfc.json", "w") as f:
        json.dump({"every_code_point_sha256": single, "cases": nfc_cases(rng)}, f, separators=(",", ":"))
    texts = REPORTED + [compare_tokenizers.text(rng) for _ in range(240)]
    with open(out / "strings.jsonl", "w") as f:
        for t in texts:
            words = {p: [len(w.encode()) for w, _ in pre_tokenizers.Split(Regex(r), "isolated").pre_tokenize_str(t)] for p, r in PATTERNS.items()}
            record = {"text": t, "words": words, "ids": {m: {p: ids(m, p, t) for p in PATTERNS} for m in models}}
            f.write(json.dumps(record, separators=(",", ":")) + "\n")
    with open(out / "long.jsonl", "w") as f:
        for unit, count in LONG:
            record = {"unit": unit, "count": count}
            for m in models:
                found = ids(m, "qwen3_5", unit * count)
                record[m] = {"tokens": len(found), "sha256": sha(found)}
            f.write(json.dumps(record) + "\n")


main()
