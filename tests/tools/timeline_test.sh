#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The option [frit] timeline, and the log of new plans.
. "$(dirname "$0")/expect.sh"
cat >"$scratch/blocks.ini" <<END
[plugin.org.frit.blocks]
library = $build/tests/outside/libfrit-blocks.so
[frit]
decompose = yes
timeline = $scratch/spans.json
END
blocks=(env FRIT_CONFIG="$scratch/blocks.ini")
run=(run tools/models/digits-mlp.frit -d reference)

expect 0 '*' '' "${blocks[@]}" "$frit" "${run[@]}"
cp "$scratch/spans.json" "$scratch/out"
expect_json
for span in 'drain: scope","cat":"stream' 'explore","cat":"search' 'map: add mul mul","cat":"plan' 'erf","cat":"plan' \
  'submit","cat":"device' 'wait","cat":"device'; do
  grep -q "\"name\":\"$span\",\"ph\":\"X\"" "$scratch/spans.json" || complain "no span $span" timeline
done
grep -q '"thread_name","cat":"","ph":"M","pid":2,"tid":[0-9]*,"args":{"name":"reference:0"}}' "$scratch/spans.json" ||
  complain "no track of the device" timeline
grep -q '"name":"map: add mul mul","cat":"reference:0","ph":"X","pid":2' "$scratch/spans.json" || complain "no device time" timeline
grep -q '"lost":0}' "$scratch/spans.json" || complain "events were lost" timeline
expect 0 '*' '^frit error timeline: /no/such/file: cannot be written: No such file' \
  env FRIT_TIMELINE=/no/such/file "$frit" "${run[@]}"
expect 0 '*' '^frit debug fusion: reference:0: a new plan of 18 ops: 12 steps, 4 of them blocks, score [0-9]+$' \
  "${blocks[@]}" FRIT_TIMELINE=none FRIT_LOG=warn,fusion=debug "$frit" "${run[@]}"
finish
