# SPDX-License-Identifier: Apache-2.0
# `frit conform` on programs with several candidates: right ones pass, and each sin of tests/fake/candidates that breaks a rule is
# named with its candidate.
. "${0%/*}/expect.sh"

plugin=$build/tests/fake/candidates/libfrit-fake-candidates.so
printf '[plugin.%s]\nenabled = no\n' vulkan hip cuda >"$scratch/few.ini" # whose runtimes take longer to start than all else
printf '[plugin.fake-candidates]\noption.cost_ns = 0\n' >>"$scratch/few.ini"
check() { # CODE OUT ERR CANDIDATES FILTER
  expect "$1" "$2" "$3" env FRIT_CONFIG="$scratch/few.ini" "$frit" conform "$plugin" --quick --jobs 1 --timeout 1 --filter "$5" \
    --set "plugin.fake-candidates.option.candidates=$4"
}

check 0 ': 1 passed, 0 failed, 1 skipped;' '' '' 'candidate/*'
grep -A1 '^skipped candidate/results$' "$scratch/out" | grep -q 'no program has a second candidate$' || complain "no reason of a skip" "conform"
check 0 ': 2 passed, 0 failed, 0 skipped;' '' \
  'fast,slow,equal,reordered,reduced,small,large,preferred,declines,big_workspace,refuses,fast_once' 'candidate/*'

while read -r name words; do
  check 1 '^candidate/rules$' "^failed candidate/rules: op add: $words" "$name" candidate/rules
done <<'ROWS'
refuses_later candidate refuses_later: called again prepare returns -2, before 0$
changes_identity described again candidate 1 is changes_[0-9a-f]*_1, version 1, class 0; not changes_[0-9a-f]*_0, version 1, class 0$
changes_host another instance has other candidates: first, ..., changes_host_[0-9a-f]+$
changes_version described again candidate 1 is changes_version, version 2, class 0; not changes_version, version 1, class 0$
changes_priority candidate changes_priority: called again priority returns [0-9]+, not [0-9]+$
nameless candidate 1 has an empty identity$
twin candidates 0 and 1 have the same identity, first$
ROWS

# The fast one before the sinner is right.
while read -r name words; do
  check 1 '^candidate/results$' "^failed candidate/results: op add: candidate $name, extents 5, 7, 3: $words" "fast,$name" candidate/results
done <<'ROWS'
wrong_odd element 0 of value 2 is [-.0-9]+, by the first candidate [-.0-9]+$
silent element 0 of value 2 is -?nan, by the first candidate [-.0-9]+$
beyond 4 bytes beside a tensor were written$
before 4 bytes beside a tensor were written$
wrong_in_place element 0 of value 2 is [-.0-9]+, by the first candidate [-.0-9]+$
class_lies element 0 of value 2 is [-.0-9]+, by the first candidate [-.0-9]+$
far element 0 of value 2 is [-.0-9]+, by the first candidate [-.0-9]+$
varies element [0-9]+ of value 2 is [-.0-9]+, by an earlier run [-.0-9]+$
fails a command: io: candidates: fails on purpose$
ROWS
check 1 '^candidate/results$' '^failed candidate/results: .*: op add, candidate crashes$' fast,crashes candidate/results
check 1 '^candidate/results$' '^failed candidate/results: it hangs: no answer after 1 s: op add, candidate hangs$' fast,hangs candidate/results
finish
