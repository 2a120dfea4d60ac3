// Package measure finds out what a device can do: how its clock relates to the host's (Clock), how long a
// kernel takes (Meter), its ceilings of copying and multiplying (Ceilings), and whether its clock has slowed
// down (Probe).
package measure
