#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The measuring of two streams beside one works, with one queue and with more.
. "$(dirname "$0")/../tools/expect.sh"

for queues in 1 2; do
  expect 0 '^streams  cpu:0  256 elements  one [0-9]* steps/s  two [0-9]* steps/s  ratio [0-9.]*$' '' \
    "$build/tests/bin/streams" --elements 256 --steps 20 --rounds 1 --set "stream.queues=$queues"
done
expect 2 '' '--set wants SECTION.KEY=VALUE' "$build/tests/bin/streams" --set queues
finish
