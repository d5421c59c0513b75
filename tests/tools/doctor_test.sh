#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Devices, configuration, and messages where they fail.
. "$(dirname "$0")/expect.sh"
mlp=$PWD/tools/models/digits-mlp.frit
plugin=$build/lib/frit/plugins/libfrit-reference.so

# ---- devices
expect 0 '^[* ] reference:0 .*\[plain loops' '*' "$frit" devices
expect 0 '^    capabilities' '*' "$frit" devices -v
expect 0 '"name": "reference:0"' '' "$frit" devices --json
expect_json

# what devices compute with, and a warning where the default one lacks something
printf '[plugin.cpu]\noption.llvm = /nowhere/libLLVM.so\n' >"$scratch/slow.ini"
expect 0 '^\* cpu:0 .*\[interpreter: .*/nowhere/libLLVM' '^frit: warning: the default device, cpu:0, computes slowly: interpreter: ' \
  env FRIT_DEVICE=cpu FRIT_CONFIG="$scratch/slow.ini" "$frit" devices
[ "$(wc -l <"$scratch/err")" = 1 ] || complain "not one warning" "devices"
expect 0 '"compute": "interpreter: .*/nowhere' '' env FRIT_DEVICE=cpu FRIT_CONFIG="$scratch/slow.ini" "$frit" devices --json
grep -q '"slow": true' "$scratch/out" || complain "no device is slow" "devices --json"
printf '[plugin.cpu]\noption.tier = 0\n' >"$scratch/chosen.ini"
expect 0 '^\* cpu:0 .*\[interpreter, as its options say\]' '' env FRIT_DEVICE=cpu FRIT_CONFIG="$scratch/chosen.ini" "$frit" devices
expect 1 '' 'nope:0' env FRIT_DEVICE=nope:0 "$frit" run "$mlp"
expect 1 '' 'no-driver|no loaded plugin|no driver' env FRIT_DEVICE=nope:0 "$frit" run "$mlp"
expect 1 '' 'reference:7' "$frit" run "$mlp" --device reference:7
expect 0 '^reference:0: ' '*' "$frit" run "$mlp" --device nope:0,reference
expect 0 'nope' '*' "$frit" doctor why nope:0
expect 0 'reference' '*' "$frit" doctor why reference:0
for name in reference:0 reference nope config; do
  "$frit" doctor why "$name" >"$scratch/why"
  [ "$name" = config ] || expect 0 '*' '' "$frit" doctor "$name"
  [ "$name" = config ] || cmp -s "$scratch/why" "$scratch/out" || complain "not what \`why\` says" "doctor $name"
done
expect 0 '^device +=' '' "$frit" doctor config
! grep -q '^device  *=' "$scratch/why" || complain "the configuration instead of a name" "doctor why config"

# ---- ops
expect 0 '^  conv +core +Cross-correlation' '' "$frit" ops
expect 0 '^y = conv x, w, bias, \[stride=\], \[padding=\]' '' "$frit" ops conv
expect 0 '^  reference:0 +native' '' "$frit" ops matmul
expect 0 '^  matmul +core +native ' '' "$frit" ops --device reference:0
expect 0 '^  reshape +core +host ' '' "$frit" ops --device reference:0
expect 0 '^  ceil +composite +(native|decomposed) ' '' "$frit" ops --device reference:0
expect 1 '' 'nope' "$frit" ops --device nope:0
expect 0 '"support": "native"' '' "$frit" ops matmul --device reference --json
expect_json
expect 0 '*' '' "$frit" ops --json
expect_json

# ---- configuration
unset FRIT_DEVICE
expect 0 '^device += auto +built in$' '' "$frit" doctor config
expect 0 '^device += reference +environment FRIT_DEVICE$' '' env FRIT_DEVICE=reference "$frit" doctor config
printf '[frit]\ndevice = reference:0\n' >"$scratch/good.ini"
expect 0 "^device += reference:0 +$scratch/good.ini:2$" '' env FRIT_CONFIG="$scratch/good.ini" "$frit" doctor config
expect 0 '"origin": "built in"' '' "$frit" doctor config --json
expect_json
bad() { # LINE TEXT CONFIGURATION
  printf "$3" >"$scratch/bad.ini"
  expect 1 '' "bad.ini:$1: .*$2" env FRIT_CONFIG="$scratch/bad.ini" "$frit" devices
}
bad 2 'devise' '[frit]\ndevise = cpu\n'
bad 2 'many' '[stream]\nmax_ops = many\n'
bad 3 'device' '[frit]\ndevice = cpu\ndevice = cpu\n'
bad 2 'DRIVER:INDEX' '[frit]\ndevice = cpu:x\n'
bad 2 '198|long' "[frit]\ndevice = $(printf 'x%.0s' $(seq 300))\n"
bad 2 '0x00' '[frit]\ndevice = c\0pu\n'

# ---- a plugin named by path, from any folder; then taken away
cp "$plugin" "$scratch/libfrit-reference.so"
printf '[plugin.reference]\nlibrary = libfrit-reference.so\n' >"$scratch/plugin.ini"
mkdir "$scratch/empty"
(cd / && FRIT_PLUGIN_PATH=$scratch/empty FRIT_CONFIG=$scratch/plugin.ini "$frit" run "$mlp") >"$scratch/out" 2>&1 ||
  complain "a plugin named by path does not load" "$(cat "$scratch/out")"
expect 1 '' 'device' env FRIT_PLUGIN_PATH="$scratch/empty" "$frit" run "$mlp"
rm "$scratch/libfrit-reference.so"
expect 0 'not-found' '*' env FRIT_PLUGIN_PATH="$scratch/empty" FRIT_CONFIG="$scratch/plugin.ini" "$frit" devices
expect 1 '' 'libfrit-reference.so|reference' env FRIT_PLUGIN_PATH="$scratch/empty" FRIT_CONFIG="$scratch/plugin.ini" "$frit" run "$mlp"
expect 0 'not-found' '*' env FRIT_PLUGIN_PATH="$scratch/empty" FRIT_CONFIG="$scratch/plugin.ini" "$frit" doctor why reference
printf '[plugin.reference]\nlibrary = other-name.so\n' >"$scratch/plugin.ini"
expect 0 'plugin.ini:2.*not-found' '*' env FRIT_PLUGIN_PATH="$scratch/empty" FRIT_CONFIG="$scratch/plugin.ini" "$frit" doctor why reference
finish
