package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
)

// printed returns what a command prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := testProgram(&stdout, &stderr).main(t.Context(), args); status != exitDone {
		t.Fatalf("%v: exit %d: %s", args, status, &stderr)
	}
	return stdout.String()
}

// completed runs bash with the completion script, and returns the completions of each command line. The last
// word of a line is the one to complete.
func completed(t *testing.T, dir string, lines ...[]string) [][]string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script := printed(t, "completion", "bash") + `
for line in "${lines[@]}"; do
    eval "COMP_WORDS=($line)"
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
    _gpuscope
    printf '%s\n' "${COMPREPLY[@]}"
    echo .
done
`
	var list strings.Builder
	list.WriteString("lines=(")
	for _, words := range lines {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = `'"'"'` + w + `'"'"'`
		}
		fmt.Fprintf(&list, " '%s'", strings.ReplaceAll(strings.Join(quoted, " "), `'"'"'`, `"`))
	}
	list.WriteString(" )\n")
	cmd := exec.Command(bash, "--norc", "-c", list.String()+script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var all [][]string
	words := []string{}
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSuffix(line, "\n"); line {
		case ".":
			all = append(all, words)
			words = []string{}
		case "":
		default:
			words = append(words, line)
		}
	}
	if len(all) != len(lines) {
		t.Fatalf("%d results for %d lines: %s", len(all), len(lines), out)
	}
	return all
}

// Every flag of every command is completed, and so is every word that a flag accepts.
func TestBashCompletesFlagsAndTheirWords(t *testing.T) {
	t.Parallel()
	type wanted struct {
		line, want []string
	}
	var all []wanted
	for _, c := range new(program).commands() {
		if c.Hidden {
			continue
		}
		command := append([]string{"gpuscope"}, strings.Fields(c.Name)...)
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			names = append(names, "--"+f.Name)
			if f.NoOptDefVal != "" {
				return
			}
			flags := []string{"--" + f.Name}
			if f.Shorthand != "" {
				flags = append(flags, "-"+f.Shorthand)
			}
			for _, flag := range flags {
				if words := cli.Words(f); len(words) > 0 {
					start := words[0][:1]
					all = append(all, wanted{append(slices.Clone(command), flag, ""), words},
						wanted{append(slices.Clone(command), flag, "=", start), startingWith(words, start)})
				}
			}
		})
		all = append(all, wanted{append(slices.Clone(command), "--"), names})
	}
	var lines [][]string
	for _, w := range all {
		lines = append(lines, w.line)
	}
	for i, got := range completed(t, t.TempDir(), lines...) {
		if !slices.Equal(got, all[i].want) {
			t.Errorf("%q: completed to %q, want %q", all[i].line, got, all[i].want)
		}
	}
}

func startingWith(words []string, prefix string) []string {
	other := func(w string) bool { return !strings.HasPrefix(w, prefix) }
	return slices.DeleteFunc(slices.Clone(words), other)
}

func TestBashCompletesCommandsAndFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"run 1.json", "model.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "shaders"), 0o700); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		line string
		want []string
	}{
		{"gpuscope ver", []string{"verify", "version"}},
		{"gpuscope ru", []string{"run", "run 1.json"}},
		{"gpuscope trace c", []string{"check", "convert"}},
		{"gpuscope lab ", []string{"try"}},
		{"gpuscope help tra", []string{"trace"}},
		{"gpuscope completion ", []string{"bash", "zsh", "fish"}},
		{"gpuscope trace show ", []string{"model.gguf", "run 1.json", "shaders"}},
		{"gpuscope run --shaders ", []string{"shaders"}},
		{"gpuscope run --trace r", []string{"run 1.json"}},
		{"gpuscope run --tokens ", nil},
		{"gpuscope replay ", []string{"shaders"}},
		{"gpuscope version ", nil},
	}
	var lines [][]string
	for _, c := range cases {
		lines = append(lines, strings.Split(c.line, " "))
	}
	for i, got := range completed(t, dir, lines...) {
		slices.Sort(got)
		want := slices.Sorted(slices.Values(cases[i].want))
		if !slices.Equal(got, want) {
			t.Errorf("%q: completed to %q, want %q", cases[i].line, got, want)
		}
	}
}

// The scripts are valid in the shells that are installed.
func TestCompletionScriptsParse(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := printed(t, "completion", shell)
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
		if shell != "fish" {
			continue
		}
		out, err := exec.Command(path, "--no-config", "-c",
			"source "+file+"; complete -C 'gpuscope trace show --table st'").Output()
		var words []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			words = append(words, word)
		}
		if slices.Sort(words); err != nil || !slices.Equal(words, []string{"state", "steps"}) {
			t.Errorf("fish completes to %q: %v", words, err)
		}
	}
}

// The manual page has every command and flag, and programs that show manual pages accept it.
func TestManualPageHasCommandsAndFlags(t *testing.T) {
	t.Parallel()
	page := printed(t, "man")
	for _, c := range new(program).commands() {
		if c.Hidden || c.Name == "" {
			continue
		}
		_, section, ok := strings.Cut(page, `.SS "gpuscope `+c.Name+"\"\n")
		if !ok {
			t.Errorf("no section for %s", c.Name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n.S")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name := strings.ReplaceAll("--"+f.Name, "-", `\-`); !strings.Contains(section, name) {
				t.Errorf("%s: no flag %s", c.Name, f.Name)
			}
		})
	}
	for line := range strings.Lines(page) {
		if len(line) > 1 && (line[0] == '.' || line[0] == '\'') && !strings.Contains(`.\" .TH .SH .SS .PP .TP .B `+
			".br .nf .fi ", strings.Fields(line)[0]+" ") {
			t.Errorf("text is taken for a macro: %s", line)
		}
	}
	path, err := exec.LookPath("mandoc")
	if err != nil {
		return
	}
	cmd := exec.Command(path, "-Tlint", "-Wwarning")
	dated := strings.Replace(page, `.TH GPUSCOPE 1 ""`, `.TH GPUSCOPE 1 "2026-11-27"`, 1)
	cmd.Stdin = strings.NewReader(dated)
	if out, _ := cmd.CombinedOutput(); len(out) > 0 {
		t.Errorf("%s", out)
	}
}

func TestVersionFlagPrintsTheVersion(t *testing.T) {
	t.Parallel()
	if got, want := printed(t, "--version"), printed(t, "version"); got != want ||
		!strings.HasPrefix(got, "gpuscope "+version+"\n") {
		t.Errorf("%q, want %q", got, want)
	}
}
