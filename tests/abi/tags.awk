# SPDX-License-Identifier: Apache-2.0
# Every slot of every table (a function pointer in a struct) has a comment before it with exactly one thread
# tag and with nonblock or mayblock; one comment may serve the slots right behind it.

FNR == 1 { comment = "" }

/\/\*/ { comment = "" }

{ if (in_comment || /\/\*/) comment = comment " " $0 }

/\/\*/ { in_comment = 1 }

/\*\// { in_comment = 0 }

!in_comment && /^    [a-z].*\(\*[a-z0-9_]+\)\(/ {
    slots++
    tags = gsub(/\[(any|object|queue|init)\]/, "&", comment)
    blocks = comment ~ /\+nonblock|\+mayblock/
    if (tags != 1 || !blocks) {
        printf "%s:%d: a slot without one thread tag and +nonblock or +mayblock\n", FILENAME, FNR
        bad = 1
    }
}

END {
    printf "%d slots\n", slots
    exit bad || slots < 20
}
