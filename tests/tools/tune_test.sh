#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit tune`: candidates that kill their process, or never end, are found by others than the one that started it, and the rest is
# measured all the same; later processes use what was found.
. "$(dirname "$0")/expect.sh"

cat >"$scratch/frit.ini" <<INI
[plugin.fake-candidates]
library = $build/tests/fake/candidates/libfrit-fake-candidates.so
option.candidates = crashes,fast:10,silent,hangs
option.clock = simulated
option.log = $scratch/launches
INI
cat >"$scratch/add.frit" <<FRIT
input a : f32[128]
output b = add a, a
FRIT
export FRIT_CONFIG=$scratch/frit.ini FRIT_ARTEFACTS=$scratch/artefacts FRIT_SEARCH_PROBE=never FRIT_TUNE_STORE=$scratch/tune.db
add=("$scratch/add.frit" --device candidates --in a="$(dirname "$0")/../data/digits/mlp_b1.npy")
expect 0 '' '*' "$frit" tune "${add[@]}" --patience 1
for line in '2 a process died in a trial' '2 a trial did not end in 1 s' '1 fast is used' '1 crashes: crashed' '1 hangs: crashed' '1 silent: silent'; do
  [ "$(grep -c "${line#* }" <<<"$err")" = "${line%% *}" ] || complain "not ${line%% *} times '${line#* }'" "tune"
done
[[ $err != *$'\r'* ]] || complain 'a bar' 'tune without a terminal'

rm "$scratch/launches"
expect 0 '' '' "$frit" tune "${add[@]}"
expect 0 '^b ' '' "$frit" run "${add[@]}"
[ "$(cut -d ' ' -f 2,3 "$scratch/launches" | sort -u)" = 'add fast' ] || complain "$(cat "$scratch/launches")" 'a later process'
# A program of two ops that takes longer than they do from 1000 elements on.
cat >"$scratch/frit.ini" <<INI
[plugin.fake-candidates]
library = $build/tests/fake/candidates/libfrit-fake-candidates.so
option.fuses = 8
option.means = yes
option.split = 1000
option.clock = simulated
option.log = $scratch/launches
INI
chain() { # NAME DIMS FILE: what runs after it was tuned
  printf '%s\n' "input a : f32[$2]" 'b = mul a, 2.0' 'output c = add b, a' >"$scratch/$1.frit"
  chain=("$scratch/$1.frit" --device candidates --in a="$(dirname "$0")/../data/digits/$3.npy")
  expect 0 '' '*' "$frit" tune "${chain[@]}"
  rm "$scratch/launches"
  expect 0 '' '' "$frit" tune "${chain[@]}"
  expect 0 '^c ' '' "$frit" run "${chain[@]}"
  cut -d ' ' -f 2,3 "$scratch/launches" | sort -u >"$scratch/ran"
}
chain small 128 mlp_b1
[ "$(cat "$scratch/ran")" = 'fused fused' ] || complain "$(cat "$scratch/ran")" 'a small chain'
chain large '128, 64' mlp_w2
[ "$(cat "$scratch/ran")" = $'add first\nmul first' ] || complain "$(cat "$scratch/ran")" 'a large chain'
expect 0 'candidate parts \(measured\)' '' "$frit" explain "${chain[@]}"
expect 0 '\* parts' '' "$frit" tune show --device candidates
printf '%s\n' 'input a : f32[128, 64]' 'output c = mean a, axis=0' >"$scratch/mean.frit"
mean=("$scratch/mean.frit" --device candidates --in a="$(dirname "$0")/../data/digits/mlp_w2.npy")
expect 0 '' 'form: mean .* decomposed is used' "$frit" tune "${mean[@]}"
expect 0 'sum, ran as core ops' '' "$frit" explain "${mean[@]}"
expect 0 '\* decomposed' '' "$frit" tune show form: --device candidates

# Limits of the device are measured where a candidate crashes, too, and end the search.
cat >"$scratch/frit.ini" <<INI
[plugin.fake-candidates]
library = $build/tests/fake/candidates/libfrit-fake-candidates.so
option.candidates = crashes,slow
option.clock = simulated
option.cost_ns = 0
option.mib_ns = 100000
INI
{ printf '\x93NUMPY\x01\x00v\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1310720,), }"; head -c 5242880 /dev/zero; } >"$scratch/a.npy"
printf '%s\n' 'input a : f32[1310720]' 'output b = sum a, axes=[0]' >"$scratch/sum.frit"
sum=("$scratch/sum.frit" --device candidates --in a="$scratch/a.npy")
# A quarter of the budget, by the machine's clock, is for them, and each crash takes a new process.
expect 0 '' '*' "$frit" tune "${sum[@]}" --budget 20000
expect 0 '^sum f32\[1310720\] -> f32\[\]  \(roofline' '' "$frit" tune show --device candidates
expect 0 'candidate first \(roofline\)' '' "$frit" explain "${sum[@]}"

# On a terminal a bar with the time that is left; it was not there above.
cat >"$scratch/frit.ini" <<INI
[plugin.fake-candidates]
library = $build/tests/fake/candidates/libfrit-fake-candidates.so
option.candidates = equal
option.cost_ns = 60000000
option.clock = none
INI
cat >"$scratch/two.frit" <<FRIT
input a : f32[128]
b = add a, a
output c = mul b, b
FRIT
two=(tune "$scratch/two.frit" --device candidates --in a="$(dirname "$0")/../data/digits/mlp_b1.npy" --budget 1100)
script -qec "$frit ${two[*]}" /dev/null </dev/null >"$scratch/terminal" || complain "$(cat "$scratch/terminal")" 'tune on a terminal'
tr '\r' '\n' <"$scratch/terminal" | grep -q '^\[#* *\] 1/2  [01]\.[0-9]/s  [0-9]* s left ' || complain "$(cat "$scratch/terminal")" 'no bar'

expect 2 '' 'patience' "$frit" tune "$scratch/add.frit" --patience 0
finish
