#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit tune show, forget, export and import.
. "$(dirname "$0")/expect.sh"
export FRIT_TUNE_STORE=$scratch/tune.db FRIT_TUNE_WHEN=any FRIT_DEVICE=candidates FRIT_CONFIG=$scratch/few.ini
{
  printf '[plugin.%s]\nenabled = no\n' vulkan hip cuda # whose runtimes take longer to start than all else
  printf '[plugin.fake-candidates]\nlibrary = %s\n' "$build/tests/fake/candidates/libfrit-fake-candidates.so"
  printf 'option.cost_ns = 20000\noption.candidates = fast:50,wrong_odd\n'
} >"$FRIT_CONFIG"
printf 'input x : f32[101]\noutput y = add x, x\n' >"$scratch/add.frit"
{ # the driver makes no numbers
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (101,), }"
  head -c 404 /dev/zero
} >"$scratch/x.npy"

expect 0 '^0 decisions for candidates:0$' '' "$frit" tune show
expect 2 '' "unexpected argument 'x': frit tune PROGRAM" "$frit" tune shwo x
expect 2 '' 'json is only for show' "$frit" tune forget x --json
expect 2 '' 'FILE is missing: frit tune export FILE' "$frit" tune export
expect 2 '' 'forget takes either TEXT or --all' "$frit" tune forget
expect 1 '' "cannot read $scratch/nothing" "$frit" tune import "$scratch/nothing"

# ---- a program that is tuned when it runs
expect 0 '*' 'candidate wrong_odd is not used' "$frit" run "$scratch/add.frit" --in "x=$scratch/x.npy"
expect 0 '^add .*\([a-z]+, [0-9.]+x the next by the clock of the device\)$' '' "$frit" tune show add
for line in '^  \* fast +[0-9.]+ us  exact' '^    first +[0-9.]+ us  exact' \
  '^    wrong_odd +exact, wrong: output 0' '^add  \(quarantined\)$' '^[0-9]+ decisions? for candidates:0$'; do
  grep -Eq -- "$line" "$scratch/out" || complain "no line $line" "tune show"
done
expect 0 '^0 decisions' '' "$frit" tune show nothing
expect 0 '"identity": "fast"' '' "$frit" tune show --json
expect_json


# ---- how many, without opening the device; nothing is created where there is none
tuned() { # N: of candidates:0, 0: nothing is said
  local n
  expect 0 '*' '*' "$frit" devices
  n=$(sed -nE 's/^. candidates:0 .*, ([0-9]+) tuned$/\1/p' <<<"$out")
  [ "${n:-0}" = "$1" ] || complain "${n:-0} tuned, not $1" 'frit devices'
}
known=$("$frit" tune show | tail -1 | cut -d ' ' -f 1)
tuned "$known"
expect 0 "\"decisions\": $known," '*' "$frit" devices --json
expect_json
FRIT_THREADS=7 tuned 0
FRIT_TUNE_STORE=$scratch/none.db tuned 0
[ ! -e "$scratch/none.db" ] || complain 'a file was made' 'frit devices'

# ---- to another machine
expect 0 '^.*: [1-9][0-9]* decisions? and 0 artefacts of candidates:0$' '' "$frit" tune export "$scratch/bundle"
expect 0 '*' '' "$frit" tune show
cp "$scratch/out" "$scratch/here"
export FRIT_TUNE_STORE=$scratch/other.db
expect 0 ', 0 of them known already, and 0 artefacts' '' "$frit" tune import "$scratch/bundle"
expect 0 '*' '' "$frit" tune show
cmp -s "$scratch/here" "$scratch/out" || complain "other decisions than were exported" "tune import"
printf 'option.fingerprint = other\n' >>"$FRIT_CONFIG"
tuned 0
expect 1 '' 'the bundle is of another kind of device' "$frit" tune import "$scratch/bundle"

# ---- forgotten
export FRIT_TUNE_STORE=$scratch/tune.db
sed -i '$d' "$FRIT_CONFIG"
expect 0 '^[1-9][0-9]* decisions? for candidates:0 forgotten$' '' "$frit" tune forget --all
expect 0 '^0 decisions' '' "$frit" tune show
tuned 0
finish
