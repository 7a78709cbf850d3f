// Package listeners delivers events to many listeners, each in order and none
// dropped.
//
// A Hub takes events from Publish and passes them on: to functions registered
// with Listen, and to the channels of Subscriptions. It is generic; State is
// the event that a ZooKeeper client publishes.
package listeners
