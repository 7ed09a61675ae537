import { expect } from "chai";
import { readManifests } from "#manifests/read-manifests.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { problemsIn } from "#support/problems.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";

/** A manifest in the form of kcore's predecessor, the kcorehypervisor predecessor. */
const predecessor = `kind: ClusterUpdate
metadata: { name: release-0-4-0 }
spec:
  target:
    version: "0.4.0"
    flakeRef: github:kcorehypervisor/kcore
    flakeRev: ${commit}
    nixpkgsRev: ""
    systemProfile: ""
  selector:
    allNodes: true
    controllersOnly: false
    nodeIds: []
    labels: []
    datacenters: []
  strategy: { strategyType: one-at-a-time, maxUnavailable: 1, batchSize: 1 }
  drainVms: false
  drainTimeoutSeconds: 0
  activation: { mode: auto, rebootPolicy: "" }
  approvalPolicy: manual
  automaticRollback: false
`;

const snakeCase = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** The same manifest in snake_case, as in the predecessor's page on upgrades. */
const page = predecessor.replaceAll(/\b[a-z]+(?:[A-Z]\w*)+(?=:)/g, snakeCase);

/** A manifest in the form of the predecessor's design document. */
const design = `apiVersion: kcore.io/v1alpha1
kind: ClusterUpdate
metadata:
  name: release-0-3-0
spec:
  target:
    version: "0.3.0"
    flakeRef: "github:kcorehypervisor/kcore/v0.3.0"
    flakeRev: "${commit}"
    systemProfile: "kcore-node"
  selector:
    datacenters: ["DC1"]
  strategy:
    type: one-at-a-time
    maxUnavailable: 1
  drainPolicy:
    enabled: true
    timeoutSeconds: 900
  activation:
    mode: auto
    rebootPolicy: if-required
  approvalPolicy: manual
  rollbackPolicy:
    automatic: true
    onHealthGateFailure: true
`;

function specOf(text: string): UpdateSpec {
  const [manifest] = readManifests("u.yaml", text);
  if (manifest?.kind !== "ClusterUpdate") throw new Error("no ClusterUpdate");
  return manifest.spec;
}

describe("the manifest of a cluster update", () => {
  it("is read in the predecessor's form, with empty texts and zeros as not given", () => {
    const [manifest] = readManifests("u.yaml", predecessor);
    expect(manifest).to.deep.include({ kind: "ClusterUpdate", name: "release-0-4-0" });
    expect(specOf(predecessor)).to.deep.equal({
      target: { version: "0.4.0", flakeRef: "github:kcorehypervisor/kcore", flakeRev: commit, allowDowngrade: false },
      selector: { allNodes: true, nodeIds: [], labels: [], datacenters: [], controllersOnly: false },
      strategy: { type: "one-at-a-time", maxUnavailable: 1, batchSize: 1 },
      drain: { enabled: false, timeoutSeconds: 900 },
      activation: { mode: "auto", rebootPolicy: "if-required" },
      approvalPolicy: "manual",
      rollback: { automatic: false, onHealthGateFailure: true },
      healthGates: [],
      timeouts: { prepareSeconds: 3600, activateSeconds: 600, rebootSeconds: 900, verifySeconds: 300 },
    });
  });

  it("is read in the form of the predecessor's page on upgrades", () => {
    expect(page).to.include("flake_rev: ").and.to.include("drain_timeout_seconds: 0");
    expect(specOf(page)).to.deep.equal(specOf(predecessor));
  });

  it("is refused with that page's placeholder instead of a commit", () =>
    expect(problemsIn(() => specOf(page.replace(commit, '"<full-git-sha>"')))).to.deep.equal([
      "u.yaml:7:16+16 “spec.target.flakeRev” must be a whole commit: 40 hex digits [YAML_TYPE] | git rev-parse HEAD prints it",
    ]));

  it("is read in the form of the predecessor's design document", () =>
    expect(specOf(design)).to.deep.include({
      target: {
        version: "0.3.0",
        flakeRef: "github:kcorehypervisor/kcore/v0.3.0",
        flakeRev: commit,
        systemProfile: "kcore-node",
        allowDowngrade: false,
      },
      drain: { enabled: true, timeoutSeconds: 900 },
      rollback: { automatic: true, onHealthGateFailure: true },
    }));

  it("needs manual approval by default", () => {
    for (const line of ["", '  approvalPolicy: ""\n'])
      expect(specOf(predecessor.replace("  approvalPolicy: manual\n", line))).to.include({ approvalPolicy: "manual" });
  });

  it("is read with any apiVersion, and its kind in any case and spelling", () => {
    for (const version of ["", "apiVersion: v1\n", "apiVersion: infra.kcore.io/v1alpha1\n"])
      expect(specOf(`${version}${predecessor}`)).to.deep.equal(specOf(predecessor));
    for (const kind of ["cluster-update", "cluster_update", "CLUSTERUPDATE"])
      expect(specOf(predecessor.replace("ClusterUpdate", kind))).to.deep.equal(specOf(predecessor));
  });

  it("names a kcore runtime by its version, its bundle, or both", () => {
    const bundle = "a".repeat(64);
    const spec = "  selector: { nodeIds: [n1, n2] }\n  strategy: { type: batch, batchSize: 2 }\n";
    const of = (target: string): UpdateSpec =>
      specOf(`kind: ClusterUpdate\nmetadata: { name: r1 }\nspec:\n  target: ${target}\n${spec}`);
    expect(of("{ version: 1.4.0 }").target).to.deep.equal({ version: "1.4.0", allowDowngrade: false });
    expect(of(`{ bundle: ${bundle} }`).target).to.deep.equal({ bundle, allowDowngrade: false });
    expect(of(`{ version: 1.4.0, bundle: ${bundle}, flake_ref: "", flake_rev: "" }`).target).to.deep.equal({
      version: "1.4.0",
      bundle,
      allowDowngrade: false,
    });
  });

  it("has hooks, gates, canaries, times and window in camelCase or snake_case", () => {
    const camel = `kind: ClusterUpdate
metadata: { name: r1 }
spec:
  target: { version: 1.4.0, allowDowngrade: true }
  selector: { labels: { tier: web } }
  strategy: { type: canary, canary: { labels: [ring=0], soakSeconds: 600 } }
  drain: { enabled: true, state: app/drained, params: { maxWait: 5 }, after: { command: ./undrain.sh } }
  healthGates:
    - { name: api, http: { url: "http://127.0.0.1:8080/health" }, withinSeconds: 30 }
    - { name: disk, nodeCommand: test -w /srv }
  timeouts: { verifySeconds: 60 }
  window: { days: [sat, sun], from: 22:00, to: 04:00 }
`;
    const spec = specOf(camel);
    expect(spec).to.deep.include({
      strategy: { type: "canary", maxUnavailable: 1, canary: { nodeIds: [], labels: ["ring=0"], soakSeconds: 600 } },
      drain: {
        enabled: true,
        timeoutSeconds: 900,
        state: "app/drained",
        params: { maxWait: 5 },
        after: { command: "./undrain.sh" },
      },
      healthGates: [
        { name: "api", http: { url: "http://127.0.0.1:8080/health", status: 200 }, withinSeconds: 30 },
        { name: "disk", nodeCommand: "test -w /srv", withinSeconds: 60 },
      ],
      window: { days: ["sat", "sun"], from: "22:00", to: "04:00" },
    });
    // Names of a state's parameters are not converted.
    const snake = camel.replaceAll(/\b(?!maxWait)[a-z]+(?:[A-Z]\w*)+(?=:)/g, snakeCase);
    expect(snake).to.include("health_gates").and.to.include("maxWait");
    expect(specOf(snake)).to.deep.equal(spec);
  });

  it("has the same meaning in every form, with values in capitals; keys of labels are not converted", () => {
    const ours = specOf(`kind: ClusterUpdate
metadata: { name: r1 }
spec:
  target: { version: 1.4.0 }
  selector: { allNodes: true, labels: [maxUnavailable=b=c, node_id=a] }
  strategy: { type: per-dc, batchSize: 3 }
  drain: { enabled: true, timeoutSeconds: 60 }
  activation: { rebootPolicy: if-required }
  approvalPolicy: auto-non-disruptive
  rollback: { automatic: true }
`);
    const labels = "labels: { maxUnavailable: b=c, node_id: a }";
    for (const spec of [
      `  selector: { all_nodes: true, ${labels} }
  strategy: { strategy_type: PER_DC, batch_size: 3, max_unavailable: 0 }
  drain_vms: true
  drainTimeoutSeconds: 60
  activation: { mode: "", reboot_policy: IF_REQUIRED }
  approval_policy: AUTO_NON_DISRUPTIVE
  automatic_rollback: true
`,
      `  selector: { allNodes: true, ${labels} }
  strategy: { type: PER_DC, batch_size: 3 }
  drain_policy: { enabled: true, timeout_seconds: 60 }
  activation: { rebootPolicy: IF_REQUIRED }
  approvalPolicy: AUTO_NON_DISRUPTIVE
  rollback_policy: { automatic: true }
`,
    ])
      expect(
        specOf(`kind: ClusterUpdate\nmetadata: { name: r1 }\nspec:\n  target: { version: 1.4.0 }\n${spec}`),
      ).to.deep.equal(ours);
  });
});
