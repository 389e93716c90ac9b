#!/usr/bin/env bash
# Draws text as a picture of a terminal: `make demo | tools/cast.sh FROM TO > docs/demo.svg` has the lines from the first that
# contains FROM to the last before one that contains TO. Real output only: nothing is added; long lines are cut.
set -euo pipefail
from=${1:?which line to begin with}
to=${2:?which line to end before}
awk -v from="$from" -v to="$to" '
  index($0, to) && on { exit }
  index($0, from) { on = 1 }
  on { print }
' | awk '
  { gsub(/\033\[[0-9;?]*[a-zA-Z]/, ""); if (length($0) > 120) $0 = substr($0, 1, 118) " …"; gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); text[NR] = $0
    if (length($0) > widest) widest = length($0) }
  END {
    if (NR == 0) { print "cast: no such lines" > "/dev/stderr"; exit 1 }
    width = widest * 8.4 + 40; height = NR * 20 + 40
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, height, width, height
    printf "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#16181d\"/>\n"
    printf "<g font-family=\"monospace\" font-size=\"14\" fill=\"#d7dae0\">\n"
    for (line = 1; line <= NR; line++) {
      colour = text[line] ~ /^==/ ? " fill=\"#7fd1ae\"" : text[line] ~ /[$] / ? " fill=\"#f0c674\"" : ""
      # Browsers draw several spaces as one.
      gsub(/ /, "\302\240", text[line])
      printf "<text x=\"20\" y=\"%d\"%s>%s</text>\n", line * 20 + 14, colour, text[line]
    }
    print "</g>\n</svg>"
  }
'
