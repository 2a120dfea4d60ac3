package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze/workclass"
)

// llamaJSON returns a profile with these records.
func llamaJSON(records ...string) string {
	return `{"version": 2, "backends": [{"id": 0, "name": "Vulkan0"}], "records": [` +
		strings.Join(records, ",\n") + `]}`
}

// llamaStep returns the records of a step of a model with two layers, with or without names of tensors.
func llamaStep(tokens int, named bool) (list []string) {
	add := func(op, extra, tensor string, ns, k, m int) {
		name, fused := "", "null"
		if named {
			name = fmt.Sprintf(`, "tensor_name": %q, "ne": [%d, %d, 1, 1], "out_type": "f32", "op_params": [0],`+
				` "sub_op": null`, tensor, m, tokens)
		}
		if extra != "" {
			fused = fmt.Sprintf("%q", extra)
		}
		list = append(list, fmt.Sprintf(`{"type": 0, "name": %q, "backend_id": 0, "split_id": 1, "start_ns": %d,`+
			` "duration_ns": %d, "bytes": 4096, "extra": %s, "ne_src0": [%d, %d, 1, 1], "ne_src1": [%d, %d, 1, 1]`+
			`, "ne_src2": [0, 0, 0, 0]%s}`, op, 1000*len(list), ns, fused, k, m, k, tokens, name))
	}
	add("GET_ROWS", "", "inp_embd", 1000, 64, 1000)
	for layer := range 2 {
		at := func(name string) string { return fmt.Sprintf("%s-%d", name, layer) }
		add("RMS_NORM", "RMS_NORM_MUL", at("norm"), 2000, 64, tokens)
		add("MUL_MAT", "", at("Qcur"), 3000+layer, 64, 64)
		add("MUL_MAT", "", at("Kcur"), 4000, 64, 32)
		add("MUL_MAT", "", at("Vcur"), 5000, 64, 32)
		add("ROPE", "", at("Qcur"), 6000, 16, 4)
		add("ROPE", "", at("Kcur"), 7000, 16, 2)
		add("SET_ROWS", "", fmt.Sprintf("cache_v_l%d (view)", layer), 500, 32, 256)
		add("FLASH_ATTN_EXT", "", at("__fattn__"), 8000, 16, tokens)
		add("MUL_MAT", "MUL_MAT_ADD", at("ffn_inp"), 9000, 64, 64)
		add("RMS_NORM", "RMS_NORM_MUL", at("norm"), 2500, 64, tokens)
		add("MUL_MAT", "", at("ffn_gate"), 10000, 64, 128)
		add("MUL_MAT", "", at("ffn_up"), 11000, 64, 128)
		add("GLU", "", at("ffn_swiglu"), 1500, 128, tokens)
		add("MUL_MAT", "", at("ffn_out"), 12000, 128, 64)
		add("ADD", "", at("l_out"), 700, 64, tokens)
	}
	add("RMS_NORM", "RMS_NORM_MUL", "result_norm", 2600, 64, 1)
	add("MUL_MAT", "", "result_output", 90000, 64, 1000)
	return list
}

func TestTensorNamesJoinRowsWithOperators(t *testing.T) {
	records := slices.Concat(llamaStep(7, true), llamaStep(1, true), llamaStep(1, true))
	got, err := Read(strings.NewReader(llamaJSON(records...)), decoder(2))
	if err != nil {
		t.Fatal(err)
	}
	var phases []trace.Phase
	for i := range got.Steps {
		phases = append(phases, got.Steps[i].Phase)
	}
	if want := []trace.Phase{trace.Prefill, trace.Decode, trace.Decode}; !slices.Equal(phases, want) {
		t.Fatalf("phases %v, want %v", phases, want)
	}
	const by = " tensor name"
	want := []string{
		"embed 1" + by, "layers.0.attn.norm 2" + by, "layers.0.attn.q 3" + by, "layers.0.attn.k 4" + by,
		"layers.0.attn.v 5" + by, "layers.0.attn.rope.rope 6" + by, "layers.0.attn.rope.rope2 7" + by,
		"layers.0.attn.sdpa.set_rows 0.5" + by, "layers.0.attn.sdpa.flash_attn_ext 8" + by,
		"layers.0.attn.o 9" + by, "layers.0.mlp.norm 2.5" + by, "layers.0.mlp.gate 10" + by,
		"layers.0.mlp.up 11" + by, "layers.0.mlp.silu_mul 1.5" + by, "layers.0.mlp.down 12" + by,
		"layers.0.mlp.add 0.7" + by,
	}
	have := rows(got, 1)
	if !slices.Equal(have[:len(want)], want) {
		t.Errorf("rows\n%q, want\n%q", have[:len(want)], want)
	}
	for _, row := range []string{"layers.1.attn.q 3.001" + by, "norm 2.6" + by, "lm_head 90" + by} {
		if !slices.Contains(have, row) {
			t.Errorf("no row %q", row)
		}
	}
}

// The first form of the records has no names of tensors.
func TestRecordsWithoutNamesAreJoinedByShape(t *testing.T) {
	records := slices.Concat(llamaStep(7, false), llamaStep(1, false))
	got, err := Read(strings.NewReader(llamaJSON(records...)), decoder(2))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 2 || got.Steps[0].SymInts["seq"] != 7 || got.Steps[1].Phase != trace.Decode {
		t.Fatalf("steps %+v", got.Steps)
	}
	const by = " operation and shape"
	have := rows(got, 1)
	for _, row := range []string{
		"layers.0.attn.o 9" + by, "layers.1.attn.q 3.001" + by, "layers.1.mlp.down 12" + by,
		"layers.0.mlp.norm 2.5" + by, "lm_head 90" + by,
	} {
		if !slices.Contains(have, row) {
			t.Errorf("no row %q in %q", row, have)
		}
	}
}

func TestTensorsTellTheirClassWithoutAModel(t *testing.T) {
	got, err := Read(strings.NewReader(llamaJSON(llamaStep(1, true)...)), Run{})
	if err != nil {
		t.Fatal(err)
	}
	classes, have := workclass.Of(&got.Graph), map[string]workclass.Class{}
	for i := range got.Graph.Ops {
		o := &got.Graph.Ops[i]
		have[o.Name+" "+o.Kind] = classes[i]
	}
	for name, want := range map[string]workclass.Class{
		"ffn_out-1 MUL_MAT": workclass.Down, "Qcur-0 MUL_MAT": workclass.QO,
		"Qcur-0 ROPE":    workclass.Attention,
		"Vcur-1 MUL_MAT": workclass.KV, "ffn_inp-0 MUL_MAT_ADD": workclass.QO,
		"result_output MUL_MAT": workclass.Head, "l_out-1 ADD": workclass.Other,
		"norm-0 RMS_NORM_MUL": workclass.Norms,
	} {
		if have[name] != want {
			t.Errorf("%s: class %q, want %s", name, have[name], want)
		}
	}
}

func TestHostileLlamaCppProfilesAreRefused(t *testing.T) {
	const ok = `{"type": 0, "name": "ADD", "split_id": 0, "duration_ns": 1}`
	for name, text := range map[string]string{
		"NaN":            llamaJSON(`{"name": "ADD", "duration_ns": NaN}`),
		"text as time":   llamaJSON(`{"name": "ADD", "duration_ns": "1"}`),
		"negative time":  llamaJSON(`{"name": "ADD", "duration_ns": -1}`),
		"huge time":      llamaJSON(`{"name": "ADD", "duration_ns": 9223372036854775807}`),
		"overflow":       llamaJSON(`{"name": "ADD", "duration_ns": 1e300}`),
		"huge dim":       llamaJSON(`{"name": "MUL_MAT", "duration_ns": 1, "ne_src0": [9223372036854775807, 1]}`),
		"many dims":      llamaJSON(`{"name": "MUL_MAT", "duration_ns": 1, "ne_src0": [1, 1, 1, 1, 1]}`),
		"no name":        llamaJSON(`{"duration_ns": 1}`),
		"list as record": llamaJSON(`[]`),
		"cut":            llamaJSON(ok)[:60],
		"no records":     llamaJSON(),
		"newer version":  strings.Replace(llamaJSON(ok), `"version": 2`, `"version": 3`, 1),
		"deep nesting":   llamaJSON(`{"name": ` + strings.Repeat("[", 1<<16)),
		"deep document":  `{"records": ` + strings.Repeat(`{"records": [`, 1<<16),
	} {
		if _, err := Read(strings.NewReader(text), decoder(2)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, err := Read(strings.NewReader(llamaJSON(ok, `{"name": "ADD", "duration_ns": -1}`)), Run{})
	var at *ElementError
	if !errors.As(err, &at) || at.List != "records" || at.Index != 1 {
		t.Errorf("error %v", err)
	}
}

func FuzzLlamaCpp(f *testing.F) {
	fewRows(f)
	f.Add(strings.Join(llamaStep(1, true), ","))
	f.Add(strings.Join(llamaStep(3, false), ","))
	f.Fuzz(func(t *testing.T, records string) { checkImport(t, llamaJSON(records)) })
}
