//go:build !race

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/engine/gpu/gputest"
)

// kernelFile writes a kernel of the embedded model to a folder for --shaders. The source is the output of
// graph --kernel, with from replaced by to.
func kernelFile(t *testing.T, name, from, to string) (dir string) {
	t.Helper()
	gputest.Open(t) // skips the test if there is no GPU
	status, text, stderr := verified(t, "graph --kernel "+name, "", "")
	if status != exitDone || !strings.Contains(text, from) {
		t.Fatalf("exit %d: %s%s", status, text, stderr)
	}
	dir = t.TempDir()
	text = strings.ReplaceAll(text, from, to)
	if err := os.WriteFile(filepath.Join(dir, name+".wgsl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTextsOfAFolderAreWhatIsVerified(t *testing.T) {
	const mistake = "* scale * weight[i] * 1.01"
	dir := kernelFile(t, "rms_norm", "* scale * weight[i]", mistake)
	status, stdout, stderr := verified(t, "verify -n 0 --ids 1,47,300 --shaders "+dir, "", "")
	if status != exitFailed || !strings.Contains(stdout, "first divergence: s0 dispatch ") ||
		!strings.Contains(stdout, "norm") {
		t.Errorf("exit %d: %s%s", status, stdout, stderr)
	}
	dir = kernelFile(t, "rms_norm", "fn main(", "fn main((")
	status, _, stderr = verified(t, "verify -n 0 --ids 1,47,300 --shaders "+dir, "", "")
	if status != exitUsage || !strings.Contains(stderr, "--shaders "+dir+": rms_norm.wgsl:") ||
		!strings.Contains(stderr, "parsing error: expected identifier") {
		t.Errorf("exit %d: %s", status, stderr)
	}
}

func TestGraphPrintsTheTextOfAKernel(t *testing.T) {
	for line, want := range map[string]string{
		"graph --device none --kernel rms_norm":                "// gpuscope kernel rms_norm: Lanes 128",
		"graph --device none --kernel topk --top-logits 5":     "// gpuscope kernel topk",
		"graph --device none --kernel topk":                    `--kernel "topk": the graph has`,
		"graph --device none --kernel tanh":                    `--kernel "tanh": the graph has`,
		"graph --device none --kernel rms_norm --at 1,0":       "--kernel ",
		"run --device none --shaders x":                        "--shaders: ",
		"verify --ids 1,47 --shaders testdata/there-is-no-dir": "--shaders: open",
	} {
		var out, err bytes.Buffer
		p := testProgram(&out, &err)
		p.open = p.openModel
		status := p.main(t.Context(), strings.Fields(line))
		printed := strings.HasPrefix(want, "//")
		said := out.String() + err.String()
		if !strings.Contains(said, want) || printed != (status == exitDone) {
			t.Errorf("%s: exit %d, %s, want %s", line, status, said, want)
		}
	}
}
