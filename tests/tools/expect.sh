# SPDX-License-Identifier: Apache-2.0
# For tests of commands; sourced.  Keeps going after a failed expectation; `finish` ends with 1 if there was one.
#
#   expect CODE 'OUT' 'ERR' COMMAND...   the exit code, and extended regular expressions that standard output and
#                                        standard error must match; '' means that there is none at all, '*' any
set -u
build=${FRIT_TEST_BUILD:?run by ctest}
frit=$build/bin/frit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wrong=0
out='' err=''

matches() { # TEXT PATTERN
  case $2 in
    '') [ -z "$1" ] ;;
    '*') true ;;
    *) grep -Eq -- "$2" <<<"$1" ;;
  esac
}

complain() {
  wrong=1
  printf 'WRONG: %s\n  %s\n  out: %s\n  err: %s\n' "$1" "$2" "$out" "$err"
}

expect() {
  local code=$1 want_out=$2 want_err=$3 got
  shift 3
  "$@" >"$scratch/out" 2>"$scratch/err"
  got=$?
  out=$(tr -d '\0' <"$scratch/out")
  err=$(tr -d '\0' <"$scratch/err")
  [ "$got" = "$code" ] || complain "exit code $got, not $code" "$*"
  matches "$out" "$want_out" || complain "standard output does not match '$want_out'" "$*"
  matches "$err" "$want_err" || complain "standard error does not match '$want_err'" "$*"
}

# The last output must be JSON.
expect_json() {
  "$build/tests/json_check" <"$scratch/out" || complain "not JSON" "$*"
}

# Whether less is to be run: with sanitizers, where a process takes ten times as long, and without FRIT_TEST_LONG=1.
is_short() { [ -n "${FRIT_TEST_SANITIZE-}" ] && [ -z "${FRIT_TEST_LONG-}" ]; }

finish() { exit $wrong; }
