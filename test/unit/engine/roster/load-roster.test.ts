import { expect } from "chai";
import { join } from "node:path";
import { idOfName, loadRoster } from "#engine/roster/load-roster.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { cpuClock } from "#support/cpu.ts";
import { problemsIn } from "#support/problems.ts";
import { inProject } from "#support/in-project.ts";

const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3hr7uXyJ3i8rX5l3mT0n5Jk2bGm1mX9v0h5mJ8m3xk";

function load(text: string, more: Readonly<Record<string, string>> = {}): Roster {
  return inProject({ "roster/dc1.yaml": text, ...more }, (project) => loadRoster(project, { home: "/home/op" }));
}
const problems = (text: string, more?: Readonly<Record<string, string>>): string[] =>
  problemsIn(() => load(text, more));

describe("loadRoster", () => {
  it("fills in defaults", () => {
    const { nodes } = load("nodes:\n  n1: { address: 192.0.2.11 }\n");
    expect(nodes.get("n1")).to.deep.equal({
      name: "n1",
      id: idOfName("n1"),
      address: "192.0.2.11",
      port: 22,
      user: "root",
      sudo: {},
      jump: [],
      hostKeys: [],
      dc: "DC1",
      roles: [],
      labels: {},
      taints: [],
      groups: [],
      disks: [],
      stateDir: "/var/lib/kcore",
      vars: {},
      transport: "ssh",
    });
  });

  it("hints at the right form for a list instead of a map, or a wrong indentation", () => {
    for (const [text, message] of [
      [
        "  - n1: { address: h }",
        "2:3+20 “nodes” must be a map of names [YAML_TYPE] | without the dash, from column 3 on: “n1: …”",
      ],
      ["  - name: n1\n    address: h", "| the name is the key, from column 3 on: “n1: { address: … }”"],
      [
        "  n1:\n    - address: h",
        "3:5+12 the value must be a map, not a list [YAML_TYPE] | without the dash, from column 5 on: “address: …”",
      ],
      ["  n1:\n    address:h", "| a blank belongs behind the colon: “address: h”"],
      [
        "  n1:\n  address: h",
        "3:3+7 “address” stands beside “n1”, not in it [YAML_TYPE] | to stand in “n1” it begins at column 5: “address: …”",
      ],
      [
        "n1:\n  address: h",
        "2:1+2 no key “n1” is known here [YAML_KEY_UNKNOWN] | to stand in “nodes” it begins at column 3: “n1:”",
      ],
    ] as const)
      expect(problems(`nodes:\n${text}\n`).join(), text).to.contain(message);
  });

  it("merges by precedence: node, later group, earlier group, defaults of the file, defaults.yaml", () => {
    const { nodes } = load(
      `defaults: { user: file, dc: FILE, vars: { a: file, b: file }, roles: [worker] }
groups:
  one: { user: one, vars: { b: one, c: one, deep: { x: 1, y: 1 } }, labels: { g: one } }
  two: { vars: { c: two, deep: { y: 2 } }, labels: { h: two } }
nodes:
  n1: { address: h1, groups: [one, two], vars: { d: node }, roles: [controller] }
  n2: { address: h2, user: node }
`,
      { "roster/defaults.yaml": "defaults: { user: common, port: 2222, vars: { a: common, z: common } }\n" },
    );
    const { user, dc, port, roles, labels, vars } = nodes.get("n1") ?? {};
    const given = { user, dc, port, roles, labels, vars };
    expect(JSON.parse(JSON.stringify(given))).to.deep.equal({
      user: "one",
      dc: "FILE",
      port: 2222,
      roles: ["controller"],
      labels: { g: "one", h: "two" },
      vars: { a: "file", b: "one", c: "two", d: "node", z: "common", deep: { x: 1, y: 2 } },
    });
    expect(nodes.get("n2")).to.deep.include({ user: "node", roles: ["worker"] });
  });

  it("applies a defaults.yaml that is not yet written to all files", () => {
    const files = { "roster/dc1.yaml": "nodes:\n  n1: { address: h1 }\n" };
    const instead = { file: "roster/defaults.yaml", text: "defaults: { user: common }\n" };
    const { nodes } = inProject(files, (project) => loadRoster(project, { home: "/home/op", instead }));
    expect(nodes.get("n1")?.user).to.equal("common");
  });

  it("overrides a secret reference as a whole", () => {
    const { nodes } = load(
      "defaults: { sudo: { password: { env: PW } } }\nnodes:\n  n1: { address: h1, sudo: { password: { command: pass show n1 } } }\n  n2: { address: h2, sudo: true }\n  n3: { address: h3, sudo: { password: 'file:/run/pw' } }\n",
    );
    expect([...nodes.values()].map(({ sudo }) => sudo)).to.deep.equal([
      { password: { command: "pass show n1" } },
      {},
      { password: { file: "/run/pw" } },
    ]);
  });

  it("reads jump hosts, taints, disks, host keys, a local node, key files and console logs", () => {
    const { nodes, jumps } = load(`jumps:
  gw: { address: gw.example.org, user: ops, port: 2200, identityFile: ~/.ssh/gw }
nodes:
  n1:
    address: fe80::1%eth0
    jump: [gw]
    identityFile: keys/n1
    consoleLog: ~/consoles/n1.log
    hostKeys: [${KEY} comment]
    taints: ["dedicated=db:NoSchedule", { key: k, effect: NoExecute }]
    disks: [{ serial: S3Z8, use: volumes }, { byId: ata-x, use: ignore }]
  me: { transport: local, stateDir: /srv/kcore }
`);
    expect(jumps.get("gw")).to.include({
      address: "gw.example.org",
      user: "ops",
      port: 2200,
      identityFile: "/home/op/.ssh/gw",
    });
    const n1 = nodes.get("n1");
    expect(n1?.identityFile?.endsWith(join("/", "keys/n1"))).to.equal(true);
    expect(n1).to.deep.include({
      consoleLog: "/home/op/consoles/n1.log",
      hostKeys: [KEY],
      taints: [
        { key: "dedicated", value: "db", effect: "NoSchedule" },
        { key: "k", value: "", effect: "NoExecute" },
      ],
      disks: [
        { serial: "S3Z8", use: "volumes" },
        { byId: "ata-x", use: "ignore" },
      ],
    });
    expect(nodes.get("me")).to.include({ transport: "local", address: "localhost", stateDir: "/srv/kcore" });
  });

  it("reports all problems of all files at their places", () => {
    expect(
      problems(
        `defaults: { usr: x }
groups: { storage: {} }
nodes:
  n1: { address: 300.1.1.1, port: 0, groups: [storag] }
  n2: { address: h, roles: [controler], hostKeys: [foo], disks: [{ use: os }], labels: { a: 1 } }
  "a b": { address: h }
node: {}
`,
        { "roster/b.yaml": "nodes:\n  n1: { address: h9 }\n" },
      ),
    ).to.deep.equal([
      "roster/dc1.yaml:1:13+3 no key “usr” is known here [YAML_KEY_UNKNOWN] | did you mean “user”?",
      "roster/dc1.yaml:4:3+2 “n1” is in the roster already, at roster/b.yaml:2 [ROSTER_DUPLICATE] | names are unique across all roster files",
      "roster/dc1.yaml:5:29+9 “roles[0]” is no role that kcore knows; did you mean “controller”? [YAML_TYPE]",
      "roster/dc1.yaml:5:52+3 “hostKeys[0]” must begin with a key type: ssh-ed25519, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, ssh-rsa [YAML_TYPE]",
      "roster/dc1.yaml:5:66+11 a disk is named by exactly one of serial, wwn, byId and busPath, or by model, size or both [YAML_TYPE]",
      'roster/dc1.yaml:5:93+1 “labels.a” must be a text, not 1 [YAML_TYPE] | quote it: "1"',
      "roster/dc1.yaml:6:3+5 “a b” cannot name a node: it must be 1 to 63 letters, digits, “.”, “_” or “-” [ROSTER_INVALID]",
      "roster/dc1.yaml:7:1+4 no key “node” is known here [YAML_KEY_UNKNOWN] | did you mean “nodes”?",
    ]);
    expect(
      problems("nodes:\n  n1: { address: 300.1.1.1, port: 0, groups: [storag] }\n  n3: {}\ngroups: { storage: {} }\n"),
    ).to.deep.equal([
      "roster/dc1.yaml:2:18+9 “address” must be an IP address or a host name (letters, digits, dots and hyphens) [YAML_TYPE]",
      "roster/dc1.yaml:2:35+1 “port” must be at least 1 [YAML_TYPE]",
      "roster/dc1.yaml:2:47+6 no group “storag” [ROSTER_GROUP_UNKNOWN] | did you mean “storage”?",
      "roster/dc1.yaml:3:3+2 “n3” has no address [YAML_KEY_MISSING] | give its address, or transport: local for this machine itself",
    ]);
  });

  it("refuses a literal secret, and never shows it (S-7)", () => {
    const text = "nodes:\n  n1: { address: h, sudo: { password: hunter2 }, identityPassphrase: hunter3 }\n";
    const found = problems(text);
    const hint =
      "must refer to a secret (env:NAME, file:PATH, command:CMD) or be sealed (kcore secrets set) [SECRET_LITERAL] | then change the secret: it was in a file";
    expect(found).to.deep.equal([
      `roster/dc1.yaml:2:39+7 “sudo.password” ${hint}`,
      `roster/dc1.yaml:2:70+7 “identityPassphrase” ${hint}`,
    ]);
    expect(() => load(text))
      .to.throw()
      .with.property("problems")
      .that.satisfies((all: readonly { conceal?: true }[]) => all.every(({ conceal }) => conceal === true));
  });

  it("refuses one machine under two names (F-16)", () => {
    const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
    expect(
      problems(
        `nodes:\n  a: { address: Host.Example, id: ${id} }\n  b: { address: host.example }\n  c: { address: other, id: ${id} }\n`,
      ),
    ).to.deep.equal([
      "roster/dc1.yaml:3:3+1 “b” has the address host.example:22, as “a” has [ROSTER_DUPLICATE] | several test targets on one machine need a stateDir each",
      `roster/dc1.yaml:4:3+1 “c” has the id ${id}, as “a” has [ROSTER_DUPLICATE]`,
    ]);
  });

  it("writes an IPv6 address in brackets before its port", () => {
    const text = `nodes:\n  a: { address: "2001:db8::1" }\n  b: { address: "2001:db8::1" }\n`;
    expect(problems(text).join()).to.contain("“b” has the address [2001:db8::1]:22, as “a” has");
  });

  it("refuses a former id that is an id or former id of any node", () => {
    const [a, b] = ["6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11", "3f0c2a52-6c1b-4c55-9d8e-0d6a4c1f7b21"];
    expect(
      problems(
        `nodes:\n  a: { address: a, id: ${a}, formerIds: [${b}] }\n  b: { address: b, formerIds: [${a}] }\n  c: { address: c, formerIds: [${b}] }\n  d: { address: d, id: ${"8".repeat(8)}-7c1e-4f0e-9a50-0d8a3b0f4e11, formerIds: [${"8".repeat(8)}-7c1e-4f0e-9a50-0d8a3b0f4e11] }\n`,
      ),
    ).to.deep.equal([
      `roster/dc1.yaml:3:3+1 “b” has the id ${a}, as “a” has [ROSTER_DUPLICATE]`,
      `roster/dc1.yaml:4:3+1 “c” has the id ${b}, as “a” has [ROSTER_DUPLICATE]`,
      `roster/dc1.yaml:5:3+1 “d” has the id ${"8".repeat(8)}-7c1e-4f0e-9a50-0d8a3b0f4e11, as “d” has [ROSTER_DUPLICATE]`,
    ]);
  });

  it("accepts one address with different jump hosts, ports or state folders (F-16)", () => {
    const { nodes } = load(`jumps: { g1: { address: g1 }, g2: { address: g2 } }
nodes:
  a: { address: 10.0.0.5, jump: [g1] }
  b: { address: 10.0.0.5, jump: [g2] }
  c: { address: 10.0.0.5 }
  d: { address: 10.0.0.5, port: 23 }
  e: { address: 10.0.0.5, stateDir: /srv/e }
`);
    expect(nodes.size).to.equal(5);
  });

  it("refuses unknown jump hosts and cycles", () =>
    expect(
      problems(
        "nodes:\n  a: { address: h1, jump: [b] }\n  b: { address: h2, jump: [a] }\n  c: { address: h3, jump: [bastin] }\njumps:\n  bastion: { address: h4 }\n",
      ),
    ).to.deep.equal([
      "roster/dc1.yaml:2:3+1 the way to “a” leads back to it: a → b → a [ROSTER_JUMP]",
      "roster/dc1.yaml:3:3+1 the way to “b” leads back to it: b → a → b [ROSTER_JUMP]",
      "roster/dc1.yaml:4:3+1 “c” jumps over “bastin”, which is not in the roster [ROSTER_JUMP] | did you mean “bastion”?",
    ]));

  it("refuses a project without a roster file", () =>
    expect(inProject({}, (project) => problemsIn(() => loadRoster(project)))[0]).to.match(
      /holds no roster file \[ROSTER_NOT_FOUND\]/,
    ));

  it("reads 1,000 nodes in less than 3 s of processor time", () => {
    const lines = Array.from(
      { length: 1000 },
      (_, n) => `  n${n}: { address: 10.0.${n >> 8}.${n & 255}, roles: [worker], labels: { rack: r${n % 9} } }`,
    );
    const used = cpuClock();
    expect(load(`nodes:\n${lines.join("\n")}\n`).nodes.size).to.equal(1000);
    expect(used(), "ms of processor").to.be.below(3000);
  });
});
