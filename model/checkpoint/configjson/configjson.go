// Package configjson reads the config.json of a Hugging Face folder. It parses the file, but does not
// interpret the keys.
package configjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/mapfile"
	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
)

// File holds the values of a config.json. A key is the path of a value: the names of the objects that
// contain the value and its own name, joined by dots, for example "rope_scaling.factor".
type File struct {
	name string
	top  []string // sorted keys of the outermost object
	// Values maps each path to its value: nil, a json.Number, a string, a bool, a []any, or the
	// map[string]any of an object.
	Values map[string]any
}

// Limits that protect against a damaged config.json. The config.json of a large model has only about 5 kB.
const (
	maxBytes = 1 << 20
	maxDepth = 8
	MaxPath  = 1 << 8
)

// Open reads the file at a path.
func Open(path string) (*File, error) {
	data, err := mapfile.Read(path, maxBytes)
	if err != nil {
		return nil, err
	}
	return Parse(data, path)
}

// Parse reads the content of a file. The name is for error messages.
func Parse(data []byte, name string) (*File, error) {
	var top map[string]any
	data = readjson.Python(data)
	err := readjson.Check(data)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err = readjson.Error(d.Decode(&top), data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w. Correct the file or download it again", name, err)
	}
	c := &File{name: name, top: slices.Sorted(maps.Keys(top)), Values: map[string]any{}}
	return c, c.add("", top, 1)
}

// Some models contain more than a decoder, for example an image encoder. Their config.json stores the
// configuration of the decoder in a nested object. decoderKey is the key of this object.
const decoderKey = "text_config"

// outerKeys lists keys that concern the decoder even if they are outside its object.
var outerKeys = []string{"tie_word_embeddings", "quantization_config"}

// Decoder returns the configuration of the decoder: c itself, or the object under decoderKey.
func (c *File) Decoder() *File {
	object, nested := c.Values[decoderKey].(map[string]any)
	if !nested {
		return c
	}
	inner := &File{name: c.name + ": " + decoderKey, Values: map[string]any{}}
	for key, value := range c.Values {
		if own, ok := strings.CutPrefix(key, decoderKey+"."); ok {
			inner.Values[own] = value
		}
	}
	for _, key := range outerKeys {
		if _, said := object[key]; !said && c.Has(key) {
			inner.Values[key], object[key] = c.Values[key], c.Values[key]
		}
	}
	inner.top = slices.Sorted(maps.Keys(object))
	return inner
}

func (c *File) add(path string, object map[string]any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: %s: objects are nested more than %d levels deep",
			c.name, printable.Short(path, 80), maxDepth)
	}
	for key, value := range object {
		if n := len(path) + len(key); n > MaxPath {
			return fmt.Errorf("%s: the dotted path of the key %s has %d bytes; the maximum is %d", c.name,
				printable.Short(key, 40), n, MaxPath)
		}
		c.Values[path+key] = value
		if inner, ok := value.(map[string]any); ok {
			if err := c.add(path+key+".", inner, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Name returns the path of the file.
func (c *File) Name() string { return c.name }

// Keys returns all dotted paths, sorted.
func (c *File) Keys() []string { return slices.Sorted(maps.Keys(c.Values)) }

// Top returns the keys of the outermost object, sorted.
func (c *File) Top() []string { return c.top }

// Has reports whether a key has a value other than null.
func (c *File) Has(key string) bool { return c.Values[key] != nil }

// Null reports whether the value of a key is null.
func (c *File) Null(key string) bool {
	v, ok := c.Values[key]
	return ok && v == nil
}

// List reports whether the value of a key is a list.
func (c *File) List(key string) bool {
	_, ok := c.Values[key].([]any)
	return ok
}

// scalar returns the value of a key after converting it with `conv`. The string `want` describes the
// values that conv accepts; it is used in the error message.
func scalar[T any](c *File, key, want string, conv func(any) (T, bool)) (T, error) {
	var zero T
	v, ok := c.Values[key]
	if !ok {
		return zero, fmt.Errorf("%s: %q is missing", c.name, key)
	}
	if x, ok := conv(v); ok {
		return x, nil
	}
	return zero, fmt.Errorf("%s: %q is %s; want %s", c.name, printable.Short(key, 80), Short(v, 80), want)
}

// Int returns the value of a key, which must be an integer that fits in an int.
func (c *File) Int(key string) (int, error) {
	return scalar(c, key, "an integer", integer)
}

func integer(v any) (int, bool) {
	n, _ := v.(json.Number)
	i, err := strconv.Atoi(string(n))
	return i, err == nil
}

// Float returns the value of a key, which must be a number.
func (c *File) Float(key string) (float64, error) {
	return scalar(c, key, "a number", number)
}

func number(v any) (float64, bool) {
	n, _ := v.(json.Number)
	x, err := n.Float64()
	return x, err == nil
}

// Bool returns the value of a key, which must be true or false.
func (c *File) Bool(key string) (bool, error) {
	return scalar(c, key, "true or false", boolean)
}

func boolean(v any) (bool, bool) {
	b, ok := v.(bool)
	return b, ok
}

// String returns the value of a key, which must be a string.
func (c *File) String(key string) (string, error) {
	return scalar(c, key, "a string", func(v any) (string, bool) { s, ok := v.(string); return s, ok })
}

// Object returns an error if the value of a key is not an object.
func (c *File) Object(key string) error {
	_, err := scalar(c, key, "an object",
		func(v any) (map[string]any, bool) { m, ok := v.(map[string]any); return m, ok })
	return err
}

// Ints returns the value of a key, which must be a list of integers.
func (c *File) Ints(key string) ([]int, error) {
	return scalar(c, key, "a list of integers", func(v any) ([]int, bool) { return list(v, integer) })
}

// Bools returns the value of a key, which must be a list of booleans.
func (c *File) Bools(key string) ([]bool, error) {
	return scalar(c, key, "a list whose values are true or false", func(v any) ([]bool, bool) {
		return list(v, boolean)
	})
}

// Floats returns the value of a key, which must be a list of numbers.
func (c *File) Floats(key string) ([]float64, error) {
	return scalar(c, key, "a list of numbers", func(v any) ([]float64, bool) {
		return list(v, number)
	})
}

// Strings returns the value of a key, which must be a list of strings.
func (c *File) Strings(key string) ([]string, error) {
	return scalar(c, key, "a list of strings", func(v any) ([]string, bool) {
		return list(v, func(v any) (string, bool) { s, ok := v.(string); return s, ok })
	})
}

func list[T any](v any, conv func(any) (T, bool)) ([]T, bool) {
	list, ok := v.([]any)
	out := make([]T, len(list))
	for i, e := range list {
		x, fits := conv(e)
		out[i], ok = x, ok && fits
	}
	return out, ok
}

// Pair is a key, the type of its value, and the value formatted for display. Long values are shortened.
type Pair struct{ Key, Type, Value string }

// Pairs returns all values that are not objects, formatted for display.
func (c *File) Pairs() []Pair {
	var pairs []Pair
	for _, key := range c.Keys() {
		kind := ""
		switch v := c.Values[key].(type) {
		case map[string]any, nil:
			continue
		case []any:
			kind = fmt.Sprintf("list[%d]", len(v))
		case json.Number:
			kind = "number"
		case string:
			kind = "string"
		case bool:
			kind = "bool"
		}
		pairs = append(pairs, Pair{key, kind, Short(c.Values[key], 200)})
	}
	return pairs
}

// Short formats a value as JSON and shortens it if it is long.
func Short(v any, most int) string {
	text, _ := json.Marshal(v) // cannot fail, because the value was decoded from JSON
	return printable.Short(string(text), most)
}
