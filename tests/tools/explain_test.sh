#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit explain: its output is what tests/golden/explain holds, without fusers and with those of tests/outside/fuser.
# With BLESS=yes the files are written instead; read the difference before it is committed.
. "$(dirname "$0")/expect.sh"
golden=tests/golden/explain
cat >"$scratch/blocks.ini" <<END
[plugin.org.frit.blocks]
library = $build/tests/outside/libfrit-blocks.so
END
blocks=(env FRIT_CONFIG="$scratch/blocks.ini")
parts=(env FRIT_CONFIG="$scratch/blocks.ini" FRIT_DECOMPOSE=yes)

golden() { # NAME COMMAND...
  local name=$1
  shift
  expect 0 '*' '' "$@"
  if [ "${BLESS-}" = yes ]; then
    cp "$scratch/out" "$golden/$name.txt"
  elif ! diff "$golden/$name.txt" "$scratch/out" >"$scratch/diff"; then
    complain "not as in $golden/$name.txt: $(cat "$scratch/diff")" "$*"
  fi
}

for model in digits-cnn digits-mlp; do
  golden $model "$frit" explain tools/models/$model.frit -d reference
  golden $model-blocks "${blocks[@]}" "$frit" explain tools/models/$model.frit -d reference
  golden $model-parts "${parts[@]}" "$frit" explain tools/models/$model.frit -d reference
done
golden chain-blocks "${blocks[@]}" "$frit" explain $golden/chain.frit -d reference
golden chain-unfused "${blocks[@]}" "$frit" explain $golden/chain.frit -d reference --no-fuse
golden chain-json "${blocks[@]}" "$frit" explain $golden/chain.frit -d reference --json
expect_json

# ---- without one of the fusers
expect 0 'cpu/contract' '' "$frit" explain tools/models/digits-mlp.frit -d cpu
expect 0 '*' '' env FRIT_FUSION_EXCLUDE=cpu/none,cpu/contract "$frit" explain tools/models/digits-mlp.frit -d cpu
! grep -q cpu/contract "$scratch/out" || complain "an excluded fuser is used" "explain"
grep -q '\[cpu/' "$scratch/out" || complain "no other fuser is used" "explain"
expect 1 '' "FRIT_FUSION_EXCLUDE: .*'contract' is no fuser; set PLUGIN/NAME" \
  env FRIT_FUSION_EXCLUDE=contract "$frit" explain tools/models/digits-mlp.frit -d cpu

# ---- what runs instead: the program of a block or of a composite op fails (the first prepare is the input's), or the
# driver has no such op
instead() { # WHICH OPTION VALUE FLAG...: explain shows it, and run counts it
  local which=$1 key want
  printf '[plugin.null]\nlibrary = %s\noption.%s = %s\n[frit]\nfallback = reference:0\n' \
    "$build/tests/fake/null/libfrit-null.so" "$2" "$3" >"$scratch/null.ini"
  shift 3
  golden instead-$which env FRIT_CONFIG="$scratch/null.ini" "$frit" explain $golden/instead.frit -d null "$@"
  golden instead-$which-json env FRIT_CONFIG="$scratch/null.ini" "$frit" explain $golden/instead.frit -d null --json "$@"
  expect_json
  expect 0 '*' '' env FRIT_CONFIG="$scratch/null.ini" "$frit" run $golden/instead.frit -d null --in a=zeros --json "$@"
  expect_json
  for key in candidate ops decomposed device; do
    want=0
    [ $key = "$which" ] && want=1
    grep -q "\"fallbacks_$key\": $want," "$scratch/out" || complain "fallbacks_$key is not $want" "run"
  done
}
instead ops fail_call prepare:2:unsupported
instead decomposed fail_call prepare:2:unsupported --no-fuse
instead device refuse neg --no-fuse

# ---- programs that are compiled in the background are waited for
expect 0 '\[cpu/' '' env FRIT_ARTEFACTS=none FRIT_FUSION_COMPILE=background "$frit" explain $golden/chain.frit -d cpu
grep -q 'ran op by op' "$scratch/out" && complain "$(cat "$scratch/out")" explain

# ---- shapes
expect 0 'f32\[3, 2\]' '' "$frit" explain $golden/chain.frit --in a=random
expect 0 'f32\[500, 64\]' '' "$frit" explain tools/models/digits-mlp.frit --in x=tests/data/digits/images.npy
expect 2 '' "no input 'aa'" "$frit" explain $golden/chain.frit --in aa=zeros
expect 1 '' 'cannot be opened' "$frit" explain "$scratch/none.frit"
expect 1 '' 'nothing' "$frit" explain $golden/chain.frit -d nothing
finish
