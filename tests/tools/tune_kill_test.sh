#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit tune` killed at random points loses no more than the key that it was at: what was decided is there and is not measured again, and
# the next run finishes.  FRIT_TEST_LONG=1: more often.
. "$(dirname "$0")/expect.sh"

keys=12
kills=4
[ -z "${FRIT_TEST_LONG:-}" ] || kills=60
RANDOM=7

cat >"$scratch/frit.ini" <<INI
[plugin.fake-candidates]
library = $build/tests/fake/candidates/libfrit-fake-candidates.so
option.candidates = slow,fast
option.clock = none
option.cost_ns = 20000
INI
in=() outputs=''
for ((k = 0; k < keys; k++)); do # each size has a key of its own
  n=$(((1 << (6 + k / 2)) - k % 2))
  { printf '\x93NUMPY\x01\x00v\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($n,), }"; head -c $((4 * n)) /dev/zero; } >"$scratch/$k.npy"
  printf 'input a%d : f32[%d]\n' "$k" "$n" >>"$scratch/add.frit"
  outputs+="output b$k = add a$k, a$k"$'\n'
  in+=("--in=a$k=$scratch/$k.npy")
done
printf '%s' "$outputs" >>"$scratch/add.frit"
export FRIT_CONFIG=$scratch/frit.ini FRIT_ARTEFACTS=$scratch/artefacts FRIT_SEARCH_PROBE=never FRIT_TUNE_STORE=$scratch/tune.db
tune=("$frit" tune "$scratch/add.frit" --device candidates "${in[@]}" --here)

decisions() { "$frit" tune show add --device candidates --json | grep -c '"what"'; }
count() { grep -c "$1" "$scratch/log"; }

# Kills a run once it has tried so many candidates: at least all of one key, or their ends would be put down to them.
killed_after() {
  local pid
  : >"$scratch/log"
  "${tune[@]}" >/dev/null 2>"$scratch/log" &
  pid=$!
  while kill -0 $pid 2>/dev/null && [ "$(count 'is tried')" -lt "$1" ]; do sleep 0.002; done
  sleep "0.00$((RANDOM % 10))"
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
}

for ((i = 0; i < kills; i++)); do
  [ "$(decisions)" -lt $((keys - 4)) ] || rm "$scratch/tune.db" # begins anew
  before=$(decisions)
  killed_after $((4 + RANDOM % 5))
  [ "$(decisions)" -ge $((before + $(count 'is used'))) ] || complain "$(decisions) decisions after $before: $(cat "$scratch/log")" 'a killed run'
  [ "$(decisions)" -ge $((before + $(count 'first is tried') - 1)) ] || complain "more than one key is lost: $(cat "$scratch/log")" 'a killed run'
done
before=$(decisions)
[ "$before" -lt "$keys" ] || complain 'no run was killed before its end' 'killed runs'
expect 0 '' '*' "${tune[@]}"
[ "$(decisions)" = "$keys" ] || complain "$(decisions) decisions, not $keys" 'the last run'
[ "$(grep -c 'first is tried' <<<"$err")" = $((keys - before)) ] || complain "tuned again: $before were there" 'the last run'
[ "$(grep -c 'crashed' <<<"$err")" = 0 ] || complain 'a kill was put down to a candidate' 'the last run'
finish
