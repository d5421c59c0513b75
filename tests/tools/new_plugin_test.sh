#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `frit new-plugin`: names, folders, what it writes.  That the result builds and passes is in tests/outside/new_plugin.
. "$(dirname "$0")/expect.sh"
cd "$scratch" || exit 1

for name in X npu_1 1npu -- 'a b' 'a/b' ../x é a12345678901234567890123456789; do
  expect 2 '' 'is not a valid driver name|missing argument' "$frit" new-plugin "$name"
done
for name in auto none template; do
  expect 2 '' "the name '$name' is reserved" "$frit" new-plugin "$name"
done
expect 2 '' 'missing argument: frit new-plugin NAME \[DIR\]' "$frit" new-plugin
expect 2 '' "unexpected argument 'c'" "$frit" new-plugin a b c
[ -z "$(find . -mindepth 1 ! -name out ! -name err)" ] || complain "something was made of a bad name" "$(ls)"

expect 0 'cmake -S npu-2 -B npu-2/build -DCMAKE_PREFIX_PATH=/' '' "$frit" new-plugin npu-2
matches "$out" 'frit conform npu-2/build/libfrit-npu-2\.so --quick$' || complain "no last step" npu-2
expect 1 '' 'npu-2 exists already$' "$frit" new-plugin npu-2
expect 1 '' 'no/such/folder cannot be created: No such file' "$frit" new-plugin npu no/such/folder
mkdir -p deep/er
expect 0 'deep/er/x/README.md' '' "$frit" new-plugin abcdefghijklmnopqrstuvwxyz-1 deep/er/x
expect 0 'org\.example\.abcdefghijklmnopqrstuvwxyz-1"' '' grep org.example deep/er/x/plugin.c

# The files are those of the tree but for the name.
shopt -s dotglob
for file in "$OLDPWD"/plugins/template/*; do
  sed 's/template/npu-2/g' "$file" | cmp -s - "npu-2/$(basename "$file")" || complain "it is not the template" "$file"
done
[ "$(ls -A npu-2)" = "$(ls -A "$OLDPWD/plugins/template")" ] || complain "other files than the template" "$(ls -A npu-2)"
cat npu-2/*.[ch] npu-2/CMakeLists.txt | wc -l | grep -qE '^(2[0-9][0-9]|300)$' || complain "more than 300 lines" "$(wc -l npu-2/*)"

# Without what lies beside it the command says so.
mkdir -p alone/bin
cp "$frit" alone/bin/
expect 1 '' 'share/frit/template is missing: .*installed completely' env "LD_LIBRARY_PATH=$build/lib" alone/bin/frit new-plugin y
[ ! -e y ] || complain "a folder without a template" y

# A file that cannot be written leaves a word, not a success.
expect 1 '' 'cannot be (created|written)' "$frit" new-plugin z /dev/null/z
finish
