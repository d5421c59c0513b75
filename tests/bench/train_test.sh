#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/bench/train.c measures a step, the network learns its batch, and warm steps neither search nor allocate.
. "$(dirname "$0")/../tools/expect.sh"

expect 0 '"network": "mlp", "device": "cpu:0", .*"warm_us": [0-9.]+, .*"plan_misses": 0, "driver_allocs": 0, "loss": 0\.' '' "$build/tests/bin/train" cpu mlp 60
expect_json train
expect 2 '' usage "$build/tests/bin/train" cpu rnn
expect 1 '' 'no usable device' "$build/tests/bin/train" none-such mlp
finish
