//go:build !man

package main

import "github.com/spf13/cobra"

// releaseCommands are none in a program that users have: release/build.sh makes another.
func (a *app) releaseCommands() []*cobra.Command { return nil }
