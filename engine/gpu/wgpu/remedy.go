//go:build cgo

package wgpu

import (
	"fmt"
	"os"
	"strings"
)

// driverVariables name the drivers that a Vulkan loader looks at, and no others.
var driverVariables = [...]string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}

// remedy is what to do about a machine without an adapter: on Linux the variable that hides the drivers there
// are, if one is set, and the command that installs a Vulkan loader and Mesa's drivers, among them one that
// runs on the CPU, named by the distribution's own tool.
func remedy(goos string) string {
	switch goos {
	case "linux":
		var hides string
		for _, name := range driverVariables {
			if files := os.Getenv(name); files != "" {
				hides = fmt.Sprintf("unset %s (no driver but %s is looked at), or ", name, files)
				break
			}
		}
		release, err := os.ReadFile("/etc/os-release")
		if err != nil {
			release = nil // an unknown distribution
		}
		return hides + "install a Vulkan driver: " + installLine(string(release))
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
