#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/bench/transformer.c computes the same on two devices, and says what it should.
. "$(dirname "$0")/../tools/expect.sh"

program=$build/tests/bin/transformer
small=(--layers 2 --dim 16 --heads 2 --tokens 4 --steps 2 --quiet 250)

expect 0 '^reference:0: 2 layers, d = 16, 2 heads, B = 1, T = 4, f32; sum ' '' "$program" "${small[@]}" --device reference
for words in 'first result, ' 'warm after' 'ms a step' 'driver allocations'; do
  grep -q "$words" "$scratch/out" || complain "nothing about '$words'" transformer
done
sums=()
for device in reference cpu; do
  expect 0 '*' '' "$program" "${small[@]}" --device $device --json
  "$build/tests/json_check" <"$scratch/out" || complain 'no JSON object' 'transformer --json'
  sums+=("$(sed -n 's/.*"sum":\([0-9.e+-]*\),.*/\1/p' "$scratch/out")")
done
awk -v a="${sums[0]}" -v b="${sums[1]}" 'BEGIN { exit !((a - b) * (a - b) < 1e-6) }' ||
  complain "sums ${sums[*]}" 'transformer'
losses=()
for device in reference cpu; do
  expect 0 '*' '' "$program" "${small[@]}" --device $device --json --train adamw
  losses+=("$(sed -n 's/.*"first_sum":\([0-9.e+-]*\),"sum":\([0-9.e+-]*\),.*/\1 \2/p' "$scratch/out")")
done
awk -v l="${losses[*]}" 'BEGIN { split(l, x, " "); exit !(x[1] > 0 && (x[1] - x[3]) ^ 2 < 1e-10 && x[2] < .99 * x[1] && x[4] < .99 * x[3]) }' ||
  complain "losses ${losses[*]}" 'transformer --train'
expect 2 '' '--train is sgd, adam or adamw' "$program" --train lion
expect 2 '' '--dtype is f32 or bf16' "$program" --dtype f64
expect 2 '' 'the heads do not divide' "$program" --dim 10 --heads 3
expect 1 '' 'no usable device' "$program" --device none-such
finish
