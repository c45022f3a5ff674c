"""Train the tiny SentencePiece model of fixtures/sentencepiece and write the library's ids for it.

Usage: make_sentencepiece_fixture.py OUT
Needs sentencepiece 0.2.3. Added tokens are split off here by a plain search, as the reference does before any model.
"""
import io, itertools, json, pathlib, re, sys
import sentencepiece

ADDED = {300: "<|im_start|>", 301: "<|im_end|>", 302: "<|image_pad|>", 303: "<think>", 304: "</think>"}
TEXTS = ["", "the request", "Which action opens workspace 7?", "A", "5", "  two  spaces ", "line\nbreak", "<|im_start|>user\nState:",
         "a<|im_end|><|im_end|>b", "<|im_start|", "<think>\n\n</think>\n\n", "naïve 中文 😀", "\u0000", "ab\u0000cd", "x <|image_pad|> y", "zzzzzzzz"]


def corpus():
    for verb, thing, n in itertools.product(("open", "close", "move", "choose"), ("workspace", "window", "request", "candidate", "label"), range(10)):
        yield f"Please {verb} the {thing} number {n} for the user; the state of {thing} {n} is unknown."
        yield f"Which action would {verb} {thing} {n}? Answer with exactly one candidate label: A, B, C or D."


def encode(processor, text):
    pattern = "|".join(map(re.escape, ADDED.values()))
    ids, of = [], {v: k for k, v in ADDED.items()}
    for part in re.split(f"({pattern})", text):
        ids += [of[part]] if part in of else processor.encode(part)
    return ids


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, model_type="bpe", vocab_size=300, character_coverage=1.0,
        byte_fallback=False, normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False,
        split_digits=True,
        hard_vocab_limit=False, user_defined_symbols=list("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"), num_threads=1, minloglevel=2)
    (out / "tokenizer.model").write_bytes(model.getvalue())
    config = {"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": {
        str(i): {"content": c, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True} for i, c in ADDED.items()}}
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    assert processor.get_piece_size() <= 300
    with open(out / "cases.jsonl", "w") as f:
        for text in TEXTS: f.write(json.dumps({"text": text, "ids": encode(processor, text)}) + "\n")
    print(processor.get_piece_size(), processor.encode("A"), len(model.getvalue()))


main()
