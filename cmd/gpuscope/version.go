package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/trace"
)

// version is the version of the program. CHANGELOG.md lists the changes.
const version = "0.2.0"

// versionFlag is the flag that prints the version. The settings file cannot set it.
const versionFlag = "version"

func versionCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "version",
		Doc:  "print the versions of gpuscope, Go and the WebGPU binding, and the platform",
		Examples: []cli.Example{
			{"gpuscope version", "for a bug report"},
		},
		Setup: func(_ *pflag.FlagSet) cli.Action {
			return func(context.Context, []string) error { return p.printVersion() }
		},
	}
}

func (p *program) printVersion() error {
	info, _ := debug.ReadBuildInfo()
	_, err := fmt.Fprint(p.Stdout, versionText(info))
	return err
}

// versionText formats the build information. Unknown parts are left out.
func versionText(info *debug.BuildInfo) string {
	by := producerOf(info)
	text := fmt.Sprintf("gpuscope %s\n", by.Version)
	if by.Commit != "" {
		text += fmt.Sprintf("commit   %s\n", by.Commit)
	}
	if info == nil {
		return text
	}
	text += fmt.Sprintf("go       %s\nplatform %s/%s\n", info.GoVersion, runtime.GOOS, runtime.GOARCH)
	for _, dep := range info.Deps {
		if dep.Path == "github.com/cogentcore/webgpu" {
			text += fmt.Sprintf("binding  %s %s\n", dep.Path, dep.Version)
		}
	}
	return text
}

// producer returns the name and version that traces record for this program.
func producer() trace.Producer {
	info, _ := debug.ReadBuildInfo()
	return producerOf(info)
}

// buildDate returns the day of the commit of this program, or "" if it is not known.
func buildDate() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			day, _, _ := strings.Cut(s.Value, "T")
			return day
		}
	}
	return ""
}

func producerOf(info *debug.BuildInfo) trace.Producer {
	by := trace.Producer{Name: "gpuscope", Version: version}
	if info == nil {
		return by
	}
	modified := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			by.Commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = " with changes"
			}
		}
	}
	if by.Commit != "" {
		by.Commit += modified
	}
	return by
}
