// Command testgate reads what go test -json writes, shows the closing line of each package and all of what failed, and fails when a
// test failed, when one was skipped, or when none ran:
//
//	go test -json ./... | go run ./scripts/testgate
package main

import (
	"fmt"
	"os"
)

func main() {
	passed, err := check(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
		os.Exit(1)
	}
	fmt.Printf("%d passed, 0 failed\n", passed)
}
