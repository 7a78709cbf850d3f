// Package imports tests what depguard cannot see: what the packages that we
// import bring with them. Our own imports have rules in .golangci.yml.
package imports
