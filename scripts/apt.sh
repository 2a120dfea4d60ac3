# Installs Debian packages. Other scripts source this file; they define the function say.

# root_command prints the words before a command that needs root: nothing for root, or sudo. It fails if this
# user may not become root without a password, or if the system has no apt-get.
root_command() {
	command -v apt-get >/dev/null 2>&1 || return 1
	[ "$(id -u)" = 0 ] && return 0
	sudo -n true 2>/dev/null || return 1
	echo "sudo -n"
}

# apt_install installs packages. If that fails, it prints the output of apt-get and exits.
apt_install() {
	sudo=$(root_command)
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	# shellcheck disable=SC2086 # $sudo is a word list
	if ! {
		$sudo apt-get -q update &&
			$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
	} >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		say "apt-get failed (its output is above); needed: $*"
		exit 1
	fi
}
