package validate_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// A cluster is what the manifests ask for.
type cluster struct {
	config     core.ConfigMap
	deployment apps.Deployment
	service    core.Service
	budget     policy.PodDisruptionBudget
	network    networking.NetworkPolicy
}

// manifests reads them as the API server does, and refuses what it would ignore.
func manifests(t *testing.T) *cluster {
	t.Helper()
	data, err := os.ReadFile("../kubernetes/headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := new(cluster)
	kinds := map[string]any{
		"v1/ConfigMap": &c.config, "apps/v1/Deployment": &c.deployment, "v1/Service": &c.service, "policy/v1/PodDisruptionBudget": &c.budget,
		"networking.k8s.io/v1/NetworkPolicy": &c.network,
	}
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		into, ok := kinds[head.APIVersion+"/"+head.Kind]
		if !ok {
			t.Fatalf("unexpected %s %s", head.APIVersion, head.Kind)
		}
		delete(kinds, head.APIVersion+"/"+head.Kind)
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Errorf("%s: %v", head.Kind, err)
		}
	}
	if len(kinds) > 0 {
		t.Fatalf("missing: %v", maps.Keys(kinds))
	}
	return c
}

func TestKubernetesConfigurationIsRight(t *testing.T) {
	c := manifests(t)
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(file, []byte(c.config.Data["headgate.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, file)
}

// What the manifests say in several places is the same everywhere.
func TestKubernetesManifestsFitTogether(t *testing.T) {
	c := manifests(t)
	spec := c.deployment.Spec
	pod := spec.Template.Spec
	for what, selector := range map[string]map[string]string{
		"deployment": spec.Selector.MatchLabels, "service": c.service.Spec.Selector, "budget": c.budget.Spec.Selector.MatchLabels,
		"network policy": c.network.Spec.PodSelector.MatchLabels,
	} {
		if !maps.Equal(selector, spec.Template.Labels) {
			t.Errorf("the %s selects %v, the pods have %v", what, selector, spec.Template.Labels)
		}
	}
	box := pod.Containers[0]
	ports := make(map[string]int32)
	for _, p := range box.Ports {
		ports[p.Name] = p.ContainerPort
	}
	config := c.config.Data["headgate.yaml"]
	if ports["http"] != 8080 || ports["admin"] != 9090 || !strings.Contains(config, "listen: 0.0.0.0:8080\n") || !strings.Contains(config, "admin: 0.0.0.0:9090\n") {
		t.Errorf("ports %v, want those of the configuration", ports)
	}
	for name, probe := range map[string]*core.Probe{"/healthz": box.LivenessProbe, "/readyz": box.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != name || probe.HTTPGet.Port.StrVal != "admin" {
			t.Errorf("probe %+v, want %s on the admin port", probe, name)
		}
	}
	if got := c.service.Spec.Ports[0].TargetPort.StrVal; got != "http" {
		t.Errorf("the service leads to %s", got)
	}
	if pod.Volumes[0].ConfigMap == nil || pod.Volumes[0].ConfigMap.Name != c.config.Name || box.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Error("the configuration is not mounted")
	}
	if box.VolumeMounts[0].SubPath != "" {
		t.Error("the configuration is mounted as a subPath, which never changes")
	}
	if strings.Contains(config, "replicas:") {
		t.Error("store.redis.replicas is set, which would have to follow the number of pods")
	}
	if strings.Join(box.Args, " ") != "serve --config "+box.VolumeMounts[0].MountPath+"/headgate.yaml --log-format json" {
		t.Errorf("args %q", box.Args)
	}
}

func TestKubernetesPodsAreConfined(t *testing.T) {
	pod := manifests(t).deployment.Spec.Template.Spec
	s := pod.Containers[0].SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
		len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || *pod.AutomountServiceAccountToken {
		t.Errorf("pod %+v, container %+v", pod.SecurityContext, s)
	}
	if *pod.TerminationGracePeriodSeconds < 15 {
		t.Errorf("%d s to end, want more than drain and grace", *pod.TerminationGracePeriodSeconds)
	}
}
