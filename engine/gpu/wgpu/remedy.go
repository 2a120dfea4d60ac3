//go:build cgo

package wgpu

import (
	"fmt"
	"os"
	"strings"
)

// driverVariables are the environment variables that make the Vulkan loader use only the drivers that they
// list.
var driverVariables = [...]string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}

// remedy returns advice for a machine without an adapter. On Linux the advice is the distribution's command
// to install a Vulkan loader and Mesa's drivers, one of which runs on the CPU. If an environment variable may
// hide installed drivers from the loader, the advice also says to unset this variable.
func remedy(goos string) string {
	switch goos {
	case "linux":
		var hides string
		for _, name := range driverVariables {
			if files := os.Getenv(name); files != "" {
				hides = fmt.Sprintf("unset %s (it limits the Vulkan loader to %s), or ", name, files)
				break
			}
		}
		release, err := os.ReadFile("/etc/os-release")
		if err != nil {
			release = nil // treat the distribution as unknown
		}
		return hides + "install a Vulkan driver: " + installLine(string(release))
	case "darwin":
		return "Metal needs a Mac with macOS 10.13 or later"
	case "windows":
		return "install the GPU vendor's graphics driver (DirectX 12 or Vulkan)"
	}
	return "install a Vulkan driver"
}

// installLine returns the command that installs the drivers on a Linux distribution. `release` is the content
// of the os-release file (man 5 os-release). The command depends on the ID in this file. If installLine does
// not know this ID, the command depends on the ids in ID_LIKE.
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
	return "find the packages with the Vulkan loader (libvulkan.so.1) and Mesa's Vulkan drivers"
}
