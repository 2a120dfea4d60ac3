package safetensors

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// file is a file with a header and bytes behind it.
func file(header, data string) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

func TestTensorsAreWhatTheHeaderSays(t *testing.T) {
	f, err := Parse(file(`{"__metadata__":{"format":"pt"},`+
		`"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[2,10]},`+
		`"scalar":{"dtype":"F16","shape":[],"data_offsets":[0,2]},`+
		`"none":{"dtype":"F32","shape":[3,0],"data_offsets":[10,10]}}  `, "0123456789"), "x")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tensor := range f.Tensors() {
		data, err := tensor.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tensor.Name+" "+string(data))
	}
	if want := []string{"scalar 01", "b 23456789", "none "}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if b := f.Tensors()[1]; b.DType != "BF16" || !reflect.DeepEqual(b.Dims, []int{2, 2}) || b.Size() != 8 {
		t.Errorf("got %+v", b)
	}
	if pairs := f.Metadata(); len(pairs) != 1 || pairs[0] != (Pair{"format", "pt"}) {
		t.Errorf("metadata %v", pairs)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Tensors()[0].Bytes(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("bytes after Close: %v", err)
	}
}

func TestDamageIsOneError(t *testing.T) {
	const one = `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":              {nil, "not a safetensors file: the file has 0 bytes"},
		"cut in the length":  {[]byte("abc"), "the file has 3 bytes; the minimum is 8"},
		"a header of 4 GB":   {append([]byte{0, 0, 0, 0, 1, 0, 0, 0}, '{'), "the header has 4294967296 bytes; the maximum is"},
		"a header too long":  {append([]byte{99, 0, 0, 0, 0, 0, 0, 0}, '{'), "the header has 99 bytes, but the file has only 9"},
		"not an object":      {file(`["a"]`, ""), "the header starts with"},
		"no header":          {file("", ""), "the header starts with"},
		"not UTF-8":          {file("{\"\xff\":1}", ""), "not valid UTF-8"},
		"cut JSON":           {file(`{"a":{"dtype"`, ""), "invalid header: the JSON ends unexpectedly at byte 13: the file is damaged. Download it again"},
		"two objects":        {file(`{}{}`, ""), `invalid JSON at byte 2: "{"`},
		"a list for a shape": {file(`{"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}}`, "0123"), "shape: a list where an integer of at least 0 is wanted"},
		"nested too deep":    {file(`{"a":`+strings.Repeat("[", 20000), ""), "nested too deep"},
		"a negative dim":     {file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, "0123"), `tensor "a": invalid header: shape: -1 where an integer of at least 0 is wanted`},
		"a tensor twice":     {file(`{`+one+`,`+one+`}`, "0123"), `"a" occurs twice`},
		"a control in a name": {
			file(`{"a\u001b[2J":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "0123"), "is empty or not printable",
		},
		"an unknown dtype": {
			file(`{"a":{"dtype":"Q9","shape":[1],"data_offsets":[0,4]}}`, "0123"), `tensor "a": dtype "Q9" is unknown`,
		},
		"a product that overflows": {
			file(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, "0123"),
			"the number of elements is too large",
		},
		"a size that is not the product's": {
			file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, "0123"), "the tensor has 4 bytes, but F32 [2] needs 8",
		},
		"offsets backwards": {
			file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[4,0]}}`, "0123"),
			"data_offsets [4, 0] must be",
		},
		"one offset": {file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[4]}}`, "0123"), "data_offsets [4] must be"},
		"past the file": {
			file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, "0123"), "the tensor ends at byte 8 of the data, which has 4",
		},
		"overlap": {
			file(`{`+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, "012345"),
			`tensors "a" and "b" overlap`,
		},
		"a gap": {
			file(`{`+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}}`, "0123456789"),
			`bytes 4 to 6 of the data, before tensor "b", do not belong to any tensor`,
		},
		"bytes behind": {file(`{`+one+`}`, "01234"), "1 extra bytes after the last tensor"},
		"metadata without end": {
			file(`{"__metadata__":{"a":"`+strings.Repeat("x", maxMetadata)+`"}}`, ""),
			"__metadata__ has 1048584 bytes; the maximum is 1048576",
		},
		"more dims than any": {
			file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("1,", 99)+`1],"data_offsets":[0,1]}}`, "0"),
			"a list of 100 numbers; the maximum is 8",
		},
		"metadata that is no text": {
			file(`{"__metadata__":{"a":1}}`, ""), "a number where a string is wanted",
		},
	} {
		_, err := Parse(c.data, "x")
		if err == nil || !strings.HasPrefix(err.Error(), "x: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// folder writes files into a folder of its own.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolderOfFiles(t *testing.T) {
	tensor := func(name string) string {
		return string(file(`{"`+name+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, name))
	}
	index := func(pairs string) string { return `{"weight_map":{` + pairs + `}}` }
	for name, c := range map[string]struct {
		files map[string]string
		want  string // tensors, or a part of the error
	}{
		"one file":        {map[string]string{single: tensor("a")}, "a"},
		"two files":       {map[string]string{indexName: index(`"b":"2","a":"1"`), "1": tensor("a"), "2": tensor("b")}, "ab"},
		"nothing":         {nil, "neither model.safetensors nor model.safetensors.index.json"},
		"a missing file":  {map[string]string{indexName: index(`"b":"2","a":"1"`), "1": tensor("a")}, "2 is missing (file 2 of 2"},
		"a file outside":  {map[string]string{indexName: index(`"a":"../1"`)}, "not a file name without a path"},
		"no map":          {map[string]string{indexName: `{}`}, "weight_map is empty or missing"},
		"no JSON":         {map[string]string{indexName: `{`}, "the JSON ends unexpectedly at byte 1: the file is damaged. Download it again"},
		"in another file": {map[string]string{indexName: index(`"a":"1","b":"1"`), "1": tensor("a")}, `tensor "b" is not in 1`},
		"twice":           {map[string]string{indexName: index(`"a":"1","b":"2"`), "1": tensor("a"), "2": tensor("a")}, `tensor "a" is in both 1 and 2`},
	} {
		dir := folder(t, c.files)
		f, err := OpenFolder(dir)
		if err != nil {
			if !strings.HasPrefix(err.Error(), dir) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			continue
		}
		var got string
		for _, tensor := range f.Tensors() {
			data, err := tensor.Bytes()
			if got += string(data); err != nil || string(data) != tensor.Name {
				t.Errorf("%s: tensor %s is %q, %v", name, tensor.Name, data, err)
			}
		}
		if err := f.Close(); got != c.want || err != nil {
			t.Errorf("%s: tensors %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// FuzzParse looks for input that panics, hangs or allocates without measure, and for errors that are no line.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}`, "01234567"))
	f.Add(file(`{"a":{"dtype":"F4","shape":[2,1],"data_offsets":[0,1]}}`, "0"))
	if data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "models", "arch", "llama3",
		"model-00005-of-00005.safetensors")); err == nil {
		f.Add(data[:min(len(data), 1<<16)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data, "x")
		if err != nil {
			if len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q", err)
			}
			return
		}
		bytes := 0
		for _, tensor := range file.Tensors() {
			data, err := tensor.Bytes()
			if err != nil {
				t.Error(err)
			}
			bytes += len(data)
		}
		if bytes > len(data) {
			t.Errorf("%d bytes of tensors in a file of %d", bytes, len(data))
		}
	})
}
