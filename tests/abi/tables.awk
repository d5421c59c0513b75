# SPDX-License-Identifier: Apache-2.0
# awk -f tables.awk table_size_test.c plugin.txt: every id of a table ("frit.NAME/N") is in the test of table sizes.

FNR == NR { test = test $0 "\n"; next }

$1 == "macro" && $3 ~ /^"frit\./ {
    tables++
    if (test !~ "[^A-Z_]" $2 "[^A-Z_]") {
        print $2 " (" $3 ") is not in table_size_test.c"
        bad = 1
    }
}

END {
    print tables + 0 " tables"
    exit bad || tables < 10
}
