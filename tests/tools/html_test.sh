#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frit explain --html: one file that needs no other, with the data of --json; in a browser (FRIT_TEST_LONG, where chromium is) it shows
# a card for each block, finds, sorts, and draws the timeline.
. "$(dirname "$0")/expect.sh"
page=$scratch/page.html
model=tools/models/digits-mlp.frit

part() { # ID FILE: what stands in a script element
  awk -v start="<script type=\"application/json\" id=\"$1\">" '
    index($0, start) == 1 { on = 1; $0 = substr($0, length(start) + 1) }
    on && (end = index($0, "</script>")) { print substr($0, 1, end - 1); exit }
    on' "$2"
}

expect 0 '' '' "$frit" explain $model -d reference --html "$page"
[ -s "$page" ] || complain "no page" "explain --html"
for id in data timeline; do
  part $id "$page" >"$scratch/out"
  expect_json
done
# The blocks are those of --json, with the times of the runs before them.
part data "$page" | sed -n '/"runs":/,/^}/p' >"$scratch/shown"
"$frit" explain $model -d reference --json | sed -n '/"runs":/,$p' >"$scratch/printed"
cmp -s "$scratch/shown" "$scratch/printed" || complain "other blocks than --json has" "explain --html"
[ "$(part data "$page" | grep -c '"seconds":')" -ge 1 ] || complain "no times" "explain --html"
grep -q '"cat":"reference:0","ph":"X","pid":2' "$page" || complain "no device time" "explain --html"
"$frit" explain $model -d reference >"$scratch/text"
sed -n '/^<pre>/,/^<\/pre>/p' "$page" | sed 's/^<pre>//; s/<\/pre>.*//; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g; /^$/d' | diff - "$scratch/text" >"$scratch/diff" ||
  complain "not the text: $(head -n 5 "$scratch/diff")" "explain --html"
# Nothing from elsewhere.
! grep -qE '(src|href)="[^#"]|https?://[^w]|@import|url\(' <(grep -v '"traceEvents"' "$page" | sed 's|http://www.w3.org/2000/svg||') ||
  complain "it needs something else" "explain --html"
! grep -q '@[A-Z]*@' "$page" || complain "a place is not filled" "explain --html"

# Names do not become markup: of a file in the folder "<".
mkdir "$scratch/<"
hostile="$scratch/</script><b>&amp;.frit"
printf 'input "x</script><b>&" : f32[2]\noutput y = neg "x</script><b>&"\n' >"$hostile"
expect 0 '' '' "$frit" explain "$hostile" -d reference --html "$page"
[ "$(grep -o '</script>' "$page" | wc -l)" = 3 ] || complain "a script ends early" "explain --html"
grep -q '<title>.*/&lt;/script&gt;&lt;b&gt;&amp;amp;.frit - ' "$page" || complain "a name as markup" "explain --html"
part data "$page" >"$scratch/out"
expect_json

expect 2 '' 'two forms of the same' "$frit" explain $model -d reference --html "$page" --json
expect 1 '' '/no/such/page.html: cannot be written: No such file' "$frit" explain $model -d reference --html /no/such/page.html
expect 1 '' '/dev/full: cannot be written' "$frit" explain $model -d reference --html /dev/full
expect 1 '' 'none.frit: ' "$frit" explain none.frit --html "$page"

# ---- in a browser
if [ -z "${FRIT_TEST_LONG-}" ] || ! command -v chromium >/dev/null; then
  echo "skipped: a browser (FRIT_TEST_LONG, Debian package chromium)"
  finish
fi
"$frit" explain tools/models/digits-cnn.frit -d cpu --html "$page"
blocks=$(part data "$page" | grep -c '"label":')
programs=$(part data "$page" | sed -n 's/^  "launches": \([0-9]*\),$/\1/p')
# What a reader does, and what the page shows then, in its title.
cat >"$scratch/act" <<'END'
<script>
addEventListener("error", e => document.title = "error: " + e.message);
try {
  const count = what => document.querySelectorAll(what).length, shown = () => count(".card:not([hidden])");
  const said = ["cards " + count(".card"), "bars " + count("#bars .bar"), "shares " + count(".share")];
  const set = (id, value, type) => { document.getElementById(id).value = value; document.getElementById(id).dispatchEvent(new Event(type)); };
  set("search", "max_pool", "input"); said.push("pools " + shown());
  set("search", "nothing of this", "input"); said.push("none " + shown());
  set("search", "", "input");
  set("order", "bytes", "change"); said.push("first " + document.querySelector(".card").id);
  set("span", "all", "change"); said.push("more " + (count("#bars .bar") > 20));
  document.getElementById("in").click(); said.push("wide " + (document.getElementById("bars").clientWidth > 1500));
  document.querySelector(".bar[tabindex]").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"})); said.push("at " + location.hash);
  document.title = said.join(", ");
} catch (e) { document.title = "error: " + e.message; }
</script>
END
cat "$page" "$scratch/act" >"$scratch/acted.html"
look() { # URL
  chromium --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/chromium" --window-size=1200,900 --dump-dom "$1" 2>/dev/null
}
title=$(look "file://$scratch/acted.html" | sed -n 's|^.*<title>\(.*\)</title>.*|\1|p' | head -n 1)
[[ $title == "cards $blocks, bars $programs, shares "[1-9]*", pools "[1-9]*", none 0, first b1-"*", more true, wide true, at #b1-"* ]] ||
  complain "the page says '$title'" chromium
look "file://$page?q=max_pool" >"$scratch/dom"
grep -q 'data-ready="'"$blocks"'"' "$scratch/dom" || complain "its script did not end" chromium
grep -q ">2 of $blocks blocks<" "$scratch/dom" || complain "it does not search for what the address says" chromium
finish
