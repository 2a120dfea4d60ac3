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
}

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

// Begin starts a recording.
func (b *Barriers) Begin() {
	b.recording++
	b.levels, b.inPass, b.split, b.forced = 0, false, false, false
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
	return forced
}

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
	case last.kind == kind && kind != useReadWrite && kind != copyTo:
		return
	case b.inPass && last.pass == b.pass:
		b.forced = b.forced || last.dispatch != b.dispatch // else it is bound twice by one dispatch
	case !b.inPass || !b.begun:
		b.split = b.levels > 0
	case b.joined: // the barrier stands before the pass, so its first dispatch did begin a level
		b.levels++
		b.joined = false
	}
}
