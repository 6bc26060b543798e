// Command gdb stores graphs that do not fit in memory and trains graph neural networks on them.
package main

func main() {}
