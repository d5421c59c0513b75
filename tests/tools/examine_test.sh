#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit doctor plugin: what a file is, and whether it works.
. "$(dirname "$0")/expect.sh"
# Sanitizers leave signals and failing allocations to the program.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:allocator_may_return_null=1:handle_segv=0 \
  TSAN_OPTIONS=${TSAN_OPTIONS-}:allocator_may_return_null=1:handle_segv=0
unset FRIT_SEARCH_PROBE
export FRIT_PLUGIN_PATH=$scratch/plugins
mkdir "$scratch/plugins"
ln -s "$build/lib/frit/plugins/libfrit-reference.so" "$scratch/plugins"

# ---- one that works
plugin=$build/lib/frit/plugins/libfrit-reference.so
expect 0 '^No problems found\.$' '' "$frit" doctor plugin "$plugin"
for word in '^  id +reference$' '^  ABI +[0-9.]+ to [0-9.]+; this library: ' '^  1, with frit_plugin_entry_v1$' \
  '^  libc.so.6 +/.*libc.so.6$' '^  RUNPATH ' '^  relro +yes$' '^  bind_now +yes$' '^  nodelete +yes$' \
  '^  executable_stack +no$' '^  text_relocations +no$' '^  build id +[0-9a-f]+$' '^  accepted +yes$' \
  '^  probe +good.* \(1 devices, ' '^  conform +reference:0: .* 0 failed'; do
  grep -Eq -- "$word" "$scratch/out" || complain "no line $word" "doctor plugin"
done
expect 0 '"problems": \[\]' '' "$frit" doctor plugin "$build/tests/outside/libfrit-blocks.so" --json
expect_json
for key in file build_id note id version abi_min abi_max instructions sanitizer runtimes exports other_exports needed \
  runpath relro bind_now nodelete ibt shadow_stack executable_stack text_relocations writable_code static_tls reason \
  detail probe probe_detail devices probe_seconds conform failures remarks problems; do
  grep -q "\"$key\":" "$scratch/out" || complain "no key $key" "doctor plugin --json"
done
# a plugin of fusers has no device to try
expect 0 '^  probe +good: offers fusers' '' "$frit" doctor plugin "$build/tests/outside/libfrit-blocks.so"
grep -q '^  conform  *not run' "$scratch/out" || complain "what did conform run on?" "doctor plugin"

# ---- ones that do not
expect 1 '^  1\. probe: crashes: in open: SIGSEGV' '' "$frit" doctor plugin "$build/tests/probe/libfrit-sin-open-crash.so"
expect 1 '^  1\. probe: exits: in load, exit code 0' '' "$frit" doctor plugin "$build/tests/probe/libfrit-sin-load-exit.so"
expect 1 'it changes what is not its own: open: the umask' '' \
  "$frit" doctor plugin "$build/tests/probe/libfrit-sin-open-umask.so"
if ! is_short; then # of conform there is one run, above
  expect 1 '^ +add/f32/odd/dense: .*ulp' '' \
    "$frit" doctor plugin "$build/tests/wrong/libfrit-fake-wrong-rounding.so"
  grep -Eq '^  1\. [0-9]+ cases of conform fail, first ' "$scratch/out" || complain "no problem" "doctor plugin"
fi
expect 1 '^  1\. it is refused: not-found' '' "$frit" doctor plugin "$scratch/none.so"
expect 1 '^  1\. it is refused: not-elf' '' "$frit" doctor plugin "$0"
expect 1 '^  1\. it is refused: no-entry' '' "$frit" doctor plugin "$build/lib/libfrit.so"

# ---- files as other build systems make them
cat >"$scratch/plain.c" <<END
int helper(void) { return 1; }
int frit_plugin_entry_v1(const void *hello, void *welcome) { (void)hello; (void)welcome; return helper(); }
END
cc=${CC:-cc}
$cc -shared -fPIC -Wl,-z,norelro,-z,lazy -o "$scratch/libfrit-plain.so" "$scratch/plain.c"
expect 1 '^  helper$' '' "$frit" doctor plugin "$scratch/libfrit-plain.so"
for word in 'it has no note' 'it exports 1 symbols beside' 'tables that the loader fills stay writable' \
  'a missing symbol is noticed only when it is called' 'it could be unloaded' 'probe: bad-welcome'; do
  grep -q -- "$word" "$scratch/out" || complain "no remark: $word" "doctor plugin"
done
if [ "$(uname -m)" = x86_64 ]; then
  $cc -shared -fPIC -Wl,-z,ibt,-z,shstk -o "$scratch/libfrit-plain.so" "$scratch/plain.c"
  expect 1 '^  ibt +yes$' '' "$frit" doctor plugin "$scratch/libfrit-plain.so"
  grep -Eq '^  shadow_stack +yes$' "$scratch/out" || complain "no shadow stack" "doctor plugin"
fi
$cc -shared -fPIC -o "$scratch/libgone.so" -x c - <<<'int gone(void) { return 1; }'
$cc -shared -fPIC -Wl,-rpath,/opt/vendor,--disable-new-dtags -o "$scratch/libfrit-plain.so" "$scratch/plain.c" \
  -Wl,--no-as-needed "$scratch/libgone.so" -Wl,-soname,libfrit-plain.so
rm "$scratch/libgone.so"
expect 1 '^  1\. it is refused: library-missing: .*libgone.so' '' "$frit" doctor plugin "$scratch/libfrit-plain.so"
grep -Eq '^  .*libgone.so +not found' "$scratch/out" || complain "the library is not named" "doctor plugin"
grep -Eq '^  RPATH +/opt/vendor$' "$scratch/out" || complain "no RPATH" "doctor plugin"
$cc -shared -fPIC -Wl,-z,execstack -o "$scratch/libfrit-plain.so" "$scratch/plain.c"
expect 1 '^  1\. it is refused: executable-stack' '' "$frit" doctor plugin "$scratch/libfrit-plain.so"
expect 2 '' 'FILE is missing' "$frit" doctor plugin
finish
