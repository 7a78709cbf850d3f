// Package command runs what docs/command.md shows, as scripts.
package command
