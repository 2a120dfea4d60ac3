package chat

import (
	"slices"
	"strconv"
	"strings"

	"gpuscope/text/chat/internal/raise"
)

type args struct {
	list  []any
	named dict // named arguments, in the order in which the call lists them
}

// take removes the argument with the given name from a and returns its value.
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

// builtin is a filter, a test, a method or a function. `do` gets one value per parameter of the signature.
// The value of a parameter *args is a tuple, and the value of **kwargs is a dict.
type builtin struct {
	signature
	do func(s *state, a []any) any
}

// signature describes the parameters of a Python function.
type signature struct {
	name       string
	parameters []parameter
	positional int  // number of parameters at the start that only accept positional arguments
	places     int  // number of parameters that positional arguments can set
	variadic   bool // whether *args follows the positional parameters
	keywords   bool // whether the last parameter is **kwargs
}

type parameter struct {
	name     string
	value    any // default value
	required bool
}

// builtins converts table rows to a map of builtins by name. A row can have several names, separated by
// spaces.
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

// sign makes a signature from the text of a parameter list, such as "value, /, width=4, *args, **kwargs".
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

// literal parses the default value of a parameter.
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

// bind returns the value of each parameter. Surplus, unknown, repeated and missing arguments are errors.
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
		raise.At(s.line, "%s: the call has %d arguments, but at most %d are allowed",
			sig.name, len(a.list), sig.places)
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

// invoke calls a builtin. `first` becomes its first argument: the input of a filter or a test, or the
// receiver of a method.
func (s *state) invoke(b builtin, first any, a args) any {
	return b.do(s, s.bind(b.signature, args{append([]any{first}, a.list...), a.named}))
}

// method returns a function that calls the builtin with the given receiver.
func method(b builtin, receiver any) *function {
	return &function{call: func(s *state, a args) any { return s.invoke(b, receiver, a) }}
}

// builtinFunction returns a function with the given parameter list and implementation.
func builtinFunction(name, parameters string, do func(s *state, a []any) any) *function {
	sig := sign(name, parameters)
	return &function{call: func(s *state, a args) any { return do(s, s.bind(sig, a)) }}
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

// filter returns the filter with the given name. It is called at run time and not during parsing, because a
// branch that never runs may use an unknown filter.
func (s *state) filter(name string) builtin {
	f, ok := filters[name]
	if !ok {
		raise.At(s.line, "unknown filter %q", name)
	}
	return f
}

// test returns the test with the given name. It is called at run time, like filter.
func (s *state) test(name string) builtin {
	t, ok := tests[name]
	if !ok {
		raise.At(s.line, "unknown test %q", name)
	}
	return t
}
