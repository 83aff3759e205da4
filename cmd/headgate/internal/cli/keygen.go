package cli

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

type keygenCmd struct {
	Tenant string `default:"acme" help:"The tenant's name in the lines for the configuration."`
	Plan   string `default:"free" help:"The tenant's plan in the lines for the configuration."`
	JSON   bool   `help:"Print the result as JSON."`
}

// Help implements [kong.HelpProvider].
func (*keygenCmd) Help() string {
	return `Makes a new API key out of 256 random bits. The key is for the caller alone: the configuration holds only its SHA-256 digest. It is
printed once and kept nowhere.

Examples:

  headgate keygen --tenant acme --plan pro
  headgate keygen --json | jq -r .api_key`
}

// apiKeyPrefix tells people and secret scanners what the key is for.
const apiKeyPrefix = "hg_"

// Run implements the subcommand.
func (c *keygenCmd) Run(out output) error {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return fmt.Errorf("no random bytes: %w", err)
	}
	key := apiKeyPrefix + base64.RawURLEncoding.EncodeToString(random)
	digest := digestOf(key)
	if c.JSON {
		return writeJSON(out.stdout, map[string]string{"api_key": key, "api_key_sha256": digest, "tenant": c.Tenant, "plan": c.Plan})
	}
	_, err := fmt.Fprintf(out.stdout, "API key  %s\nSHA-256  %s\n\nGive the key to the caller, and put this into the configuration:\n\n"+
		"tenants:\n  - {name: %s, plan: %s, api_key_sha256: \"%s\"}\n", key, digest, c.Tenant, c.Plan, digest)
	return err
}

// digestOf is what the configuration holds of an API key.
func digestOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
