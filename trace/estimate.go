package trace

// sampledSteps is the number of steps that EstimateJSON encodes.
const sampledSteps = 8

// EstimateJSON returns the approximate size in bytes of the steps of a trace as JSON, without compression. It
// encodes only some of the steps, so it is fast for traces of any length.
func (t *Trace) EstimateJSON() int64 {
	n := len(t.Steps)
	if n == 0 {
		return 0
	}
	total, count := 0, 0
	for i := 0; i < n; i += max(1, n/sampledSteps) {
		line, err := encodeRecord(&t.Steps[i], nil)
		if err != nil {
			return 0
		}
		total, count = total+len(line), count+1
	}
	return int64(total) * int64(n) / int64(count)
}
