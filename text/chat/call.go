package chat

import (
	"slices"
	"strconv"
	"strings"

	"gpuscope/text/chat/internal/raise"
)

// args are the arguments of a call.
type args struct {
	list  []any
	named dict // by name, in their order
}

// take is a named argument, which is no longer one of args then.
func (a *args) take(name string) (any, bool) {
	i := slices.Index(a.named.keys, any(name))
	if i < 0 {
		return nil, false
	}
	v := a.named.values[i]
	without := func(list []any) []any { return slices.Concat(list[:i], list[i+1:]) }
	a.named = dict{without(a.named.keys), without(a.named.values)}
	return v, true
}

// builtin is a filter, a test, a method or a function. It is called with a value for each parameter of its
// signature: that of *args is a tuple, that of **kwargs a dict.
type builtin struct {
	signature
	do func(s *state, a []any) any
}

// signature describes parameters as Python does.
type signature struct {
	name       string
	parameters []parameter
	positional int  // the first ones, which have no names for callers
	places     int  // how many can be given by their place; the others only by name
	variadic   bool // the parameter after those is *args
	keywords   bool // the last one is **kwargs
}

type parameter struct {
	name     string
	value    any // where no argument is given
	required bool
}

// builtins makes the table of a map from names, several with spaces between, to signatures and functions.
func builtins(rows []row) map[string]builtin {
	table := map[string]builtin{}
	for _, r := range rows {
		for name := range strings.FieldsSeq(r.names) {
			table[name] = builtin{sign(name, r.parameters), r.do}
		}
	}
	return table
}

type row struct {
	names, parameters string
	do                func(s *state, a []any) any
}

// sign reads the parameters of a signature, as "value, /, width=4, *args, **kwargs".
func sign(name, text string) signature {
	sig := signature{name: name, places: -1}
	for field := range strings.SplitSeq(text, ", ") {
		word, otherwise, optional := strings.Cut(field, "=")
		p := parameter{name: word, required: !optional}
		switch {
		case field == "/":
			sig.positional = len(sig.parameters)
			continue
		case field == "*":
			sig.places = len(sig.parameters)
			continue
		case strings.HasPrefix(word, "**"):
			sig.keywords = true
			p = parameter{}
		case strings.HasPrefix(word, "*"):
			sig.variadic, sig.places = true, len(sig.parameters)
			p = parameter{}
		case optional:
			p.value = literal(otherwise)
		}
		if field != "" {
			sig.parameters = append(sig.parameters, p)
		}
	}
	if sig.places < 0 {
		sig.places = len(sig.parameters)
		if sig.keywords {
			sig.places--
		}
	}
	return sig
}

// literal is the value of a parameter in a signature.
func literal(text string) any {
	if v, ok := words[text]; ok {
		return v
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x
	}
	if text == "undefined" {
		return undefined{"an argument"}
	}
	return strings.Trim(text, "'")
}

// bind gives each parameter its value. An argument without a parameter is an error.
func (s *state) bind(sig signature, a args) []any {
	s.spend(len(a.list) + len(a.named.keys))
	out := make([]any, len(sig.parameters))
	given := make([]bool, len(sig.parameters))
	for i, v := range a.list[:min(len(a.list), sig.places)] {
		out[i], given[i] = v, true
	}
	if sig.variadic {
		out[sig.places] = newTuple(a.list[min(len(a.list), sig.places):]...)
		given[sig.places] = true
	} else if len(a.list) > sig.places {
		raise.At(s.line, "%s: %d arguments, takes at most %d", sig.name, len(a.list), sig.places)
	}
	rest := &dict{}
	for i, key := range a.named.keys {
		at := slices.IndexFunc(sig.parameters, func(p parameter) bool {
			return p.name != "" && p.name == key
		})
		switch {
		case at >= sig.positional && given[at]:
			raise.At(s.line, "%s: argument %s is given twice", sig.name, key)
		case at >= sig.positional:
			out[at], given[at] = a.named.values[i], true
		case !sig.keywords:
			raise.At(s.line, "%s: unknown argument %s", sig.name, key)
		default:
			rest.keys, rest.values = append(rest.keys, key), append(rest.values, a.named.values[i])
		}
	}
	if sig.keywords {
		out[len(out)-1], given[len(out)-1] = rest, true
	}
	for i, p := range sig.parameters {
		if !given[i] && p.required {
			raise.At(s.line, "%s: argument %s is missing", sig.name, p.name)
		} else if !given[i] {
			out[i] = p.value
		}
	}
	return out
}

// invoke calls a builtin with a first argument: the value that a filter or a test is of, or the receiver.
func (s *state) invoke(b builtin, first any, a args) any {
	return b.do(s, s.bind(b.signature, args{append([]any{first}, a.list...), a.named}))
}

// method makes a function of a builtin and its receiver.
func method(b builtin, receiver any) *function {
	return &function{func(s *state, a args) any { return s.invoke(b, receiver, a) }}
}

// builtinFunction makes a function of its own.
func builtinFunction(name, parameters string, do func(s *state, a []any) any) *function {
	sig := sign(name, parameters)
	return &function{func(s *state, a args) any { return do(s, s.bind(sig, a)) }}
}

func (s *state) call(f any, a args) any {
	s.spend(1)
	switch f := f.(type) {
	case *function:
		return f.call(s, a)
	case *object:
		if f.call != nil {
			return f.call(s, a)
		}
	case undefined:
		raise.At(s.line, "%s is undefined", f.name)
	}
	raise.At(s.line, "%s cannot be called", typeName(f))
	return nil
}

// filter is the filter of a name, looked up when it runs: a branch that is never taken may use one that does
// not exist.
func (s *state) filter(name string) builtin {
	f, ok := filters[name]
	if !ok {
		raise.At(s.line, "there is no filter %q", name)
	}
	return f
}

// test is the test of a name, looked up when it runs.
func (s *state) test(name string) builtin {
	t, ok := tests[name]
	if !ok {
		raise.At(s.line, "there is no test %q", name)
	}
	return t
}
