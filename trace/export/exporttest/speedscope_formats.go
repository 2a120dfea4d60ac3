//go:build formats

package exporttest

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Shown is what speedscope shows of a file.
type Shown struct {
	Profiles []struct {
		Name, Unit string
		Total      float64 // in the Unit
		Frames     map[string]Frame
	}
}

// Frame is what speedscope shows of a frame: how often it was opened, how long it was open, and how long no
// other frame was open in it.
type Frame struct {
	Count       int64
	Total, Self float64 // in the unit of the profile
}

// Speedscope opens files in speedscope. The test fails if speedscope warns of something in a file.
func Speedscope(t *testing.T, files ...string) []Shown {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(here), "..", "..", "..", "scripts", "formats", "speedscope.mjs")
	cmd := exec.Command("node", append([]string{script}, files...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var list []Shown
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var s Shown
		if err := d.Decode(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if len(list) != len(files) {
		t.Fatalf("speedscope opened %d of %d files", len(list), len(files))
	}
	return list
}
