package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/folder"
	"gpuscope/internal/npy"
	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
	"gpuscope/trace"
)

// Limits of what Read accepts. Real captures are far below them.
const (
	maxText     = 1 << 20 // size of capture.json and of kernel.wgsl, in bytes
	maxBindings = 64
	maxParams   = 64
	maxDims     = 16
	maxElements = 1 << 40
	maxHeader   = 1 << 16 // size of the header of a .npy file, in bytes
)

// Write writes the capture to the folder `dir`. If an earlier call of Write has written this folder, it is
// replaced. If the folder contains anything else, Write returns an error that wraps folder.ErrForeign.
func (c *Capture) Write(dir string) error {
	if err := c.check(); err != nil {
		return err
	}
	return folder.Write(filepath.Clean(dir), "capture", func(dir string) error {
		return c.files(func(name string, data []byte) error {
			return os.WriteFile(filepath.Join(dir, name), data, 0o644)
		})
	})
}

// files calls put with the name and the content of each file of the capture.
func (c *Capture) files(put func(name string, data []byte) error) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(put(jsonFile, append(text, '\n')), put(kernelFile, []byte(c.source))); err != nil {
		return err
	}
	for i := range c.Bindings {
		b := &c.Bindings[i]
		for _, a := range []struct {
			file string
			data []byte
		}{{b.Before, b.before}, {b.After, b.after}} {
			if a.file == "" {
				continue
			}
			typ, dims := b.shape()
			array := npy.Array{Type: typ, Dims: dims, Data: a.data}
			if err := put(a.file, array.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read reads the folder of a capture. The errors for a folder that is not a valid capture wrap ErrFormat.
// Read checks the sizes in capture.json before it reads an array. `most` is the limit for the total size of
// the arrays in bytes.
func Read(dir string, most int64) (*Capture, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	c, err := read(root.FS(), most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return c, nil
}

func read(files fs.FS, most int64) (*Capture, error) {
	text, err := load(files, jsonFile, maxText)
	if err != nil {
		return nil, err
	}
	c := &Capture{}
	if err := readjson.Unmarshal(text, c); err != nil {
		return nil, invalid("%s: %w", jsonFile, err)
	}
	if c.Schema != Schema {
		return nil, invalid("the schema is %q, want %s", printable.Short(c.Schema, 60), Schema)
	}
	if c.Kernel.File != kernelFile {
		return nil, invalid("the source of the kernel is in %q, want %s", printable.Short(c.Kernel.File, 60),
			kernelFile)
	}
	source, err := load(files, kernelFile, maxText)
	if err != nil {
		return nil, err
	}
	c.source = string(source)
	if err := c.check(); err != nil {
		return nil, err
	}
	if n := c.Bytes(); n > most {
		return nil, fmt.Errorf("the arrays of the capture have %d bytes, but the limit is %d: raise --max-bytes", n,
			most)
	}
	for i := range c.Bindings {
		b := &c.Bindings[i]
		for _, a := range []struct {
			file string
			into *[]byte
		}{{b.Before, &b.before}, {b.After, &b.after}} {
			if a.file == "" {
				continue
			}
			if *a.into, err = b.load(files, a.file); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// load reads a regular file of at most `most` bytes.
func load(files fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, invalid("the folder has no file %s, which gpuscope capture writes: copy the whole folder, or "+
			"capture the dispatch again", name)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, invalid("%s is not a file", name)
	}
	if info.Size() > most {
		return nil, invalid("%s has %d bytes; the limit is %d", name, info.Size(), most)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1)) // the file may have grown
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, invalid("%s has more than %d bytes", name, most)
	}
	return data, nil
}

// load reads the content of a binding.
func (b *Binding) load(files fs.FS, name string) ([]byte, error) {
	data, err := load(files, name, b.size+maxHeader)
	if err != nil {
		return nil, err
	}
	a, err := npy.Parse(data)
	if err != nil {
		return nil, invalid("%s: %w", name, err)
	}
	if typ, dims := b.shape(); a.Type != typ || !slices.Equal(a.Dims, dims) {
		return nil, invalid("%s has the shape %v of %s, want %v of %s", name, a.Dims, a.Type, dims, typ)
	}
	return a.Data, nil
}

// check returns an error if the description of the capture is invalid or contradicts the source of the
// kernel. It also computes the sizes of the bindings, and parses the source of the kernel.
func (c *Capture) check() error {
	if n := len(c.Bindings); n == 0 || n > maxBindings {
		return invalid("the capture has %d bindings, want 1 to %d", n, maxBindings)
	}
	if n := len(c.Params); n > maxParams {
		return invalid("the capture has %d params; the limit is %d", n, maxParams)
	}
	for _, n := range c.Workgroups {
		if n == 0 {
			return invalid("the workgroups are %v; each number must be 1 or more", c.Workgroups)
		}
	}
	if c.ModelledBytes < 0 {
		return invalid("modelled_bytes is %d", c.ModelledBytes)
	}
	known := map[string]bool{}
	var total int64
	for i := range c.Bindings {
		b := &c.Bindings[i]
		if err := b.check(); err != nil {
			return err
		}
		// On some systems, a folder cannot contain two files whose names differ only in case.
		lower := strings.ToLower(b.Name)
		if known[lower] {
			return invalid("two bindings have the name %s", b.Name)
		}
		known[lower] = true
		if total += b.size; total > maxElements {
			return invalid("the bindings need more than %d bytes", int64(maxElements))
		}
	}
	k, err := parseKernel(c.Kernel.Name, c.source)
	if err != nil {
		return invalid("%s: %w", kernelFile, err)
	}
	if err := fits(k, kernelFile, c.described(), "of "+jsonFile); err != nil {
		return invalid("%s and %s differ: %w", jsonFile, kernelFile, err)
	}
	c.kernel = k
	return nil
}

// fits returns nil if a kernel can run in place of another one. The error names the file of the first, and
// says with the words of `where` which kernel the other one is, because both can have the same name.
func fits(k *graph.Kernel, file string, other *graph.Kernel, where string) error {
	given, own := *k, *other
	given.Name, own.Name = file, other.Name+" "+where
	return given.CanReplace(&own)
}

// parseKernel parses the source of a kernel.
func parseKernel(name, source string) (*graph.Kernel, error) {
	parsed, err := shaders.Read(source)
	if err != nil {
		return nil, err
	}
	return kind.FromSource(name, parsed)
}

// described returns the kernel that capture.json describes: its bindings, params and workgroup size, but not
// its source.
func (c *Capture) described() *graph.Kernel {
	k := &graph.Kernel{Name: c.Kernel.Name, WorkgroupSize: c.Kernel.WorkgroupSize}
	for i := range c.Bindings {
		b := &c.Bindings[i]
		s := graph.Storage{Name: b.Name, Elem: b.Element}
		if b.writes() {
			s.Access, s.Read = gpu.ReadWrite, b.Before != ""
		}
		k.Storage = append(k.Storage, s)
	}
	for i, p := range c.Params {
		k.Params = append(k.Params, trace.Param{Name: p.Name, Type: p.Type, Offset: 4 * i})
	}
	return k
}

func (b *Binding) check() error {
	if !variable.MatchString(b.Name) {
		return invalid("a binding has the name %q", printable.Short(b.Name, 60))
	}
	if b.Access != gpu.Read.String() && !b.writes() {
		return invalid("the access of %s is %q, want %s or %s", b.Name, printable.Short(b.Access, 60),
			gpu.Read, gpu.ReadWrite)
	}
	want := Binding{Before: beforeFile(b.Name)}
	if b.writes() {
		want.Before, want.After = b.Before, afterFile(b.Name)
		if b.Before != "" {
			want.Before = beforeFile(b.Name)
		}
	}
	if b.Before != want.Before || b.After != want.After {
		return invalid("the files of %s are %q and %q, want %q and %q", b.Name, printable.Short(b.Before, 60),
			printable.Short(b.After, 60), want.Before, want.After)
	}
	if len(b.Dims) > maxDims {
		return invalid("%s has %d dims; the limit is %d", b.Name, len(b.Dims), maxDims)
	}
	n := int64(1)
	for _, d := range b.Dims {
		if d < 0 || d > 0 && n > maxElements/int64(d) {
			return invalid("%s has the dims %v, want numbers of 0 or more and at most %d elements", b.Name,
				b.Dims, int64(maxElements))
		}
		n *= int64(d)
	}
	for _, t := range []graph.DType{graph.F32, graph.I32, graph.U32, graph.F16, graph.Q4, graph.I8} {
		if t.String() == b.DType {
			b.dtype, b.size = t, t.Bytes(int(n))
			return nil
		}
	}
	return invalid("the type of %s is %q", b.Name, printable.Short(b.DType, 60))
}
