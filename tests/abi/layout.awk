# SPDX-License-Identifier: Apache-2.0
# Makes the list of a contract from four files, in this order, each preceded by part=NAME:
#   part=fields     `pahole` of the probe: "field STRUCT.FIELD OFFSET SIZE TYPE" and "size STRUCT BYTES"
#   part=numbers    `readelf --debug-dump=info` of the probe: "number NAME VALUE" for every enumerator
#   part=functions  `gcc -aux-info` of the probe: "function NAME RESULT (PARAMETERS)"
#   part=macros     `gcc -E -dM` of the probe: "macro NAME TEXT" for literals
# Parts may be left out.  Function pointers have their name inside their type: "RESULT (*)(PARAMETERS)".

function squeeze(text)
{
    gsub(/[ \t]+/, " ", text)
    gsub(/\* \*/, "**", text)
    gsub(/\* \(/, "*(", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}

# readelf shows some forms in hexadecimal.
function decimal(text,    i, value)
{
    if (text !~ /^0x[0-9a-f]+$/ || length(text) > 14)
        return text
    for (i = 3; i <= length(text); i++)
        value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
    return sprintf("%.0f", value)
}

part == "fields" && /^struct [a-z0-9_]+ \{/ { name = $2; next }

# A padding hole is a comment without a field before it.
part == "fields" && name && match($0, /; *\/\* +[0-9]+ +[0-9]+ \*\//) {
    split(substr($0, RSTART + 1), number, /[ \/*]+/)
    text = substr($0, 1, RSTART - 1)
    if (match(text, /\(\*[A-Za-z0-9_]+\)/)) {
        field = substr(text, RSTART + 2, RLENGTH - 3)
        text = substr(text, 1, RSTART + 1) substr(text, RSTART + RLENGTH - 1)
    } else {
        match(text, /[A-Za-z0-9_]+(\[[0-9]*\])*$/)
        field = substr(text, RSTART, RLENGTH)
        text = substr(text, 1, RSTART - 1)
        if (match(field, /\[/)) {
            text = squeeze(text) substr(field, RSTART)
            field = substr(field, 1, RSTART - 1)
        }
    }
    print "field", name "." field, number[2], number[3], squeeze(text)
}

part == "fields" && name && match($0, /\/\* size: [0-9]+/) {
    print "size", name, substr($0, RSTART + 9, RLENGTH - 9)
}

part == "fields" && /^}/ { name = "" }

part == "numbers" && /DW_TAG/ { is_number = /DW_TAG_enumerator/ }
part == "numbers" && is_number && /DW_AT_name/ { enumerator = $NF }
part == "numbers" && is_number && /DW_AT_const_value/ && enumerator ~ /^FRIT_/ {
    print "number", enumerator, decimal($NF)
}

part == "functions" && match($0, /\*\/ extern /) {
    text = substr($0, RSTART + RLENGTH)
    if (match(text, /frit_[a-z0-9_]+ \(/)) {
        function_name = substr(text, RSTART, RLENGTH - 2)
        text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH - 1)
        sub(/;.*/, "", text)
        print "function", function_name, squeeze(text)
    }
}

part == "macros" && $2 ~ /^FRIT_[A-Z0-9_]+$/ && $2 != "FRIT_VERSION" && $3 ~ /^\(?-?[0-9"]/ {
    macro = $2
    sub(/^#define [A-Z0-9_]+ /, "")
    print "macro", macro, squeeze($0)
}
