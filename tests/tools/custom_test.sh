#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command with ops that a plugin brings: they are listed, checked, run, explained, recorded and replayed by name.
. "$(dirname "$0")/expect.sh"
cat >"$scratch/custom.ini" <<END
[plugin.fake-custom]
library = $build/tests/fake/custom/libfrit-fake-custom.so
[frit]
fallback = reference
END
custom=(env FRIT_CONFIG="$scratch/custom.ini")
cat >"$scratch/axpby.frit" <<'END'
input x : f32[6]
y = org.frit.test.axpby/1 x, x, alpha=2.0, beta=0.5
output z = neg y
END

expect 0 '^  org.frit.test.axpby/1 +composite +decomposed +alpha x \+ beta y\.$' '' \
  "${custom[@]}" "$frit" ops --device reference
expect 0 '^core, revision 1, of plugin fake-custom, 1 operands, 0 results, 0 attributes, has effects$' '' \
  "${custom[@]}" "$frit" ops org.frit.test.note/1 --device custom
expect 0 '^  custom:0 +native$' '' "${custom[@]}" "$frit" ops org.frit.test.axpby/1 --device custom
expect 0 '^y = org.frit.test.axpby/1 x, y, alpha=, \[beta=\]$' '' "${custom[@]}" "$frit" ops org.frit.test.axpby/1
grep -Eq '^  beta +number +factor of y; 0$' "$scratch/out" || complain "no attribute" "ops org.frit.test.axpby/1"
expect 0 '^sum, count = org.frit.test.fold/1 xs\.\.\.$' '' "${custom[@]}" "$frit" ops org.frit.test.fold/1
grep -Eq '^  count +output on request +any, by itself$' "$scratch/out" || complain "no output" "ops org.frit.test.fold/1"
expect 0 '"meaning": "factor of y; 0"' '' "${custom[@]}" "$frit" ops org.frit.test.axpby/1 --json
expect_json ops
expect 0 '"plugin": "fake-custom"' '' "${custom[@]}" "$frit" ops org.frit.test.axpby/1 --json
expect_json ops
expect 2 '' "unknown op 'org.frit.test.axpby/1'" "$frit" ops org.frit.test.axpby/1

expect 0 'axpby.frit: ok, 2 ops, 1 inputs, 1 outputs' '' "${custom[@]}" "$frit" check "$scratch/axpby.frit"
expect 1 '' "axpby.frit:2:5: unknown op 'org.frit.test.axpby/1': no plugin offers it; looked at: .*reference" \
  "$frit" check "$scratch/axpby.frit"
expect 1 '' "axpby.frit:2:5: unknown op" "$frit" run "$scratch/axpby.frit"

expect 0 '^z' '' "${custom[@]}" "$frit" run "$scratch/axpby.frit" --in x=zeros -d custom
expect 0 'org.frit.test.axpby/1 neg  \[fake-custom/map, score' '' "${custom[@]}" "$frit" explain "$scratch/axpby.frit" -d custom
expect 0 '%1 = org.frit.test.axpby/1 %0, %0, alpha=2.0, beta=0.5' '' \
  "${custom[@]}" "$frit" explain "$scratch/axpby.frit" -d custom
expect 0 'mul' '' "${custom[@]}" "$frit" explain "$scratch/axpby.frit" -d reference
expect 0 '2 ops on custom:0 recorded' '' \
  "${custom[@]}" "$frit" trace "$scratch/axpby.frit" --in x=random -d custom -o "$scratch/trace"
grep -q ' = org.frit.test.axpby/1 ' "$scratch/trace/trace.frit" || complain "no op by its name" trace
expect 0 '*' '' "${custom[@]}" "$frit" replay "$scratch/trace" -d custom --against reference

# ---- conform: ops of plugins are rows, against their decomposition
fakes=$build/tests/fake/custom
beside=(--set "plugin.fake-ops.library=$fakes/libfrit-fake-ops.so")
expect 0 '^output y0 = org.frit.test.axpby/1 x0, x1, alpha=0.5, beta=0.75$' '' "$frit" conform reference "${beside[@]}" \
  --list --filter 'org.*/f32/odd/dense' --filter 'org.*/values' --filter 'org.*/bare/dense'
for line in '# org.frit.test.axpby/1/f32/bare/dense' 'output y0 = org.frit.test.axpby/1 x0, x1, alpha=0.5' \
  'output y0 = org.frit.test.scale/1 x0, 1.5' 'y0, y1 = org.frit.test.fold/1 x0, x1, x2' 'output y0 = org.frit.test.noise/1 dims=[7,13]' \
  'output y0 = org.frit.test.crop/1 x0, dims=[7,13], dtype=f32, order=[0], where=[:], window=[1, 1, 1], along=0, wrap=1' \
  '# org.frit.test.tick/1/values: not covered, it has no decomposition' '# org.frit.test.note/1/values: not covered, it has no results'; do
  grep -qxF -- "$line" "$scratch/out" || complain "no '$line'" "conform --list"
done
# Decomposed on a driver that does not know them; what the op refuses, or cannot be compared, is skipped with a reason.
expect 0 ' 0 failed, .* 5 rows: 0 native, 5 decomposed, ' '' "$frit" conform reference "${beside[@]}" --quick --filter 'org.*'
grep -A1 '^skipped org.frit.test.axpby/1/f64/across/dense and ' "$scratch/out" |
  grep -q '^    it takes no such operands: org.frit.test.axpby/1: x and y must have the same dims$' || complain "no reason of a refusal" "conform"
grep -A1 '^skipped org.frit.test.tick/1/values$' "$scratch/out" | grep -q 'it has no decomposition' || complain "no word of tick" "conform"
expect 0 '"skipped": 1,' '^frit conform: org.frit.test.axpby/1 takes none of the operands that were tried; nothing of it was compared$' \
  "$frit" conform reference "${beside[@]}" --filter 'org.frit.test.axpby/1/f32/product/dense' --json
expect_json conform
grep -q '"rows_refused": 1,' "$scratch/out" || complain "no row that refuses all" "conform --json"
# A refusal is what the op's rule says of operands; names of any length are passed on, and a rule that is wrong fails.
bad=(--set "plugin.fake-badops.library=$fakes/libfrit-fake-badops.so")
expect 0 ' 0 failed, [1-9][0-9]* skipped; ' '^frit conform: org.frit.bad.choosy/1 takes none of the operands that were tried; ' \
  "$frit" conform reference "${bad[@]}" --quick --filter org.frit.bad.choosy/1
grep -q '^    it takes no such operands: org.frit.bad.choosy/1: nothing is good enough$' "$scratch/out" || complain "no reason of a refusal" "conform choosy"
[ "$(grep -c '^skipped ' "$scratch/out")" = 1 ] || complain "another reason" "conform choosy"
expect 0 '^output y0 = org.frit.bad.choosy/1 x0(, an_attribute_with_a_long_name_[a-g]=\[2,1,3,2,1,2,1,2\]){7}$' '*' \
  "$frit" conform reference "${bad[@]}" --list --filter 'org.frit.bad.choosy/1/f32/deep/dense'
expect 1 ' 0 passed, 1 failed, 0 skipped; ' '^failed org.frit.bad.positive/1/f32/odd/dense: internal: .*returned 7$' \
  "$frit" conform reference "${bad[@]}" --filter org.frit.bad.positive/1/f32/odd/dense
# Native where the driver claims them; a wrong one is caught under its name, by its value.
expect 0 ' 9 passed, 0 failed, 0 skipped; 1 rows: 1 native' '' "$frit" conform "$fakes/libfrit-fake-custom.so" --quick \
  $(printf -- '--filter org.frit.test.axpby/1/f32/%s ' {odd,rank0,empty,even,line,bare}/dense {odd,line}/inside odd/dying)
expect 1 '^org.frit.test.axpby/1/f32/odd/dense$' '^failed org.frit.test.axpby/1/f32/bare/dense: y: element 0 is .* 91 of 91 are wrong$' \
  "$frit" conform "$fakes/libfrit-fake-custom-wrong.so" --quick --filter 'org.*'
! grep '^failed ' "$scratch/err" | grep -qv '^failed org.frit.test.axpby/1/f32/' || complain "something else failed" "conform custom-wrong"
grep -q '^org.frit.test.axpby/1 .*F' "$scratch/out" || complain "no line of the table" "conform custom-wrong"

expect 0 '^  op org.frit.test.tick/1: usable$' '' "${custom[@]}" "$frit" doctor why fake-custom
finish
