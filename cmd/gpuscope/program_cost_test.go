//go:build linux && !race

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gpuscope/engine/gpu"
)

// What gpuscope graph may take for a program of 7 MB. On an idle machine it takes 0.1 to 0.27 s of the CPU.
// Other work makes the same instructions take up to three times as long, so the limit only finds a change by
// a multiple. The memory is what the process allocates, 20 MB: how many pages of the binary (60 MB, more in
// tests) are in memory is the system's choice.
const (
	mostGraphTime   = time.Second // in user and kernel mode
	mostGraphMemory = 40_000_000
)

func TestGraphOfAProgramIsCheap(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "pte", "llama-demo-4w.pte")
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	for _, format := range []string{"text", "json"} {
		took, memory := time.Duration(0), 0
		for range 3 { // other processes make CPU time longer, never shorter
			more, peak := costOfGraph(t, path, "--format", format)
			if took == 0 || more < took {
				took, memory = more, peak
			}
		}
		t.Logf("%s: %v of the CPU, %d KiB", format, took, memory>>10)
		if took > mostGraphTime || memory > mostGraphMemory || memory == 0 {
			t.Errorf("%s: %v of the CPU and %d bytes, want at most %v and %d", format, took, memory,
				mostGraphTime, mostGraphMemory)
		}
	}
}

// costOfGraph returns the CPU time of a gpuscope graph and the memory that it has allocated, in bytes. The
// memory is read while the process waits for somebody to read its output, which is longer than a pipe.
func costOfGraph(t *testing.T, args ...string) (took time.Duration, memory int) {
	t.Helper()
	cmd := headless(t, "real", append([]string{"graph"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "RssAnon: %d kB", &memory); err == nil {
			break
		}
	}
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), memory << 10
}

// untouched is a driver that must not be used.
type untouched struct{ testing.TB }

func (u untouched) Adapters() ([]gpu.AdapterInfo, error) {
	u.Error("the adapters are listed")
	return nil, gpu.ErrNoAdapter
}

func (u untouched) Open(int) (gpu.Device, error) {
	u.Error("an adapter is opened")
	return nil, gpu.ErrNoAdapter
}

func TestGraphOfAProgramUsesNoAdapter(t *testing.T) {
	t.Parallel()
	path := writeExample(t)
	for _, format := range []string{"text", "json", "dot"} {
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr)
		p.driver = untouched{t}
		if status := p.main(t.Context(), []string{"graph", "--format", format, path}); status != exitDone {
			t.Errorf("exit %d: %s", status, &stderr)
		}
	}
}
