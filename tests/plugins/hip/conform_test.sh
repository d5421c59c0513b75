#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# conform_test.sh DRIVER SHARD: `frit conform DRIVER --quick --shard SHARD` on the fake runtime: no case fails and no row falls
# back.  All shards with FRIT_TEST_LONG=1.
driver=$1
shard=$2
[ -z "${FRIT_TEST_LONG-}" ] || shard=1/1
. "$(dirname "$0")/../../tools/expect.sh"

expect 0 ' [1-9][0-9]{3} passed, 0 failed, [0-8] skipped; .* 0 fallback, 0 failed$' '*' "$frit" conform "$driver" --quick \
  --shard "$shard"
# Of memory there is no cap as an option, and no adoption; a copy of most of the memory has too many groups.  Functions of the
# process cannot run there, and only its author can provoke faults.
skipped=(device/out-of-memory memory/capped memory/imported kernel/host-fn)
expect 0 ' 0 passed, 0 failed, 4 skipped' '*' "$frit" conform "$driver" --quick "${skipped[@]/#/--filter=}"
for name in "${skipped[@]}"; do
  grep -q "^skipped $name" "$scratch/out" || complain "$name is not skipped" "conform $driver"
done
finish
