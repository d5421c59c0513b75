#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examples say what they should, and notice what is wrong.
. "$(dirname "$0")/expect.sh"
expect 0 'the plate holds ([0-9.]+), and \1 flowed in' '' "$build/bin/frit-heat"
matches "$out" '^@:? ' || complain "no picture" frit-heat
# With sanitizers tests/device/digits_test.sh has them.
! is_short || { expect 1 '' '/no/such/tree/.*No such file' "$build/bin/frit-digits" /no/such/tree; finish; }
# On each device alone: what it cannot run, nobody runs.
FRIT_FALLBACK=none expect 0 'is a 3 ' '' "$build/bin/frit-digits"
for device in reference cpu vulkan; do
  for word in "mlp on $device:0: 500 images, 485" "cnn on $device:0: 500 images, 495"; do
    matches "$out" "^digits-$word/500 right" || complain "no '$word'" frit-digits
  done
done
expect 1 '' '/no/such/tree/.*No such file' "$build/bin/frit-digits" /no/such/tree

# Other labels are wrong answers.
cp -r tests/data/digits "$scratch/digits"
mkdir -p "$scratch/tests/data" "$scratch/tools"
mv "$scratch/digits" "$scratch/tests/data/digits"
cp -r tools/models "$scratch/tools/models"
cp tests/data/digits/cnn_logits.npy "$scratch/tests/data/digits/mlp_logits.npy"
printf '[plugin.%s]\nenabled = no\n' reference vulkan >"$scratch/frit.ini"
FRIT_CONFIG=$scratch/frit.ini expect 1 'digits-mlp on .*WRONG' '*' "$build/bin/frit-digits" "$scratch"
finish
