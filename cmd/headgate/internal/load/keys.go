package load

import "math/rand/v2"

// Keys picks the number of the key that the next request is for.
type Keys func() int

// Uniform picks each of n keys equally often. n must be above 0.
func Uniform(n int, random *rand.Rand) Keys {
	return func() int { return random.IntN(n) }
}

// hotSkew is the exponent of Hot: key k is picked as often as (k+1)^-hotSkew says. Of 1,000 keys the first then gets about a sixth.
const hotSkew = 1.1

// Hot picks from n keys by Zipf's law, the lower numbers more often. n must be above 0.
func Hot(n int, random *rand.Rand) Keys {
	zipf := rand.NewZipf(random, hotSkew, 1, uint64(n-1))
	return func() int { return int(zipf.Uint64()) }
}
