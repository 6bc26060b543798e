// Package files reads and writes the files of stores and of the user such that neither a crash, nor
// another process, nor a damaged or hostile store does harm:
//
//   - CreateAtomic and WriteAtomic make files that appear whole or not at all. A file is written
//     beside its place, synced, renamed, and its directory synced: whoever opens the name, now or
//     after a crash, finds what was there before, or all of the new contents.
//   - ReadSmall and ReadLines read files that are small by their kind: settings, pointers,
//     journals. A file that is larger than its kind can be was damaged or put there to do harm, and
//     is refused before memory is taken for it.
//   - ReadRecords and WriteRecords keep what was measured of a machine in files of the user, by
//     name, so that the next process does not measure it again. A process that writes a file
//     replaces it whole: of two that write at the same time one loses its record, and measures
//     again.
//   - Lock keeps a second process, or a second goroutine of this one, from what the first one does.
//     The operating system gives the lock back when its holder dies.
//   - Guard returns the file system as a store may use it. What stands in a store may have been put
//     there by others: a named pipe, which would be waited for, a device, or a link that leads
//     writes elsewhere. All of these are refused when they are opened.
package files
