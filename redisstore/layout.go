package redisstore

import (
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// A class is a group of limits whose states matter for about equally long. A state lies in the hashes of its limit's class, for at least
// one generation after it was written and less than three, so a generation must be no shorter than the longest life in the class.
type class struct {
	name       string // in the keys
	generation time.Duration
}

// classes are in the order of their generations; the last holds whatever a valid limit can need.
var classes = [...]class{
	{"s", 10 * time.Second},
	{"m", 150 * time.Second},
	{"h", 150 * time.Minute},
	{"d", 60 * time.Hour},
	{"M", 64 * 24 * time.Hour},
	{"y", headgate.MaxRefill},
}

// classOf returns the index of the smallest class that fits.
func classOf(p algorithm.Params) int {
	for i := range classes {
		if p.Life <= classes[i].generation.Microseconds() {
			return i
		}
	}
	return len(classes) - 1
}

// lifetime is how long a key of class c may exist after its last write: three generations and what the script adds for the sweep.
func lifetime(c int) time.Duration {
	g := classes[c].generation
	return 3*g + max(g, 10*time.Minute)
}

// layout knows where state lies.
type layout struct {
	prefix string
	tags   []string // of each shard
	tagOf  func(key string) string
	hashes [][2 * len(classes)]any // of each shard: the names of the hashes of even and odd generations of each class, as the client takes them
}

func newLayout(cfg Config) *layout {
	l := &layout{prefix: cfg.Prefix, tags: shardTags(cfg.Shards), tagOf: cfg.HashTag}
	l.hashes = make([][2 * len(classes)]any, cfg.Shards)
	for shard, tag := range l.tags {
		for c := range classes {
			for parity := range 2 {
				l.hashes[shard][2*c+parity] = l.prefix + "{" + tag + "}" + classes[c].name + strconv.Itoa(parity)
			}
		}
	}
	return l
}

// record is the key that says in how many shards the state lies.
func (l *layout) record() string { return l.prefix + "layout" }

// shardOf returns the shard of a limiter key: the FNV-1a hash of its tag, mixed so that all of its bits count, modulo their number.
func (l *layout) shardOf(key string) int {
	tag := key
	if l.tagOf != nil {
		if t := l.tagOf(key); t != "" {
			tag = t
		}
	}
	h := uint64(14695981039346656037)
	for i := range len(tag) {
		h = (h ^ uint64(tag[i])) * 1099511628211
	}
	h ^= h >> 32
	return int(h % uint64(len(l.tags)))
}

// logKey is the sorted set of the sliding log of field.
func (l *layout) logKey(shard int, field string) string {
	return l.prefix + "{" + l.tags[shard] + "}l" + field
}

// shardTags returns n hash tags whose slots are spread evenly: one, the smallest number that lies there, in each of n equal parts of
// the slots. So masters that hold equal parts of the slots hold as equal a number of shards as can be.
func shardTags(n int) []string {
	tags := make([]string, n)
	for number, left := 0, n; left > 0; number++ {
		tag := strconv.Itoa(number)
		if part := int(slot(tag)) * n / slots; tags[part] == "" {
			tags[part] = tag
			left--
		}
	}
	return tags
}

const slots = 16384

// slot returns the Cluster hash slot of a tag: CRC16/XMODEM modulo 16384, as the Redis Cluster specification says.
func slot(tag string) uint16 {
	crc := uint16(0)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slots
}
