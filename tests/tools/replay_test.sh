#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit trace, FRIT_TRACE and frit replay: what is recorded, that it runs again, and how differences are reported.
. "$(dirname "$0")/expect.sh"
mlp=tools/models/digits-mlp.frit
cat >"$scratch/blocks.ini" <<END
[plugin.org.frit.blocks]
library = $build/tests/outside/libfrit-blocks.so
END
blocks=(env FRIT_CONFIG="$scratch/blocks.ini" FRIT_DECOMPOSE=yes)

# ---- recording
expect 0 "10 ops on reference:0 recorded in $scratch/mlp" '' "$frit" trace $mlp -d reference -o "$scratch/mlp"
expect 0 'trace.frit: ok, 10 ops, 7 inputs, 2 outputs' '' "$frit" check "$scratch/mlp/trace.frit"
cmp -s "$scratch/mlp/2.npy" tests/data/digits/mlp_w1.npy || complain "a constant is not what was loaded" "trace"
expect 2 '' '--out FOLDER is missing' "$frit" trace $mlp
expect 1 '' 'no/such: the folder cannot be made' "$frit" trace $mlp -o "$scratch/no/such"

# Any program, by its environment; every run of it is in the recording, the last one's outputs are its outputs.
expect 0 '*' '' env FRIT_TRACE="$scratch/any" "$frit" run $mlp -d reference --repeat 3
expect 0 'ok, 30 ops, 7 inputs, 2 outputs' '' "$frit" check "$scratch/any/reference-0/trace.frit"
expect 1 '' '\[frit\] trace: .*/any/none/deeper: the folder cannot be made' \
  env FRIT_TRACE="$scratch/any/none/deeper" "$frit" run $mlp -d reference

# ---- running again
expect 0 '^%15 .*5000 elements: equal$' '' "$frit" replay "$scratch/mlp" -d reference
expect 0 'fused against reference:0 op by op' '' "${blocks[@]}" "$frit" replay "$scratch/any/reference-0" -d reference
expect 0 'op by op against reference:0 op by op' '' "${blocks[@]}" "$frit" replay "$scratch/mlp" -d reference --no-fuse
expect 0 'fused against reference:0 fused' '' "$frit" replay "$scratch/mlp" -d reference --against reference
expect 0 '*' '' "$frit" replay "$scratch/mlp" -d reference --json
expect_json
for key in file device fused against against_fused tolerance outputs name dtype count differ max_abs max_ulp beyond; do
  grep -q "\"$key\":" "$scratch/out" || complain "no key $key" "replay --json"
done
expect 0 '*' '' "$frit" run "$scratch/mlp/trace.frit" -d reference --out %15="$scratch/again.npy"
cat >"$scratch/compare.frit" <<END
input a : f32[n, k] = "again.npy"
input b : f32[n, k] = "$PWD/tests/data/digits/mlp_logits.npy"
d = sub a, b
output worst = max_abs d
END
expect 0 'worst +f32\[\]  min [0-9.e-]*e-0[5-9] ' '' "$frit" run "$scratch/compare.frit"
rm "$scratch/mlp/2.npy"
expect 1 '' '2.npy: No such file' "$frit" replay "$scratch/mlp" -d reference
expect 1 '' 'none: cannot be opened' "$frit" replay "$scratch/none"
for value in x -1 nan ''; do
  expect 2 '' "--tolerance $value: must be a number >= 0" "$frit" replay "$scratch/mlp" --tolerance "$value"
done
finish
