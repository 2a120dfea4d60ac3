//go:build cgo

package wgpu

import (
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
)

func TestRemedyNamesTheVariableThatHidesDrivers(t *testing.T) {
	golden := wordingtest.New(t)
	for _, name := range driverVariables {
		t.Run(name, func(t *testing.T) {
			for _, other := range driverVariables {
				t.Setenv(other, "")
			}
			own := remedy("linux") // of this distribution
			t.Setenv(name, "/nowhere.json")
			golden.Text(name, strings.TrimSpace(strings.TrimSuffix(remedy("linux"), own)))
		})
	}
}

func TestRemedyIsThisDistributionsOwn(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]string{
		"PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n": "apt-get install libvulkan1",
		"ID_LIKE=\"ubuntu debian\"\nID=linuxmint\n":        "apt-get install libvulkan1",
		"ID=fedora\n": "dnf install vulkan-loader",
		"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n":      "dnf install vulkan-loader",
		"ID=endeavouros\nID_LIKE='arch'\n":                    "pacman -S vulkan-icd-loader",
		"ID=alpine\n":                                         "apk add vulkan-loader",
		"ID=opensuse-tumbleweed\nID_LIKE=\"opensuse suse\"\n": "zypper install",
		"ID=plan9\n": "libvulkan.so.1",
		"":           "libvulkan.so.1",
		"ID":         "libvulkan.so.1",
	} {
		if got := installLine(release); !strings.Contains(got, want) {
			t.Errorf("os-release %q: %q, want %q in it", release, got, want)
		}
	}
	for goos, want := range map[string]string{
		"darwin": "Metal", "windows": "DirectX",
		"plan9": "install a Vulkan driver",
	} {
		if got := remedy(goos); !strings.Contains(got, want) {
			t.Errorf("%s: %q", goos, got)
		}
	}
}
