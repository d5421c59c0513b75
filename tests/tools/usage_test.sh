#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command line itself: help, wrong use, what is derived from the table.
. "$(dirname "$0")/expect.sh"

commands="completion devices run check ops bench conform new-plugin doctor help"

expect 2 '' '^Usage: frit COMMAND' "$frit"
expect 0 '^Usage: frit COMMAND' '' "$frit" --help
expect 0 '^Usage: frit COMMAND' '' "$frit" help
expect 0 '^frit 0\.1\.0$' '' "$frit" --version
for command in $commands; do
  expect 0 "^  $command " '' "$frit" help
  expect 0 "^Usage: frit $command" '' "$frit" help "$command"
  expect 0 "^  frit $command" '' "$frit" "$command" --help
  expect 0 "^Usage: frit $command" '' "$frit" "$command" -h
done

expect 2 '' "no command 'rnu'; did you mean 'run'\?" "$frit" rnu
expect 2 '' "no command 'xyzzy'$" "$frit" xyzzy
expect 2 '' "no command 'devics'; did you mean 'devices'\?" "$frit" help devics
expect 2 '' 'unknown option --devise; did you mean --device\?' "$frit" run x.frit --devise cpu
expect 2 '' 'unknown option -z$' "$frit" devices -z
expect 2 '' '--json takes no value' "$frit" devices --json=1
expect 2 '' '--device needs a value: --device D' "$frit" run x.frit --device
expect 2 '' '--device is given twice' "$frit" run x.frit --device a --device=b
expect 2 '' 'missing argument: frit run FILE' "$frit" run
expect 2 '' "unexpected argument 'b.frit': frit run FILE" "$frit" run a.frit b.frit
expect 2 '' 'Try `frit help run`' "$frit" run
for n in 0 -1 x 3x 99999999999999999999; do
  expect 2 '' '--repeat .*must be a number' "$frit" run a.frit "--repeat=$n"
done
expect 1 '' '--json: cannot be opened' "$frit" check -- --json
expect 2 '' "unexpected argument 'x': frit doctor whi" "$frit" doctor whi x
expect 2 '' "unexpected argument 'x': frit doctor config" "$frit" doctor config x
expect 2 '' "--json is only for the page of health, config, plugin and bisect"  "$frit" doctor reference --json
expect 2 '' 'NAME is missing' "$frit" doctor ''
expect 2 '' 'NAME is missing' "$frit" doctor why
expect 2 '' 'NAME is missing' "$frit" doctor why ''
expect 2 '' "unexpected argument 'x': frit devices$" "$frit" devices x
expect 2 '' "unknown op 'gelo'; did you mean 'gelu'\?" "$frit" ops gelo
expect 2 '' "unknown op 'Greater'; here it is gt$" "$frit" ops Greater
expect 2 '' "there is no op 'a b'$" "$frit" ops 'a b'

# A full disk is not success.
"$frit" help >/dev/full 2>"$scratch/err" && complain "wrote to a full disk and called it fine" help
grep -q 'cannot write the output' "$scratch/err" || complain "no word about the full disk" help

# No colours in a pipe.
expect 0 '*' '' env TERM=xterm "$frit" help run
! grep -q $'\033' "$scratch/out" || complain "colours in a pipe" "help run"

expect 0 '*' '' "$frit" help --man
diff -u man/frit.1 "$scratch/out" || complain "man/frit.1 is stale: frit help --man > man/frit.1" man
# ---- completions: what the shells make of them, where they are
expect 2 '' 'bash, zsh and fish, not for .csh' "$frit" completion csh
for shell in bash zsh fish; do
  expect 0 '*' '' "$frit" completion $shell
  mv "$scratch/out" "$scratch/completion.$shell"
  for word in run explain device repeat 'run a text program'; do
    grep -qF -- "$word" "$scratch/completion.$shell" || [ "$shell:$word" = 'bash:run a text program' ] ||
      complain "no $word" "completion $shell"
  done
  ! command -v $shell >/dev/null || $shell -n "$scratch/completion.$shell" || complain "not $shell" "completion $shell"
done
completes() { # WANTED WORD...: what bash proposes for the last word
  local wanted=$1
  shift
  expect 0 "^$wanted\$" '' bash -c "source $scratch/completion.bash; COMP_WORDS=(frit $*); [ -n '${*: -1}' ] || COMP_WORDS+=(''); \
    COMP_CWORD=\$((\${#COMP_WORDS[@]} - 1)); _frit; echo \"\${COMPREPLY[*]}\""
}
completes run ru
completes --device run --dev
completes '' run --device cp
completes '' run mod
completes 'run' help ru
completes 'zsh' completion z
if command -v zsh >/dev/null; then
  expect 0 '_frit' '' zsh -fc "fpath=($scratch \$fpath); cp $scratch/completion.zsh $scratch/_frit; autoload -U compinit; \
    compinit -u -d $scratch/zdump; print \$_comps[frit]"
fi
if command -v fish >/dev/null; then
  expect 0 '^run' '' env HOME="$scratch" fish --no-config -c "source $scratch/completion.fish; complete -C 'frit ru'"
  expect 0 '^--device' '' env HOME="$scratch" fish --no-config -c "source $scratch/completion.fish; complete -C 'frit run --dev'"
fi
finish
