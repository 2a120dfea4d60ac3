package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
)

// Every visible command has examples, and the examples use only flags that the command has.
func TestExamplesNameFlagsThatExist(t *testing.T) {
	t.Parallel()
	for _, c := range new(program).commands() {
		if c.Hidden {
			continue
		}
		if len(c.Examples) == 0 {
			t.Errorf("%s has no examples", c.UsageLine())
		}
		for _, e := range c.Examples {
			of := c // an example may also show the command to run next
			if words := strings.Fields(e[0]); words[0] == "gpuscope" {
				of, _, _ = new(program).commands().Pick(words[1:])
			}
			flags := pflag.NewFlagSet(of.Name, pflag.ContinueOnError)
			of.Setup(flags)
			for _, word := range strings.Fields(strings.Split(e[0], " | ")[0]) {
				long, isLong := strings.CutPrefix(word, "--")
				short, isShort := strings.CutPrefix(word, "-")
				if isLong && flags.Lookup(long) == nil || !isLong && isShort &&
					flags.ShorthandLookup(short) == nil {
					t.Errorf("%s: the example %q uses %s, which is not one of its flags", c.UsageLine(),
						e[0], word)
				}
			}
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, fmt.Errorf("write |1: %w", syscall.EPIPE) }

func TestClosedOutputEndsQuietly(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	for _, args := range []string{"devices", "devices --format json", "version", "-h"} {
		p := testProgram(nil, &stderr)
		p.Stdout = brokenPipe{}
		if status := p.main(t.Context(), strings.Fields(args)); status != exitDone || stderr.Len() > 0 {
			t.Errorf("gpuscope %s: exit %d, stderr %q", args, status, &stderr)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// The message names the signal once: the cause is only "signal: interrupt", and report adds the text before
// it.
func TestASignalIsNamedOnce(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(interrupted{os.Interrupt})
	var stdout, stderr bytes.Buffer
	testProgram(&stdout, &stderr).report(ctx, new(program).commands().Named("bench"), ctx.Err())
	if got := stderr.String(); got != "gpuscope bench: stopped by signal: interrupt\n" ||
		context.Cause(ctx).Error() != "signal: interrupt" {
		t.Errorf("%q of %v", got, context.Cause(ctx))
	}
}

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	p := testProgram(nil, &stderr)
	p.Stdout = fullDisk{}
	if status := p.main(t.Context(), []string{"version"}); status != exitFailed ||
		!strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit %d, stderr %q", status, &stderr)
	}
}

func TestVersionSaysWhatTheBuildKnows(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Deps: []*debug.Module{
			{Path: "a/b", Version: "v1"},
			{Path: "github.com/cogentcore/webgpu", Version: "v0.23.0"},
		},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc123"},
			{Key: "vcs.modified", Value: "true"},
		},
	}
	want := "gpuscope " + version +
		"\ncommit   abc123 with changes\ngo       go1.26.8\nplatform " + runtime.GOOS + "/" + runtime.GOARCH +
		"\nbinding  github.com/cogentcore/webgpu v0.23.0\n"
	if got := versionText(info); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := versionText(nil); got != "gpuscope "+version+"\n" {
		t.Errorf("without build info: %q", got)
	}
}
