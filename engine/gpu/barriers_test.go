package gpu

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// play runs a script over buffers a, b, c and so on. A word like "ab:w" is a dispatch that reads a and b and
// writes w, "|" ends one pass and begins the next, and "a>b" is a copy between passes.
func play(script string) (b *Barriers, forced []bool) {
	b = &Barriers{}
	playOn(b, script, &forced)
	return b, forced
}

func playOn(b *Barriers, script string, forced *[]bool) {
	playEach(b, script, func(_ int, f bool) { *forced = append(*forced, f) })
}

// playEach calls then after each dispatch, with the dispatch's number and the result of Dispatch.
func playEach(b *Barriers, script string, then func(i int, forced bool)) {
	dispatches := 0
	b.Begin()
	b.BeginPass()
	for _, word := range strings.Fields(script) {
		if word == "|" {
			b.EndPass()
			b.BeginPass()
			continue
		}
		if from, to, ok := strings.Cut(word, ">"); ok {
			b.EndPass()
			b.Copy(int(from[0]-'a'), int(to[0]-'a'))
			b.BeginPass()
			continue
		}
		reads, writes, _ := strings.Cut(word, ":")
		for _, r := range reads {
			b.Touch(int(r-'a'), Read)
		}
		for _, w := range writes {
			b.Touch(int(w-'a'), ReadWrite)
		}
		then(dispatches, b.Dispatch())
		dispatches++
	}
	b.EndPass()
}

func TestBarriers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		forced       string // 1 for each dispatch with a barrier before it in its pass
		levels       int
	}{
		{"nothing", "", "", 0},
		{"one dispatch", "a:b", "0", 1},
		{"a chain", "a:b b:c c:d", "011", 3},
		{"side by side", "a:b a:c a:d", "000", 1},
		{"read after read", "a: a: a:", "000", 1},
		{"write after read", "a:b c:a", "01", 2},
		{"write after write", ":a :a", "01", 2},
		{"all transitions of a dispatch are one barrier", ":a :b ab:c", "001", 2},
		// The barrier for b also orders a's write, but the library checks each buffer separately.
		{"a read long after the write needs its own barrier", ":a :b b:c a:d", "0011", 3},
		{"one barrier covers two reads of one dispatch", ":a :b ab:c b:d", "0010", 2},
		{"a write long after the read needs its own barrier", "a:b c:d d:e f:a", "0011", 3},
		{"bound twice by one dispatch", ":aa aa:b", "01", 2},
		{"the next pass reads what this one wrote", "a:b | b:c", "00", 2},
		{"passes with nothing in common", "a:b | c:d", "00", 1},
		{"passes that read the same", "a:b | a:c", "00", 1},
		{"the barrier before a pass is found late", "a:b | c:d b:e", "000", 2},
		{"the barrier before a pass is counted once", "a:b c:d | e:f b:g d:h", "00000", 2},
		{"a barrier before a pass and one in it", "a:b | b:c c:d", "001", 3},
		{"a copy from what was written", "a:b b>c d:e", "00", 2},
		{"a copy of what was only read", "a:b a>c d:e", "00", 2},
		{"a dispatch after a copy to its input", "a:b c>d d:e", "00", 2},
		{"a copy before everything", "a>b c:d", "0", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, forced := play(tt.script)
			var got strings.Builder
			for _, f := range forced {
				fmt.Fprint(&got, map[bool]int{true: 1}[f])
			}
			if got.String() != tt.forced || b.Levels() != tt.levels {
				t.Errorf("%s: barriers %s, %d levels; want %s, %d", tt.script, got.String(), b.Levels(),
					tt.forced, tt.levels)
			}
		})
	}
}

func TestUniformsNeedNoBarrier(t *testing.T) {
	t.Parallel()
	var b Barriers
	b.Begin()
	b.BeginPass()
	for i := range 3 {
		b.Touch(0, Params)
		b.Touch(1+i, ReadWrite)
		if b.Dispatch() {
			t.Errorf("a barrier before dispatch %d", i)
		}
	}
}

// Within a pass there is a barrier between two dispatches if one writes what the other reads or writes. The
// count does not depend on earlier recordings.
func TestBarriersSeparateWhatMustBeOrdered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.Custom(func(t *rapid.T) string {
			perm := rapid.Permutation([]rune("abcdef")).Draw(t, "buffers")
			reads := rapid.IntRange(0, 3).Draw(t, "reads")
			return string(perm[:reads]) + ":" +
				string(perm[reads:reads+rapid.IntRange(0, 2).Draw(t, "writes")])
		})
		words := rapid.SliceOfN(word, 1, 20).Draw(t, "dispatches")
		b, forced := play(strings.Join(words, " "))
		barriers := 0
		for i := range words {
			if forced[i] {
				barriers++
			}
			for j := i - 1; j >= 0 && !forced[j+1]; j-- {
				if conflict(words[i], words[j]) && !forced[i] {
					t.Fatalf("%v: no barrier between %d and %d", words, j, i)
				}
			}
		}
		if b.Levels() != barriers+1 {
			t.Fatalf("%d levels with %d barriers", b.Levels(), barriers)
		}
		var again []bool
		playOn(b, strings.Join(words, " "), &again)
		if fmt.Sprint(again) != fmt.Sprint(forced) || b.Levels() != barriers+1 {
			t.Fatalf("the second recording has %v, the first %v", again, forced)
		}
	})
}

func conflict(a, b string) bool {
	ra, wa, _ := strings.Cut(a, ":")
	rb, wb, _ := strings.Cut(b, ":")
	return strings.ContainsAny(wa, rb+wb) || strings.ContainsAny(wb, ra+wa)
}

func TestBarriersSayWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"a chain", "a:b b:c", "1: b raw 0"},
		{"the writer and not an earlier barrier", "a:b a:c c:d b:e", "2: c raw 1, 3: b raw 0"},
		{"the last reader", "a:b a:c x:a", "2: a war 1"},
		{"write after write", ":a x:b :a", "2: a waw 0"},
		{"two transitions of one barrier", ":a :b ab:c", "2: a raw 0, 2: b raw 1"},
		{"only the first reader waits", ":a a:b a:c", "1: a raw 0"},
		{"a copy", ":a a>b b:c", "1: a raw 0, 1: b raw -1"},
		{"across passes", ":a | a:b", "1: a raw 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			b := &Barriers{}
			for range 2 { // a recording does not depend on the previous one
				got = got[:0]
				playEach(b, tt.script, func(i int, _ bool) {
					for _, w := range b.Waits() {
						got = append(got, fmt.Sprintf("%d: %c %s %d", i, 'a'+rune(w.Buffer), w.Hazard, w.For))
					}
				})
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("%s: waits %q, want %q", tt.script, s, tt.want)
			}
		})
	}
}
