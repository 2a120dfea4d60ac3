#!/usr/bin/env bash
# Compares two builds of gpuscope on the embedded model, without a GPU, and fails if the second launches other
# work. It writes the comparison as Markdown.
#
#   scripts/ci-gate.sh BASE NEW [COMMENT.md]
#
# BASE and NEW are gpuscope binaries, and may be the same. Times on a software device vary with everything
# that the machine does, so only the number of dispatches and a change by a factor of 20 fail.
set -euo pipefail
base=$1 new=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
comment=${3:-$dir/comment.md}
record() { # record PROGRAM NAME
	"$1" run -p "Once upon a time" -n 12 --timing dispatch --profile off --trace "$dir/$2.json" >"$dir/$2.txt"
}
record "$base" base
record "$new" new
status=0
"$new" trace diff "$dir/base.json" "$dir/new.json" --format markdown -o "$comment" \
	--fail-if 'rows.added>0' --fail-if 'rows.gone>0' --fail-if 'grid.changed>0' --fail-if 'route.changed>0' \
	--fail-if 'decode.p50>+1900%' || status=$?
cat "$comment"
exit "$status"
