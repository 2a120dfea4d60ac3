#!/bin/sh
# Makes sure that this system has what WebGPU needs to find a device: a Vulkan loader and at least one Vulkan
# driver (ICD) whose library is there. Installs Mesa's with apt-get where it may (root, or sudo without a
# password), and says what to type where it may not. Everything it says goes to stderr.
set -eu

say() { echo "vulkan: $*" >&2; }
. "$(dirname "$0")/apt.sh"

if [ "$(uname -s)" != Linux ]; then
	say "$(uname -s) is untested; macOS and Windows bring their own (Metal, Direct3D 12), nothing to install"
	exit 0
fi

# The manifests of drivers that the loader is told to look at, and no others.
only=${VK_DRIVER_FILES:-${VK_ICD_FILENAMES:-}}

# The libraries the dynamic linker knows. ldconfig is often outside of an ordinary user's PATH.
known() { PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null || true; }
libraries=$(known)

has_loader() {
	case $libraries in *libvulkan.so.1*) return 0 ;; esac
	return 1
}

# manifests lists the driver manifests that the loader would read.
# https://github.com/KhronosGroup/Vulkan-Loader, docs/LoaderDriverInterface.md
manifests() {
	if [ -n "$only" ]; then
		echo "$only" | tr : '\n'
		return
	fi
	echo "${VK_ADD_DRIVER_FILES:-}" | tr : '\n'
	home=${HOME:-/nonexistent}
	config=${XDG_CONFIG_HOME:-$home/.config}:${XDG_CONFIG_DIRS:-/etc/xdg}:/etc:/usr/local/etc
	data=${XDG_DATA_HOME:-$home/.local/share}:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}
	echo "$config:$data" |
		tr : '\n' | while IFS= read -r folder; do
		[ -n "$folder" ] || continue
		for manifest in "$folder"/vulkan/icd.d/*.json; do echo "$manifest"; done
	done
}

# has_driver: a manifest counts if the library it names can be found (containers often have the one without
# the other).
has_driver() {
	manifests | {
		while IFS= read -r manifest; do
			[ -f "$manifest" ] || continue
			library=$(sed -n 's/.*"library_path"[^"]*"\([^"]*\)".*/\1/p' "$manifest" | head -n 1)
			case $library in
			"") continue ;;
			/*) [ -e "$library" ] && exit 0 ;;
			*/*) [ -e "$(dirname "$manifest")/$library" ] && exit 0 ;;
			*) case $libraries in *"$library"*) exit 0 ;; esac ;;
			esac
		done
		exit 1
	}
}

missing=
has_loader || missing="Vulkan loader"
has_driver || missing="${missing:+$missing, no }Vulkan driver"
[ -n "$missing" ] || exit 0

packages="libvulkan1 mesa-vulkan-drivers"
if command -v apt-get >/dev/null 2>&1; then
	if ! root_command >/dev/null; then
		say "no $missing, and this user may not install it. Type this, then try again:"
		say "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $packages"
		exit 1
	fi
	say "no $missing; installing $packages (Mesa, with a software device) with apt-get"
	# shellcheck disable=SC2086 # $packages is a word list
	apt_install $packages
	say "installed"
	libraries=$(known)
	if [ -n "$only" ] && ! has_driver; then
		say "no driver is at $only, and no other is looked at: unset VK_DRIVER_FILES and VK_ICD_FILENAMES"
		exit 1
	fi
	exit 0
fi

command="install a Vulkan loader and Mesa's Vulkan drivers"
command -v dnf >/dev/null 2>&1 && command="sudo dnf install vulkan-loader mesa-vulkan-drivers"
command -v pacman >/dev/null 2>&1 && command="sudo pacman -S vulkan-icd-loader vulkan-swrast"
command -v apk >/dev/null 2>&1 && command="sudo apk add vulkan-loader mesa-vulkan-swrast"
say "no $missing. Type this, then try again:"
say "  $command"
exit 1
