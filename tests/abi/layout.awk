# SPDX-License-Identifier: Apache-2.0
# Reads preprocessed headers, and lines "@macro NAME ..." for macros that are numbers.  Writes a C program
# that prints size and offsets of every struct of ours and the value of every number.  Knows only the shapes that the layout rules allow: no nested struct,
# no bit-field; a function pointer's name stands in "(*name)".

$1 == "@macro" {
    macro[++n_macros] = $2
    next
}

{ text = text " " $0 }

END {
    gsub(/[ \t]+/, " ", text)
    gsub(/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)/, "", text)
    print "int main(void) {"
    while (match(text, /(typedef struct [a-z0-9_]+|enum) \{[^{}]*\}/)) {
        head = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        body = head
        sub(/^[^{]*\{/, "", body)
        sub(/\}$/, "", body)
        if (head ~ /^enum/)
            numbers(body)
        else {
            split(head, word, " ")
            if (word[3] ~ /^frit_/)
                fields(word[3], body)
        }
    }
    for (m = 1; m <= n_macros; m++)
        number(macro[m])
    print "return 0; }"
}

function fields(name, body,    n, i, k, m, declaration, part)
{
    printf "printf(\"%s %%zu\\n\", sizeof(%s));\n", name, name
    n = split(body, declaration, ";")
    for (i = 1; i <= n; i++) {
        if (match(declaration[i], /\(\*[a-z0-9_]+\)/)) {
            field(name, substr(declaration[i], RSTART + 2, RLENGTH - 3))
            continue
        }
        gsub(/\[[^]]*\]/, "", declaration[i])
        m = split(declaration[i], part, ",")
        for (k = 1; k <= m; k++) {
            sub(/ +$/, "", part[k])
            if (match(part[k], /[a-z0-9_]+$/))
                field(name, substr(part[k], RSTART, RLENGTH))
        }
    }
}

function field(name, member)
{
    printf "printf(\"%s.%s %%zu %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
        name, member, name, member, name, member
}

function numbers(body,    n, i, part)
{
    n = split(body, part, ",")
    for (i = 1; i <= n; i++) {
        sub(/=.*/, "", part[i])
        gsub(/ /, "", part[i])
        if (part[i] ~ /^FRIT_/)
            number(part[i])
    }
}

function number(name)
{
    printf "printf(\"%s %%lld\\n\", (long long)%s);\n", name, name
}
