"""Record what the pinned JEMM reference says to request lines: a golden directory, jemm-golden/1.

    record.py --reference DIR --checkpoint DIR --cases CASES.jsonl --out DIR [options]

--reference holds the package `jemm` of the public repository ypcypc/JEMM at the pinned revision
(four files: __init__, contract, model, systemone). --checkpoint holds `base` and `adapter` in Hugging
Face form. A line of CASES.jsonl is {"id", "raw"} (the body as text), {"id", "body_base64"} (as bytes)
or {"id", "request"} (as JSON); other keys are ignored, so a golden's cases.jsonl can be recorded anew.

Every body passes the checks of the reference's server, in its order: size, JSON, object, images,
questions. golden/README.md has the format and the commands of the goldens beside it. Needs torch,
torchvision, transformers, peft, pillow and safetensors; their versions go into the manifest.
"""
from __future__ import annotations

import argparse
import base64
import binascii
import contextlib
import dataclasses
import hashlib
import importlib.util
import json
import multiprocessing
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = "ypcypc/JEMM"
REVISION = "6822fe0fd53c5e6670af6ba99fb2c857a661e532"
REFERENCE_SHA256 = {
    "__init__.py": "0e83f00b91ed5dc18dab9c5e839d661164bbb3b94b0488ebca63fb73cca3d093",
    "contract.py": "74e8a43c2ffef90dac74f555c6c0d40e5e22302352e94308a4b221122ca6979f",
    "model.py": "6c85487ab7a26741a7c4c70ab29f41ed23968657136fe4d840a1be2c3cf3c937",
    "systemone.py": "18195fb0da87a9ae168aa1098ca63e3edc3402a809a417c82176caabdc11227a",
}
MAX_BODY_BYTES = 16_000_000  # of the reference's server
TORCH_SEED = 0  # nothing draws from it; set so that nothing ever can
OUTPUTS = ("manifest.json", "cases.jsonl", "stages.safetensors")
CHAT = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False,
        "preserve_thinking": False}


class RecordingError(Exception):
    """Ends the recording, with a message for the user."""


@dataclasses.dataclass(frozen=True)
class Options:
    reference: Path
    checkpoint: Path
    cases: Path
    out: Path
    mode: str
    dtype: str
    device: str
    stages: bool
    layers: frozenset[int] | None  # None: all
    vision: bool
    synthetic: int | None
    fla: bool
    threads: int | None
    limit: int | None
    any_reference: bool
    force: bool


@dataclasses.dataclass(frozen=True)
class Case:
    id: str
    body: bytes
    stored: dict[str, str]  # how the golden keeps the body: raw or body_base64


# ---------------------------------------------------------------- input

def parse_case(line: str, where: str) -> Case:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise RecordingError(f"{where} is not JSON: {error}") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or not entry["id"]:
        raise RecordingError(f'{where} has no "id"')
    forms = [key for key in ("raw", "body_base64", "request") if key in entry]
    if len(forms) != 1:
        raise RecordingError(f"{where} needs one of raw, body_base64 and request; has {forms}")
    value = entry[forms[0]]
    if forms[0] == "request":
        value = json.dumps(value, ensure_ascii=False)
    elif not isinstance(value, str):
        raise RecordingError(f"{where}: {forms[0]} is not a string")
    if forms[0] != "body_base64":
        return Case(entry["id"], value.encode("utf-8", "surrogatepass"), {"raw": value})
    try:
        body = base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise RecordingError(f"{where}: body_base64: {error}") from error
    return Case(entry["id"], body, {"body_base64": value})


def read_cases(path: Path, limit: int | None) -> Iterator[Case]:
    """The cases of a file, one at a time; at most `limit`."""
    seen: set[str] = set()
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if limit is not None and len(seen) >= limit:
                return
            if not line.strip():
                continue
            case = parse_case(line, f"{path}: line {number}")
            if case.id in seen:
                raise RecordingError(f"{path}: line {number}: id {case.id!r} occurs twice")
            seen.add(case.id)
            yield case


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_reference(directory: Path, any_reference: bool) -> dict[str, Any]:
    """What the manifest says of the reference; refuses other files than the pinned ones."""
    package = directory / "jemm"
    missing = [name for name in REFERENCE_SHA256 if not (package / name).is_file()]
    if missing:
        raise RecordingError(f"{package} lacks {', '.join(missing)}; --reference takes the folder "
                             f"that holds the package jemm of {REPOSITORY} at {REVISION}")
    hashes = {name: sha256_file(package / name) for name in REFERENCE_SHA256}
    other = [name for name in hashes if hashes[name] != REFERENCE_SHA256[name]]
    if other and not any_reference:
        raise RecordingError(f"{package}: {', '.join(other)} not as in {REPOSITORY} at {REVISION}; "
                             "--any-reference records from other files and says so")
    return {"repository": REPOSITORY, "revision": "other" if other else REVISION,
            "files_sha256": hashes}


def checkpoint_hashes(checkpoint: Path) -> dict[str, str]:
    """SHA-256 of every file of base and adapter by its name; "base/x" and "adapter/x" when both have x."""
    files = {folder: sorted(path for path in (checkpoint / folder).iterdir() if path.is_file())
             for folder in ("base", "adapter")}
    shared = {path.name for path in files["base"]} & {path.name for path in files["adapter"]}
    return {f"{folder}/{path.name}" if path.name in shared else path.name: sha256_file(path)
            for folder in files for path in files[folder]}


# ---------------------------------------------------------------- the reference

class Reference:
    """The reference's package with its libraries, and in mode full its model."""

    def __init__(self, options: Options):
        sys.path.insert(0, str(options.reference.resolve()))
        if not options.fla:
            sys.modules["fla"] = None  # type: ignore[assignment]  # as if not installed
        try:
            import numpy
            import peft
            import PIL
            import tokenizers
            import torch
            import torchvision
            import transformers
            from jemm import contract, model, systemone
        except ImportError as error:
            raise RecordingError(f"the reference's libraries do not load: {error}") from error
        self.contract, self.jemm_model, self.systemone, self.torch = contract, model, systemone, torch
        libraries = {"torch": torch, "torchvision": torchvision, "transformers": transformers,
                     "peft": peft, "tokenizers": tokenizers, "pillow": PIL, "numpy": numpy}
        self.versions = {"python": platform.python_version(),
                         **{name: library.__version__ for name, library in libraries.items()}}
        torch.manual_seed(TORCH_SEED)
        torch.backends.cudnn.allow_tf32 = False
        if options.threads:
            torch.set_num_threads(options.threads)
        # Of this machine, not of the request: they end the recording instead of becoming an answer.
        self.machine_errors = (MemoryError, torch.OutOfMemoryError,
                               getattr(torch, "AcceleratorError", torch.OutOfMemoryError))
        self.options = options
        self.base, self.adapter = options.checkpoint / "base", options.checkpoint / "adapter"
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.base)
        self.processor = transformers.AutoProcessor.from_pretrained(self.base)
        self.decision_model = self.load_model() if options.mode == "full" else None
        self.captured: dict[str, Any] = {}
        if self.decision_model is None:
            self.root = self.bare_model("meta", torch.float32).model
        else:
            self.root = self.decision_model.model.base_model.model.model
            if options.stages:
                self.watch()

    def bare_model(self, device: str, dtype: Any) -> Any:
        """The base without its weights."""
        from transformers import AutoConfig, Qwen3_5ForConditionalGeneration
        config = AutoConfig.from_pretrained(self.base)
        config._attn_implementation = "sdpa"
        default = self.torch.get_default_dtype()
        self.torch.set_default_dtype(dtype)
        try:
            with self.torch.device(device):
                return Qwen3_5ForConditionalGeneration(config)
        finally:
            self.torch.set_default_dtype(default)

    def load_model(self) -> Any:
        """The reference's DecisionModel, in this dtype and on this device."""
        from peft import LoraConfig, PeftModel, get_peft_model
        from transformers import Qwen3_5ForConditionalGeneration
        options, dtype = self.options, getattr(self.torch, self.options.dtype)
        if options.synthetic is None:
            model = Qwen3_5ForConditionalGeneration.from_pretrained(
                self.base, dtype=dtype, device_map={"": options.device}, attn_implementation="sdpa")
            model = PeftModel.from_pretrained(model, self.adapter, is_trainable=False)
        else:
            sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))
            import synthetic
            model = self.bare_model(options.device, dtype).to(dtype)
            model = get_peft_model(model, LoraConfig.from_pretrained(self.adapter))
            synthetic.fill(model, options.synthetic)
        return self.jemm_model.DecisionModel(
            model, self.tokenizer, name="JEMM", processor=self.processor,
            **self.jemm_model._decision_config(str(self.adapter)))

    def watch(self) -> None:
        """Hooks that leave the stages of the latest forward in `captured`."""
        def last_row(name: str) -> Any:
            def hook(_module: Any, _args: Any, output: Any) -> None:
                rows = output[0] if isinstance(output, tuple) else output
                self.captured[name] = rows[0, -1]
            return hook

        layers = self.root.language_model.layers
        chosen = range(len(layers)) if self.options.layers is None else self.options.layers
        absent = [i for i in chosen if i >= len(layers)]
        if absent:
            raise RecordingError(f"--layers: {absent[0]} of a model with {len(layers)} layers")
        for i in chosen:
            layers[i].register_forward_hook(last_row(f"layer.{i:02d}"))
        self.root.language_model.norm.register_forward_hook(last_row("final_norm"))
        if self.options.vision:
            self.root.visual.merger.register_forward_hook(
                lambda _module, _args, output: self.captured.__setitem__("vision", output))

    def delta_rule(self) -> str:
        return "torch" if sys.modules.get("fla") is None else "fla"

    def device_name(self) -> str:
        if self.options.mode != "full" or not self.options.device.startswith("cuda"):
            return "cpu"
        return self.torch.cuda.get_device_name(self.options.device)


def load_reference(options: Options) -> Reference:
    try:
        return Reference(options)
    except RecordingError:
        raise
    except Exception as error:  # transformers and peft raise every kind
        raise RecordingError(f"{options.checkpoint} does not load: "
                             f"{type(error).__name__}: {error}") from error


# ---------------------------------------------------------------- one case

class CaseRecorder:
    """Asks the reference one body at a time."""

    def __init__(self, reference: Reference):
        self.reference = reference

    def record(self, case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
        """The line of cases.jsonl and the stages (name -> float32 tensor) of one case."""
        head = {"id": case.id, **case.stored}
        stages: dict[str, Any] = {}
        try:
            return {**head, **self.answer(case, stages), "status": "ok"}, stages
        except self.reference.machine_errors as error:
            raise RecordingError(f"case {case.id}: {type(error).__name__}: {error}") from error
        except Exception as error:  # whatever it is, the server answers with it
            http = 422 if isinstance(error, (ValueError, KeyError, TypeError)) else 500
            return {**head, "status": "error", "http": http,
                    "error": {"error": type(error).__name__, "detail": str(error)[:200]}}, {}

    def answer(self, case: Case, stages: dict[str, Any]) -> dict[str, Any]:
        body = parse_body(case.body)
        systemone = self.reference.systemone
        images = systemone.decode_images(body.get("images"))
        records = [{"width": image.width, "height": image.height,
                    "rgb_sha256": hashlib.sha256(image.tobytes()).hexdigest()} for image in images]
        questions: list[dict[str, Any]] = []
        answers: dict[str, Any] = {}
        n_tokens = 0
        requests = systemone.single_requests(body.get("state", ""), body.get("questions"))
        for question_id, kind, request in requests:
            question = {"id": question_id, "type": kind,
                        "candidates": [candidate["id"] for candidate in request["candidates"]],
                        **self.encode(request, images, records)}
            if self.reference.decision_model is not None:
                question["logits"], n = self.forward(request, images)
                answers[question_id] = self.decide(kind, request, question["logits"], bool(images))
                n_tokens += n
                for stage, tensor in self.reference.captured.items():
                    stages[f"{case.id}/{len(questions)}/{stage}"] = (
                        tensor.detach().float().cpu().contiguous().clone())
            questions.append(question)
        result: dict[str, Any] = {"images": records} if images else {}
        result["questions"] = questions
        if self.reference.decision_model is not None:
            result["response"] = {"model": self.reference.decision_model.name, "answers": answers,
                                  "usage": {"input_tokens": n_tokens, "output_tokens": 0}}
        return result

    def encode(self, request: Any, images: list[Any], records: list[dict[str, Any]]) -> dict[str, Any]:
        """Prompt and token ids; of images the positions too, and grids and pixels into `records`."""
        reference, contract = self.reference, self.reference.contract
        if not images:
            token_ids = contract.encode_single(reference.tokenizer, request)
            messages = contract.single_messages(request)
            prompt = reference.tokenizer.apply_chat_template(messages, **CHAT)
            return {"prompt": prompt, "token_ids": token_ids}
        encoded = contract.encode_mm(reference.processor, request, images)
        messages = contract.mm_messages(request, len(images))
        prompt = reference.processor.apply_chat_template(messages, **CHAT)
        at = 0
        for record, grid in zip(records, encoded["image_grid_thw"].tolist()):
            n = grid[0] * grid[1] * grid[2]
            record["grid_thw"] = grid
            record["pixel_values_sha256"] = sha256_tensor(encoded["pixel_values"][at:at + n], "<f4")
            at += n
        positions, _ = reference.root.get_rope_index(
            encoded["input_ids"], encoded["mm_token_type_ids"],
            image_grid_thw=encoded["image_grid_thw"])
        return {"prompt": prompt, "token_ids": encoded["input_ids"][0].tolist(),
                "position_ids_sha256": sha256_tensor(positions[:, 0], "<i8")}

    def forward(self, request: Any, images: list[Any]) -> tuple[list[float], int]:
        self.reference.captured.clear()
        return self.reference.decision_model.scores(request, images)

    def decide(self, kind: str, request: Any, logits: list[float], has_images: bool) -> dict[str, Any]:
        model = self.reference.decision_model
        temperature = model.mm_temperature if has_images else model.temperature
        values = self.reference.jemm_model.softmax(logits, temperature)
        probabilities = {candidate["id"]: float(value)
                         for candidate, value in zip(request["candidates"], values)}
        winner = max(probabilities, key=probabilities.__getitem__)
        return self.reference.systemone.answer(kind, probabilities, winner)


def parse_body(body: bytes) -> dict[str, Any]:
    """The first checks of the reference's server, with its words."""
    if not 0 < len(body) <= MAX_BODY_BYTES:
        raise ValueError("invalid request size")
    parsed = json.loads(body)
    if not isinstance(parsed, dict):
        raise ValueError("request body must be an object")
    return parsed


def sha256_tensor(tensor: Any, dtype: str) -> str:
    return hashlib.sha256(tensor.contiguous().numpy().astype(dtype).tobytes()).hexdigest()


# ---------------------------------------------------------------- output

class Output:
    """The files of a golden, written beside their places as NAME.partial and renamed at the end.

    The manifest goes first and comes back last: a folder without one is no golden.
    """

    def __init__(self, directory: Path):
        self.directory = directory

    def partial(self, name: str) -> Path:
        return self.directory / (name + ".partial")

    def publish(self) -> None:
        (self.directory / "manifest.json").unlink(missing_ok=True)
        for name in reversed(OUTPUTS):
            if self.partial(name).exists():
                os.replace(self.partial(name), self.directory / name)
            else:
                (self.directory / name).unlink(missing_ok=True)


@contextlib.contextmanager
def open_output(directory: Path) -> Iterator[Output]:
    directory.mkdir(parents=True, exist_ok=True)
    output = Output(directory)
    try:
        yield output
        output.publish()
    finally:
        for name in OUTPUTS:
            output.partial(name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            directory.rmdir()  # only if nothing came of it


def refuse_overwriting(directory: Path, force: bool) -> None:
    there = [name for name in OUTPUTS if (directory / name).exists()]
    if there and not force:
        raise RecordingError(f"{directory} has a {there[0]} already; --force overwrites it")


class Progress:
    """A line on stderr every few seconds, and one at the end."""
    INTERVAL_S = 10.0

    def __init__(self, name: str, n_cases: int):
        self.name, self.n_cases = name, n_cases
        self.counts = {"ok": 0, "error": 0}
        self.began = self.reported = time.monotonic()

    def step(self, record: dict[str, Any]) -> None:
        self.counts[record["status"]] += 1
        if record.get("http") == 500:
            say(f"{self.name}: case {record['id']}: 500 {record['error']['error']}: "
                f"{record['error']['detail'][:80]}")
        if time.monotonic() - self.reported >= self.INTERVAL_S:
            self.report()

    def report(self) -> None:
        self.reported = time.monotonic()
        done = self.counts["ok"] + self.counts["error"]
        say(f"{self.name}: {done} of {self.n_cases} cases, {self.counts['ok']} ok, "
            f"{self.counts['error']} errors, {self.reported - self.began:.0f} s")


def say(message: str) -> None:
    print("record.py:", message, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- a recording

def manifest_of(options: Options, reference: Reference, origin: dict[str, Any],
                counts: dict[str, int]) -> dict[str, Any]:
    full = options.mode == "full"
    kept: dict[str, Any] = {"stages": full and options.stages}
    if kept["stages"]:
        kept["layers"] = "all" if options.layers is None else sorted(options.layers)
        kept["vision"] = options.vision
    result = {
        "format": "jemm-golden/1", "mode": options.mode, "dtype": options.dtype,
        "device": options.device, "device_name": reference.device_name(),
        "reference": origin, "versions": reference.versions,
        "checkpoint_sha256": checkpoint_hashes(options.checkpoint),
        "recording": {"program": "golden/record.py", "cases": options.cases.name,
                      "cases_sha256": sha256_file(options.cases), "limit": options.limit, **kept,
                      "threads": reference.torch.get_num_threads(), "torch_seed": TORCH_SEED,
                      "machine": platform.machine(), "cuda": reference.torch.version.cuda},
    }
    if full and options.synthetic is not None:
        result["synthetic_seed"] = options.synthetic
    if full:
        result["delta_rule"] = reference.delta_rule()
    return {**result, **counts}


def record(options: Options) -> None:
    """Writes one golden directory."""
    warnings.filterwarnings("ignore")
    refuse_overwriting(options.out, options.force)
    origin = check_reference(options.reference, options.any_reference)
    for folder in (options.checkpoint / "base", options.checkpoint / "adapter"):
        if not folder.is_dir():
            raise RecordingError(f"{folder} is not a folder; --checkpoint holds base and adapter")
    n_cases = sum(1 for _ in read_cases(options.cases, options.limit))
    if n_cases == 0:
        raise RecordingError(f"{options.cases} has no cases")
    if sys.version_info[:2] != (3, 12):
        say(f"this is CPython {platform.python_version()}: the contract is that of 3.12 "
            "(repr of new characters, nesting, the last digit of expected_value)")
    say(f"{options.out}: loading {options.checkpoint} ({options.mode}, {options.dtype}, {options.device})")
    reference = load_reference(options)
    recorder, progress = CaseRecorder(reference), Progress(str(options.out), n_cases)
    tensors: dict[str, Any] = {}
    n_questions = 0
    with open_output(options.out) as output:
        with output.partial("cases.jsonl").open("w", encoding="ascii") as lines:
            for case in read_cases(options.cases, options.limit):
                line, stages = recorder.record(case)
                lines.write(json.dumps(line) + "\n")
                tensors.update(stages)
                n_questions += len(line.get("questions", []))
                progress.step(line)
        if tensors:
            from safetensors.torch import save_file
            stages_file = output.partial("stages.safetensors")
            save_file(tensors, str(stages_file))  # which makes it readable to its owner alone
            stages_file.chmod(output.partial("cases.jsonl").stat().st_mode)
        counts = {"cases": n_cases, "ok": progress.counts["ok"],
                  "errors": progress.counts["error"], "questions": n_questions}
        manifest = manifest_of(options, reference, origin, counts)
        output.partial("manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    progress.report()


def record_guarded(options: Options) -> int:
    """Exit status of one recording; says what went wrong."""
    try:
        record(options)
    except RecordingError as error:
        say(f"error: {error}")
        return 1
    except (OSError, UnicodeError) as error:
        say(f"error: {error}")
        return 1
    return 0


def record_elsewhere(options: Options) -> int:
    """The same in a fresh process: whether fla is there is settled once for a process, and it
    leaves no weights behind on a device."""
    process = multiprocessing.get_context("spawn").Process(
        target=exit_with_recording, args=(options,))
    process.start()
    process.join()
    return 0 if process.exitcode == 0 else 1


def exit_with_recording(options: Options) -> None:
    sys.exit(record_guarded(options))


# ---------------------------------------------------------------- command line

def parse_layers(text: str) -> frozenset[int] | None:
    if text == "all":
        return None
    if text == "none":
        return frozenset()
    if not all(part.isascii() and part.isdigit() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is neither all, none nor like 7,15")
    return frozenset(int(part) for part in text.split(","))


def positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Record what the pinned JEMM reference says: a golden directory (jemm-golden/1).")
    add = parser.add_argument
    add("--reference", type=Path, required=True, metavar="DIR", help="holds the reference's package jemm")
    add("--checkpoint", type=Path, required=True, metavar="DIR", help="holds base and adapter")
    add("--cases", type=Path, required=True, metavar="FILE", help="request lines")
    add("--out", type=Path, required=True, metavar="DIR")
    add("--mode", choices=("contract", "full"), default="full",
        help="contract: no weights needed; prompts, tokens, images and positions only")
    add("--dtype", choices=("float32", "bfloat16"), default="float32")
    add("--device", default="cpu", help="cpu, cuda:0, ...")
    add("--layers", type=parse_layers, default=None, metavar="all|none|7,15", help="default: all")
    add("--vision", action=argparse.BooleanOptionalAction, default=True, help="keep the merged vision rows")
    add("--stages", action=argparse.BooleanOptionalAction, default=True, help="write stages.safetensors")
    add("--synthetic", type=int, metavar="SEED", help="weights from the formula instead of files")
    add("--no-fla", action="store_true", help="PyTorch's own delta rule even where fla is installed")
    add("--threads", type=positive, metavar="N", help="of PyTorch on the CPU")
    add("--limit", type=positive, metavar="N", help="only the first N cases")
    add("--any-reference", action="store_true", help="take other files than the pinned ones")
    add("--force", action="store_true", help="overwrite the files of a golden in --out")
    noise = parser.add_argument_group("a second recording of the same cases")
    noise.add_argument("--noise", type=Path, metavar="DIR", help="where it goes")
    noise.add_argument("--noise-dtype", choices=("float32", "bfloat16"),
                       help="default: the other one, unless the device or fla differs")
    noise.add_argument("--noise-device", help="default: as --device")
    noise.add_argument("--noise-no-fla", action="store_true", help="without fla, beside --out with it")
    return parser


def main() -> int:
    parser = argument_parser()
    arguments = vars(parser.parse_args())
    noise = {key: arguments.pop(key) for key in list(arguments) if key.startswith("noise")}
    options = Options(fla=not arguments.pop("no_fla"), **arguments)
    if options.synthetic is not None and options.mode == "contract":
        parser.error("--synthetic is of no use in mode contract")
    if noise["noise"] is None:
        if any(noise.values()):
            parser.error("--noise-dtype, --noise-device and --noise-no-fla need --noise")
        return record_guarded(options)
    second = noise_options(options, noise)
    if options.mode == "contract":
        parser.error("--noise needs numbers, so mode full")
    if second.out.resolve() == options.out.resolve():
        parser.error("--noise and --out are the same folder")
    if noise["noise_no_fla"] and importlib.util.find_spec("fla") is None:
        parser.error("--noise-no-fla: fla is not installed, so --out is without it too")
    if (second.dtype, second.device, second.fla) == (options.dtype, options.device, options.fla):
        parser.error("--noise differs in nothing from --out")
    try:
        refuse_overwriting(second.out, second.force)
    except RecordingError as error:
        say(f"error: {error}")
        return 1
    return record_elsewhere(options) or record_elsewhere(second)


def noise_options(options: Options, noise: dict[str, Any]) -> Options:
    other = {"float32": "bfloat16", "bfloat16": "float32"}[options.dtype]
    same_numbers = noise["noise_device"] is None and not noise["noise_no_fla"]
    return dataclasses.replace(
        options, out=noise["noise"],
        dtype=noise["noise_dtype"] or (other if same_numbers else options.dtype),
        device=noise["noise_device"] or options.device,
        fla=options.fla and not noise["noise_no_fla"])


if __name__ == "__main__":
    sys.exit(main())
