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

rm "$scratch/launches"
expect 0 '' '' "$frit" tune "${add[@]}"
expect 0 '^b ' '' "$frit" run "${add[@]}"
[ "$(cut -d ' ' -f 2,3 "$scratch/launches" | sort -u)" = 'add fast' ] || complain "$(cat "$scratch/launches")" 'a later process'
expect 2 '' 'patience' "$frit" tune "$scratch/add.frit" --patience 0
finish
