package model

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/rules"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
)

// The shape of the tiny model.
const (
	tinyDim, tinyHeads, tinyKVHeads, tinyHeadDim = 64, 2, 1, 32
	tinyFFN, tinyLayers, tinyContext             = 96, 2, 64
	tinyVocab                                    = 256 + 1 // one token per byte, and the end token
	tinyEnd                                      = 256
	tinyExperts                                  = 4
)

// tiny returns a model file with random weights whose tokens are bytes. Its tokenizer adds the end token
// before each text.
func tiny() *gguftest.Builder { return tinyOf(&arch.Llama) }

// ggufArchitectures returns the architectures that GGUF files can have.
func ggufArchitectures() []*arch.Architecture {
	return slices.DeleteFunc(slices.Clone(arch.Architectures), func(a *arch.Architecture) bool {
		return a.Gguf.Names == nil
	})
}

// tinyOf is like tiny, with the layers of the given architecture.
func tinyOf(a *arch.Architecture) *gguftest.Builder { return tinyWide(a, tinyFFN) }

// tinyWide is like tinyOf, with MLPs of ffn rows.
func tinyWide(a *arch.Architecture, ffn int) *gguftest.Builder {
	b := gguftest.New()
	for key, value := range map[string]any{
		"block_count": tinyLayers, "context_length": tinyContext, "embedding_length": tinyDim,
		"feed_forward_length": ffn, "attention.head_count": tinyHeads,
		"attention.head_count_kv": tinyKVHeads, a.Gguf.Keys.Eps: float32(1e-5),
		"rope.dimension_count": tinyHeadDim, "rope.freq_base": float32(10000), "vocab_size": tinyVocab,
	} {
		b.Set(a.Name+"."+key, value)
	}
	if a.Experts {
		b.Set(a.Name+".expert_count", tinyExperts)
		b.Set(a.Name+".expert_used_count", 2)
	}
	switch a.Name {
	case "cohere2", "gpt-oss": // require a window
		b.Set(a.Name+".attention.sliding_window", 4096)
	case "lfm2":
		b.Set("lfm2.shortconv.l_cache", 3)
		b.Set("lfm2.attention.head_count_kv", []int32{0, tinyKVHeads})
	case "qwen35", "qwen35moe":
		for key, value := range map[string]any{
			"ssm.conv_kernel": 4, "ssm.group_count": 1, "ssm.time_step_rank": 2,
			"ssm.state_size": tinyHeadDim, "ssm.inner_size": 2 * tinyHeadDim, "full_attention_interval": 2,
			"expert_feed_forward_length": ffn, "expert_shared_feed_forward_length": ffn,
		} {
			if a.Experts || !strings.HasPrefix(key, "expert") {
				b.Set(a.Name+"."+key, value)
			}
		}
	}
	for key, value := range map[string]any{
		"general.architecture": a.Name, "general.name": "tiny",
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.merges": []string{},
		"tokenizer.ggml.bos_token_id": tinyEnd, "tokenizer.ggml.eos_token_id": tinyEnd,
		"tokenizer.ggml.add_bos_token": true,
	} {
		b.Set(key, value)
	}
	tokens, kinds := make([]string, tinyVocab), make([]int32, tinyVocab)
	for i := range 256 {
		tokens[i], kinds[i] = tokenizer.ByteText(byte(i)), int32(tokenizer.Normal)
	}
	tokens[tinyEnd], kinds[tinyEnd] = "<|end|>", int32(tokenizer.Control)
	b.Set("tokenizer.ggml.tokens", tokens)
	b.Set("tokenizer.ggml.token_type", kinds)

	random := rand.New(rand.NewPCG(1, 2))
	values := func(n int) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(random.NormFloat64()) / 8
		}
		return list
	}
	matrix := func(name string, dims ...int) { b.Q4_0(name, dims, values(arch.Numel(dims))) }
	vectorOf := func(name string, dims ...int) { b.F32(name, dims, values(arch.Numel(dims))) }
	vector := func(name string) { vectorOf(name, tinyDim) }
	matrix("token_embd.weight", tinyVocab, tinyDim)
	vector(a.Gguf.Names.Norm)
	// recurrent adds the tensors of the mixer of layer 0 and returns whether this layer has no attention.
	recurrent := func(blk string) bool {
		switch a.Name {
		case "lfm2":
			matrix(blk+"shortconv.in_proj.weight", 3*tinyDim, tinyDim)
			matrix(blk+"shortconv.out_proj.weight", tinyDim, tinyDim)
			b.F32(blk+"shortconv.conv.weight", []int{tinyDim, 3}, values(3*tinyDim))
		case "qwen35", "qwen35moe":
			const channels, inner, heads = 4 * tinyHeadDim, 2 * tinyHeadDim, 2
			matrix(blk+"attn_qkv.weight", channels, tinyDim)
			matrix(blk+"attn_gate.weight", inner, tinyDim)
			matrix(blk+"ssm_alpha.weight", heads, tinyDim)
			matrix(blk+"ssm_beta.weight", heads, tinyDim)
			matrix(blk+"ssm_out.weight", tinyDim, inner)
			b.F32(blk+"ssm_conv1d.weight", []int{channels, 4}, values(4*channels))
			b.F32(blk+"ssm_a", []int{heads}, []float32{-0.5, -2})
			vectorOf(blk+"ssm_dt.bias", heads)
			vectorOf(blk+"ssm_norm.weight", tinyHeadDim)
		default:
			return false
		}
		return true
	}
	mlp := func(blk, suffix string) {
		matrix(blk+"ffn_gate"+suffix, ffn, tinyDim)
		matrix(blk+"ffn_up"+suffix, ffn, tinyDim)
		matrix(blk+"ffn_down"+suffix, tinyDim, ffn)
	}
	experts := func(blk string) {
		vectorOf(blk+"ffn_gate_inp.weight", tinyExperts, tinyDim)
		matrix(blk+"ffn_gate_exps.weight", tinyExperts, ffn, tinyDim)
		matrix(blk+"ffn_up_exps.weight", tinyExperts, ffn, tinyDim)
		matrix(blk+"ffn_down_exps.weight", tinyExperts, tinyDim, ffn)
		if a.ExpertBiases {
			vectorOf(blk+"ffn_gate_inp.bias", tinyExperts)
			vectorOf(blk+"ffn_gate_exps.bias", tinyExperts, ffn)
			vectorOf(blk+"ffn_up_exps.bias", tinyExperts, ffn)
			vectorOf(blk+"ffn_down_exps.bias", tinyExperts, tinyDim)
		}
		if a.Name == "qwen35moe" {
			mlp(blk, "_shexp.weight")
			vector(blk + "ffn_gate_inp_shexp.weight")
		}
	}
	for layer := range tinyLayers {
		blk := fmt.Sprintf("blk.%d.", layer)
		const q, kv = tinyHeads * tinyHeadDim, tinyKVHeads * tinyHeadDim
		if layer == 0 && recurrent(blk) {
			vector(blk + "attn_norm.weight")
			vector(blk + a.Gguf.Names.FfnNorm)
			if a.Experts {
				experts(blk)
			} else {
				mlp(blk, ".weight")
			}
			continue
		}
		if !a.NoPreNorms {
			vector(blk + "attn_norm.weight")
		}
		if a.Fused {
			matrix(blk+"attn_qkv.weight", q+2*kv, tinyDim)
			matrix(blk+"ffn_up.weight", 2*ffn, tinyDim)
		} else {
			rows := q
			if strings.HasPrefix(a.Name, "qwen35") { // queries and gates
				rows *= 2
			}
			matrix(blk+"attn_q.weight", rows, tinyDim)
			matrix(blk+"attn_k.weight", kv, tinyDim)
			matrix(blk+"attn_v.weight", kv, tinyDim)
			switch {
			case a.Experts:
				experts(blk)
			case a.FusedMLP:
				matrix(blk+"ffn_up.weight", 2*ffn, tinyDim)
			default:
				matrix(blk+"ffn_gate.weight", ffn, tinyDim)
				matrix(blk+"ffn_up.weight", ffn, tinyDim)
			}
		}
		matrix(blk+"attn_output.weight", tinyDim, q)
		if !a.NoPreNorms && !a.Parallel {
			vector(blk + a.Gguf.Names.FfnNorm)
		}
		if !a.Experts {
			matrix(blk+"ffn_down.weight", tinyDim, ffn)
		}
		if a.Biases {
			vectorOf(blk+"attn_q.bias", q)
			vectorOf(blk+"attn_k.bias", kv)
			vectorOf(blk+"attn_v.bias", kv)
		}
		if a.Sinks {
			vectorOf(blk+"attn_sinks.weight", tinyHeads)
		}
		if a.HeadNorms {
			vectorOf(blk+"attn_q_norm.weight", tinyHeadDim)
			vectorOf(blk+"attn_k_norm.weight", tinyHeadDim)
		}
		if a.WideNorms {
			vectorOf(blk+"attn_q_norm.weight", q)
			vectorOf(blk+"attn_k_norm.weight", kv)
		}
		if a.PostNorms {
			vector(blk + "post_attention_norm.weight")
			vector(blk + "post_ffw_norm.weight")
		}
		if a.LayerScales {
			vectorOf(blk+"layer_output_scale.weight", 1)
		}
	}
	return b
}

// write writes a file into a temporary folder and returns its path.
func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inFolder returns the message of an error, with DIR in place of the path of a temporary folder.
func inFolder(err error, dir string) string {
	if err == nil {
		return "no error"
	}
	return strings.ReplaceAll(strings.ReplaceAll(err.Error(), dir, "DIR"), `DIR\`, "DIR/")
}

// rig is a session on the tiny model and a fake device. The test determines the tokens that the device
// returns.
type rig struct {
	t         *testing.T
	s         *live
	mayBeLost bool // Close may return gpu.ErrDeviceLost
	dev       *fake.Device
	// token returns the next token, given the position and tokens of a step. It is called on the session's
	// goroutine.
	token func(position int, tokens []int) int
	logit float32 // logit of the token and of all candidates

	mirror session.Mirror
	events []session.Event // received since the last command
	sync   chan chan struct{}
	done   chan struct{}
}

// letters is the default of rig.token. It returns the letter for the position after the step, so a step at
// the same position always gives the same token.
func letters(position int, tokens []int) int { return 'a' + (position+len(tokens))%26 }

// normsRun lists the fusion rules, without those that fuse norms or merge gate and up.
const normsRun = "residual,rope_attention,rope,gelu_mul,silu_mul"

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	return newRigOn(t, o, tiny(), fake.Options{NoLog: true})
}

func newRigOn(t *testing.T, o Options, file *gguftest.Builder, device fake.Options) *rig {
	t.Helper()
	return newRigAt(t, o, file, device, session.Mirror{})
}

// newRigAt returns a rig that applies its events to an existing mirror, which may have followed another
// session.
func newRigAt(t *testing.T, o Options, file *gguftest.Builder, device fake.Options, m session.Mirror) *rig {
	t.Helper()
	driver := &fake.Driver{All: []fake.Options{device}}
	o.Path, o.Driver = write(t, file.Bytes()), driver
	r := &rig{t: t, token: letters, mirror: m, sync: make(chan chan struct{}), done: make(chan struct{})}
	s, err := Open(context.Background(), o, r.take)
	if err != nil {
		t.Fatal(err)
	}
	r.s, r.dev = s.(*live), driver.Opened[0]
	r.dev.OnRead = r.read
	go r.drain()
	r.wait()
	t.Cleanup(r.close)
	return r
}

// read fakes a readback of the outputs. The candidates are the test's token and the tokens that follow it in
// the vocabulary.
func (r *rig) read(label string, offset uint64, dst []byte) {
	if label != "outputs" {
		return
	}
	if offset != 0 { // the logits; any data after them is ignored
		for i := range len(dst) / 4 {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(r.logit))
		}
		return
	}
	host := r.s.runner.Input.Inputs[0].Host
	tokens := make([]int, len(host))
	for i, id := range host {
		tokens[i] = int(id)
	}
	token := r.token(int(r.s.runner.Input.SymInts[0].Int), tokens)
	for i := range len(dst) / 4 {
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(token+i))
	}
}

// drain applies events until the session ends. If wait asks, it applies all pending events and answers.
func (r *rig) drain() {
	defer close(r.done)
	events := r.s.Events()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			r.take(e)
		case answer := <-r.sync:
			for more := true; more; {
				select {
				case e, ok := <-events:
					if more = ok; ok {
						r.take(e)
					}
				default:
					more = false
				}
			}
			close(answer)
		}
	}
}

// take applies an event and checks the mirror's position against the state that the session reports.
func (r *rig) take(e session.Event) {
	if s := e.State; s != nil && !s.Running && r.mirror.State.Running {
		got := r.mirror.State
		if got.Step != s.Step || got.Position != s.Position || got.Given != s.Given {
			r.t.Errorf("the mirror is at step %d, position %d, %d tokens given\nthe session at %d, %d, %d",
				got.Step, got.Position, got.Given, s.Step, s.Position, s.Given)
		}
	}
	if err := r.mirror.Apply(e); err != nil {
		r.t.Error(err)
	}
	r.events = append(r.events, e)
}

// wait returns after the events of all finished commands are applied.
func (r *rig) wait() {
	answer := make(chan struct{})
	select {
	case r.sync <- answer:
		<-answer
	case <-r.done:
	}
}

// try runs a command and returns its error.
func (r *rig) try(ctx context.Context, c session.Command) error {
	r.wait()
	r.events = nil
	_, err := r.s.Do(ctx, c)
	r.wait()
	return err
}

// do runs a command that must succeed.
func (r *rig) do(c session.Command) {
	r.t.Helper()
	if err := r.try(context.Background(), c); err != nil {
		r.t.Fatalf("%s: %v", c.Kind, err)
	}
}

// stand describes the session's step, position and text, for comparison.
func (r *rig) stand() string {
	st := r.mirror.State
	var text string
	for _, token := range r.mirror.Text.Given {
		text += token.Text
	}
	return fmt.Sprintf("step %d, position %d, %q", st.Step, st.Position, text)
}

func (r *rig) wantStand(want string) {
	r.t.Helper()
	if got := r.stand(); got != want {
		r.t.Errorf("at %s, want %s", got, want)
	}
}

// close ends the session, checks its trace, and checks that nothing was leaked or misused on the device.
func (r *rig) close() {
	if err := r.s.Close(); err != nil && !(r.mayBeLost && errors.Is(err, gpu.ErrDeviceLost)) {
		r.t.Error(err)
	}
	<-r.done
	if err := r.mirror.Trace.Check(); err != nil {
		r.t.Errorf("the trace is inconsistent: %v", err)
	}
	if what := unexplained(r.mirror.Trace); what != "" {
		r.t.Error(what)
	}
	if errs := r.dev.Misuse(); len(errs) > 0 {
		r.t.Error("the device was misused:", errs)
	}
	if live := r.dev.Live(); live != (rules.Live{}) {
		r.t.Errorf("not released: %+v", live)
	}
}

// ids returns a prompt of n tokens.
func ids(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 'A' + i%26
	}
	return list
}

func promptOf(n int) session.Command {
	return session.Command{Kind: session.Prompt, Tokens: ids(n)}
}
