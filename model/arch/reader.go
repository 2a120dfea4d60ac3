package arch

import (
	"fmt"

	"gpuscope/internal/printable"
)

// keyed is what says numbers and words by key: the metadata of a GGUF file, or a config.json. Errors name the
// file and the key.
type keyed interface {
	Name() string
	// Keys are all of them, Top those that do not belong to an object under another key.
	Keys() []string
	Top() []string
	// Has says whether a key is stated with a value, Null whether it is stated as null.
	Has(key string) bool
	Null(key string) bool
	// List says whether the value of a key is a list.
	List(key string) bool
	Int(key string) (int, error)
	Float(key string) (float64, error)
	Bool(key string) (bool, error)
	String(key string) (string, error)
	Ints(key string) ([]int, error)
	Floats(key string) ([]float64, error)
	Bools(key string) ([]bool, error)
	Strings(key string) ([]string, error)
}

// configReader reads what stands under an architecture's prefix and holds numbers to a range. What a file
// leaves out is the default of its class. The first error stays.
type configReader struct {
	f      keyed
	prefix string
	form   *Spelling
	in     func(*Architecture) *Spelling // the spelling of the same form of another architecture
	layers int                           // 0 until it is known
	err    error
	// warnings are values that the file states twice and differently.
	warnings []string
}

// has says whether a key is stated with a value; the empty one, for which the files have no word, never is.
func (r *configReader) has(key string) bool { return key != "" && r.f.Has(r.prefix+key) }

// null says whether a key is stated as null, which is not the same as leaving it out.
func (r *configReader) null(key string) bool { return key != "" && r.f.Null(r.prefix+key) }

func (r *configReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *configReader) errorf(key, format string, args ...any) {
	r.fail(fmt.Errorf("%s: %s%s: %w", r.f.Name(), r.prefix, key, fmt.Errorf(format, args...)))
}

// value is what a key stands for: what the file states, else the default of the class where it has one.
func value[T any](r *configReader, key string, read func(string) (T, error)) (v T, ok bool) {
	if r.has(key) {
		v, err := read(key)
		r.fail(err)
		return v, true
	}
	if r.null(key) {
		return v, false
	}
	v, ok = r.form.Class.Defaults[key].(T)
	return v, ok
}

// int is a number that must be stated, or have a default.
func (r *configReader) int(key string, lo, hi int) int {
	n, ok := value(r, key, r.readInt)
	if !ok {
		_, err := r.f.Int(r.prefix + key)
		r.fail(err)
		return lo
	}
	return r.checkInt(key, n, lo, hi)
}

// intOr is def where a key is null, or left out and the class has no default.
func (r *configReader) intOr(key string, def, lo, hi int) int {
	n, ok := value(r, key, r.readInt)
	if !ok {
		return def
	}
	return r.checkInt(key, n, lo, hi)
}

// readInt reads one integer. A file may have one for each layer: they must be equal.
func (r *configReader) readInt(key string) (int, error) {
	if r.layers == 0 || !r.f.List(r.prefix+key) {
		return r.f.Int(r.prefix + key)
	}
	list, err := r.f.Ints(r.prefix + key)
	if err != nil || !r.eachLayer(key, len(list)) {
		return 0, err
	}
	for i, n := range list {
		if n != list[0] {
			r.errorf(key, "not yet: layers that differ (%d in layer 0, %d in layer %d)", list[0], n, i)
		}
	}
	return list[0], nil
}

// eachLayer refuses a list of so many values that has not one for each layer.
func (r *configReader) eachLayer(key string, n int) bool {
	if n != r.layers {
		r.errorf(key, "a list of %d values, want one, or one for each of %d layers", n, r.layers)
	}
	return n == r.layers
}

func (r *configReader) checkInt(key string, n, lo, hi int) int {
	if n < lo || n > hi {
		r.errorf(key, "%d, want %d to %d", n, lo, hi)
	}
	return n
}

// float is a number that must be stated, or have a default.
func (r *configReader) float(key string, lo, hi float64) float64 {
	x, ok := value(r, key, r.readFloat)
	if !ok {
		_, err := r.f.Float(r.prefix + key)
		r.fail(err)
		return lo
	}
	return r.checkFloat(key, x, lo, hi)
}

// floatOr is def where a key is null, or left out and the class has no default.
func (r *configReader) floatOr(key string, def, lo, hi float64) float64 {
	x, ok := value(r, key, r.readFloat)
	if !ok {
		return def
	}
	return r.checkFloat(key, x, lo, hi)
}

func (r *configReader) readFloat(key string) (float64, error) { return r.f.Float(r.prefix + key) }

func (r *configReader) checkFloat(key string, x, lo, hi float64) float64 {
	if !(x >= lo && x <= hi) { // NaN too
		r.errorf(key, "%g, want %g to %g", x, lo, hi)
	}
	return x
}

// bool is false where a key is null, or left out and the class has no default.
func (r *configReader) bool(key string) bool {
	b, _ := value(r, key, func(key string) (bool, error) { return r.f.Bool(r.prefix + key) })
	return b
}

// stringOr is def where a key is null or left out.
func (r *configReader) stringOr(key, def string) string {
	s, ok := value(r, key, func(key string) (string, error) { return r.f.String(r.prefix + key) })
	if !ok {
		return def
	}
	return s
}

// hold refuses what the builder has no place for.
func (r *configReader) hold(o only) {
	if !r.has(o.Key) && !r.null(o.Key) {
		return
	}
	var got any
	var err error
	switch o.Want.(type) {
	case nil:
		if r.has(o.Key) {
			r.errorf(o.Key, "not yet: %s", o.otherwise)
		}
		return
	case int:
		got, err = r.readInt(o.Key)
	case float64:
		got, err = r.readFloat(o.Key)
	case bool:
		got = r.bool(o.Key)
	case string:
		got, err = r.f.String(r.prefix + o.Key)
	}
	if r.fail(err); err == nil && got != o.Want {
		r.errorf(o.Key, "not yet: %s (%s, want %v)", o.otherwise, printable.Short(fmt.Sprint(got), 80),
			o.Want)
	}
}
