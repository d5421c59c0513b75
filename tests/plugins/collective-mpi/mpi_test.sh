#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine collective-mpi over Open MPI or MPICH, in jobs of 2 and 4 processes.  Skipped where that is not installed.
#
#   mpi_test.sh RANK-PROGRAM openmpi|mpich
set -uo pipefail
rank=$1 mpi=$2
export FRIT_TEST_PLUGIN=collective-mpi
failed=0

fail() { echo "FAILED: $*" >&2; failed=1; }

# The tests' machine may have fewer cores than ranks, and be a container whose user is root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
job() { # RANKS SCENARIO
  if [ "$mpi" = mpich ]; then
    timeout 60 mpiexec.mpich -n "$1" "$rank" "$2"
  else
    timeout 60 mpirun -n "$1" --bind-to none --oversubscribe --mca mpi_yield_when_idle 1 --mca btl vader,self "$rank" "$2"
  fi
}

# MPI itself is not instrumented, so that what it does right would be found wrong.  UCX, below MPICH, replaces functions of the C library
# that the thread sanitizer has replaced, and crashes.
case ${FRIT_TEST_SANITIZE:-} in
  *thread*)
    [ "$mpi" = openmpi ] || exit 77
    export TSAN_OPTIONS="ignore_noninstrumented_modules=1 ${TSAN_OPTIONS:-}"
    ;;
esac

# What does not depend on the implementation of MPI is tried with one of them.
if [ "$mpi" = mpich ]; then
  command -v mpiexec.mpich >/dev/null || exit 77
  counts=2 scenarios="mismatch left" by_messages="results quiet"
else
  "$rank" alone || fail "alone"
  OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 FRIT_TEST_LIBRARY=libm.so.6 "$rank" wrong_library || fail "another library"
  command -v mpirun >/dev/null && mpirun --version 2>/dev/null | grep -q 'Open MPI' || exit 77
  counts="2 4" scenarios="mismatch mismatched_notes aborted left late background together crossed quiet"
  by_messages="results together quiet"
fi

for n in $counts; do
  job $n results || fail "results of $n ranks"
done
[ -z "${FRIT_TEST_LONG:-}" ] || for n in 1 2 3 4 5; do
  job $n types || fail "types of $n ranks"
  job $n results || fail "results of $n ranks"
done
for scenario in $scenarios; do
  job 2 $scenario || fail "$scenario"
done
# Between hosts, where no memory is shared.
for scenario in $by_messages; do
  FRIT_TEST_MESSAGES=1 job 2 $scenario || fail "$scenario, by messages"
done

text=$(job 2 killed 2>&1) && fail "a job of which a rank was killed ends well"
took=$(($(date +%s%3N) - $(sed -n 's/.*killed at \([0-9]*\) ms.*/\1/p' <<<"$text")))
[ $took -lt 20000 ] || fail "the job ended $took ms after a rank was killed"
case $mpi:$text in
  openmpi:*"rank 1 "*"signal 9"*) ;;
  mpich:*"PID "*" RUNNING AT "*"signal 9"*) ;;
  *) fail "the rank that was killed is not named: $text" ;;
esac
exit $failed
