// Package validate holds the tests of what lies in deploy: the rules, the dashboard, the images and the manifests, each against the real
// program. It is a module of its own, since they need Prometheus and Kubernetes as libraries, and it is never published.
package validate
