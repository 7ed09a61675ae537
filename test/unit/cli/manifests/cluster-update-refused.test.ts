import { expect } from "chai";
import { readManifests } from "#cli/manifests/read-manifests.ts";
import { problemsIn } from "#support/problems.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";
const nixos = `kind: ClusterUpdate
metadata: { name: r1 }
spec:
  target: { flakeRef: "github:o/r", flakeRev: ${commit} }
  selector: { nodeIds: [n1, n2] }
`;
const runtime = nixos.replace(/target: .*/, "target: { version: 1.4.0 }");
/** With more lines of the spec, from line 6 on. */
const and = (lines: string): string => `${nixos}  ${lines}\n`;
const withTarget = (target: string): string => nixos.replace(/target: .*/, `target: ${target}`);
const withSelector = (selector: string): string => nixos.replace(/selector: .*/, `selector: ${selector}`);
const withRev = (rev: string): string => nixos.replace(commit, rev);
const withFlake = (flake: string): string => nixos.replace('"github:o/r"', JSON.stringify(flake));
const withGate = (gate: string): string => and(`healthGates: [{ name: api, ${gate} }]`);

/** What is wrong, and every problem that is told of it: `LINE:COLUMN message [CODE] | hint`. */
const wrong: Readonly<Record<string, readonly [text: string, ...problems: readonly string[]]>> = {
  "no name": [
    nixos.replace("{ name: r1 }", "{}"),
    "2:11 “name” is missing in “metadata” [YAML_KEY_MISSING] | The update's name: at most 63 letters, digits, “.”, “_” and “-”",
  ],
  "no metadata": [
    nixos.replace("metadata: { name: r1 }\n", ""),
    "1:1 “metadata” is missing [YAML_KEY_MISSING] | What it is called: { name: release-1 }",
  ],
  "a name with a slash": [
    nixos.replace("r1", "r/1"),
    "2:19 “metadata.name” must be a name of letters, digits, “.”, “_” and “-” [YAML_TYPE] | The update's name: at most 63 letters, digits, “.”, “_” and “-”",
  ],
  "a name of 64 characters": [
    nixos.replace("r1", "r".repeat(64)),
    "2:19 “metadata.name” must be a name of letters, digits, “.”, “_” and “-” [YAML_TYPE] | The update's name: at most 63 letters, digits, “.”, “_” and “-”",
  ],
  "a label's key with an equals sign": [
    withSelector('{ labels: { "a=b": c } }'),
    "5:25 “a=b” in “spec.selector.labels” must be a key without “=” [YAML_TYPE] | KEY=VALUE in a list, or a map; all of them must match",
  ],
  "no target": [
    nixos.replace(/ {2}target: .*\n/, ""),
    "4:3 “target” is missing in “spec” [YAML_KEY_MISSING] | What nodes shall run: flakeRef and flakeRev of NixOS systems, or kcore by its version or bundle",
  ],
  "no selector": [
    nixos.replace(/ {2}selector: .*\n/, ""),
    "4:3 “selector” is missing in “spec” [YAML_KEY_MISSING] | Which nodes: each key that is given narrows. { allNodes: true }, { nodeIds: [n1, n2] }, …",
  ],
  "a key with a slip": [
    and("approvalPolicyy: auto"),
    "6:3 no key “approvalPolicyy” is known in “spec” [YAML_KEY_UNKNOWN] | did you mean “approvalPolicy”?",
  ],
  "a key with a slip in snake_case": [
    and("approval_polcy: auto"),
    "6:3 no key “approval_polcy” is known in “spec” [YAML_KEY_UNKNOWN] | did you mean “approvalPolicy”?",
  ],
  "a key with a slip, deep": [
    and("strategy: { maxUnavailble: 1 }"),
    "6:15 no key “maxUnavailble” is known in “spec.strategy” [YAML_KEY_UNKNOWN] | did you mean “maxUnavailable”?",
  ],
  "a key one level too high": [
    and("flake_ref: github:o/r"),
    "6:3 no key “flake_ref” is known in “spec” [YAML_KEY_UNKNOWN] | “flakeRef” belongs below “spec.target”",
  ],
  "a key of the spec, of the strategy": [
    and("strategy: { approvalPolicy: auto }"),
    "6:15 no key “approvalPolicy” is known in “spec.strategy” [YAML_KEY_UNKNOWN] | “approvalPolicy” belongs below “spec”",
  ],
  "a status": [
    `${nixos}status: { phase: ready }\n`,
    "6:1 no key “status” is known here [YAML_KEY_UNKNOWN] | known here: apiVersion, kind, metadata, spec",
  ],
  "Crossplane's form": [
    `kind: ClusterUpdate\nmetadata: { name: r1 }\nspec:\n  forProvider: { version: 1.4.0, flakeRef: "github:o/r", flakeRev: ${commit} }\n`,
    "4:3 “target” is missing in “spec” [YAML_KEY_MISSING] | What nodes shall run: flakeRef and flakeRev of NixOS systems, or kcore by its version or bundle",
    "4:3 “selector” is missing in “spec” [YAML_KEY_MISSING] | Which nodes: each key that is given narrows. { allNodes: true }, { nodeIds: [n1, n2] }, …",
    "4:3 no key “forProvider” is known in “spec” [YAML_KEY_UNKNOWN] | Crossplane's form is not read: what stands below forProvider belongs below spec, its version and flake below spec.target",
  ],
  "Crossplane's form, flat": [
    `kind: ClusterUpdate\nmetadata: { name: r1 }\nspec:\n  version: 1.4.0\n  selector: { allNodes: true }\n`,
    "4:3 “target” is missing in “spec” [YAML_KEY_MISSING] | What nodes shall run: flakeRef and flakeRev of NixOS systems, or kcore by its version or bundle",
    "4:3 no key “version” is known in “spec” [YAML_KEY_UNKNOWN] | “version” belongs below “spec.target”",
  ],
  "a kind with a slip": [
    nixos.replace("ClusterUpdate", "ClusterUpdat"),
    "1:7 no kind “ClusterUpdat” is known [MANIFEST_KIND_UNKNOWN] | did you mean “ClusterUpdate”?",
  ],
  "an empty target": [
    withTarget("{}"),
    "4:11 the target names nothing [UPDATE_INVALID] | flakeRef and flakeRev of NixOS systems, or kcore's version or bundle",
  ],
  "a target of which nothing is said": [
    withTarget('{ version: "", flakeRef: "", flakeRev: "" }'),
    "4:11 the target names nothing [UPDATE_INVALID] | flakeRef and flakeRev of NixOS systems, or kcore's version or bundle",
  ],
  "a flake without its commit": [
    withTarget('{ flakeRef: "github:o/r" }'),
    "4:23 “flakeRef” is a flake at no commit [UPDATE_INVALID] | flakeRev: the 40 hex digits that git rev-parse HEAD prints",
  ],
  "a commit without its flake": [
    withTarget(`{ flakeRev: ${commit} }`),
    "4:23 “flakeRev” is a commit of no flake [UPDATE_INVALID] | flakeRef: github:OWNER/REPO",
  ],
  "the page's placeholder": [
    withRev('"<full-git-sha>"'),
    "4:47 “spec.target.flakeRev” must be a whole commit: 40 hex digits [YAML_TYPE] | git rev-parse HEAD prints it",
  ],
  "a branch as commit": [
    withRev("main"),
    "4:47 “spec.target.flakeRev” must be a whole commit: 40 hex digits [YAML_TYPE] | git rev-parse main prints it",
  ],
  "an abbreviated commit": [
    withRev("0a1b2c3"),
    "4:47 “spec.target.flakeRev” must be a whole commit: 40 hex digits [YAML_TYPE] | git rev-parse 0a1b2c3 prints it",
  ],
  "a commit in capitals": [
    withRev(commit.toUpperCase()),
    "4:47 “spec.target.flakeRev” must be a whole commit: 40 hex digits [YAML_TYPE] | in lower case: 0123456789abcdef0123456789abcdef01234567",
  ],
  "a commit that YAML reads as a number": [
    withRev("1".repeat(40)),
    '4:47 1111111111111111111111111111111111111111 is too large to be kept exactly [YAML_UNSUPPORTED] | write "1111111111111111111111111111111111111111" if it is a text',
  ],
  "a branch as nixpkgs' commit": [
    nixos.replace(commit, `${commit}, nixpkgsRev: nixos-25.11`),
    "4:101 “spec.target.nixpkgsRev” must be a whole commit: 40 hex digits [YAML_TYPE] | git rev-parse nixos-25.11 prints it",
  ],
  "a flake that pins a commit": [
    withFlake(`git+https://host/r?ref=main&rev=${commit}`),
    "4:23 “git+https://host/r?ref=main&rev=0123456789abcdef0123456789abcdef01234567” pins a commit of its own [UPDATE_INVALID] | leave it out there: flakeRev says it",
  ],
  "a flake at a commit": [
    withFlake(`github:o/r/${commit}`),
    "4:23 “github:o/r/0123456789abcdef0123456789abcdef01234567” pins a commit of its own [UPDATE_INVALID] | leave it out there: flakeRev says it",
  ],
  "a flake of this machine": [
    withFlake("./systems"),
    "4:23 “./systems” is a folder of this machine, of which nodes know nothing [UPDATE_INVALID] | github:OWNER/REPO, or git+https://HOST/REPO",
  ],
  "a flake with an output": [
    withFlake("github:o/r#web"),
    "4:23 a flake's reference names no output [UPDATE_INVALID] | systemProfile: NAME chooses nixosConfigurations.NAME",
  ],
  "a tarball as flake": [
    withFlake("https://host/r.tar.gz"),
    "4:23 “https://host/r.tar.gz” is no flake that a commit pins [UPDATE_INVALID] | github:OWNER/REPO, or git+https://HOST/REPO",
  ],
  "a flake by a name of each node's registry": [
    withFlake("nixpkgs"),
    "4:23 “nixpkgs” is no flake that a commit pins [UPDATE_INVALID] | github:OWNER/REPO, or git+https://HOST/REPO",
  ],
  "a placeholder as flake": [
    withFlake("<flake>"),
    "4:23 “<flake>” is no reference to a flake [UPDATE_INVALID] | github:OWNER/REPO, or git+https://HOST/REPO",
  ],
  "another nixpkgs of no flake": [
    withTarget(`{ version: 1.4.0, nixpkgsRev: ${commit} }`),
    "4:41 “nixpkgsRev” means nothing without a flake [UPDATE_INVALID] | flakeRef and flakeRev say which",
  ],
  "a profile of no flake": [
    withTarget("{ version: 1.4.0, systemProfile: web }"),
    "4:44 “systemProfile” means nothing without a flake [UPDATE_INVALID] | flakeRef and flakeRev say which",
  ],
  "a flake and a bundle": [
    nixos.replace(commit, `${commit}, bundle: ${"a".repeat(64)}`),
    "4:97 NixOS systems and a bundle of kcore at once [UPDATE_INVALID] | an update for each of them",
  ],
  "a bundle by a name": [
    withTarget("{ bundle: kcore-1.4.0 }"),
    "4:21 “spec.target.bundle” must be a SHA-256 in lower-case hex [YAML_TYPE] | SHA-256 of a bundle of kcore's runtime: 64 hex digits in lower case",
  ],
  "a version that YAML reads as a number": [
    withTarget("{ version: 1.4 }"),
    '4:22 “spec.target.version” must be a text, not 1.4 [YAML_TYPE] | quote it: "1.4"',
  ],
  "no node": [
    withSelector("{}"),
    "5:13 no node is selected [UPDATE_INVALID] | allNodes: true, or nodeIds, datacenters, labels or controllersOnly",
  ],
  "no node, with all that can be said": [
    withSelector("{ all_nodes: false, controllers_only: false, node_ids: [], labels: {}, datacenters: [] }"),
    "5:13 no node is selected [UPDATE_INVALID] | allNodes: true, or nodeIds, datacenters, labels or controllersOnly",
  ],
  "a boolean that is a word": [
    withSelector("{ allNodes: yes }"),
    "5:25 “spec.selector.allNodes” must be true or false, not a text [YAML_TYPE] | All nodes, as far as the others do not narrow it",
  ],
  "a node twice": [
    withSelector("{ nodeIds: [n1, n2, n1] }"),
    "5:33 the node n1 is here twice [UPDATE_INVALID] | keep it once",
  ],
  "a datacenter twice": [
    withSelector("{ datacenters: [DC1, DC1] }"),
    "5:34 the datacenter DC1 is here twice [UPDATE_INVALID] | keep it once",
  ],
  "a node that is not named": [
    withSelector('{ nodeIds: [n1, ""] }'),
    "5:29 “spec.selector.nodeIds[1]” must not be empty [YAML_TYPE] | Nodes by id or host name",
  ],
  "nodes that are one text": [
    withSelector("{ nodeIds: n1 }"),
    "5:24 “spec.selector.nodeIds” must be a list, not a text [YAML_TYPE] | Nodes by id or host name",
  ],
  "a label without a value": [
    withSelector("{ labels: [tier] }"),
    "5:24 “spec.selector.labels[0]” must be KEY=VALUE [YAML_TYPE] | KEY=VALUE in a list, or a map; all of them must match",
  ],
  "a label's value that is a number": [
    withSelector("{ labels: { rack: 12 } }"),
    '5:31 “spec.selector.labels.rack” must be a text, not 12 [YAML_TYPE] | quote it: "12"',
  ],
  "two values of a label": [
    withSelector('{ labels: [rack=a, "rack=b"] }'),
    "5:32 no node has rack=a and rack=b [UPDATE_INVALID] | keep one of them: all labels must match",
  ],
  "a strategy with a slip": [
    and("strategy: { type: canry }"),
    "6:21 “spec.strategy.type” must be “canary” or “one-at-a-time” or “batch” or “per-dc” [YAML_TYPE] | did you mean “canary”?",
  ],
  "two strategies": [
    and("strategy: { strategyType: batch, type: canary }"),
    "6:36 “type” and “strategyType” are two ways to say one thing [YAML_KEY_DUPLICATE] | keep one of them",
  ],
  "a key in both spellings": [
    and("strategy: { max_unavailable: 1, maxUnavailable: 2 }"),
    "6:35 “maxUnavailable” and “max_unavailable” are the same key [YAML_KEY_DUPLICATE] | keep one of them",
  ],
  "fewer than no nodes down": [
    and("strategy: { maxUnavailable: -1 }"),
    "6:31 “spec.strategy.maxUnavailable” must be at least 1 [YAML_TYPE] | So many selected nodes may be down at a time, at most; 0: not said",
  ],
  "a batch that is a share": [
    and("strategy: { type: batch, batchSize: 50% }"),
    "6:39 “spec.strategy.batchSize” must be a number, not a text [YAML_TYPE] | Nodes a batch; as many as may be down, unless given, or 0",
  ],
  "half a node": [
    and("strategy: { maxUnavailable: 0.5 }"),
    "6:31 “spec.strategy.maxUnavailable” must be a whole number, not 0.5 [YAML_TYPE] | So many selected nodes may be down at a time, at most; 0: not said",
  ],
  "more nodes down than there are": [
    and("strategy: { maxUnavailable: 3 }"),
    "6:31 “maxUnavailable” is 3, the selected nodes are 2 [UPDATE_INVALID] | maxUnavailable: 2 at most",
  ],
  "more nodes a batch than there are": [
    and("strategy: { type: batch, batchSize: 3 }"),
    "6:39 “batchSize” is 3, the selected nodes are 2 [UPDATE_INVALID] | batchSize: 2 at most",
  ],
  "a batch, one at a time": [
    and("strategy: { batchSize: 2 }"),
    "6:26 2 nodes a batch are not one at a time [UPDATE_INVALID] | type: batch",
  ],
  "canaries in batches": [
    and("strategy: { type: batch, canary: { nodeIds: [n1] } }"),
    "6:36 canaries mean nothing for the strategy batch [UPDATE_INVALID] | type: canary",
  ],
  "a canary twice": [
    and("strategy: { type: canary, canary: { nodeIds: [n1, n1] } }"),
    "6:53 the canary n1 is here twice [UPDATE_INVALID] | keep it once",
  ],
  "drained in two ways": [
    and("drainPolicy: { enabled: true }\n  drainVms: true"),
    "7:3 “drainVms” and “drainPolicy” are two ways to say one thing [YAML_KEY_DUPLICATE] | keep one of them",
  ],
  "drained in two other ways": [
    and("drainTimeoutSeconds: 60\n  drain: { enabled: true }"),
    "7:3 “drain” and “drainTimeoutSeconds” are two ways to say one thing [YAML_KEY_DUPLICATE] | keep one of them",
  ],
  "a drain that nobody asked for": [
    and("drain: { command: ./drain.sh }"),
    "6:10 it is said how nodes are drained, not whether [UPDATE_INVALID] | enabled: true",
  ],
  "a drain by a state and a command": [
    and("drain: { enabled: true, state: a, command: b }"),
    "6:46 “state” and “command” at once [UPDATE_INVALID] | keep one of them; a state can run commands, too",
  ],
  "parameters of a command": [
    and("drain: { enabled: true, command: b, params: { a: 1 } }"),
    "6:47 “params” means nothing without “state” [UPDATE_INVALID] | state: STATE",
  ],
  "nothing after": [
    and("drain: { enabled: true, after: {} }"),
    "6:34 nothing is said to be done after [UPDATE_INVALID] | state: STATE, or command: COMMAND",
  ],
  "taken back in two ways": [
    and("automaticRollback: true\n  rollback_policy: { automatic: false }"),
    "7:3 “rollback_policy” and “automaticRollback” are two ways to say one thing [YAML_KEY_DUPLICATE] | keep one of them",
  ],
  "a mode with a slip": [
    and("activation: { mode: swich }"),
    "6:23 “spec.activation.mode” must be “test” or “switch” or “boot” or “auto” [YAML_TYPE] | did you mean “switch”?",
  ],
  "a runtime at the next boot": [
    `${runtime}  activation: { mode: boot }\n`,
    "6:23 kcore's runtime comes into use without a boot [UPDATE_INVALID] | mode: switch, or auto",
  ],
  "a runtime that reboots": [
    `${runtime}  activation: { rebootPolicy: always }\n`,
    "6:31 kcore's runtime needs no reboot [UPDATE_INVALID] | rebootPolicy: never, or if-required",
  ],
  "a test that reboots": [
    and("activation: { mode: test, reboot_policy: always }"),
    "6:44 what is only tested is gone after a reboot [UPDATE_INVALID] | mode: switch, or rebootPolicy: never",
  ],
  "an approval of no kind": [
    and("approvalPolicy: never"),
    "6:19 “spec.approvalPolicy” must be “manual” or “auto-non-disruptive” or “auto” [YAML_TYPE] | Who lets it begin; manual unless said",
  ],
  "a gate that looks at nothing": [
    withGate("withinSeconds: 5"),
    "6:17 the gate api looks at nothing [UPDATE_INVALID] | one of http, nodeCommand, state, command",
  ],
  "a gate of two kinds": [
    withGate("nodeCommand: /bin/true, command: /bin/true"),
    "6:63 the gate api is both nodeCommand and command [UPDATE_INVALID] | a gate for each of them",
  ],
  "a gate's parameters of no state": [
    withGate("command: /bin/true, params: { a: 1 }"),
    "6:58 “params” means nothing without “state” [UPDATE_INVALID] | state: STATE",
  ],
  "a gate without a scheme": [
    withGate("http: { url: localhost/health }"),
    "6:43 “spec.healthGates[0].http.url” must begin with http:// or https:// [YAML_TYPE] | Asked from the node itself",
  ],
  "a gate's status that is none": [
    withGate('http: { url: "http://localhost/", status: 20 }'),
    "6:72 “spec.healthGates[0].http.status” must be at least 100 [YAML_TYPE] | The answer's status",
  ],
  "two gates of one name": [
    and("healthGates: [{ name: a, command: /bin/true }, { name: a, command: /bin/false }]"),
    "6:58 the gate a is here twice [UPDATE_INVALID] | give one of them another name",
  ],
  "gates that are a map": [
    and("healthGates: { api: { nodeCommand: /bin/true } }"),
    "6:16 “spec.healthGates” must be a list, not a map [YAML_TYPE] | What must hold on each node besides kcore's own checks",
  ],
  "no time at all": [
    and("timeouts: { rebootSeconds: 0 }"),
    "6:30 “rebootSeconds” leaves no time [UPDATE_INVALID] | rebootSeconds: 1 or more; without the key, its default",
  ],
  "more time than a week": [
    and("timeouts: { prepareSeconds: 1000000 }"),
    "6:31 “spec.timeouts.prepareSeconds” must be at most 604800 [YAML_TYPE] | To fetch or build it",
  ],
  "a window of no length": [
    and("window: { from: 22:00, to: 22:00 }"),
    "6:30 a window that ends when it begins [UPDATE_INVALID] | no window at all: nodes may be started at any time",
  ],
  "a window without an end": [
    and("window: { from: 22:00 }"),
    "6:11 “to” is missing in “spec.window” [YAML_KEY_MISSING] | When it ends, HH:MM in UTC",
  ],
  "an hour that there is not": [
    and("window: { from: 24:00, to: 04:00 }"),
    "6:19 “spec.window.from” must be a time of day, HH:MM [YAML_TYPE] | When it begins, HH:MM in UTC",
  ],
  "a day that there is not": [
    and("window: { days: [saturday], from: 22:00, to: 04:00 }"),
    "6:20 “spec.window.days[0]” must be “mon” or “tue” or “wed” or “thu” or “fri” or “sat” or “sun” [YAML_TYPE] | Days on which it begins; else each",
  ],
  "a day twice": [
    and("window: { days: [sat, sat], from: 22:00, to: 04:00 }"),
    "6:25 the day sat is here twice [UPDATE_INVALID] | keep it once",
  ],
};

const told = (text: string): string[] =>
  problemsIn(() => readManifests("u.yaml", text)).map((line) =>
    line.replace(/^u\.yaml:(\d+:\d+)\+\d+ /, (_, place: string) => `${place} `),
  );

describe("the manifest of a cluster update that is wrong", () => {
  it("starts from manifests that are right", () => {
    for (const text of [nixos, runtime]) expect(readManifests("u.yaml", text)).to.have.length(1);
  });

  for (const [what, [text, ...problems]] of Object.entries(wrong))
    it(`is refused at its place, with a hint: ${what}`, () => {
      expect(told(text)).to.deep.equal(problems);
      expect(problems).to.satisfy((lines: readonly string[]) => lines.every((line) => line.includes(" | ")));
    });

  it("tells all that is wrong at once", () => {
    const text = withSelector("{}").replace(commit, "main").replace("r1", "r/1");
    expect(told(text)).to.have.length(2);
    expect(told(and("drain: { after: {} }\n  window: { from: 01:00, to: 01:00 }"))).to.have.length(3);
  });
});
