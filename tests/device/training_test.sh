#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The network of the demo learns on the device alone, also in two replicas.
. "$(dirname "$0")/../tools/expect.sh"
export FRIT_FALLBACK=none
device=${FRIT_TEST_DEVICE:-cpu:0}
counts=(1 2)
[ -z "${FRIT_TEST_SANITIZE-}" ] || [ -n "${FRIT_TEST_LONG-}" ] || counts=(2) # seconds each
for replicas in "${counts[@]}"; do
  expect 0 "^digits-cnn, .* on $device" '*' "$build/bin/frit-train-digits" --device "$device" --epochs 2 --replicas $replicas
  right=$(sed -nE 's/^([0-9]+) of 500 right after 2 epochs.*/\1/p' <<<"$out")
  [ "${right:-0}" -ge 430 ] || complain "only ${right:-none} of 500 are right" frit-train-digits
done
finish
