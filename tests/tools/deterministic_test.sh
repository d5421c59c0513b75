#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `[tune] deterministic = yes`: the same bits in each run, whatever was decided in between and whatever else is set.
. "$(dirname "$0")/expect.sh"

cat >"$scratch/sums.frit" <<FRIT
input a : f32[4096, 33]
input b : f32[64, 4096]
output s = sum a, axes=[0]
output m = matmul b, a
FRIT
export FRIT_TUNE_STORE=$scratch/tune.db FRIT_FUSION_STORE=$scratch/plans.db FRIT_ARTEFACTS=$scratch/artefacts
sums=("$scratch/sums.frit" --device cpu --in a=random --in b=random)

results() { # NAME SETTING...: what the program computes, in one file
  local name=$1
  shift
  expect 0 '*' '' env "$@" "$frit" run "${sums[@]}" --out s="$scratch/s.npy" --out m="$scratch/m.npy"
  cat "$scratch/s.npy" "$scratch/m.npy" >"$scratch/$name"
}
same() { # NAME SETTING...
  results "$@"
  cmp -s "$scratch/first" "$scratch/$1" || complain 'other bits' "$*"
}

results first FRIT_TUNE_DETERMINISTIC=yes
same again FRIT_TUNE_DETERMINISTIC=yes
# A sum in another order has other bits here: the candidate that runs matters.
results other FRIT_TUNE_FORCE=row:columns=few
cmp -s "$scratch/first" "$scratch/other" && complain 'the same bits' 'sums in another order'

expect 0 '' '*' "$frit" tune "${sums[@]}" --budget 100
expect 0 ' decisions? for cpu' '' "$frit" tune show -d cpu
[ "$(grep -c '^  \* ' <<<"$out")" -ge 2 ] || complain "$out" 'fewer than two decisions'
same tuned FRIT_TUNE_DETERMINISTIC=yes
same bounds FRIT_TUNE_DETERMINISTIC=yes FRIT_FUSION_NUMERIC=relaxed FRIT_TUNE_WHEN=any
same forced FRIT_TUNE_DETERMINISTIC=yes FRIT_TUNE_FORCE=row:columns=few
same alone FRIT_TUNE_DETERMINISTIC=yes FRIT_THREADS=1 FRIT_FUSION_STORE=none FRIT_ARTEFACTS=none
same unfused FRIT_TUNE_DETERMINISTIC=yes FRIT_FUSION_ENABLED=no

# A program of many ops, whose second and third runs are replays.
for name in one two; do
  expect 0 '*' '' env FRIT_TUNE_DETERMINISTIC=yes FRIT_FUSION_STORE="$scratch/$name.db" FRIT_ARTEFACTS="$scratch/$name" \
    "$frit" run tools/models/digits-cnn.frit --device cpu --repeat 3 --out logits="$scratch/$name.npy"
done
cmp -s "$scratch/one.npy" "$scratch/two.npy" || complain 'other bits' 'two runs of the CNN'
finish
