import { expect } from "chai";
import { readManifests } from "#manifests/read-manifests.ts";
import { problemsIn } from "#support/problems.ts";

const read = (text: string) => readManifests("m.yaml", text);
/** Each problem as `CODE LINE:COLUMN: message`. */
const problems = (text: string) =>
  problemsIn(() => read(text)).map((line) =>
    line.replace(/^(?:m\.yaml:(\d+:\d+)\+\d+ )?(.*) \[(\w+)\].*$/, (_, place: string | undefined, message, code) =>
      [String(code), ...(place === undefined ? [] : [place])].join(" ").concat(`: ${message}`),
    ),
  );

/** The manifest of MetalK8s' page on cluster expansion. */
const expansion = `apiVersion: v1
kind: Node
metadata:
  name: node-1
  annotations:
    metalk8s.scality.com/ssh-key-path: /etc/metalk8s/pki/salt-bootstrap
    metalk8s.scality.com/ssh-host: 192.0.2.21
    metalk8s.scality.com/ssh-port: '2222'
    metalk8s.scality.com/ssh-user: root
    metalk8s.scality.com/ssh-sudo: 'false'
  labels:
    metalk8s.scality.com/version: '2.11.0'
    node-role.kubernetes.io/master: ''
    node-role.kubernetes.io/infra: ''
spec:
  taints:
    - { effect: NoSchedule, key: node-role.kubernetes.io/master }
    - effect: NoExecute
      key: node-role.kubernetes.io/infra
`;

describe("manifests", () => {
  it("of a MetalK8s node are read with roles, labels, taints and SSH access", () => {
    const [manifest] = read(expansion);
    expect(manifest).to.deep.include({
      kind: "Node",
      name: "node-1",
      node: {
        address: "192.0.2.21",
        port: 2222,
        user: "root",
        identityFile: "/etc/metalk8s/pki/salt-bootstrap",
        roles: ["master", "infra"],
        labels: { "metalk8s.scality.com/version": "2.11.0" },
        taints: [
          { key: "node-role.kubernetes.io/master", value: "", effect: "NoSchedule" },
          { key: "node-role.kubernetes.io/infra", value: "", effect: "NoExecute" },
        ],
      },
    });
  });

  it("are refused with other booleans than true and false", () => {
    expect(problems(expansion.replace("ssh-user: root", "ssh-user: ops"))).to.deep.equal([
      "YAML_TYPE 6:5: “ops” without sudo cannot deploy anything",
    ]);
    expect(problems(expansion.replace("'false'", "'no'"))).to.deep.equal([
      "YAML_TYPE 10:36: “metalk8s.scality.com/ssh-sudo” must be 'true' or 'false'",
    ]);
    expect(problems("kind: NodeInstall\nspec: { node: a, osDisk: /dev/sda, runController: yes }\n")).to.deep.equal([
      "YAML_TYPE 2:51: “spec.runController” must be true or false, not a text",
    ]);
    expect(problems(expansion.replace("infra: ''", "infra: 'false'"))).to.deep.equal([
      "YAML_TYPE 14:36: the label “node-role.kubernetes.io/infra” gives the role whatever its value says",
    ]);
  });

  it("are read with keys in camelCase or snake_case, and refused with a key in both", () => {
    const [camel] = read(
      "kind: NodeInstall\nspec: { node: 'h:9091', osDisk: /dev/sda, joinControllers: [a], dcId: DC2 }\n",
    );
    const [snake] = read(
      "kind: node-install\nspec: { node: 'h:9091', os_disk: /dev/sda, join_controllers: [a], dc_id: DC2 }\n",
    );
    expect(snake).to.deep.equal({ ...camel, at: { ...camel?.at, length: 18 } });
    expect(problems("kind: NodeInstall\nspec: { node: h, osDisk: /dev/a, os_disk: /dev/b }\n")).to.deep.equal([
      "YAML_KEY_DUPLICATE 2:34: “os_disk” and “osDisk” are the same key",
    ]);
  });

  it("keep the keys of labels unchanged", () => {
    const [manifest] = read(
      "kind: Node\nmetadata: { name: n1, labels: { my_key: a } }\nspec: { address: h, host_keys: [] }\n",
    );
    expect(manifest).to.have.deep.property("node", { address: "h", hostKeys: [], labels: { my_key: "a" } });
  });

  it("are refused with all unknown kinds and keys at their places, with suggestions", () => {
    const text =
      "kind: Nodes\n---\nkind: Cluster\nmetadata: { name: prod }\nspec: { controler: a }\n---\nmetadata: {}\n";
    let hints: readonly (string | undefined)[] = [];
    try {
      read(text);
    } catch (error) {
      hints = (error as { problems: { hint?: string }[] }).problems.map(({ hint }) => hint);
    }
    expect(problems(text)).to.deep.equal([
      "MANIFEST_KIND_UNKNOWN 1:7: no kind “Nodes” is known",
      "YAML_KEY_UNKNOWN 5:9: no key “controler” is known in “spec”",
      "YAML_KEY_MISSING 7:1: a manifest needs its “kind”",
    ]);
    expect(hints.slice(0, 2)).to.deep.equal(["did you mean “Node”?", "did you mean “controller”?"]);
    expect(problems(expansion.replace("ssh-host", "ssh-hots"))).to.deep.equal([
      "YAML_KEY_UNKNOWN 7:5: no annotation “metalk8s.scality.com/ssh-hots” is known",
    ]);
  });

  it("are refused with contradictions, duplicates, or no manifest at all", () => {
    expect(problems(`${expansion}  address: 192.0.2.22\n`)).to.deep.equal([
      "YAML_TYPE 20:12: spec.address says “192.0.2.22”, the ssh-host annotation “192.0.2.21”",
    ]);
    expect(problems(`${expansion}---\n${expansion}`)).to.deep.equal([
      "MANIFEST_TWICE 21:1: Node “node-1” is here twice, first at line 1",
    ]);
    expect(problems("# nothing\n---\n")).to.deep.equal(["MANIFEST_EMPTY: m.yaml holds no manifest"]);
  });
});
