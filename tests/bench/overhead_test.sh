#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit bench` runs, prints every row, and says what is wrong with a command line.
. "$(dirname "$0")/../tools/expect.sh"

expect 0 '^mix +8 ops.*' '' "$frit" bench overhead --quick -n 1
for words in 'ns per op' 'at most 40' 'times the ops of one thread' 'at least 1.8' 'times the cost with one plan' \
  'ms first' 'ms when known'; do
  grep -q "$words" "$scratch/out" || complain "nothing about '$words'" 'bench overhead'
done

expect 0 '*' '' "$frit" bench overhead --quick -n 1 --json
rows=0
while read -r line; do
  "$build/tests/json_check" <<<"$line" || complain "no JSON object in a line: $line" 'bench overhead --json'
  grep -q '"suite":"overhead"' <<<"$line" || complain "no suite: $line" 'bench overhead --json'
  rows=$((rows + 1))
done <"$scratch/out"
[ "$rows" = 6 ] || complain "$rows rows, not 6" 'bench overhead --json'
for key in ns_per_op speed_up plans_ratio mix_ratio first_ms; do
  grep -q "\"$key\":[0-9.e+-]*,\"${key}_target\":" "$scratch/out" || complain "no $key" 'bench overhead --json'
done

expect 2 '' "no suite 'overhaed' here; there is: overhead" "$frit" bench overhaed
# Without gemv, skinny and q4, whose 4096 x 4096 take plain loops ten seconds.
expect 0 '^softmax  *by its ops, over the last axis, 32 x 32 f32' '*' "$frit" bench reference --quick --side 32 -n 1 -f '[!gqs]*' -f gelu -f 's[ou]*' \
  --plot "$scratch/plot.svg"
grep -q '>softmax</text>' "$scratch/plot.svg" || complain 'no bar of softmax' 'bench reference --plot'
expect 1 '*' 'cannot write /no/such/folder/plot.svg' "$frit" bench reference --quick --side 8 -n 1 -f copy --plot /no/such/folder/plot.svg

# Rows by name, small and few.
rows() { sed -n 's/.*"row":"\([a-z0-9-]*\)".*/\1/p' "$scratch/out" | tr '\n' ' '; }
expect 0 '*' '' "$frit" bench overhead --quick --json --filter 'mix-*' -f search
[ "$(rows)" = 'mix-threads mix-plans search ' ] || complain "other rows: $(rows)" 'bench overhead --filter'
grep -q '"row":"mix-plans".*"plans":100,' "$scratch/out" || complain 'as many plans as ever' 'bench overhead --quick'
expect 0 '*' '' "$frit" bench reference --quick --json --filter 'sum*' -f matmul-256
[ "$(rows)" = 'sum sum-rows sum-columns matmul-256 ' ] || complain "other rows: $(rows)" 'bench reference --filter'
grep -q '"case":"of all, 128 x 128 f32"' "$scratch/out" || complain 'another size' 'bench reference --quick'
expect 0 '*' '' "$frit" bench reference --quick --json --filter resnet50
grep -q '"case":"1 image of 32 x 32 f32, 8 channels at first, random weights".*"gflop_per_s":[0-9.e+-]*,"ms":' "$scratch/out" ||
  complain 'no figures' 'bench reference --filter resnet50'
expect 0 '' 'bench: matmul-2048 is left out, being large' "$frit" bench reference --quick --filter matmul-2048
expect 2 '' "no row is named 'serach'; there are: mix, mix-threads, mix-plans, deferred, rotating, search$" "$frit" bench overhead -f mix -f serach
expect 2 '' "no row is named 'mix'; there are: copy, .*, mlp$" "$frit" bench reference -f mix


# Whole programs, from their first step.
expect 0 '*' '' "$frit" bench programs --quick --json --device null
[ "$(rows)" = 'sgd-64 loop-5 loop-7 loop-8 ' ] || complain "other rows: $(rows)" 'bench programs --quick'
while read -r line; do
  "$build/tests/json_check" <<<"$line" || complain "no JSON object in a line: $line" 'bench programs --json'
done <"$scratch/out"
for key in first_ms launches_per_step plans together_ratio; do
  grep -q "\"$key\":[0-9.e+-]*,\"${key}_target\":" "$scratch/out" || complain "no $key" 'bench programs --json'
done
expect 0 '^unrelated-128  *exp of 128 tensors' '' "$frit" bench programs -d reference -f unrelated-128
expect 2 '' "no row is named 'sgd'; there are: sgd-64, .*, loop-8$" "$frit" bench programs -f sgd
expect 1 '' "no usable device in 'none-such'" "$frit" bench programs --quick -d none-such

expect 2 '' 'missing argument: frit bench SUITE' "$frit" bench
expect 2 '' '--rounds 0: wants a number' "$frit" bench overhead --rounds 0
expect 1 '' "$scratch/libfrit-null.so: No such file" "$frit" bench overhead --plugin "$scratch"
finish
