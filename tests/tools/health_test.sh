#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit doctor: the page of health, and what it finds wrong.
. "$(dirname "$0")/expect.sh"
export HOME=$scratch/home XDG_CACHE_HOME=$scratch/home/cache
mkdir -p "$HOME" "$scratch/plugins"
unset FRIT_DEVICE FRIT_CONFIG FRIT_PLUGIN_PATH FRIT_SEARCH_PROBE FRIT_FUSION_STORE FRIT_TUNE_STORE FRIT_ARTEFACTS

# ---- nothing is wrong
cp "$build/lib/frit/plugins/"libfrit-{cpu,reference}.so "$scratch/plugins"
export FRIT_PLUGIN_PATH=$scratch/plugins
expect 0 '^No problems found\.$' '' "$frit" doctor
for word in '^frit [0-9.]+, ABI' '^  reference  .*built with this library$' '^\* cpu:0 ' \
  '^  configuration +none was found$' "^  plugins +$scratch/plugins, by environment FRIT_PLUGIN_PATH\$" \
  "^  plans +$XDG_CACHE_HOME/frit/plans.db \(not made yet\)" \
  "^  decisions +$XDG_CACHE_HOME/frit/tune.db \(not made yet\)" "^  compiled code +$XDG_CACHE_HOME/frit/artefacts " \
  '^  processors +[0-9]+ of [0-9]+$' '^  open files +[0-9]+'; do
  grep -Eq -- "$word" "$scratch/out" || complain "no line $word" "doctor"
done
expect 0 '"problems": \[\]' '' "$frit" doctor --json
expect_json
for key in version abi_min abi_max compiler sanitizer library system plugins probe devices places kind exists files bytes \
  max_bytes limits processors usable_processors memory_bytes huge_pages problems; do
  grep -q "\"$key\":" "$scratch/out" || complain "no key $key" "doctor --json"
done

# ---- plugins: a stranger is tried, once; one that crashes is a problem
ln -s "$build/tests/fake/libfrit-fake-good.so" "$scratch/plugins/libfrit-fake-good.so"
expect 0 '^  fake-good .*tried in a process of its own just now$' '' "$frit" doctor
expect 0 '^  fake-good .*tried earlier, the result is kept$' '' "$frit" doctor
ln -s "$build/tests/probe/libfrit-sin-open-crash.so" "$scratch/plugins/libfrit-sin-open-crash.so"
expect 1 '^  1\. plugin .*libfrit-sin-open-crash.so .* is not used: crashes: in open: SIGSEGV' '*' "$frit" doctor
expect 1 '"advice": "`frit doctor plugin FILE`' '*' "$frit" doctor --json
expect_json
rm "$scratch/plugins/libfrit-sin-open-crash.so"

# ---- folders and files
kept=$XDG_CACHE_HOME/frit/artefacts
expect 0 "^  compiled code +$kept \([1-9][0-9]* files" '' "$frit" doctor
chmod 777 "$kept"
expect 1 "artefacts: others may write to it \(mode 0777\)\$" '*' "$frit" doctor
chmod 700 "$kept"
mkfifo "$kept/stranger.art"
expect 1 'artefacts: 1 of [0-9]+ files are ignored' '*' "$frit" doctor
rm "$kept/stranger.art"
expect 1 'plugins: is not a regular file$' '*' env FRIT_FUSION_STORE="$scratch/plugins" "$frit" doctor
expect 1 "^  1\. $scratch/nowhere \(environment FRIT_PLUGIN_PATH\): No such file" '*' \
  env FRIT_PLUGIN_PATH="$scratch/nowhere:$scratch/plugins" "$frit" doctor
chmod 777 "$scratch/plugins"
expect 1 'plugins: others may write to it' '*' "$frit" doctor
chmod 755 "$scratch/plugins"

# ---- processes that died in a plugin
ln -s "$build/tests/wrong/libfrit-fake-crashes.so" "$scratch/plugins"
export FRIT_SEARCH_PROBE=never
for _ in 1 2; do ("$frit" devices; true) >"$scratch/out" 2>&1; done
expect 1 'libfrit-fake-crashes.so .* is not used: died: ' '*' "$frit" doctor
expect 0 '^fake-crashes: forgiven' '*' "$frit" doctor forgive fake-crashes
expect 2 '' 'ID is missing' "$frit" doctor forgive
rm "$scratch/plugins/libfrit-fake-crashes.so"
expect 1 '' 'fake-good' "$frit" doctor forgive fake-good
unset FRIT_SEARCH_PROBE

# ---- configuration, limits
printf '[frit]\ndevice = nope\n' >"$scratch/nope.ini"
expect 1 'no device of the configured list is usable' '*' env FRIT_CONFIG="$scratch/nope.ini" "$frit" doctor
grep -q "^  configuration  *$scratch/nope.ini" "$scratch/out" || complain "not the file" "doctor"
printf '[frit]\ndevise = nope\n' >"$scratch/bad.ini"
expect 1 'no host opens: .*bad.ini:2: ' '' env FRIT_CONFIG="$scratch/bad.ini" "$frit" doctor
expect 1 'unknown environment variable FRIT_DEVIZE' '' env FRIT_DEVIZE=cpu "$frit" doctor
expect 1 'there is no usable device' '*' env FRIT_PLUGIN_PATH="$scratch" "$frit" doctor
expect 1 'the limit of this process on open files is 40$' '*' sh -c "ulimit -n 40; exec '$frit' doctor"
finish
