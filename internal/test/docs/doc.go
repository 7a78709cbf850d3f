// Package docs holds pages to the truth. It has tests only.
//
// docs/curator.md: names of ours must exist, each row must have come to an end,
// and each test that is said to prove something must be there. Package interop
// looks up in Curator's jars whether the page leaves something out.
//
// README.md: its program and its test are vetted and run.
// docs/troubleshooting.md: the errors that it explains are ours.
package docs
