#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit doctor report: it has what a maintainer needs, and nothing that says who wrote it.
. "$(dirname "$0")/expect.sh"
host=$(uname -n)
export HOME=$scratch/home/janedoe USER=janedoe LOGNAME=janedoe
export XDG_CACHE_HOME=$HOME/.cache
unset FRIT_FUSION_STORE FRIT_ARTEFACTS
mkdir -p "$HOME/plugins-of-$host"
cp "$build/tests/fake/libfrit-fake-good.so" "$HOME/plugins-of-$host"
export FRIT_PLUGIN_PATH=$HOME/plugins-of-$host:$build/lib/frit/plugins
printf '[frit]\ntrace = none\n[plugin.fake-good]\noption.stable = private-of-janedoe\n' >"$HOME/frit.ini"
export FRIT_CONFIG=$HOME/frit.ini
printf 'input janedoe : f32[2]\noutput y = mul janedoe, 0.5\n' >"$HOME/program.frit"

expect 0 'report.txt: written; read it before you send it$' '*' \
  "$frit" doctor report "$HOME/program.frit" --device reference -o "$scratch/report.txt"
for word in '^== Health ==$' '^== Configuration ==$' '^== Plugin files ==$' '^== Environment ==$' '^== Program ==$' \
  '^frit [0-9.]+, ABI' '^\[frit\] device = ' '^FRIT_CONFIG=~/frit.ini$' 'note reference ' 'build id [0-9a-f]' \
  'needs libc.so.6: /' '~/plugins-of-<host>/libfrit-fake-good.so' '= mul %?[a-z<>0]*, 0.5$' 'found[.:]$'; do
  grep -Eq -- "$word" "$scratch/report.txt" || complain "no line $word" "$(cat "$scratch/report.txt")"
done
for private in "$HOME" janedoe "$host"; do
  ! grep -Fwq -- "$private" "$scratch/report.txt" || complain "it says $private" "$(grep -Fw -- "$private" "$scratch/report.txt")"
done
# without a file, and without a program
expect 0 '^== Environment ==$' '*' "$frit" doctor report
! grep -Fq -- janedoe "$scratch/out" || complain "it says janedoe" "doctor report"
! grep -q '== Program ==' "$scratch/out" || complain "which program?" "doctor report"
# a secret, a file that cannot be written, a program that is none, a configuration that cannot be read
expect 0 'FRIT_SECRET_KEY=\(left out\)' '*' env FRIT_SECRET_KEY=42424242 "$frit" doctor report
! grep -q 42424242 "$scratch/out" || complain "it says the secret" "doctor report"
expect 1 '' 'No such file' "$frit" doctor report -o "$scratch/none/report.txt"
expect 0 'frit explain: failed' '*' "$frit" doctor report "$scratch/none.frit"
printf '[frit]\ndevise = cpu\n' >"$HOME/frit.ini"
expect 0 'no host opens: ~/frit.ini:2: ' '*' "$frit" doctor report
finish
