#!/bin/sh
# What docs/parity-h200.md records, on a machine with a GPU:
#   prove.sh BIN GOLDENS [STEP...]
# BIN: a build's bin folder. GOLDENS: a folder with tiny-a, qwen-27b, 27b-* and *-bf16-h200 beside the
# goldens of this repository. Steps, all without any: programs fp32 bf16 full-bf16 full-fp32 cross reuse
# memory files memcheck racecheck initcheck. Needs compute-sanitizer for the last three, and PyTorch for `memory`,
# which takes most of the device's memory for a moment. Logs stay in $OUT (a new folder by default).
set -eu
bin=$(cd "$1" && pwd)
goldens=$(cd "$2" && pwd)
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${OUT:-$(mktemp -d)}
jemm=$bin/jemm
tiny="$goldens/tiny-a/base+$goldens/tiny-a/adapter"
full="synthetic:$goldens/qwen-27b/base+$goldens/qwen-27b/adapter"
no_stages=accept,prompt,tokens,image,positions,logits,probabilities,decision,usage
failed=0

check() { # check NAME COMMAND...: runs it, keeps its output, says how it ended
  name=$1
  shift
  if "$@" >"$out/$name.txt" 2>&1; then status=passed; else status="FAILED ($?)"; failed=1; fi
  echo "$name: $status"
}
judge() { # judge NAME GOLDEN OPTIONS...
  name=$1 golden=$2
  shift 2
  check "$name" "$jemm" parity --progress none --golden "$golden" "$@"
  grep -E '^(PASS|WITHIN-NOISE|DRIFT|FAIL|ERROR)|probability\.|flip_margin|layer.(31|63) |final_norm rms' \
    "$out/$name.txt" || true
}

programs() {
  for program in kernels engine vision lost_device; do check "$program" "$bin/test_gpu_$program"; done
}
fp32() {
  judge text-fp32 "$goldens/text-fp32-cpu" --model "$tiny" --device cuda --precision fp32
  judge image-fp32 "$goldens/image-fp32-cpu" --model "$tiny" --device cuda --precision fp32
  judge demo-fp32 "$goldens/demo-fp32-cpu" --preset fp32-trained --device cuda --precision fp32
}
bf16() {
  for kind in text image; do
    judge "$kind-bf16" "$goldens/$kind-fp32-cpu" --noise "$goldens/$kind-bf16-h200" --model "$tiny" \
      --device cuda --precision bf16 --stages "$no_stages" --gates "$root/golden/gates/tiny-bf16.json"
  done
}
full_bf16() {
  judge full-bf16 "$goldens/27b-fp32-h200" --noise "$goldens/27b-bf16-fla-h200" --model "$full" \
    --device cuda --precision bf16 --gates "$root/golden/gates/27b-bf16.json"
}
full_fp32() {
  judge full-fp32 "$goldens/27b-fp32-h200" --model "$full" --device cuda --precision fp32
}
cross() { # one engine by the other, both ways
  for kind in text image; do
    for device in cpu cuda; do
      other=cuda
      if [ $device = cuda ]; then other=cpu; fi
      check "record-$kind-$device" "$jemm" record --progress none --force --model "$tiny" --precision fp32 \
        --device $device --golden "$goldens/$kind-fp32-cpu" --out "$out/$kind-$device"
      judge "$kind-$device-$other" "$out/$kind-$device" --model "$tiny" --device $other --precision fp32
    done
  done
}
# Every mode of reuse, default and deterministic, by the gates of BF16 without reuse.
reuse() {
  for kind in text image full; do
    case $kind in
      full) golden=$goldens/27b-fp32-h200 noise=$goldens/27b-bf16-fla-h200 gates=27b-bf16 model=$full ;;
      *) golden=$goldens/$kind-fp32-cpu noise=$goldens/$kind-bf16-h200 gates=tiny-bf16 model=$tiny ;;
    esac
    python3 -c "
import json
for case in map(json.loads, open('$golden/cases.jsonl')):
    print(json.dumps({'id': case['id'], 'raw': case['raw']}))" >"$out/$kind.jsonl"
    for exact in '' --deterministic; do
      for mode in off request file; do
        name=reuse-$kind-$mode$exact
        "$jemm" decide --progress none --device cuda --precision bf16 --model "$model" $exact \
          --prefix-reuse $mode "$out/$kind.jsonl" >"$out/$name.jsonl" 2>"$out/$name.log" || true
        judge "$name" "$golden" --noise "$noise" --answers "$out/$name.jsonl" \
          --gates "$root/golden/gates/$gates.json"
      done
      if [ -n "$exact" ]; then
        for mode in request file; do
          check "bits-$kind-$mode" sh -ec "'$jemm' diff '$out/reuse-$kind-off$exact.jsonl' \
            '$out/reuse-$kind-$mode$exact.jsonl' >'$out/moved.txt'; grep 'moved: 0 of' '$out/moved.txt'"
        done
      fi
    done
  done
}
# A request that is too large for the memory fails alone: all but what the weights and a short pass
# take is held by another process meanwhile.
memory() {
  python3 -c "
import time, torch
free, _ = torch.cuda.mem_get_info()
held = torch.empty(int(free - 50.4 * 2**30), dtype=torch.uint8, device='cuda')
open('$out/held', 'w').close()
time.sleep(60)" &
  holder=$!
  while [ ! -e "$out/held" ]; do sleep 1; done
  python3 -c "
import json
question = {'q': {'type': 'noul', 'instructions': 'Is it safe?', 'criteria': {'true': 'yes', 'false': 'no'}}}
for i in range(7):
    state = 'the invoice was paid and then again refunded by the clerk. ' * (650 if i == 3 else 1)
    print(json.dumps({'id': str(i), 'request': {'state': state, 'questions': question}}))" >"$out/mixed.jsonl"
  "$jemm" decide --progress none --device cuda --model "$full" "$out/mixed.jsonl" \
    >"$out/memory.jsonl" 2>"$out/memory.txt" || true
  kill $holder
  echo "memory: $(grep -c '"answers"' "$out/memory.jsonl") of 6 short requests answered," \
    "$(grep -c OutOfMemoryError "$out/memory.jsonl") of 1 long one refused"
}
# Weights from files: four layers of the full sizes, exported from the formula, loaded both ways.
files() {
  rm -rf "$out/four" "$out/hf"
  cp -r "$goldens/qwen-27b" "$out/four"
  python3 -c "
import json
path = '$out/four/base/config.json'
config = json.load(open(path))
text = config['text_config']
text['num_hidden_layers'] = 4
text['layer_types'] = text['layer_types'][:4]
json.dump(config, open(path, 'w'))"
  four="$out/four/base+$out/four/adapter"
  check export "$jemm" export --progress none --model "synthetic:$four" --hugging-face --out "$out/hf"
  for model in "synthetic:$four" "$out/hf/base+$out/hf/adapter"; do
    date +%s.%N
    "$jemm" decide --progress none --device cuda --model "$model" "$root/fixtures/demo/requests.jsonl" |
      sed 's/"jemm":.*//; s/"latency_ms":[0-9.]*//' >"$out/files.$(echo "$model" | cksum | cut -d' ' -f1)"
    date +%s.%N
  done
  check files cmp "$out"/files.*
}
sanitize() { # two text requests and one with an image of the tiny checkpoint under a tool of compute-sanitizer
  python3 -c "
import json
for kind, n in (('text', 2), ('image', 1)):
    cases = map(json.loads, open('$goldens/' + kind + '-fp32-cpu/cases.jsonl'))
    usable = [case for case in cases if case['status'] == 'ok' and 'raw' in case]
    usable.sort(key=lambda case: sum(len(q['token_ids']) for q in case['questions']))
    for case in usable[:: len(usable) // n][:n]:
        print(json.dumps({'id': case['id'], 'raw': case['raw']}))" >"$out/few.jsonl"
  for precision in bf16 fp32; do
    check "$1-$precision" compute-sanitizer --tool "$1" --error-exitcode 9 --show-backtrace no \
      --print-limit 5000 "$jemm" decide --progress none --device cuda --precision $precision \
      --model "$tiny" "$out/few.jsonl"
    grep SUMMARY "$out/$1-$precision.txt" || true
    sed -n 's/^=* *at \(void \)*\([^(]*\)(.*/  \2/p' "$out/$1-$precision.txt" | sort | uniq -c
  done
}

if [ $# = 0 ]; then
  set -- programs fp32 bf16 full-bf16 full-fp32 cross reuse memory files memcheck racecheck initcheck
fi
for step in "$@"; do
  case $step in
    memcheck | racecheck | initcheck) sanitize "$step" ;;
    programs | fp32 | bf16 | cross | reuse | memory | files) "$step" ;;
    full-bf16) full_bf16 ;;
    full-fp32) full_fp32 ;;
    *)
      echo "no step $step" >&2
      exit 2
      ;;
  esac
done
echo "logs in $out"
exit $failed
