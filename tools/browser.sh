#!/usr/bin/env bash
# Makes sure that Debian's chromium and its driver are there, for the tests of the console in a real browser.
#
#   tools/browser.sh           installs what is missing where that is possible, and names the command where it is not
set -euo pipefail

# What finds pages that a screen reader or a keyboard cannot use. Not part of the sources, and pinned.
axe=axe-core@4.14.0
folder="${CARGO_TARGET_DIR:-$(dirname "${BASH_SOURCE[0]}")/../target}/axe"
if [[ ! -e "$folder/package/axe.min.js" ]] && command -v npm >/dev/null; then
    mkdir -p "$folder"
    (cd "$folder" && npm pack --silent "$axe" >/dev/null && tar xzf axe-core-*.tgz) ||
        echo "browser: $axe could not be fetched: accessibility is not checked" >&2
fi

exec "$(dirname "${BASH_SOURCE[0]}")/packages.sh" chromium chromedriver=chromium-driver
