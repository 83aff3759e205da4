// Package proof holds what takes long or needs a dependency that the library must not have. It is never published.
package proof
