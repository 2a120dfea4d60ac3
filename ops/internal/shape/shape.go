package shape

// Last is the size of the last dim; 1 for a tensor of rank 0.
func Last(dims []int) int {
	if len(dims) == 0 {
		return 1
	}
	return dims[len(dims)-1]
}

func Product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func DivUp(n, d int) int { return (n + d - 1) / d }
