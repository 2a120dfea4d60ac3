// Package unknown decodes and encodes JSON records that may have fields which this version does not know.
package unknown

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

// Fields holds the fields of a record that this version does not know, because a later minor version wrote
// them. A record is a plan, a step, or the rest of the trace. The keys are JSON pointers (RFC 6901) in the
// record, such as "/cpu/power_mw". When the trace is written, these fields are written too. *Fields is nil if
// there are none, and then costs nothing.
type Fields map[string]json.RawMessage

// Decode decodes a JSON value into v, which points to a struct. It returns the fields that the struct
// does not have.
func Decode(raw []byte, v any) (*Fields, error) {
	err := Strict(raw, v)
	if err == nil || !strings.Contains(err.Error(), "unknown field") {
		return nil, err
	}
	tree, err := generic(raw)
	if err != nil {
		return nil, err
	}
	unknown := Fields{}
	unknown.take(tree, reflect.TypeOf(v).Elem(), "")
	known, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := Strict(known, v); err != nil {
		return nil, err
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	return &unknown, nil
}

// strictDecoder decodes JSON values one at a time and rejects unknown fields. It reuses one buffer.
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

// Strict decodes a JSON value into v. It returns an error if v lacks a field of the value.
func Strict(raw []byte, v any) error {
	d := strictDecoders.Get().(*strictDecoder)
	d.Reset(raw)
	switch err := d.json.Decode(v); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("incomplete JSON value")
	case err != nil:
		return err
	}
	if _, err := d.json.Token(); err != io.EOF {
		return errors.New("the text contains more than one JSON value")
	}
	strictDecoders.Put(d) // after an error, a decoder is not used again
	return nil
}

// generic decodes JSON into maps, lists and numbers that keep all their digits.
func generic(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// take moves the fields that the type t does not have from the tree to u.
func (u Fields) take(tree any, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch node := tree.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		fields := jsonFields(t)
		if len(fields) == 0 { // a type that decodes itself, such as trace.Time
			return
		}
		for key, child := range node {
			i := slices.IndexFunc(fields, func(f jsonField) bool { return strings.EqualFold(f.name, key) })
			at := path + "/" + pointerEscape.Replace(key)
			if i >= 0 {
				u.take(child, fields[i].typ, at)
				continue
			}
			raw, err := json.Marshal(child)
			if err != nil {
				panic(err) // no error: child was decoded from JSON
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

// jsonFields returns the JSON names and types of the fields of a struct.
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

// PutBack returns the record with the unknown fields added at their places. A field is left out if the object
// to which it belongs is not there any more.
func (u Fields) PutBack(record []byte) ([]byte, error) {
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

// Size returns about how many bytes of memory the unknown fields use.
func (u *Fields) Size() (n int64) {
	if u == nil {
		return 0
	}
	for path, raw := range *u {
		n += 96 + int64(len(path)+len(raw))
	}
	return n
}

// Under returns the unknown fields below a path. In the result, the JSON pointers begin at this path.
func (u *Fields) Under(path string) *Fields {
	if u == nil {
		return nil
	}
	out := Fields{}
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

// Add adds the fields in `other` at a path, and returns the result.
func (u *Fields) Add(path string, other *Fields) *Fields {
	if other == nil {
		return u
	}
	if u == nil {
		u = &Fields{}
	}
	for p, raw := range *other {
		(*u)[path+p] = raw
	}
	return u
}
