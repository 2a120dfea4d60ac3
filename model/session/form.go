package session

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"

	"gpuscope/trace"
)

// How the types of messages are made into the form that wire.go describes.

// form is how values of a type cross.
type form struct {
	least int // bytes that a value takes
	put   func(w *wireWriter, v reflect.Value)
	take  func(r *wireReader, v reflect.Value) // v is zero before
}

// formKey is what a form is for; wild says that floats need not be finite.
type formKey struct {
	reflect.Type
	wild bool
}

var (
	forms    = map[formKey]*form{}
	formsMu  sync.Mutex
	ownJSON  = reflect.TypeFor[json.Marshaler]()
	timeType = reflect.TypeFor[trace.Time]()
)

// formOf is the form of a message.
func formOf(t reflect.Type) *form {
	formsMu.Lock()
	defer formsMu.Unlock()
	return makeForm(formKey{t, false})
}

// makeForm makes the forms of a type and of its parts, once.
func makeForm(of formKey) *form {
	of.wild = of.wild || of.Implements(ownJSON)
	if f := forms[of]; f != nil {
		return f
	}
	f := &form{least: 1}
	forms[of] = f // before its parts: one of them may be of this type
	switch of.Kind() {
	case reflect.Bool:
		f.put = func(w *wireWriter, v reflect.Value) { w.length(flag(v.Bool())) }
		f.take = func(r *wireReader, v reflect.Value) { v.SetBool(r.flag()) }
	case reflect.Int, reflect.Int32, reflect.Int64:
		f.put = func(w *wireWriter, v reflect.Value) { w.b = binary.AppendVarint(w.b, v.Int()) }
		f.take = takeInt
	case reflect.Uint64:
		f.put = func(w *wireWriter, v reflect.Value) { w.b = binary.AppendUvarint(w.b, v.Uint()) }
		f.take = func(r *wireReader, v reflect.Value) { v.SetUint(r.uvarint()) }
	case reflect.Float64:
		f.least = 8
		f.put = func(w *wireWriter, v reflect.Value) { w.float(v.Float(), of.wild) }
		f.take = func(r *wireReader, v reflect.Value) { v.SetFloat(r.float(of.wild)) }
	case reflect.String:
		f.put = func(w *wireWriter, v reflect.Value) { w.text(v.String()) }
		f.take = func(r *wireReader, v reflect.Value) { v.SetString(r.text()) }
	case reflect.Interface:
		f.put, f.take = putAny, takeAny
	case reflect.Pointer:
		f.pointer(of.Elem(), makeForm(formKey{of.Elem(), of.wild}))
	case reflect.Slice:
		f.list(of.Type, makeForm(formKey{of.Elem(), of.wild}))
	case reflect.Array:
		f.array(of.Len(), makeForm(formKey{of.Elem(), of.wild}))
	case reflect.Map:
		f.table(of.Type, makeForm(formKey{of.Key(), of.wild}), makeForm(formKey{of.Elem(), of.wild}))
	case reflect.Struct:
		if f.put, f.take = putTime, takeTime; of.Type != timeType {
			f.record(of)
		}
	default:
		panic(fmt.Sprintf("a %s cannot cross a pipe", of.Type)) // the tests send every type
	}
	return f
}

// putTime writes nanoseconds, behind a byte that says whether they were measured.
func putTime(w *wireWriter, v reflect.Value) {
	ns, ok := v.Addr().Interface().(*trace.Time).NS()
	w.length(flag(ok))
	if ok {
		w.b = binary.AppendVarint(w.b, ns)
	}
}

func takeTime(r *wireReader, v reflect.Value) {
	if r.flag() {
		*v.Addr().Interface().(*trace.Time) = trace.Measured(r.varint())
	}
}

func takeInt(r *wireReader, v reflect.Value) {
	n := r.varint()
	if v.OverflowInt(n) {
		r.fail(fmt.Errorf("%d is no %s", n, v.Type()))
	}
	v.SetInt(n)
}

func putAny(w *wireWriter, v reflect.Value) {
	b, err := json.Marshal(v.Interface())
	w.fail(err)
	w.text(string(b))
}

func takeAny(r *wireReader, v reflect.Value) {
	b := r.bytes(r.length(1))
	if r.err == nil {
		r.fail(json.Unmarshal(b, v.Addr().Interface()))
	}
}

func (f *form) pointer(t reflect.Type, of *form) {
	f.put = func(w *wireWriter, v reflect.Value) {
		if w.length(flag(!v.IsNil())); !v.IsNil() {
			of.put(w, v.Elem())
		}
	}
	f.take = func(r *wireReader, v reflect.Value) {
		if r.flag() {
			p := reflect.New(t)
			of.take(r, p.Elem())
			v.Set(p)
		}
	}
}

// list has the length and 1, 0 for nil.
func (f *form) list(t reflect.Type, of *form) {
	f.put = func(w *wireWriter, v reflect.Value) {
		if v.IsNil() {
			w.length(0)
			return
		}
		n := v.Len()
		w.length(n + 1)
		for i := range n {
			of.put(w, v.Index(i))
		}
	}
	f.take = func(r *wireReader, v reflect.Value) {
		n := r.length(of.least) - 1
		if n < 0 {
			return
		}
		v.Set(reflect.MakeSlice(t, n, n))
		for i := 0; i < n && r.err == nil; i++ {
			of.take(r, v.Index(i))
		}
	}
}

func (f *form) array(n int, of *form) {
	f.least = n * of.least
	f.put = func(w *wireWriter, v reflect.Value) {
		for i := range n {
			of.put(w, v.Index(i))
		}
	}
	f.take = func(r *wireReader, v reflect.Value) {
		for i := range n {
			of.take(r, v.Index(i))
		}
	}
}

// table has the length and 1, 0 for nil, then keys, each with its value.
func (f *form) table(t reflect.Type, key, value *form) {
	f.put = func(w *wireWriter, v reflect.Value) {
		if v.IsNil() {
			w.length(0)
			return
		}
		w.length(v.Len() + 1)
		k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for i := v.MapRange(); i.Next(); {
			k.SetIterKey(i)
			e.SetIterValue(i)
			key.put(w, k)
			value.put(w, e)
		}
	}
	f.take = func(r *wireReader, v reflect.Value) {
		n := r.length(key.least+value.least) - 1
		if n < 0 {
			return
		}
		v.Set(reflect.MakeMapWithSize(t, n))
		k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for i := 0; i < n && r.err == nil; i++ {
			k.SetZero()
			e.SetZero()
			key.take(r, k)
			value.take(r, e)
			v.SetMapIndex(k, e)
		}
	}
}

// record has the fields that JSON has, up to the last that is not zero, behind their number.
func (f *form) record(of formKey) {
	type field struct {
		*form
		at int
	}
	var fields []field
	for i := range of.NumField() {
		if x := of.Field(i); x.IsExported() && x.Tag.Get("json") != "-" {
			fields = append(fields, field{makeForm(formKey{x.Type, of.wild}), i})
		}
	}
	if len(fields) > math.MaxInt8 {
		panic(fmt.Sprintf("%s has %d fields: too many to cross a pipe", of.Type, len(fields)))
	}
	f.put = func(w *wireWriter, v reflect.Value) {
		from := len(w.b)
		w.b = append(w.b, 0)
		end := len(w.b)
		for i, x := range fields {
			begin := len(w.b)
			x.put(w, v.Field(x.at))
			// of what is zero all bytes are
			if slices.ContainsFunc(w.b[begin:], func(b byte) bool { return b != 0 }) {
				w.b[from], end = byte(i+1), len(w.b)
			}
		}
		w.b = w.b[:end]
	}
	f.take = func(r *wireReader, v reflect.Value) {
		n := r.uvarint()
		if n > uint64(len(fields)) {
			r.fail(fmt.Errorf("%d fields of %s, which has %d", n, of.Type, len(fields)))
			return
		}
		for _, x := range fields[:n] {
			x.take(r, v.Field(x.at))
		}
	}
}
