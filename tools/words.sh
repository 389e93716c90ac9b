#!/usr/bin/env bash
# Finds words that a reader has to guess, and says what to write instead. Part of `make audit`.
#
#   tools/words.sh                  everything: tracked *.md, Rust comments and strings, Makefile, scripts, alerts
#   tools/words.sh FILE...          only these, named from the root of the repository
#
# Prints `file:line: word -> what to write instead`, and exits with 1 if there is anything to print.
# Identifiers are not checked, nor is code in Markdown (fences, `backticks`), nor what a generator writes: that comes
# from strings in Rust, which are checked. A line with `words: ok` in it is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Where (md: Markdown; says: Markdown, and what the programs print; all: everywhere), the word or phrase as a regular expression in lower case, what to write instead.
# Whole words only. The first rule that matches at a place counts, so the longer phrase comes first.
rules='
all|(made|make|makes|making) anew|re-created, create again
all|(start|starts|started) anew|restart, start again
all|anew|again
all|for want of|without, because ... is missing
all|on (its|their) way out|being deleted
all|(it is|is|are|be|was|were|and) tried again|retrying in 30s, nacre retries
all|tries again|retries
all|holds the seat|is leader
all|(stand|stands|stood|standing) by|is standby
all|acts|is leader, writes, works
all|at rest|idle
all|(api )?server (does|did|would|will) not take|rejects
all|(told|tells?) (its|the|the whole|their|that) (whole )?story|shows everything about, reports
all|(the )?whole story|everything about it
all|in the house|in the codebase
all|a? ?rooms? of (its|their) own|a module of its own
all|without a word|silently, without an error
all|(velero|server|controller|administrator|webhook|nacre|tenant)s?'"'"'s? own words|message, status
all|(velero|server|controller|administrator|webhook|nacre|tenant)s?'"'"'s? words|message, status
all|lets older ones not look|on older Velero versions nacre disables import
all|whom (it|this|that|they|news|a change|each change|a write|a change of one) concerns?|what it affects
all|beside|next to, in the same namespace, in addition to, compared with
md|(told|tells?)|reports, shows, message
says|rights|permissions
says|definitions|CRDs
says|(reserved|such|the|these|its|own) marks|labels and annotations
says|rooms?|until a limit allows it
md|(its|own|another|as its own) account|service account
'

# Phrases that contain such a word and are right.
allowed='
encryption at rest
service account
storage account
acts as
acts on
told apart
make room
leave room
[.]rights
'

files() {
  if [ $# -gt 0 ]; then printf '%s\n' "$@"; return; fi
  git ls-files -- '*.md' 'crates/*.rs' Makefile 'tools/*.sh' 'deploy/monitoring/*.yaml' |
    # The cache of the test cluster's programs is named after a hash of build.sh: a word changed there rebuilds them all.
    grep -vxE 'docs/(cli|storage-keys)\.md|tools/(words|build)\.sh'
}

mapfile -t list < <(files "$@")
RULES=$rules ALLOWED=$allowed awk '
  BEGIN {
    edge = "[^a-z0-9_]"
    n = split(ENVIRON["RULES"], lines, "\n")
    for (i = 1; i <= n; i++) if (split(lines[i], part, "|") > 2) {
      # A pattern has bars of its own: the first field is before the first bar, the last after the last one.
      first = index(lines[i], "|"); last = length(lines[i]) - length(part[split(lines[i], part, "|")])
      count++
      scope[count] = substr(lines[i], 1, first - 1)
      words = substr(lines[i], first + 1, last - first - 1)
      pattern[count] = edge "(" words ")" edge
      instead[count] = substr(lines[i], last + 1)
      any = any (any ? "|" : "") words
    }
    any = edge "(" any ")" edge
    phrases = split(ENVIRON["ALLOWED"], phrase, "\n")
  }
  FNR == 1 {
    flush()
    state = "code"; fence = 0; generated = 0; tests = FILENAME ~ /tests?\.rs$/
    kind = FILENAME ~ /\.md$/ ? "md" : FILENAME ~ /\.rs$/ ? "rs" : "text"
  }
  {
    strings = ""
    if (/words: ok/) text = ""
    else if (kind == "md") text = markdown($0)
    else if (kind == "rs") text = rust($0)
    else text = $0
    # A phrase may go on in the next line, so each line is looked at once its successor is known.
    look(before, text)
    # What a user reads is a sentence in a string. Tests print nothing.
    if ($0 ~ /#\[cfg\(test\)\]/) tests = 1
    shipped = FILENAME ~ /^crates\/(api|cli|controller|engine|live_migration|planner|runtime)\/src\// && !tests
    said = kind == "rs" && shipped && strings ~ /[^ ] +[^ ]/ ? " " tolower(strings) " " : ""
    before = text; place = FILENAME ":" FNR; of = kind
  }
  END { flush(); exit (found > 0) }

  function flush() { look(before, ""); before = ""; said = "" }

  function look(text, next_text,    line, i, start, more) {
    if (text == "") return
    sub(/^[ \t]*(\/\/[\/!]*|#+|\*|-)?[ \t]*/, "", next_text)
    line = " " tolower(text) " "
    start = length(line)
    line = line substr(tolower(next_text), 1, 30) " "
    if (line !~ any) return
    for (i = 1; i <= phrases; i++) if (phrase[i] != "") gsub(phrase[i], " ", line)
    for (i = 1; i <= count; i++) {
      if (scope[i] == "md" && of != "md") continue
      if (scope[i] == "says" && of != "md" && said !~ pattern[i]) continue
      while (match(line, pattern[i]) && RSTART < start) {
        more = substr(line, RSTART + 1, RLENGTH - 2)
        printf "%s: %s -> %s\n", place, more, instead[i]
        found++
        gsub(/[a-z0-9]/, "_", more)
        line = substr(line, 1, RSTART) more substr(line, RSTART + RLENGTH - 1)
      }
    }
  }

  # Without code, and without what a program wrote.
  function markdown(line) {
    if (line ~ /^<!-- begin: /) generated = 1
    if (line ~ /^<!-- end: /) generated = 0
    if (line ~ /^[ \t]*```/) { fence = !fence; return "" }
    if (fence || generated) return ""
    gsub(/`[^`]*`/, " _ ", line)
    return line
  }

  # What is in comments and strings.
  function rust(line,    out, i, c, size) {
    if (state == "code") {
      if (line ~ /^[ \t]*\/\//) return line
      if (line !~ /["\/]/) return ""
    }
    out = ""; size = length(line)
    for (i = 1; i <= size; i++) {
      c = substr(line, i, 1)
      if (state == "code") {
        if (c == "/" && substr(line, i, 2) == "//") return out " " substr(line, i)
        else if (c == "/" && substr(line, i, 2) == "/*") { state = "comment"; i++ }
        else if (c == "\"") { state = "string"; out = out " " }
        else if (c == "r" && match(substr(line, i), /^r#*"/) && substr(" " line, i, 1) !~ /[A-Za-z0-9_]/) {
          state = "raw"; hashes = substr(line, i + 1, RLENGTH - 2); i += RLENGTH - 1; out = out " "
        }
        else if (c == "\047" && substr(line, i + 1, 1) == "\\") {
          for (i += 3; i < size && substr(line, i, 1) != "\047"; i++);
        }
        else if (c == "\047" && substr(line, i + 2, 1) == "\047") i += 2
      }
      else if (state == "string" && c == "\\") { out = out " "; i++ }
      else if (state == "string" && c == "\"") { state = "code"; out = out " " }
      else if (state == "raw" && c == "\"" && substr(line, i + 1, length(hashes)) == hashes) {
        state = "code"; i += length(hashes); out = out " "
      }
      else if (state == "comment" && substr(line, i, 2) == "*/") { state = "code"; i++ }
      else { out = out c; if (state != "comment") strings = strings c }
    }
    return out
  }
' "${list[@]}"
