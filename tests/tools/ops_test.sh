#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit ops`: what rows mean, and how a device runs them in each element type.
. "$(dirname "$0")/expect.sh"
export FRIT_PLUGIN_PATH=$FRIT_PLUGIN_PATH:$build/tests/template

expect 0 '^  gelu +composite  x / 2' '' "$frit" ops
expect 0 '^y = conv x, w, bias' '' "$frit" ops conv
expect 0 '^  reference:0 +native f64 f32 f16 bf16$' '' "$frit" ops conv
expect 0 '^  add +core +native f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8$' '' "$frit" ops --device reference
expect 0 '^  reshape +core +host f64 ' '' "$frit" ops --device reference
expect 0 '^  all_reduce +core +host$' '' "$frit" ops --device reference
expect 1 '' 'ops: .*nosuch' "$frit" ops --device nosuch

# Ten rows, what is made of them, and the rest elsewhere or nowhere.
expect 0 '^  add +core +native f32; fallback f64 f16 ' '' "$frit" ops --device template
expect 0 '^  recip +composite +decomposed f32; fallback f64 f16 bf16$' '' "$frit" ops --device template
expect 0 '^  layer_norm +composite +fallback f64 f32 f16 bf16$' '' "$frit" ops --device template
expect 0 '^  sort +core +- f64 f32 ' '' env FRIT_FALLBACK=none "$frit" ops --device template
expect 0 '^  layer_norm +composite +- f64 f32 f16 bf16$' '' env FRIT_FALLBACK=none "$frit" ops --device template
expect 0 '^  template:0 +native f32; fallback f64 f16 ' '' "$frit" ops matmul
expect 0 '"f32": "native",$' '' "$frit" ops add --device template --json
expect_json ops add
expect 0 '"support": "decomposed",$' '' "$frit" ops recip --device template --json
expect 0 '^  "device": null,$' '' "$frit" ops add --json
! grep -q '"types"' "$scratch/out" || complain "types without a device" "ops add --json"

# The same as a run finds out: by row, whatever the types.
! is_short || finish
"$frit" conform "$build/tests/template/libfrit-template.so" --quick --json --filter '*/f32/*/dense' >"$scratch/run.json"
for word in native decomposed; do
  env FRIT_FALLBACK=none "$frit" ops --device template | sed -nE "s/^  ([a-z0-9_]+) +(core|composite) .*\b$word( [a-z0-9]+)* f32( |;|\$).*/\1/p" | sort >"$scratch/listed"
  tr '\n' ' ' <"$scratch/run.json" | grep -oE '"row": "[a-z0-9_]+", *"f32": "'"$word"'"' | sed -E 's/"row": "([a-z0-9_]+)".*/\1/' | sort >"$scratch/ran"
  [ -s "$scratch/ran" ] || complain "conform reports no $word rows" "$(head -c 600 "$scratch/run.json")"
  diff "$scratch/listed" "$scratch/ran" >"$scratch/diff" || complain "listed as $word, ran otherwise: $(cat "$scratch/diff")" ops
done
finish
