#!/usr/bin/env bash
# Makes sure that programs are there which tests need and Debian has.
#
#   tools/packages.sh PROGRAM[=PACKAGE]...    installs what is missing where that is possible, and names the command
#                                             where it is not
set -euo pipefail

missing() {
    local need
    for need in "$@"; do command -v "${need%%=*}" >/dev/null || echo "${need#*=}"; done
}

mapfile -t packages < <(missing "$@")
(( ${#packages[@]} )) || exit 0
install=(apt-get install -y --no-install-recommends "${packages[@]}")
if (( EUID == 0 )) && command -v apt-get >/dev/null; then
    echo "packages: installing ${packages[*]}" >&2
    # Two targets of make may want something at once.
    exec 9>"${TMPDIR:-/tmp}/nacre-packages.lock"
    flock 9
    DEBIAN_FRONTEND=noninteractive "${install[@]}" >&2 ||
        { apt-get update >&2 && DEBIAN_FRONTEND=noninteractive "${install[@]}" >&2; } || true
fi
mapfile -t packages < <(missing "$@")
(( ! ${#packages[@]} )) || { echo "packages: not there: ${packages[*]}. Install them: ${install[*]}" >&2; exit 1; }
