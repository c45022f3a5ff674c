"""Write safetensors-cases.json (files and whether the safetensors library takes them) and pattern-cases.json
(patterns, texts and whether PEFT's two ways of matching find them, by CPython's re).

Usage: make_checkpoint_cases.py OUT_DIRECTORY
"""
import json, pathlib, random, re, struct, sys
import safetensors

MAX = 2 ** 64 - 1


def file(header, data=b"", length=None):
    if not isinstance(header, bytes):
        header = json.dumps(header).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def t(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def one(body, n=4):
    """A file whose only tensor is described by the raw text `body`."""
    return file(b'{"a":' + body + b"}", b"\1" * n)


def safetensors_cases():
    f1 = b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    two = lambda a, b, n: file({"a": a, "b": b}, b"\1" * n)
    cases = {
        "empty file": b"", "seven bytes": bytes(7), "length 0": struct.pack("<Q", 0), "length 2^64-1": file(b"{}", length=MAX),
        "length 2^64-8": file(b"{}", length=MAX - 7), "length 100000001": file(b"{}", length=100_000_001), "length one too many": file(b"{}", length=3),
        "no tensor": file(b"{}"), "array": file(b"[]"), "null": file(b"null"), "number": file(b"1"), "string": file(b'""'),
        "leading space": file(b" {}"), "trailing spaces": file(b"{}   "), "trailing white space": file(b"{}\n\t\r "), "trailing NUL": file(b"{}\0"),
        "NUL alone": file(b"\0"), "byte order mark": file(b"\xef\xbb\xbf{}"), "trailing text": file(b"{}x"), "two objects": file(b"{}{}"), "unclosed": file(b'{"a":'),
        "product overflows": one(b'{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}', 0), "2^53+1": one(b'{"dtype":"F32","shape":[9007199254740993],"data_offsets":[0,4]}'),
        "bits overflow": one(b'{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,0]}', 0), "negative extent": one(b'{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}'),
        "extent 1.5": one(b'{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}'), "extent 1.0": one(b'{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}'), "extent 1e0": one(b'{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}'),
        "extent -0": one(b'{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}', 0), "extent 01": one(b'{"dtype":"F32","shape":[01],"data_offsets":[0,4]}'), "extent true": one(b'{"dtype":"F32","shape":[true],"data_offsets":[0,4]}'),
        "extent null": one(b'{"dtype":"F32","shape":[null],"data_offsets":[0,4]}'), "extent text": one(b'{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}'), "nested shape": one(b'{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}'),
        "shape object": one(b'{"dtype":"F32","shape":{},"data_offsets":[0,4]}'), "shape number": one(b'{"dtype":"F32","shape":1,"data_offsets":[0,4]}'), "extent 2^64": one(b'{"dtype":"F32","shape":[18446744073709551616,0],"data_offsets":[0,0]}', 0),
        "0 times huge": one(b'{"dtype":"F32","shape":[0,9223372036854775807,4],"data_offsets":[0,0]}', 0), "huge times 0": one(b'{"dtype":"F32","shape":[9223372036854775807,4,0],"data_offsets":[0,0]}', 0),
        "too few bytes": one(b'{"dtype":"F64","shape":[4],"data_offsets":[0,16]}', 16), "too many bytes": one(b'{"dtype":"U8","shape":[3],"data_offsets":[0,4]}'),
        "data cut": one(b'{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'), "data left": one(f1, 8), "data without tensor": file(b"{}", b"x"),
        "overlap": two(t("F32", [2], 0, 8), t("F32", [2], 4, 12), 12), "hole": two(t("F32", [1], 0, 4), t("F32", [1], 8, 12), 12), "same place": two(t("F32", [1], 0, 4), t("F32", [1], 0, 4), 4),
        "start behind 0": one(b'{"dtype":"F32","shape":[1],"data_offsets":[4,8]}', 8), "end before begin": one(b'{"dtype":"F32","shape":[1],"data_offsets":[4,0]}'), "offset 2^64-4": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551612]}'),
        "begin 2^64-4": one(b'{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,0]}'), "one offset": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0]}'), "three offsets": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}'),
        "no offsets": one(b'{"dtype":"F32","shape":[1],"data_offsets":[]}'), "offsets null": one(b'{"dtype":"F32","shape":[1],"data_offsets":null}'), "offsets text": one(b'{"dtype":"F32","shape":[1],"data_offsets":"04"}'),
        "against the alphabet": file({"b": t("F32", [1], 4, 8), "a": t("F32", [1], 0, 4)}, bytes(8)), "one behind the other": two(t("F32", [1], 4, 8), t("F32", [1], 0, 4), 8),
        "name twice, same place": file(b'{"a":' + f1 + b',"a":' + f1 + b"}", bytes(4)), "name twice, other place": file(b'{"a":' + f1 + b',"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', bytes(8)),
        "name twice, by escape": file(b'{"\\u0061":' + f1 + b',"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', bytes(8)), "dtype twice": one(b'{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}'),
        "shape twice": one(b'{"shape":[1],"dtype":"F32","shape":[1],"data_offsets":[0,4]}'), "offsets twice": one(b'{"data_offsets":[0,4],"dtype":"F32","shape":[1],"data_offsets":[0,4]}'),
        "no dtype": one(b'{"shape":[1],"data_offsets":[0,4]}'), "no shape": one(b'{"dtype":"F32","data_offsets":[0,4]}'), "no data_offsets": one(b'{"dtype":"F32","shape":[1]}'), "empty description": one(b"{}"),
        "description null": one(b"null", 0), "description number": one(b"1", 0), "description array": one(b'["F32",[1],[0,4]]'), "dtype object": one(b'{"dtype":{"F32":null},"shape":[1],"data_offsets":[0,4]}'),
        "dtype unknown": one(b'{"dtype":"F33","shape":[1],"data_offsets":[0,4]}'), "dtype lower case": one(b'{"dtype":"f32","shape":[1],"data_offsets":[0,4]}'), "dtype null": one(b'{"dtype":null,"shape":[1],"data_offsets":[0,4]}'), "dtype number": one(b'{"dtype":32,"shape":[1],"data_offsets":[0,4]}'),
        "field unknown": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[{"shape":[-1.5,null,"y",true]}]}'), "field unknown first": one(b'{"x":{},"dtype":"F32","shape":[1],"data_offsets":[0,4]}'), "field unknown twice": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1,"x":{}}'),
        "nested 100": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"[" * 100 + b"]" * 100 + b"}"), "nested 125": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"[" * 125 + b"]" * 125 + b"}"),
        "nested 126": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"[" * 126 + b"]" * 126 + b"}"), "nested 130": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":' + b"[" * 130 + b"]" * 130 + b"}"),
        "number out of range": one(b'{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1e999}'), "trailing comma": one(f1[:-1] + b",}"), "comment": file(b"{/*x*/}"),
        "bad UTF-8": file(b'{"\xff":' + f1 + b"}", bytes(4)), "overlong UTF-8": file(b'{"\xc0\x80":' + f1 + b"}", bytes(4)), "surrogate UTF-8": file(b'{"\xed\xa0\x80":' + f1 + b"}", bytes(4)), "lone surrogate": file(b'{"\\ud800":' + f1 + b"}", bytes(4)),
        "surrogate pair": file(b'{"\\ud83d\\ude00":' + f1 + b"}", bytes(4)), "control character": file(b'{"a\n":' + f1 + b"}", bytes(4)), "escaped NUL": file(b'{"\\u0000":' + f1 + b"}", bytes(4)), "empty name": file(b'{"":' + f1 + b"}", bytes(4)),
        "scalar": one(b'{"dtype":"F32","shape":[],"data_offsets":[0,4]}'), "extent 0": one(b'{"dtype":"F32","shape":[0],"data_offsets":[0,0]}', 0), "extents 0, 5": one(b'{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]}', 0),
        "empty tensor at the end": two(t("F32", [1], 0, 4), t("F32", [0], 4, 4), 4), "empty tensor at the start": two(t("F32", [0], 0, 0), t("F32", [1], 0, 4), 4), "empty tensor inside": two(t("F32", [1], 0, 4), t("F32", [0], 2, 2), 4),
        "metadata": file({"__metadata__": {"format": "pt"}}), "metadata empty": file(b'{"__metadata__":{}}'), "metadata null": file(b'{"__metadata__":null}'), "metadata array": file(b'{"__metadata__":[]}'), "metadata number": file(b'{"__metadata__":1}'),
        "metadata text": file(b'{"__metadata__":"x"}'), "metadata of integer": file(b'{"__metadata__":{"a":1}}'), "metadata of object": file(b'{"__metadata__":{"a":{}}}'), "metadata of array": file(b'{"__metadata__":{"a":[]}}'), "metadata of null": file(b'{"__metadata__":{"a":null}}'),
        "metadata of boolean": file(b'{"__metadata__":{"a":true}}'), "metadata twice": file(b'{"__metadata__":{},"__metadata__":{}}'), "metadata key twice": file(b'{"__metadata__":{"a":"b","a":"c"}}'), "metadata like a tensor": file(b'{"__metadata__":{"dtype":"F32","shape":"x"}}'),
        "metadata between": file(b'{"a":' + f1 + b',"__metadata__":{"shape":"x"},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}', bytes(6)), "F4 odd": one(b'{"dtype":"F4","shape":[1],"data_offsets":[0,1]}', 1), "F4 even": one(b'{"dtype":"F4","shape":[2],"data_offsets":[0,1]}', 1), "F6 of 3": one(b'{"dtype":"F6_E2M3","shape":[3],"data_offsets":[0,3]}', 3),
    }
    for dtype, bits in dict(BOOL=8, F4=4, F6_E2M3=6, F6_E3M2=6, U8=8, I8=8, F8_E5M2=8, F8_E4M3=8, F8_E8M0=8, F8_E4M3FNUZ=8, F8_E5M2FNUZ=8, I16=16, U16=16, F16=16, BF16=16,
                            I32=32, U32=32, F32=32, C64=64, F64=64, I64=64, U64=64, C128=128, I4=4).items():
        cases["dtype " + dtype] = file({"a": t(dtype, [8], 0, bits)}, bytes(bits))
    out = []
    for name, data in cases.items():
        try:
            safetensors.deserialize(data); accepted = True
        except safetensors.SafetensorError:
            accepted = False
        out.append({"name": name, "hex": data.hex(), "accepted": accepted})
    return out


def random_pattern(rng, depth=3):
    pieces = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if depth and kind < 0.25: piece = "(" + rng.choice(["", "?:", "?=", "?!"]) + random_pattern(rng, depth - 1) + ")"
        elif kind < 0.35: piece = rng.choice(["[ab]", "[^a]", "[a-b.]", r"[\d_]", "[]a]", "[a-]"])
        elif kind < 0.5: piece = rng.choice([".", r"\.", r"\d", r"\w", r"\D", "1", "_"])
        elif kind < 0.55: pieces.append(rng.choice("^$")); continue
        else: piece = rng.choice("aab.")
        if rng.random() < 0.35: piece += rng.choice(["*", "+", "?", "{2}", "{1,2}", "{0}", "{2,}", "{0,3}"]) + rng.choice(["", "", "?"])
        pieces.append(piece)
    if depth and rng.random() < 0.2: pieces.append("|" + random_pattern(rng, depth - 1))
    return "".join(pieces)


def pattern_cases():
    rng = random.Random(7)
    names = ["model.language_model.layers.0.self_attn.q_proj", "model.language_model.layers.11.mlp.down_proj", "model.visual.blocks.0.attn.qkv", "q_proj"]
    jemm = r"^(?!.*visual).*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)$"
    written = [jemm, "q_proj", r".*\.layers\.(0|1[0-5])\..*", r"layers\.\d+\.mlp\.(gate|up|down)_proj", "", "(?:)", ".*", "a{0}", "(a*)*", "(?=.*mlp).+", "(?!q)", "x|", "self_attn.q_proj", r"(?!.*(?=attn)).*", "(^q|mlp).*",
               "a)|(q_proj", "layers.0.self_attn.q_proj"]
    cases = [(p, n) for p in written for n in names]
    while len(cases) < 1000:
        cases.append((random_pattern(rng), "".join(rng.choice("aab.1_") for _ in range(rng.randint(0, 6)))))
    out = []
    for pattern, text in cases:
        row = {"pattern": pattern, "text": text}
        try: row["full"] = re.fullmatch(pattern, text) is not None
        except re.error: row["full"] = None
        row["end"] = re.match(rf"(.*\.)?({pattern})$", text) is not None
        if row["full"] or row["end"] or rng.random() < 0.3: out.append(row)
    return out


if __name__ == "__main__":
    directory = pathlib.Path(sys.argv[1])
    for name, rows in (("safetensors-cases.json", safetensors_cases()), ("pattern-cases.json", pattern_cases())):
        (directory / name).write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
