// Package machine says on what the program runs. What a system does not tell is "unknown".
package machine

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/headgate/headgate/bench/internal/report"
)

const unknown = "unknown"

// Environment returns the facts that figures depend on; the modules are those of dependencies that the program was built with.
func Environment(dependencies ...string) report.Environment {
	memory := unknown
	if total := meminfo("MemTotal"); total > 0 {
		memory = strconv.FormatInt((total+1<<29)>>30, 10) + " GiB"
	}
	return report.Environment{
		CPU: cpu(), Cores: runtime.NumCPU(), Memory: memory, Kernel: kernel(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Redis: redis(), Headgate: commit(), Modules: modules(dependencies),
	}
}

func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return unknown
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(text))
}

// redis returns what the server of package redistest says that it is.
func redis() string {
	program := os.Getenv("REDISTEST_SERVER")
	if program == "" {
		program = "redis-server"
	}
	text, err := exec.Command(program, "--version").Output()
	if err != nil {
		return unknown
	}
	for _, word := range strings.Fields(string(text)) {
		if version, found := strings.CutPrefix(word, "v="); found {
			return version
		}
	}
	return unknown
}

// commit returns the commit of the working directory, with a word if files differ from it.
func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty=, with changes", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(text))
}

func modules(dependencies []string) []report.Module {
	built := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			built[m.Path] = m.Version
		}
	}
	var all []report.Module
	for _, d := range dependencies {
		if version, ok := built[d]; ok {
			all = append(all, report.Module{Path: d, Version: version})
		}
	}
	return all
}

// Available returns how many bytes of memory are to be had; 0 = unknown.
func Available() int64 { return meminfo("MemAvailable") }

// meminfo returns a line of the system's account of its memory, in bytes; 0 = there is none.
func meminfo(name string) int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == name+":" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// Resident returns how many bytes of memory this process takes of the machine; 0 = unknown.
func Resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
