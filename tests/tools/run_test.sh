#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit check and frit run: results, files, numbers for machines, and messages when something is wrong.
. "$(dirname "$0")/expect.sh"
data=tests/data/digits
mlp=tools/models/digits-mlp.frit
cnn=tools/models/digits-cnn.frit

expect 0 '^tools/models/digits-mlp.frit: ok, 10 ops, 7 inputs, 2 outputs$' '' "$frit" check $mlp $cnn

# Inputs as they are declared; outputs have dims once the inputs' are known.
printf 'input x : f32[n, 4]\noutput y = relu x\n' >"$scratch/open.frit"
expect 0 '^  input  x +f32\[\?, 4\]$' '' "$frit" check "$scratch/open.frit"
expect 0 '^  output y +f32$' '' "$frit" check "$scratch/open.frit"
expect 0 '^  output y +f32\[7, 4\]$' '' "$frit" check "$scratch/open.frit" --in x=zeros:7,4
expect 0 '^  input  x .* = .*images.npy$' '' "$frit" check $mlp
expect 2 '' '--in is for one file' "$frit" check $mlp $cnn --in x=zeros
printf 'input x : f32[n]\noutput y = reshape x, dims=[3]\n' >"$scratch/three.frit"
expect 1 '' '^Dims that x \[\?\] leaves open are taken as 2; --in x=zeros:DIMS gives others\.$' "$frit" check "$scratch/three.frit"
expect 0 'ok, 1 ops' '' "$frit" check "$scratch/three.frit" --in x=zeros:3

# ---- results
# Expected logits: tests/data/digits; -37.5464 and 27.1247 are their extremes.
expect 0 'logits +f32\[500, 10\]  min -37\.5464  max 27\.1247' '' "$frit" run $mlp
expect 0 'answer +i64\[500\]  min 0  max 9' '' "$frit" run $cnn
expect 0 'median of 3 runs' '' "$frit" run $mlp --repeat 3
expect 0 '*' '' "$frit" run $mlp --json --out logits="$scratch/logits.npy" --repeat 2
expect_json
for key in file device runs ops programs launches explorations plan_hits plan_misses fallbacks_candidate fallbacks_ops fallbacks_decomposed fallbacks_device compiles driver_allocs bytes_moved seconds first_seconds counters outputs \
  name dtype dims count nan infinite min max mean first; do
  grep -q "\"$key\":" "$scratch/out" || complain "no key $key" "run --json"
done
grep -q '"ops": 20,' "$scratch/out" || complain "10 ops in two runs are 20" "run --json"
grep -q '"dims": \[500, 10\]' "$scratch/out" || complain "dims of the logits" "run --json"
# Two runs of one program are one search, and the second one finds its plan.
grep -q '"explorations": 1,' "$scratch/out" || complain "one search" "run --json"
grep -q '"plan_hits": 1,' "$scratch/out" || complain "one known plan" "run --json"
grep -q '"plan_misses": 1,' "$scratch/out" || complain "one unknown plan" "run --json"
cat >"$scratch/compare.frit" <<END
input a : f32[n, k] = "logits.npy"
input b : f32[n, k] = "$PWD/$data/mlp_logits.npy"
d = sub a, b
output worst = max_abs d
END
expect 0 'worst +f32\[\]  min [0-9.e-]*e-0[5-9] ' '' "$frit" run "$scratch/compare.frit"

# ---- archives: all outputs into one, inputs from it by their names, one of them by another name
expect 0 "saved to $scratch/all.npz" '' "$frit" run $mlp --out "$scratch/all.npz"
cat >"$scratch/archive.frit" <<END
input logits : f32[n, k]
input answer : i64[n]
const again = "all.npz:logits"
d = sub logits, again
output worst = max_abs d
output most = max answer
END
expect 0 'worst +f32\[\]  min 0 ' '' "$frit" run "$scratch/archive.frit" --in "$scratch/all.npz"
expect 0 'most +i64\[\]  min 9 ' '' "$frit" run "$scratch/archive.frit" --in logits="$scratch/all.npz" --in answer="$scratch/all.npz:answer"
expect 1 '' 'all.npz:nothing: the archive has no tensor of this name' \
  "$frit" run "$scratch/archive.frit" --in "$scratch/all.npz" --in answer="$scratch/all.npz:nothing"
expect 2 '' 'has no tensor named like an input' "$frit" run $mlp --in "$scratch/all.npz"
sed -i s/all.npz:/none.npz:/ "$scratch/archive.frit"
expect 1 '' 'none.npz: No such file' "$frit" run "$scratch/archive.frit" --in "$scratch/all.npz"

# ---- elements: integers exactly, packed values as numbers, NaN and infinities apart
cat >"$scratch/elements.frit" <<END
output big = full 9007199254740993, dtype=i64, dims=[2]
output most = full 18446744073709551615, dtype=u64, dims=[1]
x = full 0.5, dtype=f32, dims=[3]
minus = full -0.75, dtype=f32, dims=[3]
s = full 0.25, dtype=f32, dims=[]
output small = quantize x, s, dtype=f4e2m1
output nibbles = quantize minus, s, dtype=q4
zero = full 0, dtype=f32, dims=[2]
output low = log zero
output ratio = div zero, zero
END
expect 0 '^big +i64\[2\]  min 9007199254740993  max 9007199254740993  .*\[9007199254740993, 9007199254740993\]$' '' \
  "$frit" run "$scratch/elements.frit"
expect 0 '^most +u64\[1\]  min 18446744073709551615 ' '' "$frit" run "$scratch/elements.frit"
expect 0 '^small +f4e2m1\[3\]  min 2  max 2  mean 2  \[2, 2, 2\]$' '' "$frit" run "$scratch/elements.frit"
expect 0 '^nibbles +q4\[3\]  min -3  max -3  mean -3  \[-3, -3, -3\]$' '' "$frit" run "$scratch/elements.frit"
expect 0 '^low +f32\[2\]  min -inf  max -inf  infinite 2  \[-inf, -inf\]$' '' "$frit" run "$scratch/elements.frit"
expect 0 '^ratio +f32\[2\]  NaN 2  \[nan, nan\]$' '' "$frit" run "$scratch/elements.frit"
expect 0 '*' '' "$frit" run "$scratch/elements.frit" --json
expect_json
for wanted in '"first": [9007199254740993, 9007199254740993]' '"max": 18446744073709551615,' '"first": [-3, -3, -3]' \
  '"first": ["-inf", "-inf"]' '"infinite": 2,' '"min": "-inf",' '"first": ["nan", "nan"]' '"min": null,'; do
  grep -qF "$wanted" "$scratch/out" || complain "no $wanted" "run --json"
done

# ---- packed inputs: files of bytes, random bits, zeros
cat >"$scratch/packed.frit" <<END
input x : f32[3, 5]
input s : f32[]
output w = quantize x, s, dtype=q4
END
cat >"$scratch/unpacked.frit" <<END
input w : q4[3, 5]
input s : f32[]
output d = dequantize w, s
END
printf '%s\n' 'input s : f32[5]' 'output t = neg s' >"$scratch/other.frit"
expect 0 '^w +q4\[3, 5\]  min [0-7] ' '' "$frit" run "$scratch/packed.frit" --in x=random --in s=random --out w="$scratch/w.npy"
expect 0 '^d +f32\[3, 5\]  min [0-9]' '' "$frit" run "$scratch/unpacked.frit" --in w="$scratch/w.npy" --in s=random
expect 0 '^d +f32\[3, 5\]  min -' '' "$frit" run "$scratch/unpacked.frit" --in w=random --in s=random
expect 0 '^d +f32\[3, 5\]  min 0  max 0 ' '' "$frit" run "$scratch/unpacked.frit" --in w=zeros --in s=random
expect 0 '^t ' '' "$frit" run "$scratch/other.frit" --in s=random --out t="$scratch/t.npy"
expect 1 '' 'input w: as_packed: the elements have type f32, it must be one of 8 bits' "$frit" run "$scratch/unpacked.frit" --in w="$scratch/t.npy" --in s=random

# ---- inputs
cat >"$scratch/two.frit" <<END
input a : f32[n, 3]
input b : f32[n, 3]
output c = add a, b
END
expect 2 '' '^  a +f32\[\?, 3\] +no value$' "$frit" run "$scratch/two.frit"
expect 2 '' '^  b +f32\[\?, 3\] +random$' "$frit" run "$scratch/two.frit" --in b=random
expect 0 'c +f32\[2, 3\]  min 0  max 0 ' '' "$frit" run "$scratch/two.frit" --in a=zeros --in b=zeros
expect 0 'c +f32\[2, 3\]  min 0\.[0-9]+ ' '' "$frit" run "$scratch/two.frit" --in a=zeros --in=b=random
expect 2 '' "no input 'aa'; did you mean 'a'\?" "$frit" run "$scratch/two.frit" --in aa=zeros
expect 2 '' "input 'a' is given twice" "$frit" run "$scratch/two.frit" --in a=zeros --in a=random
for value in a a= =; do
  expect 2 '' "'$value' is not NAME=FILE.npy" "$frit" run "$scratch/two.frit" --in "$value"
done
expect 0 'c +f32\[2, 3\]  min 0\.[0-9]+ ' '' "$frit" run "$scratch/two.frit" --in '*=random'
expect 0 'c +f32\[2, 3\]  min 0  max 0 ' '' "$frit" run "$scratch/two.frit" --in '*=zeros' --in b=zeros
expect 2 '' "'\*=x.npy' is not \*=random" "$frit" run "$scratch/two.frit" --in '*=x.npy'
expect 0 'c +f32\[2, 3\]  min 0  max 0 ' '' "$frit" run "$scratch/two.frit" -i zeros -i zeros
expect 0 'c +f32\[2, 3\]  min 0\.[0-9]+ ' '' "$frit" run "$scratch/two.frit" -i random --in b=zeros
expect 2 '' "'zeros' is one input too many" "$frit" run "$scratch/two.frit" -i zeros -i zeros -i zeros
expect 2 '' "'zeros' would be input 'a', which is given by name" "$frit" run "$scratch/two.frit" --in a=zeros -i zeros
expect 2 '' "no output 'd'; did you mean 'c'\?" "$frit" run "$scratch/two.frit" --in a=zeros --in b=zeros --out d=x.npy
expect 2 '' "'c' is not NAME=FILE.npy" "$frit" run "$scratch/two.frit" --in a=zeros --in b=zeros --out c
expect 1 '' 'input a: .*none.npy: No such file' "$frit" run "$scratch/two.frit" --in a=none.npy --in b=zeros
expect 1 '' 'input a: .*bad-object.npy: .*Python objects' "$frit" run "$scratch/two.frit" \
  --in a=tests/data/npy/bad-object.npy --in b=zeros
head -c 200 $data/images.npy >"$scratch/cut.npy"
expect 1 '' 'cut.npy: truncated' "$frit" run "$scratch/two.frit" --in a="$scratch/cut.npy" --in b=zeros
expect 1 '' 'two.frit:1:[0-9]+: ' "$frit" run "$scratch/two.frit" --in a=$data/images.npy --in b=zeros
expect 1 '' 'no/such/c.npy: No such file' "$frit" run "$scratch/two.frit" --in a=zeros --in b=zeros --out c=/no/such/c.npy

# ---- constants in the text, names in quotes, renamed outputs, arithmetic on dims
cat >"$scratch/written.frit" <<'END'
const k : f32[2, 2] = [[1, 2],
                       [3, 4]]   # a list may go on over lines
const half = "half.npy"
input "in:0" : f32[n, 2]
"out/1" = matmul "in:0", k
output y = "out/1"
output z = reshape "out/1", dims=[n*2/1]
output w = mul k, half
END
printf 'output h = full 0.5, dtype=f32, dims=[2]\n' >"$scratch/half.frit"
expect 0 '^h ' '' "$frit" run "$scratch/half.frit" --out h="$scratch/half.npy"
expect 0 '^y +f32\[2, 2\]  min 0  max 0 ' '' "$frit" run "$scratch/written.frit" -i zeros
expect 0 '^z +f32\[4\] ' '' "$frit" run "$scratch/written.frit" --in in:0=random
expect 0 '^w +f32\[2, 2\]  min 0.5  max 2 ' '' "$frit" run "$scratch/written.frit" --in '*=random' --out y="$scratch/y.npy"
expect 0 '^w +f32\[2, 2\]  min 0  max 0 ' '' "$frit" run "$scratch/written.frit" --in '*=random' --in k=zeros
expect 0 'launches' '' "$frit" explain "$scratch/written.frit"
expect 0 'recorded' '' "$frit" trace "$scratch/written.frit" -i random -o "$scratch/written"
expect 0 'y|same' '' "$frit" replay "$scratch/written"

# ---- a launch that fails when it runs, after the ops were taken
printf 'input a : f32[4, 3]\noutput c = exp a\n' >"$scratch/late.frit"
late() { # LAUNCH TEXT
  printf '[plugin.null]\noption.latency = 1000000\noption.fail_launch = %s:device-lost\n' "$1" >"$scratch/late.conf"
  expect 1 '' "^frit run: (output c: )?$2 failed on null:0: null: launch $1 fails on request$" env FRIT_CONFIG="$scratch/late.conf" \
    FRIT_PLUGIN_PATH="$build/tests/fake/null:$FRIT_PLUGIN_PATH" "$frit" run "$scratch/late.frit" --in a=zeros --device null:0
}
late 1 'inputs: zeros'
late 2 exp

# A constant without a type has its file's, also where nothing runs.
printf 'const w = "%s"\ninput x : f32[n, 64]\noutput y = matmul x, w\n' "$PWD/$data/mlp_w1.npy" >"$scratch/untyped.frit"
expect 0 'ok, 1 ops, 2 inputs, 1 outputs' '' "$frit" check "$scratch/untyped.frit"
expect 0 'y +f32\[2, 128\]' '' "$frit" run "$scratch/untyped.frit" --in x=random
sed -i 's/mlp_w1/none/' "$scratch/untyped.frit"
expect 1 '' 'untyped.frit:1:[0-9]+: .*none.npy: No such file' "$frit" check "$scratch/untyped.frit"

# ---- broken programs: FILE:LINE:COLUMN
broken() { # WHERE TEXT PROGRAM
  printf '%b' "$3" >"$scratch/broken.frit"
  for command in check run; do
    expect 1 '' "^$scratch/broken.frit:$1: .*$2" "$frit" $command "$scratch/broken.frit"
  done
}
broken '2:[0-9]+' 'gelu' 'input x : f32[2] = "x.npy"\noutput y = gelo x\n'
broken '1:[0-9]+' '' 'output y = gelu z\n'
broken '2:[0-9]+' '' 'input x : f32[2] = "x.npy"\noutput y = add x, \n'
broken '1:[0-9]+' '' 'input x : f33[2]\n'
broken '1:[0-9]+' '' '\x01\n'
printf 'input a : f32[2, 3]\ninput b : f32[4]\noutput c = add a, b\n' >"$scratch/shapes.frit"
expect 1 '' 'shapes.frit:3:[0-9]+: .*add.*f32\[2, 3\].*f32\[4\]' "$frit" check "$scratch/shapes.frit"
expect 1 '' 'cannot be opened: No such file' "$frit" check "$scratch/none.frit"
expect 1 'digits-mlp.frit: ok' 'none.frit' "$frit" check "$scratch/none.frit" $mlp
finish
