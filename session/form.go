package session

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"gpuscope/trace"
)

// This file derives an encoder and a decoder from the Go type of each message. wire.go describes the
// encoding.

// form is the pair of functions that encode and decode the values of one type.
type form struct {
	least int // minimum number of bytes of an encoded value
	put   func(w *wireWriter, v reflect.Value)
	// take decodes a value into the zeroed memory at p. It takes a raw pointer instead of a reflect.Value for
	// speed: a step has several numbers per dispatch, and making a reflect.Value for a number takes longer
	// than decoding the number.
	take func(r *wireReader, p unsafe.Pointer)
}

// formKey identifies a form. If `wild` is true, floats may be NaN or infinite.
type formKey struct {
	reflect.Type
	wild bool
}

var (
	forms    = map[formKey]*form{}
	formsMu  sync.Mutex
	ownJSON  = reflect.TypeFor[json.Marshaler]()
	timeType = reflect.TypeFor[trace.Time]()
	gridType = reflect.TypeFor[trace.Grid]() // cached: a grid occurs in many plans and never changes
	planType = reflect.TypeFor[trace.Plan]()
	ranType  = reflect.TypeFor[trace.StepDispatch]()
)

// formOf returns the form of a message type.
func formOf(t reflect.Type) *form {
	formsMu.Lock()
	defer formsMu.Unlock()
	return makeForm(formKey{t, false})
}

// makeForm returns the form of a type. It builds the forms of the type and of its parts on first use.
func makeForm(of formKey) *form {
	of.wild = of.wild || of.Implements(ownJSON)
	if f := forms[of]; f != nil {
		return f
	}
	f := &form{least: 1}
	forms[of] = f // stored before its parts are built, so that recursive types work
	switch of.Kind() {
	case reflect.Bool:
		f.put = func(w *wireWriter, v reflect.Value) { w.length(flag(v.Bool())) }
		f.take = func(r *wireReader, p unsafe.Pointer) { *(*bool)(p) = r.flag() }
	case reflect.Int:
		f.put, f.take = putInt, takeInt[int]
	case reflect.Int32:
		f.put, f.take = putInt, takeInt[int32]
	case reflect.Int64:
		f.put, f.take = putInt, takeInt[int64]
	case reflect.Uint64:
		f.put = func(w *wireWriter, v reflect.Value) { w.b = binary.AppendUvarint(w.b, v.Uint()) }
		f.take = func(r *wireReader, p unsafe.Pointer) { *(*uint64)(p) = r.uvarint() }
	case reflect.Float64:
		f.least = 8
		f.put = func(w *wireWriter, v reflect.Value) { w.float(v.Float(), of.wild) }
		f.take = func(r *wireReader, p unsafe.Pointer) { *(*float64)(p) = r.float(of.wild) }
	case reflect.String:
		f.put = func(w *wireWriter, v reflect.Value) { w.text(v.String()) }
		f.take = func(r *wireReader, p unsafe.Pointer) { *(*string)(p) = r.text() }
	case reflect.Interface:
		f.put = putAny
		f.take = func(r *wireReader, p unsafe.Pointer) { takeAny(r, reflect.NewAt(of.Type, p)) }
	case reflect.Pointer:
		switch elem := makeForm(formKey{of.Elem(), of.wild}); of.Elem() {
		case gridType:
			f.alike(of.Elem(), elem)
		case planType:
			f.plan(elem)
		default:
			f.pointer(of.Elem(), elem)
		}
	case reflect.Slice:
		if f.list(of.Type, makeForm(formKey{of.Elem(), of.wild})); of.Elem() == ranType {
			f.ran(*f)
		}
	case reflect.Array:
		f.array(of.Len(), of.Elem().Size(), makeForm(formKey{of.Elem(), of.wild}))
	case reflect.Map:
		f.table(of.Type, makeForm(formKey{of.Key(), of.wild}), makeForm(formKey{of.Elem(), of.wild}))
	case reflect.Struct:
		if f.put, f.take = putTime, takeTime; of.Type != timeType {
			f.record(of)
		}
	default:
		panic(fmt.Sprintf("session: type %s cannot be sent", of.Type)) // cannot happen: tests send all types
	}
	return f
}

// putTime writes whether the time was measured (0 or 1). If so, the nanoseconds follow.
func putTime(w *wireWriter, v reflect.Value) {
	ns, ok := v.Addr().Interface().(*trace.Time).NS()
	w.length(flag(ok))
	if ok {
		w.b = binary.AppendVarint(w.b, ns)
	}
}

func takeTime(r *wireReader, p unsafe.Pointer) {
	if r.flag() {
		*(*trace.Time)(p) = trace.Measured(r.varint())
	}
}

func putInt(w *wireWriter, v reflect.Value) { w.b = binary.AppendVarint(w.b, v.Int()) }

func takeInt[T ~int | ~int32 | ~int64](r *wireReader, p unsafe.Pointer) {
	n := r.varint()
	if int64(T(n)) != n {
		r.fail(fmt.Errorf("the integer %d does not fit type %T", n, T(0)))
	}
	*(*T)(p) = T(n)
}

func putAny(w *wireWriter, v reflect.Value) {
	b, err := json.Marshal(v.Interface())
	w.fail(err)
	w.text(string(b))
}

func takeAny(r *wireReader, to reflect.Value) {
	b := r.bytes(r.length(1))
	if r.err == nil {
		r.fail(json.Unmarshal(b, to.Interface()))
	}
}

func (f *form) pointer(t reflect.Type, of *form) {
	f.put = func(w *wireWriter, v reflect.Value) {
		if w.length(flag(!v.IsNil())); !v.IsNil() {
			of.put(w, v.Elem())
		}
	}
	from := newStock(t)
	f.take = func(r *wireReader, p unsafe.Pointer) {
		if r.flag() {
			to := from.take(r, 1)
			of.take(r, to)
			*(*unsafe.Pointer)(p) = to
		}
	}
}

// alike encodes a pointer to a value that often has the same content. It writes 0 for nil. Otherwise it
// writes 1 plus the size of the encoded value, and then the value. A receiver that finds the same bytes in
// its cache does not decode them and returns the earlier pointer.
func (f *form) alike(t reflect.Type, of *form) {
	f.put = func(w *wireWriter, v reflect.Value) {
		if v.IsNil() {
			w.length(0)
			return
		}
		at := len(w.b)
		of.put(w, v.Elem())
		var head [binary.MaxVarintLen64]byte
		w.b = slices.Insert(w.b, at, binary.AppendUvarint(head[:0], uint64(len(w.b)-at+1))...)
	}
	from := newStock(t)
	f.take = func(r *wireReader, p unsafe.Pointer) {
		n := r.length(1) - 1
		if n < 0 {
			return
		}
		b := r.bytes(n)
		if r.err != nil {
			return
		}
		same := &r.alike[maphash.Bytes(r.seed, b)%lastAlike]
		if same.is == nil || same.of != f || same.said != string(b) {
			end := r.at
			r.at -= n
			to := from.take(r, 1)
			if of.take(r, to); r.err == nil && r.at != end {
				r.fail(fmt.Errorf("%w: a value of type %s has %d bytes, but its header says %d",
					errHeader, t, r.at-end+n, n))
			}
			if r.err != nil {
				return
			}
			*same = alike{f, string(b), to}
		}
		*(*unsafe.Pointer)(p) = same.is
	}
}

// lookBack is the number of recent plans of the message with which a new plan is compared. It is larger than
// the number of plans in a layer, so the equal plan of the previous layer is among them.
const lookBack = 16

// plan encodes a pointer to a plan. It writes 0 for nil, and 1 before a complete plan. Many plans of a layer
// equal plans of the previous layer except for the ID and the dispatch. If such an equal plan is n places
// before the last plan of the message, the encoder writes n+2, the ID and the dispatch.
func (f *form) plan(of *form) {
	f.put = func(w *wireWriter, v reflect.Value) {
		p := v.Interface().(*trace.Plan)
		if p == nil {
			w.length(0)
			return
		}
		last := len(w.plans) - 1
		for n := range min(lookBack, len(w.plans)) {
			if p.Same(w.plans[last-n]) {
				w.length(n + 2)
				w.b = binary.AppendVarint(w.b, int64(p.ID))
				w.b = binary.AppendVarint(w.b, int64(p.Dispatch))
				w.plans = append(w.plans, p)
				return
			}
		}
		w.length(1)
		of.put(w, v.Elem())
		w.plans = append(w.plans, p)
	}
	from := newStock(planType)
	f.take = func(r *wireReader, to unsafe.Pointer) {
		n := r.uvarint()
		if n == 0 {
			return
		}
		p := (*trace.Plan)(from.take(r, 1))
		if n == 1 {
			of.take(r, unsafe.Pointer(p))
		} else if n -= 2; n < uint64(len(r.plans)) {
			*p = *r.plans[len(r.plans)-1-int(n)]
			takeInt[trace.PlanID](r, unsafe.Pointer(&p.ID))
			takeInt[trace.DispatchID](r, unsafe.Pointer(&p.Dispatch))
		} else {
			r.fail(fmt.Errorf("%w: the reference counts back %d plans, but only %d plans were read",
				errPlanRef, n, len(r.plans)))
		}
		r.plans = append(r.plans, p)
		*(**trace.Plan)(to) = p
	}
}

// ran encodes the dispatches of a step. If each dispatch has a plan but nothing else, as in most steps
// without timing of dispatches, it writes a 1, the length and the plan IDs. Otherwise it writes a 0 and an
// ordinary list.
func (f *form) ran(list form) {
	f.least++
	f.put = func(w *wireWriter, v reflect.Value) {
		n := v.Len()
		planned := n > 0
		var d trace.StepDispatch
		for i, rest := 0, reflect.ValueOf(&d).Elem(); i < n && planned; i++ {
			d = *v.Index(i).Addr().Interface().(*trace.StepDispatch)
			d.Plan = 0
			planned = rest.IsZero()
		}
		if w.length(flag(planned)); !planned {
			list.put(w, v)
			return
		}
		w.length(n)
		for i := range n {
			w.b = binary.AppendVarint(w.b, int64(v.Index(i).Addr().Interface().(*trace.StepDispatch).Plan))
		}
	}
	f.take = func(r *wireReader, p unsafe.Pointer) {
		if !r.flag() {
			list.take(r, p)
			return
		}
		ran := make([]trace.StepDispatch, r.length(1))
		for i := range ran {
			takeInt[trace.PlanID](r, unsafe.Pointer(&ran[i].Plan))
		}
		*(*[]trace.StepDispatch)(p) = ran
	}
}

// stock allocates memory for decoded values of one type. It takes the hundreds of small values of a message
// from larger blocks. A block stays in memory as long as any value in it is referenced.
type stock struct {
	list  reflect.Type // type of a slice of these values
	size  uintptr
	block int // number of values in a block
	place int // index of the current block in wireReader.blocks
}

// blockBytes is the size of a block in bytes. A list larger than a quarter of a block gets its own memory.
const blockBytes = 4 << 10

var stocks int // number of stocks that exist

func newStock(t reflect.Type) *stock {
	stocks++
	return &stock{reflect.SliceOf(t), t.Size(), blockBytes / max(1, int(t.Size())), stocks - 1}
}

// take returns zeroed memory for n consecutive values.
func (s *stock) take(r *wireReader, n int) unsafe.Pointer {
	if n == 0 || n > s.block/4 {
		return reflect.MakeSlice(s.list, n, n).UnsafePointer()
	}
	if s.place >= len(r.blocks) {
		r.blocks = append(r.blocks, make([]block, s.place+1-len(r.blocks))...)
	}
	b := &r.blocks[s.place]
	if b.left < n {
		*b = block{reflect.MakeSlice(s.list, s.block, s.block).UnsafePointer(), s.block}
	}
	b.left -= n
	return unsafe.Add(b.first, uintptr(s.block-b.left-n)*s.size)
}

// block is memory for several values of one type. The last `left` values of the block are still free.
type block struct {
	first unsafe.Pointer
	left  int
}

// slice has the same memory layout as any Go slice.
type slice struct {
	first    unsafe.Pointer
	len, cap int
}

// list encodes a slice: its length plus 1, then the elements. 0 means nil.
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
	from := newStock(t.Elem())
	f.take = func(r *wireReader, p unsafe.Pointer) {
		n := r.length(of.least) - 1
		if n < 0 {
			return
		}
		first := from.take(r, n)
		*(*slice)(p) = slice{first, n, n}
		for i := 0; i < n && r.err == nil; i++ {
			of.take(r, unsafe.Add(first, uintptr(i)*from.size))
		}
	}
}

// array encodes an array of `n` elements. In memory, each element takes `size` bytes.
func (f *form) array(n int, size uintptr, of *form) {
	f.least = n * of.least
	f.put = func(w *wireWriter, v reflect.Value) {
		for i := range n {
			of.put(w, v.Index(i))
		}
	}
	f.take = func(r *wireReader, p unsafe.Pointer) {
		for i := range n {
			of.take(r, unsafe.Add(p, uintptr(i)*size))
		}
	}
}

// table encodes a map: its length plus 1, then each key with its value. 0 means nil.
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
	f.take = func(r *wireReader, p unsafe.Pointer) {
		n := r.length(key.least+value.least) - 1
		if n < 0 {
			return
		}
		table := reflect.MakeMapWithSize(t, n)
		reflect.NewAt(t, p).Elem().Set(table)
		k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for i := 0; i < n && r.err == nil; i++ {
			k.SetZero()
			e.SetZero()
			key.take(r, k.Addr().UnsafePointer())
			value.take(r, e.Addr().UnsafePointer())
			table.SetMapIndex(k, e)
		}
	}
}

// record encodes a struct: the number of fields that follow, then these fields. Fields that JSON omits are
// not encoded, and zero fields at the end are left out.
func (f *form) record(of formKey) {
	type field struct {
		*form
		at     int
		offset uintptr
	}
	var fields []field
	for i := range of.NumField() {
		if x := of.Field(i); x.IsExported() && x.Tag.Get("json") != "-" {
			fields = append(fields, field{makeForm(formKey{x.Type, of.wild}), i, x.Offset})
		}
	}
	if len(fields) > math.MaxInt8 {
		panic(fmt.Sprintf("session: type %s has %d fields, but the maximum is %d", of.Type, len(fields),
			math.MaxInt8))
	}
	f.put = func(w *wireWriter, v reflect.Value) {
		from := len(w.b)
		w.b = append(w.b, 0)
		end := len(w.b)
		for i, x := range fields {
			begin := len(w.b)
			x.put(w, v.Field(x.at))
			// A value is zero if and only if all bytes of its encoding are zero.
			if slices.ContainsFunc(w.b[begin:], func(b byte) bool { return b != 0 }) {
				w.b[from], end = byte(i+1), len(w.b)
			}
		}
		w.b = w.b[:end]
	}
	f.take = func(r *wireReader, p unsafe.Pointer) {
		n := r.uvarint()
		if n > uint64(len(fields)) {
			r.fail(fmt.Errorf("the message has %d fields for type %s, which has only %d",
				n, of.Type, len(fields)))
			return
		}
		for _, x := range fields[:n] {
			x.take(r, unsafe.Add(p, x.offset))
		}
	}
}
