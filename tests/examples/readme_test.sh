#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first C block of the README is tools/examples/readme.c, and that program, given as $1, runs.
set -euo pipefail
diff <(awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md) \
  <(awk '/^#include/ { inside = 1 } inside' tools/examples/readme.c)
output=$("$1")
# gelu(-2 -1 0) and gelu(1 2 3), averaged.
[ "$output" = "reference:0: -0.0681 1.9306" ] || { echo "unexpected: $output"; exit 1; }
