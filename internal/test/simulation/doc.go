// Package simulation runs clients on the in-process cluster in virtual time, with every
// lock. Faults drawn from a seed happen to them, and checkers look at what became of it.
// docs/simulation.md says how to run it.
//
// It is a module of its own, so that the checker of histories which it needs is
// in nobody's module graph.
package simulation
