#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit conform`: every row has cases, the reference driver passes, and what is wrong with a driver is named, under the
# case that wrongs.def names.
. "$(dirname "$0")/expect.sh"
fakes=$build/tests/fake
wrongs=$build/tests/wrong
every=${FRIT_TEST_EVERY-1} # of the wrong drivers is run: with sanitizers, one of several
# Of runs that are there for their reports: fewer cases with sanitizers, where a process costs ten times as much.
four=() add='add/*'
[ "$every" = 1 ] || { four=(--filter neg --filter add --filter maximum --filter copy) && add='add/f32/*'; }

# Sanitizers leave signals and failing allocations to the program, and warn of the latter: `*`.
options=allocator_may_return_null=1:handle_segv=0:handle_abort=0
export ASAN_OPTIONS=${ASAN_OPTIONS-}:$options TSAN_OPTIONS=${TSAN_OPTIONS-}:$options

# A case hangs for longer than the interval of progress messages; its output is checked in the end.
"$frit" conform "$wrongs/libfrit-fake-wrong-hangs.so" --quick --jobs 1 --timeout 10.5 --json --filter neg/f32/rank0/dense \
  --filter neg/f32/odd/dense >"$scratch/slow.out" 2>"$scratch/slow.err" &
slow=$!
calm='^(frit conform: [0-9]+ of [0-9]+.*)?$' # how far it is, on slow machines

# Every row of the op table but those that want several devices, and the checks of the device as a whole.
"$frit" conform reference --list >"$scratch/list"
for name in device/transfers memory/places queue/order kernel/failures program/saved fuser/results fault/lost; do
  grep -q "^# $name: ...*" "$scratch/list" || complain "$name is not listed" "conform --list"
done
sed -n 's/^# \([a-z0-9_]*\)\/.*/\1/p' "$scratch/list" | grep -Evx 'device|memory|queue|kernel|program|spec|fuser|candidate|fault' | sort -u >"$scratch/cases"
"$frit" ops --json | sed -n 's/^      "name": "\([a-z0-9_]*\)",$/\1/p' | sort -u >"$scratch/rows"
[ "$(wc -l <"$scratch/rows")" -gt 150 ] || complain "cannot find the rows in its JSON" "frit ops --json"
rest=$(comm -3 "$scratch/rows" "$scratch/cases" | tr -d '\t' | tr '\n' ' ')
[ "$rest" = 'all_gather all_reduce all_reduce_coalesced broadcast_from reduce_scatter sync_collective ' ] || complain "rows without cases, or cases without rows: $rest" "conform --list"

# A case is a program that runs.
"$frit" conform reference --list --filter 'conv/f32/odd/strided' >"$scratch/case.frit"
expect 0 'ok, [0-9]+ ops' '' "$frit" check "$scratch/case.frit"

# What `reference` lacks is fusers and a second device, and the reasons say so.
expect 0 ' 0 failed, 19 skipped; .* 0 fallback, 0 failed$' '*' "$frit" conform reference --quick
grep -A1 '^skipped program/saved and 9 more$' "$scratch/out" | grep -q '^    the plugin has no fusers$' || complain "no reason of what is skipped" "conform --quick"
expect 0 '"skipped": 9,' '' "$frit" conform reference --filter fuser --json --junit "$scratch/junit.xml"
expect_json conform
tr -d '\n' <"$scratch/out" | grep -Eq '"skips": \[ *\{ *"case": "fuser/push", *"reason": "the plugin has no fusers" *\},' || complain "no list of skips" "conform --json"
grep -q 'name="fuser/push"><skipped message="the plugin has no fusers"/>' "$scratch/junit.xml" || complain "no reason of a skip" junit
expect 0 '^reference:0: [0-9]+ cases' "$calm" "$frit" conform reference:0 --quick --filter "$add" --isolate

# The fusers of a plugin without a device.
expect 0 ' passed, 0 failed, 0 skipped;' '' "$frit" conform reference --filter 'fuser/*' --filter 'program/saved' \
  --set "plugin.org.frit.blocks.library=$build/tests/outside/libfrit-blocks.so"

# However many processes there are, the report is the same.
for jobs in 1 7; do
  expect 0 ' 0 failed' "$calm" "$frit" conform reference --quick --filter 'm*/f32/*' --jobs $jobs --junit "$scratch/$jobs.xml"
  sed -i 's/ time="[^"]*"//' "$scratch/$jobs.xml"
done
cmp "$scratch/1.xml" "$scratch/7.xml" || complain "other reports with other numbers of processes" "conform --jobs"
expect 0 '"failed": 0,' '' "$frit" conform reference --quick --filter matmul --json --junit "$scratch/junit.xml"
expect_json conform
grep -q '<testcase classname="matmul" name="matmul/f32/odd/dense"/>' "$scratch/junit.xml" || complain "no such case" junit

# Shards together have every case once, in the order of the whole; they have whole rows and are about equally long.
names() { sed -n 's/^# \([^ ]*\)\(:.*\)\?$/\1/p'; }
shards() { for k in $(seq "$1"); do "$frit" conform reference --list "${@:2}" --shard "$k/$1" | names | tee "$scratch/shard-$k"; done; }
names <"$scratch/list" >"$scratch/whole"
[ "$(wc -l <"$scratch/whole")" -gt 40000 ] && [ -z "$(sort "$scratch/whole" | uniq -d)" ] || complain "cannot find the names" "conform --list"
grep '^c' "$scratch/whole" >"$scratch/part"
shards 7 --filter 'c*' | sort | cmp - <(sort "$scratch/part") || complain "other cases than the whole" "conform --shard K/7"
grep -Fxf "$scratch/shard-3" "$scratch/part" | cmp - "$scratch/shard-3" || complain "another order than the whole" "conform --shard 3/7"
[ "$(grep -l '^conv/' "$scratch"/shard-* | wc -l)" -eq 1 ] || complain "the cases of conv are in several" "conform --shard K/7"
wc -l "$scratch"/shard-? | sort -n | awk '{ print $1 }' | sed -n '1p;7p' | { read -r least && read -r most && [ $((most - least)) -le $((most / 10)) ]; } ||
  complain "one has many more cases than another" "conform --shard K/7"
"$frit" conform reference --list --quick | names | sort >"$scratch/whole"
shards 4 --quick | sort | cmp - "$scratch/whole" || complain "other cases than the whole" "conform --quick --shard K/4"
for k in 1 2 3; do
  expect 0 "^reference:0, shard $k/3: .* 0 failed" "$calm" "$frit" conform reference --quick --filter 'm*/f32/*' --shard $k/3 --junit "$scratch/shard.xml"
  grep '^<testcase' "$scratch/shard.xml" >>"$scratch/shards.xml"
done
sort "$scratch/shards.xml" | cmp - <(grep '^<testcase' "$scratch/1.xml" | sort) || complain "other verdicts than the whole" "conform --shard K/3"
expect 0 '"shards": 2,' '' "$frit" conform reference --filter 'neg/f32/odd/dense' --shard 2/2 --json
grep -q '"shard": 2,' "$scratch/out" && grep -q '"cases": [01],' "$scratch/out" || complain "no word of it" "conform --shard --json"
for text in 0/4 5/4 4 1/1001 a/b; do
  expect 2 '' "--shard wants K/N, from 1/N to N/N with N at most 1000, not '$text'" "$frit" conform reference --shard $text
done

expect 2 '' "no case is named 'nothing'" "$frit" conform reference --filter nothing
expect 2 '' "no case is named 'nothing'" "$frit" conform reference --filter neg --filter nothing

# Filters add up.
expect 0 '^# neg/f32/odd/dense$' '' "$frit" conform reference --list -f fuser/clone -f 'neg/f32/odd/dense' -f 'add/f32/odd/d*' -f 'add/*/odd/dying'
names=$(sed -n 's/^# \([^:]*\).*/\1/p' "$scratch/out" | grep -v '^add/[^f]\|^add/f[16]*6/\|^add/f64' | tr '\n' ' ')
[ "$names" = 'fuser/clone neg/f32/odd/dense add/f32/odd/dense add/f32/odd/dying ' ] || complain "other cases: $names" "conform --filter"
expect 2 '' '--timeout wants seconds' "$frit" conform reference --timeout=-1
expect 2 '' '--jobs wants a number from 1 to 64' "$frit" conform reference --jobs 0
expect 2 '' '--set wants SECTION.KEY=VALUE' "$frit" conform reference --set threads=1
expect 2 '' 'missing argument' "$frit" conform
expect 1 '' 'conform: nosuch: ' "$frit" conform nosuch
expect 1 '' 'fake-plain.so: it is not a plugin: ' "$frit" conform "$fakes/libfake-plain.so" --filter add
expect 1 '' 'conform: .*open-fails.so: .*the moon is not full' "$frit" conform "$fakes/libfrit-fake-open-fails.so" --filter add
expect 1 '' 'fake-crashes.so: it was not opened: it crashed: Aborted' "$frit" conform "$wrongs/libfrit-fake-crashes.so"
# A plugin beside the driver that crashes is reported before the first case.
expect 1 '^$' '^frit conform: reference: it was not opened: it crashed: Aborted$' "$frit" conform reference --quick --filter neg \
  --set "plugin.fake-crashes.library=$wrongs/libfrit-fake-crashes.so"
expect 0 ' 0 failed, ' '' "$frit" conform reference --quick --filter sum --set frit.threads=1
expect 1 '' 'conform: reference: no host opens: .*threads' "$frit" conform reference --quick --filter 'sum/f32/*' --set frit.threads=-1

# Launches fail by an option of the driver, and a command loses its device; a device that is lost ends the run with a line, and
# another exit code.
late=$build/tests/late/libfrit-late.so
mkdir "$scratch/gone"
expect 0 ' 3 passed, 0 failed, 0 skipped;' '' "$frit" conform "$late" --filter 'fault/*' --fault fault=fail \
  --lose "touch $scratch/gone/\$FRIT_CONFORM_PID" --set "plugin.org.example.late.option.gone=$scratch/gone"
expect 1 '^fault/launches$' '*' "$frit" conform "$late" --filter fault/launches --fault fault=none
grep -q '^    with fault=none the launch does not fail$' "$scratch/out" || complain "what does not fail passes" "conform --fault"
expect 1 '^    --lose: the command ends with status' '*' "$frit" conform "$late" --filter fault/lost --lose false
printf '[plugin.org.example.late]\noption.fault = lose\n' >"$scratch/lose.ini"
for way in "--set plugin.org.example.late.option.fault=lose" "env FRIT_CONFIG=$scratch/lose.ini"; do
  command=("$frit" conform "$late" --quick --jobs 1 --filter 'add/f32/*' --filter 'device/*')
  [[ $way == env* ]] && command=($way "${command[@]}") || command+=($way)
  expect 3 '^the device was lost: [1-9][0-9]* more cases were not run$' '*' "${command[@]}"
  [ "$(grep -c '^failed ' "$scratch/err")" = 1 ] || complain "other cases fail, too" "${command[*]}"
  [ "$(grep -cE '^frit conform: late:0 was lost in [a-z]*/[^ ]*; [0-9]+ of [0-9]+ cases were not run$' "$scratch/err")" = 1 ] ||
    complain "not one line of the loss" "${command[*]}"
done
expect 2 '' "--fault wants OPTION=VALUE, not 'fault'" "$frit" conform "$late" --fault fault

# Only its options make the second device: they count where the driver is looked up, and where its plugin is opened again.
expect 1 '' 'conform: fake:1: ' "$frit" conform fake:1 --filter memory/places --set "plugin.fake-good.library=$fakes/libfrit-fake-good.so"
expect 0 '^fake:1: 1 cases .*: 1 passed' 'warn fake: ' "$frit" conform fake:1 --filter memory/places \
  --set "plugin.fake-good.library=$fakes/libfrit-fake-good.so" --set plugin.fake-good.option.devices=2
printf '[plugin.fake-good]\nlibrary = %s\noption.devices = 2\n' "$fakes/libfrit-fake-good.so" >"$scratch/two.ini"
expect 0 '^fake:1: 1 cases .*: 1 passed' 'warn fake: ' env FRIT_CONFIG="$scratch/two.ini" "$frit" conform fake:1 --filter memory/places
expect 1 '' 'fake-good.so: bad-option: .*option.devices' "$frit" conform "$fakes/libfrit-fake-good.so" --filter memory/places \
  --set plugin.fake-good.option.devices=many

# The driver with nothing wrong, and one wrong thing each.
expect 0 ' 0 failed, .* 4 native' '*' "$frit" conform "$wrongs/libfrit-fake-four.so" --quick "${four[@]}"
# Missing ops are known before the first case, and count as no case.
expect 0 ' 1 rows: 1 native, ' '' "$frit" conform "$build/tests/template/libfrit-template.so" --filter 'add/f32/odd/dense'
# A failure is printed at once, when most cases are still to come.
mkfifo "$scratch/early.err"
exec 9<>"$scratch/early.err"
"$frit" conform "$wrongs/libfrit-fake-wrong-strides.so" --isolate --jobs 1 --filter neg --filter add --filter maximum \
  >"$scratch/early.out" 2>"$scratch/early.err" &
early=$!
read -r -t 60 -u 9 line
[ ! -s "$scratch/early.out" ] && [[ $line == 'failed neg/f32/'*': y: element '*' are wrong' ]] || complain "not printed at once: $line" "conform"
kill $early
exec 9>&-
sinners=0
while IFS='|' read -r file case words; do
  sinners=$((sinners + 1))
  [ $((sinners % every)) -eq 0 ] || continue
  row=${case%%/*}
  expect 1 "^$case\$" '*' "$frit" conform "$wrongs/libfrit-fake-$file.so" --quick --filter "$row" --timeout 2
  grep -A1 "^$case\$" "$scratch/out" | grep -q -- "$words" || complain "no word of '$words'" "$file $case"
  # The other cases were run and counted all the same.
  grep -qE ', [1-9][0-9]* failed, ' "$scratch/out" || complain "no count of failures" "$file"
  case $row in
    device | memory | queue | kernel | program | spec | fuser) ;;
    *) grep -qE "^$row  *[F~-]" "$scratch/out" || complain "no line of the table" "$file" ;;
  esac
done < <(sed -nE 's/^FAKE_WRONG\([A-Z_]+, "([^"]*)", "([^"]*)", "([^"]*)"\)$/\1|\2|\3/p' tests/fake/wrongs.def)
[ $sinners -ge 46 ] || complain "only $sinners wrong drivers" wrongs.def

# A crash fails its case only: the other cases of the row go on in another process.
expect 1 ' [1-9][0-9]* passed, 1 failed, ' '^failed neg/f32/rank0/dense: it crashed: Segmentation fault$' \
  "$frit" conform "$wrongs/libfrit-fake-wrong-crashes.so" --quick --filter 'neg/f32/*'
expect 1 ' [1-9][0-9]* passed, 1 failed, ' '^failed add/f32/rank0/dense: it crashed' \
  "$frit" conform "$wrongs/libfrit-fake-wrong-aborts.so" --isolate --filter 'add/f32/*/dense'

# The first failure ends it, however many processes there are; it ends as failed, and says what was left out.
for jobs in 1 4; do
  expect 1 ' 1 failed, ' '^frit conform: stopped at the first failure; [1-9][0-9]* of [0-9]+ cases were not run$' \
    "$frit" conform "$wrongs/libfrit-fake-wrong-strides.so" --quick --fail-fast --jobs $jobs --filter neg --filter add --junit "$scratch/junit.xml"
  [ "$(grep -c '^failed ' "$scratch/err")" = 1 ] || complain "several failures" "conform --fail-fast"
  grep -q '^stopped at the first failure: [1-9][0-9]* more cases were not run$' "$scratch/out" || complain "no word of it" "conform --fail-fast"
  grep -q '><skipped message="not run"/>' "$scratch/junit.xml" || complain "no word of it" "conform --fail-fast --junit"
done
expect 1 '"not_run": [1-9]' '*' "$frit" conform "$wrongs/libfrit-fake-wrong-strides.so" --quick --fail-fast --filter neg --json
expect_json conform
expect 0 '"not_run": 0,' '' "$frit" conform reference --quick --fail-fast --filter neg --json

wait $slow
[ $? = 1 ] || complain "what hangs passes" "conform in a pipe"
printf '%s\n' 'failed neg/f32/rank0/dense: it hangs: no answer after 10.5 s' 'frit conform: 1 of 2, 1 failed' |
  cmp -s - <(sed '/: submit has not returned for 10 s$/d; s|, 0\.[01]/s$||' "$scratch/slow.err") || complain "not how far it is: $(cat "$scratch/slow.err")" "conform in a pipe"
cp "$scratch/slow.out" "$scratch/out"
expect_json "conform in a pipe"
finish
