package shape

// Last returns the size of the last dim. It returns 1 for a tensor of rank 0.
func Last(dims []int) int {
	if len(dims) == 0 {
		return 1
	}
	return dims[len(dims)-1]
}

// Product returns the number of elements of a tensor with the given dims.
func Product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// DivUp returns n / d, rounded up.
func DivUp(n, d int) int { return (n + d - 1) / d }
