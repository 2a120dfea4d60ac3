package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Unknown keeps the fields of a record (a plan, a step, or all else of a trace) that this version does not
// know, written by a later minor version, by JSON pointer (RFC 6901) within the record: "/cpu/power_mw". They
// are there again when the trace is written. A record that has none has no Unknown, and costs nothing for it.
type Unknown map[string]json.RawMessage

// decodeRecord reads one JSON value into v, a pointer to a struct, and returns what it holds that the struct
// does not.
func decodeRecord(raw []byte, v any) (*Unknown, error) {
	err := strictly(raw, v)
	if err == nil || !strings.Contains(err.Error(), "unknown field") {
		return nil, err
	}
	tree, err := generic(raw)
	if err != nil {
		return nil, err
	}
	unknown := Unknown{}
	unknown.take(tree, reflect.TypeOf(v).Elem(), "")
	known, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := strictly(known, v); err != nil {
		return nil, err
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	return &unknown, nil
}

// strictDecoder decodes what it is given, value by value, in one buffer.
type strictDecoder struct {
	bytes.Reader
	json *json.Decoder
}

var strictDecoders = sync.Pool{New: func() any {
	d := &strictDecoder{}
	d.json = json.NewDecoder(&d.Reader)
	d.json.DisallowUnknownFields()
	return d
}}

func strictly(raw []byte, v any) error {
	d := strictDecoders.Get().(*strictDecoder)
	d.Reset(raw)
	switch err := d.json.Decode(v); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("incomplete JSON value")
	case err != nil:
		return err
	}
	if _, err := d.json.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	strictDecoders.Put(d) // one that met with an error is not used again
	return nil
}

// generic reads JSON as maps, lists, and numbers with all their digits.
func generic(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// take moves what a type does not have out of a tree.
func (u Unknown) take(tree any, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch node := tree.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[Time]() {
			return
		}
		fields := jsonFields(t)
		for key, child := range node {
			i := slices.IndexFunc(fields, func(f jsonField) bool { return strings.EqualFold(f.name, key) })
			at := path + "/" + pointerEscape.Replace(key)
			if i >= 0 {
				u.take(child, fields[i].typ, at)
				continue
			}
			raw, err := json.Marshal(child)
			if err != nil {
				panic(err) // it was JSON
			}
			u[at] = raw
			delete(node, key)
		}
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return
		}
		for i, child := range node {
			u.take(child, t.Elem(), path+"/"+strconv.Itoa(i))
		}
	}
}

var (
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")
)

type jsonField struct {
	name string
	typ  reflect.Type
}

// jsonFields are the fields of a struct as JSON names them.
func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields = append(fields, jsonField{name, t.Field(i).Type})
		}
	}
	return fields
}

// putBack writes a record again with the unknown fields in it. A field whose place is gone, because its
// object was changed since, is left out.
func (u Unknown) putBack(record []byte) ([]byte, error) {
	tree, err := generic(record)
	if err != nil {
		return nil, err
	}
	for path, raw := range u {
		keys := strings.Split(path, "/")[1:]
		node := tree
		for _, k := range keys[:len(keys)-1] {
			node = child(node, pointerUnescape.Replace(k))
		}
		if object, ok := node.(map[string]any); ok {
			object[pointerUnescape.Replace(keys[len(keys)-1])] = raw
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func child(node any, key string) any {
	switch n := node.(type) {
	case map[string]any:
		return n[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n) {
			return n[i]
		}
	}
	return nil
}

// size is about how many bytes of memory they hold.
func (u *Unknown) size() (n int64) {
	if u == nil {
		return 0
	}
	for path, raw := range *u {
		n += 96 + int64(len(path)+len(raw))
	}
	return n
}

// under is what stands under a path, with pointers from there.
func (u *Unknown) under(path string) *Unknown {
	if u == nil {
		return nil
	}
	out := Unknown{}
	for p, raw := range *u {
		if rest, ok := strings.CutPrefix(p, path); ok && strings.HasPrefix(rest, "/") {
			out[rest] = raw
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &out
}

// add puts what another has under a path.
func (u *Unknown) add(path string, other *Unknown) *Unknown {
	if other == nil {
		return u
	}
	if u == nil {
		u = &Unknown{}
	}
	for p, raw := range *other {
		(*u)[path+p] = raw
	}
	return u
}
