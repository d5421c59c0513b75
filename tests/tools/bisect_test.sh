#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit doctor bisect: what is planted in a driver, a fuser or a candidate is found, and where.
. "$(dirname "$0")/expect.sh"
# Sanitizers leave signals and failing allocations to the program.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:allocator_may_return_null=1:handle_segv=0 \
  TSAN_OPTIONS=${TSAN_OPTIONS-}:allocator_may_return_null=1:handle_segv=0
cat >"$scratch/program.frit" <<END
input a : f32[8, 8]
input b : f32[8, 8]
input row : f32[8]
c = add a, b
d = neg b
e = maximum d, a
f = add c, e
s = add f, 0.5
g = add e, row
h = neg g
k = maximum b, a
m = add k, h
output w = maximum h, b
output q = add m, s
END
cat >"$scratch/one.frit" <<END
input a : f32[]
output y = neg a
END
cat >"$scratch/random.frit" <<END
r = random_uniform 0, 1, dtype=f32, dims=[8, 8]
s = random_uniform 0, 1, dtype=f32, dims=[8]
t = add r, s
output y = neg t
END

bisect() { # WRONG ARGUMENTS...
  printf "[plugin.fake-$1]\nlibrary = $build/tests/wrong/libfrit-fake-$1.so\n" >"$scratch/$1.ini"
  env FRIT_CONFIG="$scratch/$1.ini" XDG_CACHE_HOME="$scratch/$1" "$frit" doctor bisect "${@:2}"
}
inputs=(--in a=random --in b=random --in row=random)

# ---- nothing is wrong
expect 0 'wrong:0 against reference:0: no difference \(8 runs\)$' '' \
  bisect four "$scratch/program.frit" -d wrong "${inputs[@]}"
expect 0 'no difference' '' "$frit" doctor bisect tools/models/digits-mlp.frit -d cpu
expect 0 'no difference \(1 runs\)' '' "$frit" doctor bisect "$scratch/random.frit" -d cpu

expect 0 '10 ops' '' "$frit" trace tools/models/digits-mlp.frit -d reference -o "$scratch/recorded"
expect 0 'no difference' '' "$frit" doctor bisect "$scratch/recorded" -d cpu

# ---- a fuser: its block, and how to do without it
expect 1 '^  cause +fuser fake-wrong-dead/few$' '' bisect wrong-dead "$scratch/program.frit" -d wrong "${inputs[@]}"
grep -q '^  right with  *\[fusion\] exclude = fake-wrong-dead/few$' "$scratch/out" || complain "no setting" "bisect"
grep -q '^  first wrong  *block "fused: neg maximum" \[fake-wrong-dead/few\]:$' "$scratch/out" || complain "no block" "bisect"
grep -q '^      d = neg b$' "$scratch/out" && grep -q '^      e = maximum d, a$' "$scratch/out" || complain "no ops" "bisect"
expect 0 'no difference' '' env FRIT_FUSION_EXCLUDE=fake-wrong-dead/few FRIT_CONFIG="$scratch/wrong-dead.ini" \
  "$frit" doctor bisect "$scratch/program.frit" -d wrong "${inputs[@]}"

# saved, it is a program of its own
expect 1 "^  saved +$scratch/saved: " '' bisect wrong-dead "$scratch/program.frit" -d wrong "${inputs[@]}" -o "$scratch/saved"
expect 0 'trace.frit: ok, 2 ops, 2 inputs, 1 outputs' '' "$frit" check "$scratch/saved/trace.frit"
expect 1 '^  cause +fuser fake-wrong-dead/few$' '' bisect wrong-dead "$scratch/saved" -d wrong
expect 1 '' 'no/such: the folder cannot be made' \
  bisect wrong-dead "$scratch/program.frit" -d wrong "${inputs[@]}" -o "$scratch/no/such"

# ---- a fuser whose program ends the process, so that its blocks are not known
expect 1 '^  cause +fuser fake-wrong-fused-crash/few$' '' bisect wrong-fused-crash "$scratch/program.frit" -d wrong "${inputs[@]}"
grep -q 'it crashed: Segmentation fault$' "$scratch/out" || complain "no crash" "bisect"

# ---- with sanitizers no more trials: they differ in what the plugin does
! is_short || finish

# ---- a candidate of its programs
expect 1 '^  cause +a candidate of a program' '' bisect wrong-candidate "$scratch/program.frit" -d wrong "${inputs[@]}"
grep -q 'max_candidates = 1$' "$scratch/out" || complain "no setting" "bisect"
expect 1 '"cause": "setting"' '' bisect wrong-candidate "$scratch/program.frit" -d wrong "${inputs[@]}" --json
expect_json
for key in file device against agrees difference cause fusers right_with ops ops_difference block block_fuser saved trials; do
  grep -q "\"$key\":" "$scratch/out" || complain "no key $key" "bisect --json"
done

# ---- recordings, which begin after some runs
expect 1 "^  cause +the driver's recordings of submits" '' bisect wrong-baked-place "$scratch/program.frit" -d wrong "${inputs[@]}"
grep -Eq 'in run [3-8]$' "$scratch/out" && grep -q 'capture = no$' "$scratch/out" || complain "no setting" "bisect"
expect 0 'no difference' '' bisect wrong-baked-place "$scratch/program.frit" -d wrong "${inputs[@]}" --repeat 2

# ---- the driver: one op, crashes and hangs too
expect 1 '^  cause +the driver of wrong:0' '' bisect wrong-broadcast "$scratch/program.frit" -d wrong "${inputs[@]}"
[ "$(grep -c '^      .* = ' "$scratch/out")" = 1 ] || complain "not one op" "bisect"
grep -q '^      g = add e, row$' "$scratch/out" || complain "not the op" "bisect"
expect 1 '^  cause +the driver' '' bisect wrong-broadcast "$scratch/random.frit" -d wrong
expect 1 'it crashed: Segmentation fault$' '' bisect wrong-crashes "$scratch/one.frit" -d wrong --in a=zeros
expect 1 'it hangs: no end after 2 s$' '' bisect wrong-hangs "$scratch/one.frit" -d wrong --in a=zeros --timeout 2

# ---- tolerance
expect 0 'no difference' '' bisect wrong-rounding "$scratch/program.frit" -d wrong "${inputs[@]}"
expect 1 '^  cause +the driver' '' bisect wrong-rounding "$scratch/program.frit" -d wrong "${inputs[@]}" --tolerance 0

# ---- what cannot be
expect 2 '' 'an input has no value' "$frit" doctor bisect "$scratch/program.frit" -d cpu
expect 1 '' 'none.frit: cannot be opened' "$frit" doctor bisect "$scratch/none.frit"
expect 1 '' 'nope' "$frit" doctor bisect "$scratch/one.frit" -d nope --in a=zeros
expect 1 '' 'nope' "$frit" doctor bisect "$scratch/one.frit" --against nope --in a=zeros
for option in --tolerance --repeat --timeout; do
  expect 2 '' "$option -1: must be a number from" "$frit" doctor bisect "$scratch/one.frit" $option -1
done
finish
