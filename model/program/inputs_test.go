package program_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/program"
)

func TestLiveDimsAreParsed(t *testing.T) {
	golden := wordingtest.New(t)
	got, err := program.ParseLiveDims("0.1=7, 2.0=3")
	want := []program.LiveDim{{Dim: 1, Size: 7}, {Input: 2, Size: 3}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"7", "0.1=-7", "0.1=x", "0.1=12345678901", "0=1"} {
		_, err := program.ParseLiveDims(text)
		if !errors.Is(err, program.ErrInput) {
			t.Errorf("%s: %v, want ErrInput", text, err)
		}
		golden.Error(text, err)
	}
}

func TestEqualDimsFollowTheChosenDim(t *testing.T) {
	golden := wordingtest.New(t)
	m, err := build(parse(t, sum(), sumValues))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][][]int{
		"": {{8}, {8}}, "0.0=3": {{3}, {3}}, "1.0=5": {{5}, {5}}, "0.0=3 1.0=4": {{3}, {4}},
	} {
		dims, _ := program.ParseLiveDims(text)
		if got, err := m.LiveShapes(dims); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"2.0=1", "0.1=1", "0.0=9", "0.0=0", "0.0=3 0.0=4"} {
		dims, _ := program.ParseLiveDims(text)
		_, err := m.LiveShapes(dims)
		if !errors.Is(err, program.ErrInput) {
			t.Errorf("%s: %v, want ErrInput", text, err)
		}
		golden.Error(text, err)
	}
}

func TestRandomInputsDependOnlyOnTheSeed(t *testing.T) {
	m, err := build(parse(t, sum(), sumValues))
	if err != nil {
		t.Fatal(err)
	}
	inputs := func(seed uint64) []*npy.Array {
		list, err := m.RandomInputs(seed, [][]int{{8}, {8}})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	a, b, c := inputs(1), inputs(1), inputs(2)
	if !reflect.DeepEqual(a, b) || bytes.Equal(a[0].Data, c[0].Data) || bytes.Equal(a[0].Data, a[1].Data) {
		t.Error("the inputs do not follow from the seed")
	}
	for _, v := range floats(a[0]) {
		if !(math.Abs(float64(v)) <= 1) {
			t.Errorf("element %v, want -1 to 1", v)
		}
	}
}

func TestRandomIndicesAreWithinTheirTable(t *testing.T) {
	g, values := lookup()
	run := load(t, fake.New(fake.Options{}), parse(t, g, values))
	m, err := build(parse(t, g, values))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		inputs, err := m.RandomInputs(seed, [][]int{{2}})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(inputs[0].Data); i += 8 {
			if n := binary.LittleEndian.Uint64(inputs[0].Data[i:]); n > 2 {
				t.Errorf("seed %d: index %d of a table of 3 rows", seed, n)
			}
		}
		if _, err := run.Run(t.Context(), inputs); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
