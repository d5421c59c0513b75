#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Both networks of the demo run on the device alone: what it cannot run, nobody runs.
. "$(dirname "$0")/../tools/expect.sh"
export FRIT_FALLBACK=none
device=${FRIT_TEST_DEVICE:-cpu:0}
# With sanitizers: without them tools/examples_test.sh has all devices.  On cpu alone, unless FRIT_TEST_LONG=1: what is slow elsewhere
# is a vendor's, and other tests go there.
! is_short || [ "$device" = cpu:0 ] || finish
for driver in reference cpu vulkan; do
  [ "$device" = "$driver:0" ] || printf '[plugin.%s]\nenabled = no\n' "$driver"
done >"$scratch/frit.ini"
export FRIT_CONFIG=$scratch/frit.ini
expect 0 "^digits-mlp on $device: 500 images, 485/500 right" '*' "$build/bin/frit-digits"
matches "$out" "^digits-cnn on $device: 500 images, 495/500 right" || complain "other numbers of the second network" frit-digits
finish
