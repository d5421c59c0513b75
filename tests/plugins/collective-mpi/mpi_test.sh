#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine collective-mpi over Open MPI, in jobs of 2 and 4 processes.  Skipped where mpirun is not installed.
#
#   mpi_test.sh RANK-PROGRAM
set -uo pipefail
rank=$1
export FRIT_TEST_PLUGIN=collective-mpi
failed=0

fail() { echo "FAILED: $*" >&2; failed=1; }

"$rank" alone || fail "alone"
command -v mpirun >/dev/null && mpirun --version 2>/dev/null | grep -q 'Open MPI' || exit 77

# The tests' machine may have fewer cores than ranks, and be a container whose user is root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
job() { # RANKS SCENARIO
  timeout 60 mpirun -n "$1" --bind-to none --oversubscribe --mca mpi_yield_when_idle 1 --mca btl vader,self "$rank" "$2"
}

for n in 2 4; do
  job $n results || fail "results of $n ranks"
done
for scenario in mismatch mismatched_notes aborted left late background together quiet; do
  job 2 $scenario || fail "$scenario"
done
# Between hosts, where no memory is shared.
for scenario in results together quiet; do
  FRIT_TEST_MESSAGES=1 job 2 $scenario || fail "$scenario, by messages"
done

text=$(job 2 killed 2>&1) && fail "a job of which a rank was killed ends well"
took=$(($(date +%s%3N) - $(sed -n 's/.*killed at \([0-9]*\) ms.*/\1/p' <<<"$text")))
[ $took -lt 6000 ] || fail "the job ended $took ms after a rank was killed"
case $text in
  *"rank 1 "*"signal 9"*) ;;
  *) fail "the rank that was killed is not named: $text" ;;
esac
exit $failed
