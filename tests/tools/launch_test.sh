#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit launch`: without mpirun, and with it where it is installed.
. "$(dirname "$0")/expect.sh"
program=$build/tests/bin/launch_rank

# The words of a command line.
expect 2 '' '-n N is missing' "$frit" launch true
expect 2 '' 'must be a number from 1' "$frit" launch -n 0 true
expect 2 '' 'on this machine alone' "$frit" launch --plain --hosts x -n 2 true
expect 2 '' 'is for mpirun' env -u OMPI_COMM_WORLD_RANK "$frit" launch --rank true

# Ranks, lines and options.
expect 0 '^\[1\] 1 of 2 -v$' '^\[0\] to stderr$' "$frit" launch -n 2 --plain sh -c 'echo $RANK of $WORLD_SIZE $1; echo to stderr >&2' sh -v
[ "$(wc -l <"$scratch/out")" = 2 ] || complain "two lines are expected" plain
expect 0 '^\[0\] no end$' '' "$frit" launch -n 1 --plain printf 'no end'
expect 0 'rank .*= 1 .*environment RANK' '' env RANK=1 WORLD_SIZE=3 MASTER_ADDR=here MASTER_PORT=29500 "$frit" doctor config
matches "$out" 'store .*= tcp://here:29500 .*environment MASTER_ADDR' || complain "no store" "doctor config"
expect 0 'store .*= tcp://here:29501 .*environment MASTER_ADDR' '' env RANK=1 WORLD_SIZE=3 MASTER_ADDR=here MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True "$frit" doctor config
expect 0 '^\[0\] tcp://127.0.0.1:[0-9]+ 32$' '' "$frit" launch -n 1 --plain sh -c 'echo $FRIT_DIST_STORE ${#FRIT_DIST_TOKEN}'
expect 0 '^\[0\] tcp://here:1 word$' '' env FRIT_DIST_STORE=tcp://here:1 FRIT_DIST_TOKEN=word "$frit" launch -n 1 --plain sh -c 'echo $FRIT_DIST_STORE $FRIT_DIST_TOKEN'
printf '# hosts\n  far slots=2\nother\n' >"$scratch/hosts"
mkdir "$scratch/bin"
printf '#!/bin/sh\necho "$FRIT_DIST_STORE" "$@"\n' >"$scratch/bin/mpirun"
chmod +x "$scratch/bin/mpirun"
expect 0 '^tcp://far:2[0-9]+ .*-x FRIT_DIST_STORE ' '' env PATH="$scratch/bin:$PATH" "$frit" launch -n 2 --hosts "$scratch/hosts" true
! matches "$out" 'FRIT_DIST_TOKEN=' || complain "the token is on a command line" "$frit launch --hosts"
expect 1 '' 'no host in the file' env PATH="$scratch/bin:$PATH" "$frit" launch -n 2 --hosts /dev/null true
expect 0 'token .*= \(not shown\) .*environment FRIT_DIST_TOKEN' '' env FRIT_DIST_TOKEN=word "$frit" doctor config
expect 1 '' 'FRIT_DIST_TOKEN: \[dist\] token: 33 bytes; it must have at most 32' env FRIT_DIST_TOKEN=123456789012345678901234567890123 "$frit" doctor config
expect 0 'rank .*= 0 .*built in' '' env RANK=3 WORLD_SIZE=3 "$frit" doctor config
expect 0 'rank .*= 2 .*environment FRIT_DIST_RANK' '' env FRIT_DIST_RANK=2 RANK=1 WORLD_SIZE=3 "$frit" doctor config

# One fails: it is named, the others end.
expect 3 '*' 'rank 1 \(host .*, pid [0-9]+\) failed with exit code 3' "$frit" launch -n 3 --plain sh -c '[ $RANK != 1 ] || exit 3; exec sleep 100'
expect 137 '*' 'rank 0 \(host .*\) was ended by signal 9' "$frit" launch -n 2 --plain sh -c '[ $RANK != 0 ] || kill -9 $$; trap "" TERM; sleep 100 & wait; wait'
# Both have ended before it looks: the one that was killed is the reason.
at_once() {
  "$frit" launch -n 2 --plain sh -c 'echo $$ >"$0-$RANK"; until [ -e "$0" ]; do sleep .01; done; [ $RANK != 1 ] || kill -9 $$; exit 1' "$scratch/go" &
  local launch=$! rank
  until [ -s "$scratch/go-0" ] && [ -s "$scratch/go-1" ]; do sleep .01; done
  kill -STOP "$launch"
  touch "$scratch/go"
  for rank in 0 1; do
    until grep -q '^State:.Z' "/proc/$(<"$scratch/go-$rank")/status"; do sleep .01; done
  done
  kill -CONT "$launch"
  wait "$launch"
}
expect 137 '*' 'rank 1 \(host .*\) was ended by signal 9' at_once
expect 127 '' 'no-such-program: No such file' "$frit" launch -n 1 --plain ./no-such-program

# No engine without a job of MPI.
expect 1 '*' 'not started as a rank of an MPI job' env -u OMPI_COMM_WORLD_SIZE -u PMIX_RANK -u PMI_RANK \
  "$frit" launch -n 2 --plain "$program" collective-mpi

# Without the library it is named, before and when it is needed.
mkdir "$scratch/plugins"
sed 's/libmpi\.so\.40/libmpi.so.99/g; s/libmpich\.so\.12/libmpich.so.99/g' "$build/lib/frit/plugins/libfrit-collective-mpi.so" >"$scratch/plugins/libfrit-collective-mpi.so"
expect 0 'collective-mpi .*offers a collective engine, but libmpi.so.99 or libmpich.so.99 is not installed' '*' env FRIT_PLUGIN_PATH="$scratch/plugins" "$frit" devices
printf '[plugin.collective-mpi]\noption.library = libnowhere.so\n' >"$scratch/frit.ini"
expect 1 '' 'libnowhere.so: cannot open .*install Open MPI' env FRIT_CONFIG="$scratch/frit.ini" OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$program" collective-mpi

# GPUs, which the fakes of CUDA and NCCL stand for: rank 0 passes the library's id on by the job's store.
if [ -f "$build/tests/fake/nccl.ini" ]; then
  gpus() { # ARGS...
    env FRIT_CONFIG="$build/tests/fake/nccl.ini" FAKE_NCCL_CHECKS_MEMORY=1 "$frit" launch --plain -n 2 \
      sh -c 'FRIT_DEVICE=cuda:$RANK exec "$0" collective-nccl "$@"' "$program" "$@"
  }
  expect 0 'rank 1 of 2 is right' '*' gpus
  expect 137 '*' 'rank 1 \(host .*, pid [0-9]+\) died: connection closed' gpus killed
fi

command -v mpirun >/dev/null && mpirun --version 2>/dev/null | grep -q 'Open MPI' || finish
export ASAN_OPTIONS=detect_leaks=0 # what Open MPI keeps is its own
export OMPI_MCA_btl=vader,self
for n in 2 4; do
  expect 0 "rank 1 of $n is right" '*' "$frit" launch -n $n "$program" collective-mpi
  [ "$(grep -c 'is right' "$scratch/out")" = $n ] || complain "not all ranks are right" "$n ranks"
done
expect 137 '*' 'rank 1 \(host .*, pid [0-9]+\) was ended by signal 9' "$frit" launch -n 2 "$program" collective-mpi killed
matches "$err" '^\[0\] frit error job: rank 1 \(host .*, pid [0-9]+\) died: connection (closed|reset), at operation [0-9]+; 1 of 2' || complain "rank 0 does not name it" killed
took=$(($(date +%s%3N) - $(sed -n 's/.*killed at \([0-9]*\) ms.*/\1/p' "$scratch/err")))
[ $took -lt 6000 ] || complain "the job ended $took ms after a rank was killed" killed
finish
