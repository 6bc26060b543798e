// Package firsthour holds a test that does what a new user does: it takes files as people have them
// through gdb with no flags but those that name columns, and holds what comes out against the data.
package firsthour
