package arch

import (
	"fmt"
	"slices"

	"gpuscope/internal/printable"
)

// keyed is a source of configuration values, which are looked up by key. The source is the metadata of a GGUF
// file, or a config.json. Errors name the file and the key.
type keyed interface {
	Name() string
	// Keys returns all keys. Top returns the top-level keys.
	Keys() []string
	Top() []string
	// Has reports whether a key has a value other than null. Null reports whether a key has the value null.
	Has(key string) bool
	Null(key string) bool
	// List reports whether the value of a key is a list.
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

// configReader reads configuration values and checks that they are in range. Its methods add the prefix of
// the architecture to each key. If a key is missing, they return the default of the architecture's class in
// transformers or llama.cpp (see the type class). Only the first error is kept.
type configReader struct {
	f      keyed
	prefix string
	form   *Spelling
	in     func(*Architecture) *Spelling // returns the Spelling of any architecture for the file format of f
	layers int                           // number of layers; 0 until it is known
	err    error
	// warnings has an entry for each setting for which the file states two different values.
	warnings []string
}

// has reports whether a key has a value other than null. It returns false for the key "", which means that
// the file format has no such key.
func (r *configReader) has(key string) bool { return key != "" && r.f.Has(r.prefix+key) }

// null reports whether the file states the value null for a key. A missing key is not null.
func (r *configReader) null(key string) bool { return key != "" && r.f.Null(r.prefix+key) }

func (r *configReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *configReader) errorf(key, format string, args ...any) {
	r.fail(fmt.Errorf("%s: %s%s: %w", r.f.Name(), r.prefix, key, fmt.Errorf(format, args...)))
}

// value returns the value of a key: the value in the file, or the default of the class if the key is
// missing.
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

// int returns the integer value of a key. It records an error if the file does not state the key and the
// class has no default for it.
func (r *configReader) int(key string, lo, hi int) int {
	n, ok := value(r, key, r.readInt)
	if !ok {
		_, err := r.f.Int(r.prefix + key)
		r.fail(err)
		return lo
	}
	return r.checkInt(key, n, lo, hi)
}

// intOr returns the integer value of a key. It returns `def` if the key is null, or if the file lacks the
// key and its class has no default for it.
func (r *configReader) intOr(key string, def, lo, hi int) int {
	n, ok := value(r, key, r.readInt)
	if !ok {
		return def
	}
	return r.checkInt(key, n, lo, hi)
}

// readInt reads an integer. If the file instead has a list with an integer for each layer, all integers must
// be equal.
func (r *configReader) readInt(key string) (int, error) {
	if r.layers == 0 || !r.f.List(r.prefix+key) {
		return r.f.Int(r.prefix + key)
	}
	list, err := r.f.Ints(r.prefix + key)
	if err != nil || !r.eachLayer(key, len(list)) {
		return 0, err
	}
	if r.form.Keys.zeroKV && key == r.form.Keys.kvHeads {
		if list = slices.DeleteFunc(list, func(n int) bool { return n == 0 }); len(list) == 0 {
			r.errorf(key, "not supported yet: a model without attention")
			return 1, nil
		}
	}
	for i, n := range list {
		if n != list[0] {
			r.errorf(key, "not supported yet: layers with different values (layer 0 has the value %d, but layer %d has the value %d)",
				list[0], i, n)
		}
	}
	return list[0], nil
}

// eachLayer checks that a list of n values has one value per layer.
func (r *configReader) eachLayer(key string, n int) bool {
	if n != r.layers {
		r.errorf(key, "the list has %d values; want %d, one for each layer", n, r.layers)
	}
	return n == r.layers
}

func (r *configReader) checkInt(key string, n, lo, hi int) int {
	if n < lo || n > hi {
		r.errorf(key, "the value %d is out of range; want a value from %d to %d", n, lo, hi)
	}
	return n
}

// float returns the number value of a key. It records an error if the file does not state the key and the
// class has no default for it.
func (r *configReader) float(key string, lo, hi float64) float64 {
	x, ok := value(r, key, r.readFloat)
	if !ok {
		_, err := r.f.Float(r.prefix + key)
		r.fail(err)
		return lo
	}
	return r.checkFloat(key, x, lo, hi)
}

// floatOr returns the number value of a key. It returns `def` if the key is null, or if the file lacks the
// key and its class has no default for it.
func (r *configReader) floatOr(key string, def, lo, hi float64) float64 {
	x, ok := value(r, key, r.readFloat)
	if !ok {
		return def
	}
	return r.checkFloat(key, x, lo, hi)
}

func (r *configReader) readFloat(key string) (float64, error) { return r.f.Float(r.prefix + key) }

func (r *configReader) checkFloat(key string, x, lo, hi float64) float64 {
	if !(x >= lo && x <= hi) { // also refuses NaN
		r.errorf(key, "the value %g is out of range; want a value from %g to %g", x, lo, hi)
	}
	return x
}

// bool returns the boolean value of a key. It returns false if the key is null, or if the file lacks the key
// and its class has no default for it.
func (r *configReader) bool(key string) bool {
	b, _ := value(r, key, func(key string) (bool, error) { return r.f.Bool(r.prefix + key) })
	return b
}

// stringOr returns the string value of a key. It returns `def` if the key is null, or if the file lacks the
// key and its class has no default for it.
func (r *configReader) stringOr(key, def string) string {
	s, ok := value(r, key, func(key string) (string, error) { return r.f.String(r.prefix + key) })
	if !ok {
		return def
	}
	return s
}

// hold records an error if the value of the key o.Key is not o.Want, the only value that the builder
// supports.
func (r *configReader) hold(o only) {
	if !r.has(o.Key) && !r.null(o.Key) {
		return
	}
	var got any
	var err error
	switch o.Want.(type) {
	case nil:
		if r.has(o.Key) {
			r.errorf(o.Key, "not supported yet: %s", o.otherwise)
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
	case orNull:
		if r.null(o.Key) {
			return
		}
		var s string
		s, err = r.f.String(r.prefix + o.Key)
		got = orNull(s)
	}
	if r.fail(err); err == nil && got != o.Want {
		r.errorf(o.Key, "not supported yet: %s (the value is %s; want %v)", o.otherwise,
			printable.Short(fmt.Sprint(got), 80), o.Want)
	}
}
