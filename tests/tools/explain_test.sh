#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit explain: what it tells is what tests/golden/explain holds, without fusers and with those of tests/outside/fuser.
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

# ---- shapes
expect 0 'f32\[3, 2\]' '' "$frit" explain $golden/chain.frit --in a=random
expect 0 'f32\[500, 64\]' '' "$frit" explain tools/models/digits-mlp.frit --in x=tests/data/digits/images.npy
expect 2 '' "no input 'aa'" "$frit" explain $golden/chain.frit --in aa=zeros
expect 1 '' 'cannot be opened' "$frit" explain "$scratch/none.frit"
expect 1 '' 'nothing' "$frit" explain $golden/chain.frit -d nothing
finish
