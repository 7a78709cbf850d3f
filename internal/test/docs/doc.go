// Package docs holds docs/curator.md to the truth: what the page names
// of ours must exist, each row must have come to an end, and each test that is
// said to prove something must be there. It has tests only.
//
// Whether the page leaves out something of Curator's is looked up in Curator's
// jars, by package interop.
package docs
