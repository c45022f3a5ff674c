"""Random JSON bodies and base64 texts, with what CPython makes of them.

Usage: python3.12 make_python_json.py --count 400 --seed 1 --out golden/python-json
Must run on CPython 3.12, whose json, str, repr and base64 the contract follows.

cases.jsonl, base64.jsonl: one case a line; `input` holds bytes in base64.
  cases:  json.loads(bytes): `error` and `detail`, or `dump` (compact json.dumps), `repr`, `str`, `flat`, `strip`
  base64: the text decoded after its white space is removed: `error` ("ValueError" for a non-ASCII character, "Error" for a refusal of binascii) or `output`
Texts that UTF-8 cannot hold (lone surrogates) are under NAME_base64, in their three-byte form.
code_points.json: SHA-256 over one byte (0 or 1) a code point, str.isprintable and str.isspace.
"""
import argparse, base64, hashlib, json, pathlib, random, re, struct, sys, unicodedata

assert unicodedata.unidata_version == "15.0.0", unicodedata.unidata_version

CODES = ([*range(0x20), 0x22, 0x27, 0x5C, 0x2F, 0x7F, 0x80, 0x85, 0xA0, 0xAD, 0x378, 0x600, 0x1680, 0x180E, 0x2003, 0x200B, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFF,
          0x1F642, 0x1FAE8, 0x2FA1E, 0xE0001, 0xE0100, 0xF0000, 0x10FFFF])
NUMBERS = ["0", "-0", "-0.0", "0.0", "1e400", "-1e400", "1e-400", "-1e-400", "0e999", "0E-999999999999999999999", "1e999999999999999999999", "-1e-99999999999999999999", "9007199254740993", "9007199254740993.0", "1e16",
           "9999999999999998.0", "123456789012345680.0", "0.0001", "0.00001", "1e22", "1e23", "5e-324", "4e-324", "3e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308",
           "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "0.1", "0.30000000000000004", "18446744073709551617", "-9223372036854775809", "1E5", "1e+5", "1.5e-7", "NaN", "Infinity", "-Infinity",
           "01", "1.", ".5", "+1", "-", "-NaN", "nan", "inf", "1_000", "1e", "1e+", "0x10", "--1", "1.e5", "-01", "1.0.0", "0" * 30, "1" * 400, "0." + "0" * 400 + "1e400", "1" + "0" * 400 + "e-400", "0." + "0" * 330 + "1", "1" + "0" * 320 + ".5"]


def random_float(rng):
    kind = rng.randrange(4)
    if kind == 0: return repr(struct.unpack("<d", rng.randbytes(8))[0])
    if kind == 1: return repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-30, 30))
    if kind == 2: return f"{rng.randrange(10**rng.randrange(1, 25))}.{rng.randrange(10**rng.randrange(1, 25))}e{rng.randrange(-345, 330)}"
    return repr(rng.randrange(1 << rng.randrange(1, 60)) * 2.0 ** rng.randrange(-1074, 970))


def number(rng):
    kind = rng.randrange(6)
    if kind == 0: return rng.choice(NUMBERS[:38])
    if kind == 1: return str(rng.randrange(-10**rng.randrange(1, 40), 10**rng.randrange(1, 40)))
    text = random_float(rng)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def character(rng):
    kind = rng.randrange(10)
    if kind < 4: return rng.choice("abcxyz 019'\"\\/")
    if kind < 6: return chr(rng.choice(CODES))
    if kind < 7: return chr(rng.randrange(0xD800, 0xE000))
    if kind < 9: return chr(rng.randrange(0x300))
    return chr(rng.randrange(0x110000))


def escaped(c, rng):
    """One spelling of a character inside a JSON string; sometimes one that JSON refuses."""
    code = ord(c)
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "/": "\\/"}
    if c in short and rng.random() < 0.6: return short[c]
    if code < 0x20 or c in '"\\' or rng.random() < 0.3:
        if code < 0x20 and rng.random() < 0.02: return c
        units = [code] if code < 0x10000 else [0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)]
        return "".join(rng.choice(["\\u%04x", "\\u%04X"]) % u for u in units)
    return c


def string(rng, words):
    if words and rng.random() < 0.4: return rng.choice(words)
    out = '"' + "".join(escaped(character(rng), rng) for _ in range(rng.choice([0, 1, 2, 3, 5, 9, 30]))) + '"'
    words.append(out)
    return out


def space(rng):
    return "" if rng.random() < 0.7 else "".join(rng.choice(" \t\n\r") for _ in range(rng.randrange(1, 4)))


def value(rng, depth, words):
    kind = rng.randrange(8 if depth else 5)
    if kind == 0: return rng.choice(["null", "true", "false"])
    if kind in (1, 2): return number(rng)
    if kind in (3, 4): return string(rng, words)
    count = rng.choice([0, 0, 1, 2, 3, 5, 9])
    sp = lambda: space(rng)
    if kind in (5, 6): return "{" + sp() + ("," + sp()).join(f"{string(rng, words)}{sp()}:{sp()}{value(rng, depth - 1, words)}{sp()}" for _ in range(count)) + "}"
    return "[" + sp() + ("," + sp()).join(value(rng, depth - 1, words) + sp() for _ in range(count)) + "]"


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        i = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0: del data[i:]
        elif kind == 1: del data[i:i + rng.randrange(1, 4)]
        elif kind == 2: data[i:i] = rng.choice([b",", b"]", b"}", b"[", b"{", b":", b'"', b"\\", b"\\u", b"\\ud83d", b"0", b".", b"e", b"-", b"\n", b"\0", b"\xa0", b"\x0b", b"null", b"Infinity"])
        elif kind == 3: data[i:i] = rng.choice([b"\xff", b"\xc0\x80", b"\xc3", b"\xed\xa0\x80", b"\xed\xa0", b"\xed", b"\xe2\x82", b"\xf0\x9f\x99", b"\xf0\x9f", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\x80", b"\xef\xbb\xbf", b"\xed\xbf\xbf"])
        elif data: data[i % len(data)] = rng.randrange(256)
    return bytes(data)


def put(case, key, text):
    try:
        text.encode()
        case[key] = text
    except UnicodeEncodeError:
        case[key + "_base64"] = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def json_case(data):
    """None when the server would take the bytes for UTF-16 or UTF-32."""
    if json.detect_encoding(data) not in ("utf-8", "utf-8-sig"): return None
    case = {"input": base64.b64encode(data).decode()}
    try:
        parsed = json.loads(data)
    except ValueError as error:
        return {**case, "error": type(error).__name__, "detail": str(error)}
    text = str(parsed)
    put(case, "dump", json.dumps(parsed, ensure_ascii=False, separators=(",", ":")))
    put(case, "repr", repr(parsed))
    put(case, "str", text)
    put(case, "flat", re.sub(r"\s+", " ", text).strip())
    put(case, "strip", text.strip())
    return case


def base64_text(rng):
    text = base64.b64encode(rng.randbytes(rng.randrange(12))).decode()
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        i = rng.randrange(len(text) + 1)
        text = text[:i] + rng.choice(["=", "==", "A", " ", "\n", "\u2003", "\u001c", "-", "_", "!", "\0", "\u00e9", "\u200b", "", "=A", "AAAA"]) + text[i + rng.choice([0, 0, 1, 2]):]
    return text


def base64_case(text):
    case = {"input": base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()}
    try:
        return {**case, "output": base64.b64encode(base64.b64decode("".join(text.split()), validate=True)).decode()}
    except ValueError as error:
        return {**case, "error": type(error).__name__}


HAND_JSON = [n.encode() for n in NUMBERS] + [b"\xef\xbb\xbf", b"\xef\xbb\xbf{}", b"\xef\xbb\xbf\xef\xbb\xbf{}", b" \t\r\n", b"[", b"{", b"[1", b"[1,", b"[,", b'{"', b'{"a', b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a" 1}', b'["\\', b'["\\u', b'["\\u1', b'["\\u1234', b'["\\ud83d\\ude00', b'["\\ud83d\\ude00"',
    b'["\\ud83d\\u00"]', b'["\\ud83d\\u12', b'["\\ud83d\\x"]', b'["\\ud83d\\ude00"]', b'["\\ud83d"]', b'["\\ude00\\ud83d"]', b'["\\ud83dx"]', b'["\\ud83d\\u0041"]', b'["\\uD800\\""]', b'["\xed\xa0\xbd\\ude00"]', b'["\xed\xa0\xbd\xed\xb8\x80"]', b'["\\ud83d\xed\xb8\x80"]', b'["\\ud83d\\ud83d\\ude00"]',
    b'{"a":1,"b":2,"a":3}', b'{"":1,"":2}', b'{"a":{"a":1,"a":[1,2,{"x":1,"x":2}]},"a":{"b":[1],"b":{"c":1}}}', '{"\u00e9":1,"e\u0301":2}'.encode(), b'{"aaaaaaaab":1,"aaaaaaaa":2,"aaaaaaaab":3,"aaaaaaaa\\u0000":4,"aaaaaaaa":5}', b"nul", b"tRue", b"null null", b"[1] x", b"\n\n[1,\n\n2 3]", "[\n\"\u00e9\u00e9\",\n \"\U0001F642\" x]".encode(),
    b"[" * 900 + b"]" * 900, b'{"a":' * 899 + b"[]" + b"}" * 899, b'{"k":"it\'s","q":"\\"","n":null,"t":true,"f":1e16,"l":[1,"\xc3\xa9","\\n","\\u200b","a\'b\\"c"]}', b'{"a":NaN,"b":-0.0,"e":[],"f":{}}', b'"\\u007f\\u2028/"', b"9" * 4300, b"-" + b"9" * 4300, b"9" * 4301, b"-" + b"9" * 4301, b"[" + b"9" * 4301, b'"ab\\u0000cd"', "\ufeff".encode() + b'"\xe2\x80\xa8\xc2\x85"']
HAND_BASE64 = ["", "=", "==", "====", "aGk=", "aG k=", "aG\nk=", "aGk==", "=aGk=", "aGk=\0", "aGk=aGk=", "aGkx=", "aGkx==", "aGkx=====", "aGkx=aGkx", "aGk", "a-_k", "a", "aG", "aG=", "aG==", "aG===", "aG=k", "aG=k=", "aGkxa=", "aGkxaG=", "aGkxaG==", "aGk=\u2003", "\u200baGk=", "aGk=\u00e9", "!\u00e9", "aGl=", "\ud800"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=400); p.add_argument("--seed", type=int, default=1); p.add_argument("--out", required=True)
    a = p.parse_args()
    rng = random.Random(a.seed)
    out = pathlib.Path(a.out); out.mkdir(parents=True, exist_ok=True)
    with open(out / "cases.jsonl", "w") as f:
        for i in range(-len(HAND_JSON), a.count):
            data = HAND_JSON[i] if i < 0 else (space(rng) + value(rng, rng.randrange(5), []) + space(rng)).encode("utf-8", "surrogatepass")
            case = json_case(mutated(data, rng) if i >= 0 and i % 3 == 2 else data)
            if case is not None: f.write(json.dumps(case) + "\n")
    with open(out / "base64.jsonl", "w") as f:
        for i in range(-len(HAND_BASE64), a.count // 10):
            f.write(json.dumps(base64_case(HAND_BASE64[i] if i < 0 else base64_text(rng))) + "\n")
    digest = lambda test: hashlib.sha256(bytes(test(chr(c)) for c in range(sys.maxunicode + 1))).hexdigest()
    (out / "code_points.json").write_text(json.dumps({"python": sys.version.split()[0], "unicode": unicodedata.unidata_version, "isprintable_sha256": digest(str.isprintable), "isspace_sha256": digest(str.isspace)}, indent=1) + "\n")


main()
