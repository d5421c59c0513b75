#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Both networks of the demo run on the device alone: what it cannot run, nobody runs.
. "$(dirname "$0")/../tools/expect.sh"
export FRIT_FALLBACK=none
device=${FRIT_TEST_DEVICE:-cpu:0}
# With sanitizers on cpu alone, unless FRIT_TEST_LONG=1: elsewhere a vendor's code takes the time, or plain loops that other tests run.
if is_short; then
  [ "$device" = cpu:0 ] || finish
  printf '[plugin.%s]\nenabled = no\n' reference vulkan >"$scratch/cpu.ini"
  export FRIT_CONFIG=$scratch/cpu.ini
fi
expect 0 "^digits-mlp on $device: 500 images, 485/500 right" '*' "$build/bin/frit-digits"
matches "$out" "^digits-cnn on $device: 500 images, 495/500 right" || complain "other numbers of the second network" frit-digits
finish
