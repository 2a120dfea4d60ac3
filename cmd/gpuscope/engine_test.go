package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/tui"
)

// flagsOf parses a command's arguments and returns its flags and operands.
func flagsOf(t *testing.T, c *cli.Command, args []string) (flags *pflag.FlagSet, operands []string) {
	t.Helper()
	flags = pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c.Setup(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("gpuscope %s %q: %v", c.Name, args, err)
	}
	return flags, flags.Args()
}

// A flag that the screen does not pass to the engine would silently have no effect.
func TestEveryFlagOfTheScreenReachesTheEngine(t *testing.T) {
	t.Parallel()
	var args []string
	known, _ := flagsOf(t, rootCommand(new(program)), nil)
	known.VisitAll(func(f *pflag.Flag) {
		if f.Name == versionFlag { // no engine starts
			return
		}
		value := map[string]string{
			"bool": "true", "int": "7", "positive": "7", "uint32": "7", "float64": "0.25", "string": "some text",
			"stringArray": "a=b",
		}[f.Value.Type()]
		if value == "" {
			t.Fatalf("--%s is a flag of type %s, for which this test has no value", f.Name, f.Value.Type())
		}
		args = append(args, "--"+f.Name+"="+value)
		if f.Value.Type() == "stringArray" {
			args = append(args, "--"+f.Name, "c@d=e")
		}
	})
	args = append(args, "--", "-model.gguf")
	p := &program{Env: cli.Env{Args: args}}
	c, rest, _ := new(program).commands().Pick(p.engineArgs())
	if !c.Hidden {
		t.Fatalf("the arguments %q start gpuscope %s, which is not hidden", p.engineArgs(), c.Name)
	}
	want, wantModel := flagsOf(t, rootCommand(new(program)), args)
	got, model := flagsOf(t, c, rest)
	want.VisitAll(func(f *pflag.Flag) {
		if f.Name == versionFlag {
			return
		}
		if !f.Changed {
			t.Errorf("the test does not set --%s", f.Name)
		}
		switch g := got.Lookup(f.Name); {
		case g == nil:
			t.Errorf("the engine has no --%s", f.Name)
		case g.Value.String() != f.Value.String():
			t.Errorf("--%s is %s in the screen, %s in the engine", f.Name, f.Value, g.Value)
		}
	})
	if fmt.Sprint(model) != fmt.Sprint(wantModel) {
		t.Errorf("the engine opens %q, want %q", model, wantModel)
	}
	p.Args = p.engineArgs()
	if got := p.asTyped(); fmt.Sprint(got) != fmt.Sprint(args) {
		t.Errorf("the trace records the arguments %q, the user typed %q", got, args)
	}
}

func TestABugIsReportedWithItsStack(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	p := testProgram(nil, &stderr)
	err := fmt.Errorf("terminal: %w", &tui.Panic{
		Value: errors.New("index out of range"), Stack: []byte("goroutine 7 [running]:\nmain.main()\n\tmain.go:1\n"),
	})
	if status := p.report(t.Context(), rootCommand(new(program)), err); status != exitBug {
		t.Errorf("exit %d", status)
	}
	lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(stderr.String(), "goroutine 7 [running]:\nmain.main()\n") ||
		!strings.HasPrefix(last, "gpuscope: ") || !strings.Contains(last, "index out of range") ||
		!strings.Contains(last, "report this error together with the lines above") {
		t.Errorf("stderr:\n%s", &stderr)
	}
}
