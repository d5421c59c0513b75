# SPDX-License-Identifier: Apache-2.0
# awk -f compare.awk OLD NEW: what was in the list OLD of layout.awk must be in NEW unchanged; more may be in NEW.  A struct that
# begins with struct_size may grow, and so may a number named *_LIMIT.  Names each break and fails.

function value_of(line,    at)
{
    at = index(line, $2) + length($2) + 1
    return substr(line, at)
}

NR == FNR {
    was[$1 " " $2] = value_of($0)
    order[++count] = $1 " " $2
    if ($1 == "field" && $2 ~ /\.struct_size$/)
        grows[substr($2, 1, index($2, ".") - 1)] = 1
    next
}

{ is[$1 " " $2] = value_of($0) }

function broken(name, text)
{
    print name ": " text
    breaks++
}

function compare_field(name, old, new,    from, to)
{
    split(old, from, " ")
    split(new, to, " ")
    if (from[1] != to[1])
        broken(name, "offset " from[1] " became " to[1])
    else if (from[2] != to[2])
        broken(name, "size " from[2] " became " to[2])
    else {
        sub(/^[0-9]+ [0-9]+ /, "", old)
        sub(/^[0-9]+ [0-9]+ /, "", new)
        broken(name, "type '" old "' became '" new "'")
    }
}

function describe_field(value,    part)
{
    split(value, part, " ")
    sub(/^[0-9]+ [0-9]+ /, "", value)
    return "offset " part[1] ", size " part[2] ", type '" value "'"
}

END {
    for (i = 1; i <= count; i++) {
        split(order[i], key, " ")
        kind = key[1]
        name = key[2]
        old = was[order[i]]
        if (!(order[i] in is))
            broken(name, kind " is gone; it was " (kind == "field" ? describe_field(old) : old))
        else if (old == is[order[i]])
            continue
        else if (kind == "field")
            compare_field(name, old, is[order[i]])
        else if (kind == "size" && name in grows && is[order[i]] + 0 > old + 0)
            continue
        else if (kind == "number" && name ~ /_LIMIT$/ && is[order[i]] + 0 > old + 0)
            continue
        else
            broken(name, kind " " old " became " is[order[i]])
    }
    if (count == 0) {
        print "the old list is empty"
        exit 1
    }
    exit breaks > 0
}
