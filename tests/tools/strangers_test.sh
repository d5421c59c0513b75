#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit devices` where plugins that crash, hang and end their process lie in the search path: they are named and the others are
# there, the second time without waiting.  A program that dies in a plugin is followed by one that does without it.
. "$(dirname "$0")/expect.sh"

mkdir "$scratch/plugins"
for file in tests/probe/libfrit-sin-{open-crash,open-hang,load-exit}.so lib/frit/plugins/libfrit-{reference,cpu}.so; do
  ln -s "$build/$file" "$scratch/plugins/"
done
export FRIT_CONFIG=/dev/null FRIT_ARTEFACTS=$scratch/artefacts FRIT_PLUGIN_PATH=$scratch/plugins FRIT_SEARCH_PROBE=auto

look() { # SECONDS: an upper limit
  local start=$SECONDS line
  expect 0 '^  cpu:0 ' '*' "$frit" devices
  [ $((SECONDS - start)) -le "$1" ] || complain "it took $((SECONDS - start)) s" "devices"
  for line in '. reference:0 ' '  sin +exits: in load, exit code 0$' '  sin +crashes: in open: SIGSEGV at address 0x8 in .*open-crash' \
    '  sin +hangs: in open, for 10 s$'; do
    [ "$(grep -cE "^$line" <<<"$out")" = 1 ] || complain "not one line '$line'" "devices"
  done
}
look 40
grep -q 'plugins that are new are being tried, for up to 10 s' <<<"$err" || complain "nothing says why it takes long" "devices"
look 5
grep -q 'are being tried' <<<"$err" && complain "they are tried again" "devices"

# In the process itself.
rm "$scratch"/plugins/libfrit-sin-{open-hang,load-exit}.so
export FRIT_SEARCH_PROBE=never
for death in 1 2; do
  "$frit" devices >/dev/null 2>&1 && complain "it did not die" "devices, $death"
done
expect 0 '^  sin +died: 2 processes died in its open; `frit doctor forgive sin` to load it again$' '*' "$frit" devices
expect 0 '^sin: forgiven' '*' "$frit" doctor forgive sin
"$frit" devices >/dev/null 2>&1 && complain "it is not tried again" "devices"
finish
