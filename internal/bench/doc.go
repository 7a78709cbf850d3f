// Package bench has the benchmarks of the recipes: on the in-process server and
// on a real ZooKeeper, next to go-zookeeper's own lock and to the create and
// delete without which there is none, so that ratios can be read in one run. It
// has tests only; `make bench` runs them and shows the ratios.
package bench
