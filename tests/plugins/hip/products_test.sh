#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Products by the fake library: `conform DRIVER`, whose rows with products have no failed case, or `device COMMAND...`.  In both the
# library must have computed at least 60 products, 10 of each kind, none with tf32.  With FRIT_FUSION_NUMERIC=reduced all products of
# f32 are with tf32, and no other.
. "$(dirname "$0")/../../tools/expect.sh"
what=$1
shift
export FAKE_GPU_PRODUCTS=$scratch/products
case $what in
  conform)
    # whose numbers are exact whatever the configuration allows
    expect 0 ' [1-9][0-9]{2} passed, 0 failed, 0 skipped; .* 0 fallback, 0 failed$' '*' env FRIT_FUSION_NUMERIC=reduced "$frit" conform "$1" --quick \
      -f 'matmul*' -f 'linear*' -f 'attention*'
    ;;
  device) expect 0 '*' '*' "$@" ;;
esac
forbidden=tf32
[ "${FRIT_FUSION_NUMERIC:-}" = reduced ] && forbidden='tf32 type [^0]|- type 0 0'
grep -Eq -- "$forbidden" "$scratch/products" && complain "products with '$forbidden'" "$what"
bias=bias:8
[[ $FRIT_CONFIG == *rocblas.ini ]] && bias=bias:0 # it has none
for kind in '^product:60' batches:10 $bias transposed:10 workspace:10 'type 0 0:10' 'type 1 1:4' 'type 2 2:4' 'type 14 14:4'; do
  found=$(grep -c -- "${kind%:*}" "$scratch/products")
  [ "$found" -ge "${kind#*:}" ] || complain "$found products with ${kind%:*} instead of ${kind#*:} or more" "$what"
done
finish
