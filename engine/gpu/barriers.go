package gpu

// Barriers replays where the native library (wgpu 0.20: its usage tracker, and the transitions it drains
// before each dispatch) puts barriers into a recording, from what each dispatch does with its buffers.
// Between two barriers dispatches may overlap; such a run is a level, and a step costs by its levels more
// than by its dispatches.
//
// The rule, buffer by buffer: a use needs a barrier before it when the buffer's last use in the recording was
// of another kind, or was read_write, whether or not another barrier came in between. All transitions of a
// dispatch are one barrier. Those of the buffers that a pass meets for the first time are one barrier before
// the pass; those of the buffers that the recording meets for the first time are made at submit and are not
// counted.
//
// Buffers are known by small indexes, so that the same rule serves a driver and a graph that has no device.
// The zero value is ready. Nothing is allocated once the highest index was seen.
type Barriers struct {
	uses      []bufferUse
	recording uint32
	pass      uint32
	dispatch  uint32
	inPass    bool
	split     bool // a barrier stands before the next dispatch, outside of its pass
	forced    bool // a barrier stands before the next dispatch, inside of its pass
	begun     bool // the pass has a dispatch
	joined    bool // the pass's first dispatch counted as one level with the dispatch before the pass
	levels    int
	first     uint32 // number of the recording's first dispatch
	// Transitions of the dispatch that is being named, and of the one named last.
	pending, waits []Wait
}

// Wait is one transition that a barrier makes: what the dispatch after it waits for.
type Wait struct {
	Buffer int
	Hazard Hazard
	// For is the dispatch that used the buffer last, counted from 0 in the recording; -1 is a copy.
	For int
}

// Hazard is the order that a barrier keeps.
type Hazard uint8

// The hazards. Some transitions keep no order: a buffer that was read is read in another way.
const (
	NoHazard Hazard = iota
	ReadAfterWrite
	WriteAfterRead
	WriteAfterWrite
)

// String is the hazard's name in traces.
func (h Hazard) String() string { return [...]string{"none", "raw", "war", "waw"}[h] }

// bufferUse is the last use of a buffer.
type bufferUse struct {
	recording, pass, dispatch uint32
	kind                      useKind
}

// useKind is a way of using a buffer that the tracker tells from others. Only readWrite and copyTo must be
// ordered against themselves.
type useKind uint8

const (
	useRead      = useKind(Read)
	useReadWrite = useKind(ReadWrite)
	useUniform   = useKind(Params)
	copyFrom     = useUniform + 1
	copyTo       = useUniform + 2
)

// writes says whether the use changes the buffer.
func (k useKind) writes() bool { return k == useReadWrite || k == copyTo }

// hazard is what a use after another must be ordered for.
func (k useKind) hazard(after useKind) Hazard {
	switch {
	case after.writes() && k.writes():
		return WriteAfterWrite
	case after.writes():
		return ReadAfterWrite
	case k.writes():
		return WriteAfterRead
	}
	return NoHazard
}

// Begin starts a recording.
func (b *Barriers) Begin() {
	b.recording++
	b.levels, b.inPass, b.split, b.forced = 0, false, false, false
	b.first, b.pending, b.waits = b.dispatch, b.pending[:0], b.waits[:0]
}

// BeginPass opens a pass.
func (b *Barriers) BeginPass() {
	b.pass++
	b.inPass, b.begun, b.joined = true, false, false
}

// EndPass closes it.
func (b *Barriers) EndPass() { b.inPass = false }

// Touch says that the next dispatch uses a buffer so.
func (b *Barriers) Touch(buffer int, a Access) { b.use(buffer, useKind(a)) }

// Dispatch says that the uses named since the last Dispatch are one dispatch. It reports whether a barrier
// stands before it in its pass.
func (b *Barriers) Dispatch() bool {
	forced := b.forced
	switch {
	case forced || b.split || b.levels == 0:
		b.levels++
	case !b.begun:
		b.joined = true
	}
	b.forced, b.split, b.begun = false, false, true
	b.dispatch++
	b.pending, b.waits = b.waits[:0], b.pending
	return forced
}

// Waits are the transitions of the barriers that stand between the last dispatch and the one before it, in
// the order in which they were named. They are good until the next Dispatch or Begin. A dispatch for which
// Dispatch was false may have some too: of a barrier before its pass.
func (b *Barriers) Waits() []Wait { return b.waits }

// Copy says that a buffer is copied to another between passes; to is negative where it is not a device
// buffer.
func (b *Barriers) Copy(from, to int) {
	b.use(from, copyFrom)
	if to >= 0 {
		b.use(to, copyTo)
	}
}

// Levels is the number of runs of dispatches between barriers in the recording.
func (b *Barriers) Levels() int { return b.levels }

func (b *Barriers) use(buffer int, kind useKind) {
	for buffer >= len(b.uses) {
		b.uses = append(b.uses, bufferUse{})
	}
	u := &b.uses[buffer]
	last := *u
	*u = bufferUse{b.recording, b.pass, b.dispatch, kind}
	switch {
	case last.recording != b.recording: // the first use of the recording
		return
	case last.kind == kind && !kind.writes():
		return
	case b.inPass && last.pass == b.pass && last.dispatch == b.dispatch: // bound twice by one dispatch
		return
	}
	wait := Wait{buffer, kind.hazard(last.kind), int(last.dispatch - b.first)}
	if last.kind == copyFrom || last.kind == copyTo {
		wait.For = -1
	}
	b.pending = append(b.pending, wait)
	switch {
	case b.inPass && last.pass == b.pass:
		b.forced = true
	case !b.inPass || !b.begun:
		b.split = b.levels > 0
	case b.joined: // the barrier stands before the pass, so its first dispatch did begin a level
		b.levels++
		b.joined = false
	}
}
