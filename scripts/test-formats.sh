#!/bin/sh
# Opens exported traces in the programs that the formats are for, and reports in a browser, and compares what
# they show with the trace. It installs the programs: from Debian with apt-get, and from npm into
# scripts/formats. It fails if a program is missing and cannot be installed. Arguments are passed to go test.
#
# The tests are Go tests with the build tag "formats". They start the scripts in scripts/formats with node.
set -eu
cd "$(dirname "$0")/.."

say() { echo "test-formats: $*" >&2; }
. scripts/apt.sh

# A command on each line, and the Debian package that contains it.
missing=
while read -r command package; do
	command -v "$command" >/dev/null 2>&1 || missing="$missing $package"
done <<END
node nodejs
npm npm
chromium chromium
protoc protobuf-compiler
END

if [ -n "$missing" ]; then
	if ! root_command >/dev/null; then
		say "install the packages$missing (their names in Debian), then try again"
		exit 1
	fi
	say "installing$missing with apt-get"
	# shellcheck disable=SC2086 # $missing is a word list
	apt_install $missing
fi

major=$(node -p 'process.versions.node.split(".")[0]')
if [ "$major" -lt 18 ]; then
	say "node $(node --version) is too old: install node 18 or a later version"
	exit 1
fi

(cd scripts/formats && npm ci --silent --no-audit --no-fund)
go vet -tags formats ./trace/export/... ./trace/report/html
exec go test -tags formats -timeout 10m "$@" ./trace/export/... ./trace/report/html
