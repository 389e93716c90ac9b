#!/usr/bin/env bash
# Makes a release of the commit that is checked out: `make release` (see docs/releasing.md).
#
#   PROFILE=dist       how programs are built; `release` is quicker, for trying the packaging
#   UNTAGGED=1         without a tag, and with files that differ from the commit; the provenance has no tag then
#   TARGETS="..."      further targets of rustc, whose standard library has to be installed
#   OUT=folder         where to write it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profile=${PROFILE:-dist}
target_dir=${CARGO_TARGET_DIR:-$PWD/target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
out=${OUT:-$target_dir/release-v$version}
host=$(rustc -vV | sed -n 's/^host: //p')

fail() { echo "release: $*" >&2; exit 1; }

commit=${NACRE_COMMIT:-$(git rev-parse HEAD)}
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
tag=()
if [ -z "${UNTAGGED:-}" ]; then
  git tag --points-at HEAD | grep -qx "v$version" ||
    fail "HEAD has no tag v$version; tag it, or try without: make release UNTAGGED=1"
  [ -z "$(git status --porcelain)" ] || fail "files differ from the commit; commit them first, or set UNTAGGED=1"
  tag=(--tag "v$version")
fi

# Whatever the path of the sources and of the crates, the programs are the same.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
remap="--remap-path-prefix=$PWD=/nacre --remap-path-prefix=$cargo_home=/cargo"
remap="$remap --remap-path-prefix=$(rustc --print sysroot)=/rustc --remap-path-prefix=$target_dir=/target"
c_remap="-ffile-prefix-map=$PWD=/nacre -ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target_dir=/target"

for target in $host ${TARGETS:-}; do
  [ -d "$(rustc --print target-libdir --target "$target")" ] ||
    fail "no standard library for $target: rustup target add $target"
  echo "== Building for $target ($profile)"
  SOURCE_DATE_EPOCH=$time NACRE_COMMIT=${commit:0:12} CFLAGS="$c_remap" RUSTFLAGS="-C target-feature=+crt-static $remap" \
    cargo build --locked --profile "$profile" --target "$target" --package controller --package cli
done

rm -rf "$out"
echo "== Packing into $out"
# Only the host's programs can be run, and so packed, here; others are left where they were built.
cargo run --quiet --release --package image -- release --programs "$target_dir/$host/$profile" \
  --commit "$commit" --time "$time" "${tag[@]}" "$out"
for target in ${TARGETS:-}; do
  echo "== Only built, neither run nor packed: $target_dir/$target/$profile"
done
