// Package graphtest contains operators, fusion rules and random graphs for tests of the engine.
package graphtest
