//go:build cgo

package wgpu

import (
	"os"
	"strings"
)

// remedy is what to do about a machine without an adapter: on Linux the command that installs a Vulkan loader
// and Mesa's drivers, among them one that runs on the CPU, named by the distribution's own tool.
func remedy(goos string) string {
	switch goos {
	case "linux":
		release, err := os.ReadFile("/etc/os-release")
		if err != nil {
			release = nil // an unknown distribution
		}
		return "install a Vulkan driver: " + installLine(string(release))
	case "darwin":
		return "Metal needs a Mac with macOS 10.13 or later"
	case "windows":
		return "install the graphics driver of the maker of the GPU (DirectX 12 or Vulkan)"
	}
	return "install a Vulkan driver"
}

// installLine is for a distribution by its os-release file (man 5 os-release): ID, then what it is like.
func installLine(release string) string {
	var ids []string
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			ids = append([]string{value}, ids...)
		case "ID_LIKE":
			ids = append(ids, strings.Fields(value)...)
		}
	}
	for _, id := range ids {
		switch id {
		case "debian", "ubuntu":
			return "sudo apt-get install libvulkan1 mesa-vulkan-drivers"
		case "fedora", "rhel", "centos":
			return "sudo dnf install vulkan-loader mesa-vulkan-drivers"
		case "arch":
			return "sudo pacman -S vulkan-icd-loader vulkan-swrast"
		case "alpine":
			return "sudo apk add vulkan-loader mesa-vulkan-swrast"
		case "suse", "opensuse":
			return "sudo zypper install libvulkan1 libvulkan_lvp"
		}
	}
	return "the Vulkan loader (libvulkan.so.1) and Mesa's Vulkan drivers"
}
