// Package shape has the arithmetic of dims that all operators use.
package shape
