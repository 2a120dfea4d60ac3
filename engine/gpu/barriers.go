package gpu

// Barriers predicts where the native library (wgpu 0.20) inserts barriers into a recording, from the buffers
// that each dispatch uses. The usage tracker of wgpu records how each buffer's use changes (its transitions).
// Before each dispatch that has transitions, wgpu inserts one barrier for all of them. Dispatches between two
// barriers may overlap; such a group of dispatches is a level. The time of a step depends more on the number
// of levels than on the number of dispatches.
//
// Two successive uses of a buffer in a recording need a barrier between them if the uses are of different
// kinds (such as read and uniform), or if both can write the buffer. This rule applies even if other buffers
// already cause a barrier between the two uses. All transitions of a dispatch share one barrier. All buffers
// that appear in a pass for the first time share one barrier before the pass. Transitions of buffers that
// appear in the recording for the first time happen at submit and are not counted.
//
// Buffers are identified by small indexes, so that a driver and a graph without a device can share this
// code. The zero value is ready to use. Once the highest index has been seen, Barriers allocates no more
// memory.
type Barriers struct {
	uses      []bufferUse
	recording uint32
	pass      uint32
	dispatch  uint32
	inPass    bool
	split     bool // the next dispatch needs a barrier before its pass
	forced    bool // the next dispatch needs a barrier inside its pass
	begun     bool // the pass has a dispatch
	joined    bool // the first dispatch of the pass continues the level of the last dispatch before the pass
	levels    int
	first     uint32 // number of the first dispatch of the recording
	// pending holds the transitions for the next dispatch. waits holds those for the last dispatch.
	pending, waits []Wait
}

// Wait is one of the transitions that a barrier covers. The dispatch after the barrier waits for the earlier
// use of the buffer.
type Wait struct {
	Buffer int
	Hazard Hazard
	// For is the dispatch that used the buffer before, counted from 0 in the recording. It is -1 if a copy
	// used the buffer before.
	For int
}

// Hazard is the kind of data hazard that a barrier prevents.
type Hazard uint8

// The hazards. NoHazard means that both uses only read the buffer, so their order does not matter.
const (
	NoHazard Hazard = iota
	ReadAfterWrite
	WriteAfterRead
	WriteAfterWrite
)

// String returns the name of the hazard in traces.
func (h Hazard) String() string { return [...]string{"none", "raw", "war", "waw"}[h] }

type bufferUse struct {
	recording, pass, dispatch uint32
	kind                      useKind
}

// useKind is the way in which a buffer is used. Its values are the uses that wgpu's tracker distinguishes.
// Two consecutive uses of the same kind need a barrier between them only if the kind is readWrite or copyTo.
type useKind uint8

const (
	useRead      = useKind(Read)
	useReadWrite = useKind(ReadWrite)
	useUniform   = useKind(Params)
	copyFrom     = useUniform + 1
	copyTo       = useUniform + 2
)

// writes reports whether the use changes the buffer.
func (k useKind) writes() bool { return k == useReadWrite || k == copyTo }

// hazard returns the data hazard between two successive uses of a buffer. `after` is the kind of the earlier
// use, and k is the kind of the later use.
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

// EndPass closes the pass.
func (b *Barriers) EndPass() { b.inPass = false }

// Touch declares that the next dispatch uses a buffer with the given access.
func (b *Barriers) Touch(buffer int, a Access) { b.use(buffer, useKind(a)) }

// Dispatch adds a dispatch whose buffers were declared by the Touch calls since the last Dispatch. Dispatch
// reports whether a barrier is needed before the dispatch, inside its pass.
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

// Waits returns the transitions of the barriers between the last dispatch and the dispatch before it, in the
// order of the Touch and Copy calls. The result is valid until the next Dispatch or Begin. If Dispatch
// returned false, Waits can still return the transitions of a barrier before the pass.
func (b *Barriers) Waits() []Wait { return b.waits }

// Copy records a copy of a buffer between passes. `to` is negative if the destination is not a device buffer.
func (b *Barriers) Copy(from, to int) {
	b.use(from, copyFrom)
	if to >= 0 {
		b.use(to, copyTo)
	}
}

// Levels returns the number of levels in the recording. A level is a group of dispatches between barriers.
func (b *Barriers) Levels() int { return b.levels }

func (b *Barriers) use(buffer int, kind useKind) {
	for buffer >= len(b.uses) {
		b.uses = append(b.uses, bufferUse{})
	}
	u := &b.uses[buffer]
	last := *u
	*u = bufferUse{b.recording, b.pass, b.dispatch, kind}
	switch {
	case last.recording != b.recording: // first use in the recording
		return
	case last.kind == kind && !kind.writes():
		return
	case b.inPass && last.pass == b.pass && last.dispatch == b.dispatch: // second use by one dispatch
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
	// The first dispatch of the pass was counted as part of the previous level. The barrier of this use is
	// inserted before the pass, so the first dispatch starts a new level after all.
	case b.joined:
		b.levels++
		b.joined = false
	}
}
