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

	"gpuscope/internal/wordingtest"
)

// file returns a file with a header and the data of its tensors.
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
	messages := wordingtest.New(t)
	const one = `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	for name, c := range map[string]struct {
		data []byte
	}{
		"empty":              {nil},
		"cut in the length":  {[]byte("abc")},
		"a header of 4 GB":   {append([]byte{0, 0, 0, 0, 1, 0, 0, 0}, '{')},
		"a header too long":  {append([]byte{99, 0, 0, 0, 0, 0, 0, 0}, '{')},
		"not an object":      {file(`["a"]`, "")},
		"no header":          {file("", "")},
		"not UTF-8":          {file("{\"\xff\":1}", "")},
		"cut JSON":           {file(`{"a":{"dtype"`, "")},
		"two objects":        {file(`{}{}`, "")},
		"a list for a shape": {file(`{"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}}`, "0123")},
		"nested too deep":    {file(`{"a":`+strings.Repeat("[", 20000), "")},
		"a negative dim":     {file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, "0123")},
		"a tensor twice":     {file(`{`+one+`,`+one+`}`, "0123")},
		"a control in a name": {
			file(`{"a\u001b[2J":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "0123"),
		},
		"an unknown dtype": {
			file(`{"a":{"dtype":"Q9","shape":[1],"data_offsets":[0,4]}}`, "0123"),
		},
		"a product that overflows": {
			file(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, "0123"),
		},
		"a size that is not the product's": {
			file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, "0123"),
		},
		"offsets backwards": {
			file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[4,0]}}`, "0123"),
		},
		"one offset": {file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[4]}}`, "0123")},
		"past the file": {
			file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, "0123"),
		},
		"overlap": {
			file(`{`+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, "012345"),
		},
		"a gap": {
			file(`{`+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}}`, "0123456789"),
		},
		"bytes after the last tensor": {file(`{`+one+`}`, "01234")},
		"metadata without end": {
			file(`{"__metadata__":{"a":"`+strings.Repeat("x", maxMetadata)+`"}}`, ""),
		},
		"more dims than any": {
			file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("1,", 99)+`1],"data_offsets":[0,1]}}`, "0"),
		},
		"metadata that is no text": {
			file(`{"__metadata__":{"a":1}}`, ""),
		},
	} {
		_, err := Parse(c.data, "x")
		messages.Error(name, err)
	}
}

// folder writes files into a new folder.
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
	messages := wordingtest.New(t)
	tensor := func(name string) string {
		return string(file(`{"`+name+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, name))
	}
	index := func(pairs string) string { return `{"weight_map":{` + pairs + `}}` }
	for name, c := range map[string]struct {
		files map[string]string
		want  string // names of the tensors; empty if the folder must be refused
	}{
		"one file":        {map[string]string{single: tensor("a")}, "a"},
		"two files":       {map[string]string{indexName: index(`"b":"2","a":"1"`), "1": tensor("a"), "2": tensor("b")}, "ab"},
		"nothing":         {nil, ""},
		"a missing file":  {map[string]string{indexName: index(`"b":"2","a":"1"`), "1": tensor("a")}, ""},
		"a file outside":  {map[string]string{indexName: index(`"a":"../1"`)}, ""},
		"no map":          {map[string]string{indexName: `{}`}, ""},
		"no JSON":         {map[string]string{indexName: `{`}, ""},
		"in another file": {map[string]string{indexName: index(`"a":"1","b":"1"`), "1": tensor("a")}, ""},
		"twice":           {map[string]string{indexName: index(`"a":"1","b":"2"`), "1": tensor("a"), "2": tensor("a")}, ""},
	} {
		dir := folder(t, c.files)
		f, err := OpenFolder(dir)
		if err != nil {
			if !strings.HasPrefix(err.Error(), dir) || c.want != "" {
				t.Errorf("%s: %v, want tensors %q", name, err, c.want)
			}
			messages.Text(name, strings.ReplaceAll(err.Error(), dir, "FOLDER"))
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

// FuzzParse looks for input that panics, hangs or allocates too much memory, and for errors that are not one
// short line.
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
