package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/wordingtest"
	"gpuscope/tui"
)

// settled returns the flags and the engine's arguments for a settings file and typed flags.
func settled(t *testing.T, file string, typed ...string) (*root, *config, []string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &program{Env: cli.Env{Args: typed}, config: path}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	r := declareRoot(flags)
	if err := flags.Parse(typed); err != nil {
		t.Fatal(err)
	}
	c, err := p.settle(flags, r.checkFlags)
	return r, c, p.Args, err
}

func TestFlagsOverrideEnvironmentOverridesFile(t *testing.T) {
	t.Setenv("GPUSCOPE_GLYPHS", "ascii")
	t.Setenv("GPUSCOPE_TIMING", "off")
	r, c, args, err := settled(t, `
theme = "light"  # of the screen
glyphs = "braille"
timing = "dispatch"
no-mouse = true
context = 256
route = ["linear_q4gsw=gemv", "sdpa@layers.0=fd"]

[keys]
token = "f12"
"last view" = ["f2", "f3"]
`, "--timing", "step", "--theme=dark")
	if err != nil {
		t.Fatal(err)
	}
	if r.theme.Value != "dark" || r.glyphs.Value != "ascii" || r.model.timing.Value != "step" ||
		!r.screen.NoMouse || r.model.context != 256 || len(r.model.routes) != 2 {
		t.Errorf("theme %s glyphs %s timing %s no-mouse %v context %d routes %q",
			r.theme.Value, r.glyphs.Value, r.model.timing.Value,
			r.screen.NoMouse, r.model.context, r.model.routes)
	}
	keys := map[string][]string{"token": {"f12"}, "last view": {"f2", "f3"}}
	if diff := cmp.Diff(keys, c.keys); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"--glyphs=ascii", "--context=256", "--no-mouse=true", "--route=linear_q4gsw=gemv",
		"--route=sdpa@layers.0=fd", "--timing", "step", "--theme=dark",
	}
	if !slices.Equal(args, want) {
		t.Errorf("the engine's arguments are %q, want %q", args, want)
	}
}

func TestWrongSettingsAreReportedWithTheirLine(t *testing.T) {
	golden := wordingtest.New(t)
	for _, file := range []string{
		"\n\ntheme = \"pink\"",
		"context = \"many\"",
		"context = 0",
		"theme = 1979-05-27",
		"theme = \"dark\"\ntheme",
		"keys = 3",
		"[keys]\nwhy = \"q\"",
		"why = 1\n[keys]\n\n\"why\" = \"ww\"",
		"[keys]\nquit = [\"x\", 3]",
	} {
		_, _, _, err := settled(t, file)
		if _, usage := errors.AsType[cli.UsageError](err); !usage {
			t.Errorf("%q: %v, want a usage error", file, err)
			continue
		}
		_, text, _ := strings.Cut(err.Error(), "config.toml") // after the temporary folder
		golden.Text(file, text)
	}
	if _, _, _, err := settled(t, "system = \"Hello.\"\nchat = true", "--theme", "dark"); err != nil {
		t.Error(err)
	}
	t.Setenv("GPUSCOPE_SYSTEM", "Hello.") // also satisfies the file's chat setting
	if _, _, _, err := settled(t, "chat = true"); err != nil {
		t.Error(err)
	}
	t.Setenv("GPUSCOPE_THEME", "pink")
	if _, _, _, err := settled(t, ""); err == nil || !strings.HasPrefix(err.Error(), `GPUSCOPE_THEME: --theme "pink": `) {
		t.Error(err)
	}
}

// An error that is found only when the model is read also names the environment variable that set the flag.
// For a typed flag, it names only the flag. Settings that depend on each other are checked when all of them
// are known.
func TestModelErrorsNameTheirSetting(t *testing.T) {
	golden := wordingtest.New(t)
	for _, c := range []struct{ env, typed, want string }{
		{"QUANTIZE=q3", "", `gpuscope: GPUSCOPE_QUANTIZE: --quantize "q3": `},
		{"QUANTIZE=q4", "", `gpuscope: GPUSCOPE_QUANTIZE: --quantize q4: `},
		{"GROUP_SIZE=64", "", `gpuscope: GPUSCOPE_GROUP_SIZE: --group-size 64: `},
		{"GROUP_SIZE=48", "--quantize q4", `gpuscope: GPUSCOPE_GROUP_SIZE: --group-size 48: `},
		{"QUANTIZE=q4", "--group-size 48", `gpuscope: --group-size 48: `},
		{"ROUTE=a=b", "", `gpuscope: GPUSCOPE_ROUTE: --route a=b: `},
		{"ROUTE=linear_q4gsw=x", "", `gpuscope: GPUSCOPE_ROUTE: --route linear_q4gsw=x: layers.0.attn.q `},
		{"TOKENIZER=none.json", "", `gpuscope: GPUSCOPE_TOKENIZER: --tokenizer: stat none.json`},
		{"SYSTEM=Hello.", "--quantize q3 --chat", `gpuscope: --quantize "q3": `},
		{"DEVICE=none", "--shaders .", `gpuscope: GPUSCOPE_DEVICE: --shaders: `},
	} {
		name, value, _ := strings.Cut(c.env, "=")
		t.Run(c.env+c.typed, func(t *testing.T) {
			t.Setenv("GPUSCOPE_"+name, value)
			var stderr bytes.Buffer
			p := testProgram(nil, &stderr)
			p.driver, p.open = nil, p.openModel
			args := append([]string{"--plain"}, strings.Fields(c.typed)...)
			if name != "DEVICE" {
				args = append(args, "--device", "none")
			}
			if status := p.main(t.Context(), args); status != exitUsage && name != "TOKENIZER" ||
				!strings.HasPrefix(stderr.String(), c.want) {
				t.Errorf("exit %d: %s\nwant %s", status, stderr.String(), c.want)
			}
			if name != "TOKENIZER" { // the message of a missing file differs between systems
				golden.Text(strings.TrimSpace(c.env+" "+c.typed), stderr.String())
			}
		})
	}
}

func TestSettingsOfAnotherVersionAreWarnedOf(t *testing.T) {
	_, c, args, err := settled(t, "colour = \"no\"\ntheem = \"dark\"\nmouse = false\n[keys]\n\"raed\" = \"f2\"\n")
	if err != nil || len(args) > 0 || len(c.keys) > 0 {
		t.Errorf("%v, args %q, keys %v", err, args, c.keys)
	}
	for i, want := range []string{
		`"colour"; did you mean color?`,
		`"mouse"; did you mean no-mouse?`,
		`"theem"; did you mean theme?`,
		`"raed"`,
	} {
		if i >= len(c.warnings) || !strings.Contains(c.warnings[i], want) {
			t.Errorf("%q, want %s", c.warnings, want)
		}
	}
}

func TestTheExampleOfTheDocumentationIsRight(t *testing.T) {
	r, c, _, err := settled(t, tui.SettingsExample)
	if err != nil || len(c.warnings) > 0 || len(c.keys) == 0 || r.theme.Value != "high-contrast" {
		t.Errorf("%v, %q, %v", err, c.warnings, c.keys)
	}
}
