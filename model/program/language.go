package program

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/model/network"
	"gpuscope/model/sample"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// ErrNotLanguage is wrapped by the errors for methods that do not have the inputs and outputs of a language
// model.
var ErrNotLanguage = errors.New("not a language model")

// Language is a method that computes the logits of the next token, or only the next token itself. Its inputs
// are the token ids int64 [1, S], and the position of the first token, int64 [1]. S is from 1 to MaxChunk.
// The keys and values of earlier tokens are in caches, which are mutable buffers of the method.
type Language struct {
	Method   string
	MaxChunk int // largest number of tokens in a step
	Context  int // number of positions of the smallest cache or table; 0 if the method has neither
	Vocab    int // number of logits; number of embedding rows if the method computes only the token
	// OnlyToken reports whether the output is the next token, int64 [1, 1], and not its logits.
	OnlyToken bool
	Warnings  []string // what a user should know before running the method; one line each
	Layers    int      // number of attention operators
	Heads, KVHeads,
	HeadDim int

	file   *pte.File
	method Method
}

// OpenLanguage opens a method as a language model and finds its sizes. If `name` is "", OpenLanguage
// chooses the method called "forward". If there is none, it chooses the only method that has the inputs of
// a language model. The error wraps ErrNotLanguage if the method does not have the inputs and outputs of a
// language model. If gpuscope cannot run the method, OpenLanguage returns the same errors as Build.
func OpenLanguage(f *pte.File, name string) (*Language, error) {
	m, err := methodOf(f, name)
	if err != nil {
		return nil, err
	}
	l := &Language{Method: m.Name, file: f, method: Method{method: m}}
	if err := l.read(); err != nil {
		return nil, fmt.Errorf("%s: method %s: %w", f.Name(), m.Name, err)
	}
	return l, nil
}

// methodOf returns the method called `name`. If `name` is "", it returns the method called "forward". If
// there is none, it returns the only method that reads tokens.
func methodOf(f *pte.File, name string) (*pte.Method, error) {
	if name != "" {
		return f.Method(name)
	}
	var found *pte.Method
	for _, m := range f.Methods {
		if m.Constant() || m.Name != "forward" && !readsTokens(m) {
			continue
		}
		if m.Name == "forward" {
			return m, nil
		}
		if found != nil {
			return nil, fmt.Errorf("%s: methods %s and %s both read tokens; choose one with --method",
				f.Name(), found.Name, m.Name)
		}
		found = m
	}
	if found == nil {
		return nil, fmt.Errorf("%s: %w: no method has exactly these two inputs: the tokens (int64 [1, S]) and a position (int64 [1])",
			f.Name(), ErrNotLanguage)
	}
	return found, nil
}

// readsTokens reports whether the inputs of a method are tokens int64 [1, S] and a position int64 [1].
func readsTokens(m *pte.Method) bool {
	if len(m.Inputs) != 2 {
		return false
	}
	var sizes [2][]int
	for i, id := range m.Inputs {
		t, ok := m.Values[id].(*pte.Tensor)
		if !ok || t.Type != pte.Int64 {
			return false
		}
		sizes[i] = t.Sizes
	}
	return len(sizes[0]) == 2 && sizes[0][0] == 1 && sizes[0][1] > 0 && len(sizes[1]) == 1 && sizes[1][0] == 1
}

// read finds the sizes of the method.
func (l *Language) read() error {
	m := &l.method
	if !readsTokens(m.method) {
		return fmt.Errorf("%w: want two inputs: the tokens (int64 [1, S]) and a position (int64 [1])",
			ErrNotLanguage)
	}
	if err := m.open(l.file); err != nil {
		return err
	}
	tokens := m.method.Values[m.method.Inputs[0]].(*pte.Tensor)
	l.MaxChunk = tokens.Sizes[1]
	if l.MaxChunk > 1 && m.changes.Of(m.method.Inputs[0], tokens)[1] == vulkan.Fixed {
		return fmt.Errorf("%w: every run reads exactly %d tokens, want 1 or a number that can change from run to run",
			ErrNotLanguage, l.MaxChunk)
	}
	_, results, err := m.source.Split(m.call.Args)
	if err != nil {
		return err
	}
	if len(m.method.Outputs) != 1 || len(results) != 1 || results[0] != m.method.Outputs[0] {
		return fmt.Errorf("%w: the method has %d outputs, want one output that the delegate computes",
			ErrNotLanguage, len(m.method.Outputs))
	}
	t := m.source.Values[m.source.Outputs[0]].(*vulkan.Tensor) // vulkan.Parse has checked that it is a tensor
	b := &builder{m: m, g: m.source, limits: map[int]int{}, producers: producersOf(m.source)}
	switch dtype, _ := deviceType(t.Type); {
	case t.Type == pte.Float32 && len(t.Dims) > 0:
		l.Vocab = t.Dims[len(t.Dims)-1]
	case dtype == graph.I32 && graph.Numel(t.Dims) == 1:
		l.OnlyToken = true
		if l.Vocab = b.embeddingRows(); l.Vocab == 0 {
			return fmt.Errorf("%w: no operator looks up the tokens in an embedding", ErrNotLanguage)
		}
	default:
		return fmt.Errorf("%w: the output is %s, want logits (f32) or a single token (int64 [1, 1])",
			ErrNotLanguage, describeValue(t))
	}
	for i := range m.source.Operators {
		op := &m.source.Operators[i]
		b.limitPositions(op)
		if op.Name != "sdpa_with_kv_cache.default" || !op.Known() {
			continue
		}
		l.Layers++
		c := call{builder: b, op: op, names: op.Arguments()}
		_, query := c.arg("query")
		_, key := c.arg("key")
		q, isQ := query.(*vulkan.Tensor)
		k, isK := key.(*vulkan.Tensor)
		if isQ && isK && len(q.Dims) == 4 && len(k.Dims) == 4 {
			l.Heads, l.KVHeads, l.HeadDim = q.Dims[2], k.Dims[2], q.Dims[3]
		}
	}
	if warning := b.asF32(); warning != "" {
		l.Warnings = append(l.Warnings, warning)
	}
	if len(b.limits) == 0 {
		return fmt.Errorf("%w: no operator depends on the position", ErrNotLanguage)
	}
	l.Context = math.MaxInt32
	for id, n := range b.limits {
		l.Context = min(l.Context, n-b.offset(id))
	}
	if l.Context < 1 {
		return fmt.Errorf("%w: the caches or tables have no row for position 0", ErrNotLanguage)
	}
	return nil
}

// embeddingRows returns the number of rows of the table of the first embedding operator. It returns 0 if
// there is no such operator.
func (b *builder) embeddingRows() int {
	for i := range b.g.Operators {
		op := &b.g.Operators[i]
		if !strings.Contains(op.Name, ".embedding") || !op.Known() {
			continue
		}
		c := call{builder: b, op: op, names: op.Arguments()}
		_, v := c.arg("weight")
		if t, ok := v.(*vulkan.Tensor); ok && len(t.Dims) == 2 {
			return t.Dims[0]
		}
	}
	return 0
}

// Step states how a language model is built.
type Step struct {
	Context  int  // number of positions in use, at most Language.Context
	MaxChunk int  // largest number of tokens in a step, at most Language.MaxChunk
	HalfKV   bool // caches in f16
	// Told is the number of candidate tokens that each step reports; 0 to report only the next token. Told
	// and Sampling have no effect if the method computes only the token.
	Told     int
	Sampling sample.Sampling
}

// language is the part of a builder that is used only for language models.
type language struct {
	*Language
	tokens, position int            // values of the delegate's graph
	chunk            int            // largest number of tokens in a step
	pos              graph.ValueID  // SymInt: the position
	posTensor        graph.ValueID  // the position as a tensor; None if no operator reads this tensor
	halfKV           map[int]bool   // caches that are stored in f16
	places           []vulkan.Place // by operator of the file
}

// Build adds the operators of the method to b, finishes it, and returns the graph.
func (l *Language) Build(b *graph.Builder, o Step) (*network.Network, error) {
	m := l.method // a copy, because Build sets fields
	in, _, err := m.source.Split(m.call.Args)
	if err != nil {
		return nil, err
	}
	part := &language{Language: l, tokens: -1, position: -1, posTensor: graph.None}
	for i, outer := range in {
		switch outer {
		case m.method.Inputs[0]:
			part.tokens = m.source.Inputs[i]
		case m.method.Inputs[1]:
			part.position = m.source.Inputs[i]
		}
	}
	if part.tokens < 0 || part.position < 0 || len(in) != 2 {
		return nil, fmt.Errorf("%s: method %s: %w: the delegate has %d inputs, want the tokens and the "+
			"position", l.file.Name(), l.Method, ErrNotLanguage, len(in))
	}
	part.pos = b.SymInt("pos", 0, int64(o.Context-1), 0)
	part.chunk = o.MaxChunk
	if o.HalfKV {
		part.halfKV = cachesOf(m.source)
	}
	n := &network.Network{Pos: part.pos, Vocab: l.Vocab, Logits: graph.None}
	err = m.build(b, part, func(b *builder) {
		n.Tokens, n.PosTensor = b.tensorOf(part.tokens), part.posTensor
		if l.OnlyToken {
			n.Picks = sample.Given(b.Builder, b.tensorOf(b.g.Outputs[0]))
			return
		}
		n.Logits = b.lastRow(b.tensorOf(b.g.Outputs[0]))
		n.Picks = sample.Pick(b.Builder, n.Logits, l.Vocab, o.Told, o.Sampling)
		b.Output(n.Logits)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: method %s: %w", l.file.Name(), l.Method, err)
	}
	n.Graph = m.Graph
	return n, nil
}

// lastRow returns the logits of the last token as [1, 1, vocabulary]. Some methods compute the logits of all
// tokens.
func (b *builder) lastRow(logits graph.ValueID) graph.ValueID {
	dims := b.MaxDims(logits)
	if b.Err() != nil {
		return graph.None
	}
	vocab := dims[len(dims)-1]
	if slices.Equal(dims, []int{1, 1, vocab}) {
		return logits
	}
	logits = basic.View(b.Builder, "logits", logits, kind.Fixed(1), basic.Rest, kind.Fixed(vocab))
	if graph.Numel(dims) > vocab {
		logits = basic.SliceRange(b.Builder, "last logits", logits, 1, kind.Fixed(-1),
			kind.Fixed(basic.ToEnd), 1)
	}
	return logits
}

// cachesOf returns the caches of keys and values: the tensors that only attention uses.
func cachesOf(g *vulkan.Graph) map[int]bool {
	caches := map[int]bool{}
	for i := range g.Operators {
		op := &g.Operators[i]
		if op.Name == "sdpa_with_kv_cache.default" {
			for _, id := range g.Updates(op) {
				caches[id] = true
			}
		}
	}
	for i := range g.Operators {
		if op := &g.Operators[i]; op.Name != "sdpa_with_kv_cache.default" {
			for _, id := range g.Reads(op) {
				delete(caches, id)
			}
		}
	}
	return caches
}

// Parameters returns the number of weights of the method, and the element type of most of them.
func (l *Language) Parameters() (n int64, most string) { return l.method.Parameters() }

// Parameters returns the number of weights of the method, and the element type of most of them.
func (m *Method) Parameters() (n int64, most string) {
	of := map[string]int64{}
	seen := map[int]bool{}
	for id, v := range m.source.Values {
		t, ok := v.(*vulkan.Tensor)
		if !ok || t.Constant < 0 || seen[t.Constant] || slices.Contains(m.source.Mutable(), id) {
			continue
		}
		seen[t.Constant] = true
		elements, name := int64(graph.Numel(t.Dims)), t.Type.String()
		if t.Type == pte.Uint8 { // two weights of 4 bits
			elements, name = 2*elements, "4-bit"
		}
		n += elements
		if of[name] += elements; of[name] > of[most] {
			most = name
		}
	}
	return n, most
}
