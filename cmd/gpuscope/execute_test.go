package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/trace"
)

// programFolder is a folder with a program that adds two arrays, and with arrays.
type programFolder struct {
	t   *testing.T
	dir string
}

func floatArray(v ...float32) *npy.Array {
	a := &npy.Array{Type: npy.Float32, Dims: []int{len(v)}}
	for _, f := range v {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(f))
	}
	return a
}

func newProgramFolder(t *testing.T) programFolder {
	f := programFolder{t, t.TempDir()}
	f.write("add.pte", ptetest.Adder().Bytes())
	f.write("a.npy", floatArray(1, 2, 3).Bytes())
	f.write("b.npy", floatArray(10, 20, 30).Bytes())
	f.write("long.npy", floatArray(make([]float32, 9)...).Bytes())
	f.write("ids.npy", (&npy.Array{Type: npy.Int64, Dims: []int{1}, Data: make([]byte, 8)}).Bytes())
	f.write("x.gguf", []byte("GGUF"))
	return f
}

func (f programFolder) write(name string, data []byte) {
	if err := os.WriteFile(filepath.Join(f.dir, name), data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// run runs a command line in which each word with a dot, and OUT, is a file of the folder.
func (f programFolder) run(p *program, line string) int {
	words := strings.Fields(line)
	for i, w := range words {
		if strings.Contains(w, ".") && !strings.Contains(w, "=") || w == "OUT" {
			words[i] = filepath.Join(f.dir, w)
		}
	}
	return p.main(f.t.Context(), words)
}

func TestRunExecutesAMethod(t *testing.T) {
	t.Parallel()
	f := newProgramFolder(t)
	var out, errs bytes.Buffer
	p := testProgram(&out, &errs)
	if status := f.run(p, "run add.pte --input a.npy --input b.npy --output-dir OUT --profile off -n 3 --trace run.json"); status != exitDone {
		t.Fatalf("exit %d: %s", status, &errs)
	}
	for _, want := range []string{"method forward", "input 1   f32 [3]", "output 0  f32 [3]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &out)
		}
	}
	if got := speedRows(out.String()); !slices.Equal(got, []speedRow{{"execute", 2, 0}}) {
		t.Errorf("the speeds are %v:\n%s", got, &out)
	}
	a, err := npy.Read(filepath.Join(f.dir, "OUT", "out0.npy"))
	if err != nil || !slices.Equal(a.Dims, []int{3}) {
		t.Errorf("the output is %+v, %v", a, err)
	}
	if list, _ := os.ReadDir(filepath.Join(f.dir, "OUT")); len(list) != 1 {
		t.Errorf("%d files in the folder, want 1", len(list))
	}
	recorded, err := trace.ReadFile(filepath.Join(f.dir, "run.json"))
	if err != nil || len(recorded.Steps) != 3 || recorded.Steps[2].Phase != trace.Execute {
		t.Errorf("the trace: %v", err)
	}
}

func TestRunDescribesExecutionsInJSON(t *testing.T) {
	t.Parallel()
	f := newProgramFolder(t)
	var out, errs bytes.Buffer
	status := f.run(testProgram(&out, &errs), "run add.pte --live 0.0=5 --format json -n 2")
	var got executionResult
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || status != exitDone {
		t.Fatalf("exit %d, %v: %s", status, err, &errs)
	}
	if len(got.Executions) != 2 || len(got.Inputs) != 2 || !slices.Equal(got.Inputs[1].Dims, []int{5}) ||
		got.Outputs[0].Type != "f32" || !slices.Equal(got.Outputs[0].Dims, []int{5}) {
		t.Errorf("result %+v", got)
	}
}

func TestWrongExecutionsAreRefused(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	f := newProgramFolder(t)
	for _, args := range []string{
		"x.gguf --input a.npy", "--input a.npy", "x.gguf --live 0.0=3", "x.gguf --output-dir OUT",
		"add.pte --input a.npy --input b.npy -p text", "add.pte --input a.npy --ids 1", "add.pte -p text",
		"add.pte --chunks 3 --live 0.0=3", "add.pte --input a.npy --live 0.0=3", "add.pte --live 0=1",
		"add.pte --live 0.0=9", "add.pte --live 0.1=1", "add.pte --live 5.0=1", "add.pte --input a.npy",
		"add.pte --input a.npy --input b.npy --input a.npy", "add.pte --input a.npy --input ids.npy",
		"add.pte --input a.npy --input long.npy", "add.pte -n 0 --live 0.0=1",
		"add.pte --live 0.0=3 --live 1.0=4", "add.pte --live 0.0=3 --device none",
	} {
		var out, errs bytes.Buffer
		status := f.run(testProgram(&out, &errs), "run --output-dir OUT "+args)
		if status != exitUsage || out.Len() > 0 || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: exit %d: %s%s", args, status, &out, &errs)
		}
		if _, err := os.Stat(filepath.Join(f.dir, "OUT")); err == nil {
			t.Errorf("%s: the folder for the outputs was created", args)
		}
		golden.Text(args, strings.ReplaceAll(strings.TrimSpace(errs.String()), f.dir+"/", ""))
	}
	var out, errs bytes.Buffer
	if status := f.run(testProgram(&out, &errs), "run add.pte --input missing.npy"); status != exitFailed {
		t.Errorf("a missing file: exit %d: %s", status, &errs)
	}
}

func TestOutputsAreWrittenTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := newProgramFolder(t)
	f.write("OUT", nil) // a file in place of the folder
	var out, errs bytes.Buffer
	status := f.run(testProgram(&out, &errs), "run add.pte --live 0.0=3 --output-dir OUT --profile off")
	if status != exitFailed || out.Len() > 0 || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit %d: %s%s", status, &out, &errs)
	}
	out.Reset()
	p := testProgram(&out, &errs)
	p.driver = silent{p.driver}
	if status := f.run(p, "run add.pte --live 0.0=3 --output-dir NEW.d --profile off"); status != exitFailed {
		t.Errorf("a device that fails: exit %d: %s", status, &errs)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "NEW.d")); err == nil {
		t.Error("a run that failed has written outputs")
	}
}

// silent is a driver whose devices never answer.
type silent struct{ gpu.Driver }

func (d silent) Open(index int) (gpu.Device, error) {
	dev, err := d.Driver.Open(index)
	if f, ok := dev.(*fake.Device); ok {
		f.Fault = func(c fake.Call) error {
			if c.Kind == fake.Wait {
				return errors.New("no answer")
			}
			return nil
		}
	}
	return dev, err
}

func TestProgramsWithoutADeviceAreRefused(t *testing.T) {
	t.Parallel()
	f := newProgramFolder(t)
	var out, errs bytes.Buffer
	p := testProgram(&out, &errs)
	p.open = p.openModel
	if status := f.run(p, "--plain --device none add.pte"); status != exitUsage ||
		!strings.Contains(errs.String(), "gpuscope graph") {
		t.Errorf("exit %d: %s%s", status, &out, &errs)
	}
}
