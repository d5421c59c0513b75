#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The training example learns, draws, splits batches, and goes on from a file as if it had not stopped.
. "$(dirname "$0")/expect.sh"
train=("$build/bin/frit-train-digits" --device cpu)
export FRIT_THREADS=1 FRIT_ARTEFACTS=$scratch/artefacts

# epoch 1's loss, epoch 2's, and the images that are right then
numbers() { sed -nE 's/^epoch +[12] of 2: loss ([0-9.]+), ([0-9]+) of .*/\1 \2/p' <<<"$out"; }

# A busy machine may take so long that it says how far it is.
calm='^(frit train: [0-9]+ of [0-9]+.*)?$'
expect 0 '^[0-9]+ of 500 right after 2 epochs, .* a step, [0-9]+ images/s$' "$calm" \
  "${train[@]}" --epochs 2 --svg "$scratch/curve.svg"
read -r first _ second right <<<"$(numbers | tr '\n' ' ')"
awk "BEGIN { exit !($second < $first / 2 && $right >= 430) }" || complain 'it does not learn' "$first $second $right"
for word in '^loss ' '^accuracy ' '^ +100% \|' '^ +1 +epoch 2$'; do
  matches "$out" "$word" || complain "no '$word'" 'the curves'
done

# Every element of the drawing is closed, and both curves have two points.
svg=$(tr '\n' ' ' <"$scratch/curve.svg")
count() { grep -oE "$1" <<<"$svg" | wc -l; }
[[ $svg == '<svg '*'</svg> ' ]] || complain 'not one svg element' "$svg"
[ "$(count '<[a-z]+')" = $(($(count '/>') + $(count '</[a-z]+>'))) ] || complain 'an element is open' "$svg"
[ "$(count "points='[0-9.]+,[0-9.]+ [0-9.]+,[0-9.]+'")" = 2 ] || complain 'no two curves of two points' "$svg"
[ "$(count '[^a-z](nan|inf)[^a-z]')" = 0 ] || complain 'no number' "$svg"

# Bit for bit, in the middle of an epoch.
train+=(--model mlp)
expect 0 '*' "$calm" "${train[@]}" --epochs 2 --save "$scratch/whole"
one=$(numbers)
expect 0 'after 1 epochs' "$calm" "${train[@]}" --epochs 2 --stop 27 --save "$scratch/part"
cmp -s "$scratch/whole" "$scratch/part" && complain 'it did not stop' "${train[*]}"
expect 0 'goes on after step 27' "$calm" "${train[@]}" --resume "$scratch/part" --save "$scratch/part"
cmp -s "$scratch/whole" "$scratch/part" || complain 'other bits than without a stop' "${train[*]}"

expect 0 'in 2 replicas' "$calm" "${train[@]}" --epochs 2 --replicas 2 --save "$scratch/threads"
[ "$one" ] && [ "$one" = "$(numbers)" ] || complain "not as with one replica: $one" 'two replicas'

# A replica on each of two devices: one step.
expect 0 'on cpu:0, reference:0 in 2 replicas' "$calm" "${train[@]}" --device cpu,reference --epochs 1 --stop 1 --replicas 2
if "$frit" devices | grep -q 'vulkan:0'; then # whose memory the host does not see; a busy machine may warn of its long compiles
  ASAN_OPTIONS=detect_leaks=0 expect 0 'on cpu:0, vulkan:0 in 2 replicas' '*' "${train[@]}" --device cpu,vulkan:0 --epochs 1 --stop 1 --replicas 2
fi

# Replicas as processes: rank 0 reports.
if command -v mpirun >/dev/null && mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
  export ASAN_OPTIONS=detect_leaks=0 OMPI_MCA_btl=vader,self # what Open MPI keeps is its own
  launch=(timeout 60 "$frit" launch -n)
  ! is_short && counts=(2 4) || counts=(2)
  for n in "${counts[@]}"; do
    expect 0 "in $n replicas" '*' "${launch[@]}" $n "${train[@]}" --epochs 2 --save "$scratch/processes$n"
    out=$(sed 's/^\[0\] //' <<<"$out")
    [ "$one" = "$(numbers)" ] || complain "not as with one replica: $one" "$n processes"
  done
  cmp -s "$scratch/threads" "$scratch/processes2" || complain 'other bits than with two threads' 'two processes'
  expect 0 '\[0\] 1 steps' '*' "${launch[@]}" 2 "${train[@]}" --device cpu,reference --epochs 1 --stop 1
  # Processes that train different networks learn which parameter differs.
  expect 1 '*' "rank 1's parameter 0 is 'conv1_w' .*, rank 0's is 'w1' " "${launch[@]}" 2 sh -c \
    '[ $OMPI_COMM_WORLD_RANK = 0 ] || set -- "$@" --model cnn; exec "$@"' sh "${train[@]}" --epochs 1
  expect 1 '*' 'leave --replicas out' "${launch[@]}" 2 "${train[@]}" --replicas 2
fi

expect 2 '' 'cannot be split' "${train[@]}" --replicas 3
expect 2 '' "no such number: 1x" "${train[@]}" --epochs 1x
expect 2 '' 'no network rnn' "${train[@]}" --model rnn
expect 1 '' '/no/such/tree/.*No such file' "${train[@]}" /no/such/tree
head -c 1000 "$scratch/whole" >"$scratch/cut"
expect 1 '' 'frit-train-digits: .+' "${train[@]}" --resume "$scratch/cut"
finish
