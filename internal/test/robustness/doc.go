// Package robustness breaks real ensembles while locks are held and waited for:
// members are killed, majorities stopped, processes killed, and many processes
// crowd one lock. It has tests only, which carry the build tag realzk.
package robustness
