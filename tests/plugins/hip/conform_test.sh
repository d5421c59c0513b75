#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit conform DRIVER --quick` on the fake runtime: no case fails and no row falls back.  What needs a second instance of the plugin
# takes its options from the command line only.
driver=$1
. "$(dirname "$0")/../../tools/expect.sh"
fakes=$build/tests/fake
case $driver in
  hip) settings=(--set "plugin.hip.option.library=$fakes/libfake-amdhip64-6.so") ;;
  cuda)
    settings=(--set "plugin.cuda.option.library=$fakes/libfake-cuda.so" --set plugin.cuda.option.products=none
      --set "plugin.cuda.option.compiler=$fakes/libfake-nvrtc.so")
    ;;
esac

# Of memory there is no cap as an option, and no adoption; a copy of most of the memory has too many groups.
expect 0 ' [1-9][0-9]{3} passed, 0 failed, 3 skipped; .* 0 fallback, 0 failed$' '*' "$frit" conform "$driver" --quick "${settings[@]}"
for name in device/out-of-memory memory/capped memory/imported; do
  grep -q "^skipped $name" "$scratch/out" || complain "$name is not skipped" "conform $driver"
done
finish
