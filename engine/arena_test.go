package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// shifts builds n consecutive dispatches of one kernel. Their only param is computed from the position and
// the dispatch's index. If before is not nil, it adds an operator before each dispatch.
func shifts(t *testing.T, dev *fake.Device, n int, param func(pos, i int) int,
	before func(b *graph.Builder, i int, x graph.ValueID) graph.ValueID,
) (*Executor, graph.ValueID) {
	t.Helper()
	b := graph.NewBuilder(dev.Info().Limits)
	y, pos := graphtest.RowsInput(b, "x"), b.SymInt("pos", 0, 99, 0)
	for i := range n {
		in := y
		if before != nil {
			in = before(b, i, y)
		}
		y = graphtest.Shift(b, fmt.Sprint("shift", i), in, pos, func(pos int) int { return param(pos, i) })
	}
	x, err := Load(dev, graphtest.Finish(t, b, y), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Release)
	return x, pos
}

// Any two operators that read the position are separated by one that does not. Their params are adjacent all
// the same, so that one write updates all of them.
func TestParamsThatReadSymIntsAreWrittenTogether(t *testing.T) {
	const layers = 8
	x, pos := shifts(t, fake.New(fake.Options{}), layers, func(pos, _ int) int { return pos },
		func(b *graph.Builder, i int, x graph.ValueID) graph.ValueID {
			return graphtest.Unary(b, fmt.Sprint("f", i), x)
		})
	for n := range 2 {
		if err := x.Step(context.Background(), &graph.StepInput{SymInts: []graph.SymIntValue{{
			Value: pos,
			Int:   int64(n + 1),
		}}},
			TimingOff); err != nil {
			t.Fatal(err)
		}
	}
	want := int64((layers-1)*256 + 16)
	if x.last.writes != 1 || x.last.writeBytes != want {
		t.Errorf("%d writes of %d bytes, want one of %d", x.last.writes, x.last.writeBytes, want)
	}
}

func TestEqualDispatchesShareAParamsBlock(t *testing.T) {
	const layers = 4
	apart := func(pos, i int) int { // every second layer differs from position 10 on
		if pos >= 10 {
			return 100*pos + i%2
		}
		return 100 * pos
	}
	var offsets map[uint64]bool
	var got []int
	dev := fake.New(fake.Options{})
	dev.OnDispatch = func(d fake.Dispatch) {
		params := d.Bound[len(d.Bound)-1]
		offsets[params.Offset] = true
		got = append(got, int(binary.LittleEndian.Uint32(params.Bytes)))
	}
	x, pos := shifts(t, dev, layers, apart, nil)
	x.SetCheck(true)
	for _, step := range []struct{ pos, blocks, made int }{
		{1, 1, 0}, {2, 1, 0}, {10, 3, 2}, {11, 3, 0}, {3, 1, 0}, {12, 3, 0},
	} {
		offsets, got = map[uint64]bool{}, nil
		in := &graph.StepInput{SymInts: []graph.SymIntValue{{Value: pos, Int: int64(step.pos)}}}
		if err := x.Step(context.Background(), in, TimingOff); err != nil {
			t.Fatal(err)
		}
		for i, p := range got {
			if want := apart(step.pos, i); p != want {
				t.Errorf("position %d: dispatch %d reads %d, want %d", step.pos, i, p, want)
			}
		}
		made := x.CPU().BindGroups
		if len(got) != layers || len(offsets) != step.blocks || made != step.made {
			t.Errorf("position %d: %d dispatches read %d blocks through %d new bind groups, want %d, %d, %d",
				step.pos, len(got), len(offsets), made, layers, step.blocks, step.made)
		}
	}
}

// A prepared step reads the params that were current when it was prepared, whichever block they are in.
func TestStepsInFlightReadTheirOwnBlock(t *testing.T) {
	apart := func(pos, i int) int { return pos * (1 + i) }
	var got []int
	dev := fake.New(fake.Options{})
	dev.OnDispatch = func(d fake.Dispatch) {
		got = append(got, int(binary.LittleEndian.Uint32(d.Bound[len(d.Bound)-1].Bytes)))
	}
	x, pos := shifts(t, dev, 2, apart, nil)
	for at := range 4 { // sends each step before it waits for the previous one
		in := &graph.StepInput{SymInts: []graph.SymIntValue{{Value: pos, Int: int64(at)}}}
		err := errors.Join(x.Prepare(context.Background(), in, TimingOff), x.Send(in))
		if at > 0 {
			err = errors.Join(err, x.Finish())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Finish(); err != nil {
		t.Fatal(err)
	}
	want := []int{0, 0, 1, 2, 2, 4, 3, 6}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("dispatches read %v, want %v", got, want)
	}
	if read := x.arena.read(trace.DispatchID(1)); read != 1 {
		t.Errorf("the second dispatch reads block %d, want its own", read)
	}
}
