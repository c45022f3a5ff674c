"""Turn the public parity corpus of system1-omni into a golden of answers and usage.

    import_system1_omni.py --corpus corpus.jsonl --reference reference.json --out DIR [--force]
    import_system1_omni.py --self-check

The files are tests/jemm/data/parity/ of ThinkFlowLab/system1-omni at the pinned commit; they stay
outside this repository. What they do not hold (prompts, tokens, images, positions, stages, logits,
hashes of the checkpoint) is absent from the golden, never empty. The answers are those of
Qwen3.8-27B with the JEMM adapter: a comparison with another checkpoint means nothing. The corpus's
own `expected` answers are not taken over: a golden is what the reference said, right or wrong.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

from record import REPOSITORY, REVISION, RecordingError, open_output, refuse_overwriting, sha256_file

SOURCE = {"repository": "ThinkFlowLab/system1-omni",
          "commit": "09ac2515904fed973de726de8cd820aa1a589fc9"}
# Published with the corpus, in docs/benchmarks/jemm-reference-20261011/README.md at that commit, as is
# the origin below; of reference.json no hash is published. BF16 is what the reference's server loads.
CORPUS_SHA256 = "82c05de9cb21b7763864dde6e80cc6bed588219d4d53da2d8157c0ec27a3663c"
ORIGIN = {
    "dtype": "bfloat16",
    "reference": {"repository": REPOSITORY, "revision": REVISION},
    "versions": {"torch": "2.12.1+cu130", "transformers": "5.17.0", "fla": "0.5.2", "triton": "3.7.1"},
    "checkpoint_revisions": {"base": "Qwen/Qwen3.8-27B@1d4bf0f2ff6012fd82039f2fa52739d0dd7c60c0",
                             "adapter": "MaestroYan/JEMM@76e3c209e8441fa658221c7ba2725bad2f811176"},
    "delta_rule": "fla",
}


def read_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RecordingError(f"{where} is not JSON: {error}") from error


def read_requests(path: Path) -> dict[str, dict[str, Any]]:
    """The requests of corpus.jsonl by id, in order."""
    requests: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        entry = read_json(line, where)
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise RecordingError(f"{where} has no id")
        request = entry.get("request")
        if not isinstance(request, dict) or not isinstance(request.get("questions"), dict):
            raise RecordingError(f"{where} has no request with questions")
        if entry["id"] in requests:
            raise RecordingError(f"{where}: id {entry['id']!r} occurs twice")
        requests[entry["id"]] = request
    if not requests:
        raise RecordingError(f"{path} has no cases")
    return requests


def read_responses(path: Path) -> dict[str, Any]:
    """The responses of reference.json by id, in order."""
    entries = read_json(path.read_text(encoding="utf-8"), str(path))
    if not isinstance(entries, list):
        raise RecordingError(f"{path} is not a list")
    responses: dict[str, Any] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise RecordingError(f"{path}: an entry has no id")
        if entry["id"] in responses:
            raise RecordingError(f"{path}: id {entry['id']!r} occurs twice")
        responses[entry["id"]] = entry.get("response")
    return responses


def checked_answers(response: Any, request: dict[str, Any], case_id: str) -> dict[str, Any]:
    """The answers: one for each question, in order, with finite probabilities."""
    answers = response.get("answers") if isinstance(response, dict) else None
    if not isinstance(answers, dict) or list(answers) != list(request["questions"]):
        raise RecordingError(f"case {case_id}: the answers are not those to its questions")
    for question_id, answer in answers.items():
        probabilities = answer.get("probabilities") if isinstance(answer, dict) else None
        if not isinstance(probabilities, dict) or len(probabilities) < 2 or not all(
                isinstance(p, float | int) and math.isfinite(p) for p in probabilities.values()):
            raise RecordingError(f"case {case_id}: question {question_id!r} has no probabilities")
    return answers


def golden_case(case_id: str, request: dict[str, Any], response: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    answers = checked_answers(response, request, case_id)
    if "model" in response:
        kept["model"] = response["model"]
    kept["answers"] = answers
    usage = {key: value for key, value in response.get("usage", {}).items() if key != "latency_ms"}
    if usage:
        kept["usage"] = usage
    return {"id": case_id, "raw": json.dumps(request, ensure_ascii=False), "response": kept, "status": "ok"}


def import_golden(corpus: Path, reference: Path, out: Path, any_input: bool, force: bool) -> int:
    """Writes the golden; gives the number of cases."""
    refuse_overwriting(out, force)
    hashes = {"corpus.jsonl": sha256_file(corpus), "reference.json": sha256_file(reference)}
    pinned = hashes["corpus.jsonl"] == CORPUS_SHA256
    if not pinned and not any_input:
        raise RecordingError(f"{corpus} is not the corpus of {SOURCE['repository']} at "
                             f"{SOURCE['commit']}; --any-input takes it and says so")
    requests, responses = read_requests(corpus), read_responses(reference)
    if list(requests) != list(responses):
        raise RecordingError(f"{corpus} and {reference} do not hold the same cases in the same order")
    cases = [golden_case(case_id, requests[case_id], responses[case_id]) for case_id in requests]
    manifest = {"format": "jemm-golden/1", "mode": "answers", **(ORIGIN if pinned else {}),
                "source": {**(SOURCE if pinned else {"repository": "other"}), "files_sha256": hashes},
                "recording": {"program": "golden/import_system1_omni.py"},
                "cases": len(cases), "ok": len(cases), "errors": 0,
                "questions": sum(len(case["response"]["answers"]) for case in cases)}
    with open_output(out) as output:
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        output.partial("cases.jsonl").write_text(lines, encoding="ascii")
        output.partial("manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return len(cases)


# ---------------------------------------------------------------- self check

def self_check() -> None:
    """Imports two made-up cases, then what must be refused."""
    noul = {"type": "noul", "noul": 0.75, "probabilities": {"yes": 0.75, "no": 0.25}, "confidence": 0.75}
    questions = {"q": {"type": "noul", "instructions": "Is it café?"}}
    corpus = [{"id": name, "modality": "text", "expected": {"q": True},
               "request": {"state": {"n": n}, "questions": questions}} for n, name in enumerate("ab")]
    usage = {"input_tokens": 60, "output_tokens": 0, "latency_ms": 1.5}
    reference = [{"id": name, "response": {"model": "JEMM", "answers": {"q": noul}, "usage": usage}}
                 for name in "ab"]
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "corpus.jsonl", Path(folder) / "reference.json"

        def attempt(lines: list[Any], responses: list[Any], any_input: bool = True) -> Path:
            out = Path(tempfile.mkdtemp(dir=folder)) / "golden"
            files[0].write_text("".join(json.dumps(line) + "\n" for line in lines))
            files[1].write_text(json.dumps(responses))
            import_golden(*files, out, any_input, force=False)
            return out

        out = attempt(corpus, reference)
        cases = [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]
        manifest = json.loads((out / "manifest.json").read_text())
        expect([case["id"] for case in cases] == ["a", "b"], "ids")
        expect(all(list(case) == ["id", "raw", "response", "status"] for case in cases), "no other stage")
        expect([json.loads(case["raw"]) for case in cases] == [line["request"] for line in corpus], "requests")
        expect(cases[1]["response"] == {"model": "JEMM", "answers": {"q": noul},
                                        "usage": {"input_tokens": 60, "output_tokens": 0}}, "response")
        expect((manifest["mode"], manifest["cases"], manifest["questions"]) == ("answers", 2, 2), "counts")
        expect("dtype" not in manifest and "checkpoint_sha256" not in manifest, "no claims of other files")
        expect(sorted(path.name for path in out.iterdir()) == ["cases.jsonl", "manifest.json"], "files")

        def answered(answers: Any) -> list[Any]:
            return [reference[0], {"id": "b", "response": {"answers": answers}}]

        nan = {**noul, "probabilities": {"yes": math.nan, "no": 0.25}}
        for name, lines, responses, any_input in (
                ("not the published corpus", corpus, reference, False),
                ("a case without an answer", corpus, reference[:1], True),
                ("another order", corpus, reference[::-1], True),
                ("an id that occurs twice", corpus + corpus[:1], reference, True),
                ("no answer to a question", corpus, answered({}), True),
                ("an answer without probabilities", corpus, answered({"q": {"type": "noul"}}), True),
                ("a probability that is no number", corpus, answered({"q": nan}), True),
                ("no cases", [], [], True)):
            taken = False
            with contextlib.suppress(RecordingError):
                attempt(lines, responses, any_input)
                taken = True
            expect(not taken, f"took {name}")


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise RecordingError(f"self check: {what}")


# ---------------------------------------------------------------- command line

def main() -> int:
    parser = argparse.ArgumentParser(
        description="Turn the parity corpus of system1-omni into a golden of answers and usage.")
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="corpus.jsonl")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="reference.json")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--any-input", action="store_true", help="take another corpus than the pinned one")
    parser.add_argument("--force", action="store_true", help="overwrite the files of a golden in --out")
    parser.add_argument("--self-check", action="store_true", help="try the program on made-up cases")
    arguments = parser.parse_args()
    try:
        if arguments.self_check:
            self_check()
            print("self check passed")
            return 0
        if not (arguments.corpus and arguments.reference and arguments.out):
            parser.error("needs --corpus, --reference and --out, or --self-check")
        n_cases = import_golden(arguments.corpus, arguments.reference, arguments.out,
                                arguments.any_input, arguments.force)
    except (RecordingError, OSError, UnicodeError) as error:
        print(f"import_system1_omni.py: error: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.out}: {n_cases} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
