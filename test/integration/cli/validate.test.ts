import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import type { CheckRow } from "#cli/validate/check-rows.ts";
import type { Finding } from "#cli/validate/findings.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { kcoreEnvironment } from "#support/program.ts";

const run = promisify(execFile);

interface Answer {
  readonly checks: readonly CheckRow[];
  readonly findings?: readonly Finding[];
}

/** Runs kcore behind a shell text that breaks this machine, in mount and network namespaces of its own. */
async function kcoreBroken(project: TestProject, broken: string, words: readonly string[]): Promise<CommandEnd> {
  const text = `set -e\nip link set lo up\n${broken}\nexec "$0" "$@"`;
  const env = { ...process.env, ...kcoreEnvironment, KCORE_HOME: join(project.path, "home"), DIR: project.path };
  const args = ["-m", "-n", "--", "sh", "-c", text, kcoreProgram, ...words];
  try {
    const { stdout, stderr } = await run("unshare", args, { cwd: project.project, env });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

function answerOf({ stdout, stderr }: CommandEnd): Answer {
  expect(stdout, stderr).to.match(/^\{/);
  return JSON.parse(stdout) as Answer;
}

/** The sh that puts a program of this name first in PATH of the steps. */
function program(name: string, text: string): string {
  return `mkdir -p "$DIR/bin"; printf '#!/bin/sh\\n%s\\n' '${text}' >"$DIR/bin/${name}"; chmod 755 "$DIR/bin/${name}"; mount --bind "$DIR/bin" /usr/local/sbin`;
}

/** The sh that replaces a file by this content. */
function replaced(file: string, content: string): string {
  return `printf '${content}' >"$DIR/replaced"; mount --bind "$DIR/replaced" ${file}`;
}

/** The sh that gives this machine another /etc, with a certificate of these days in kcore's place; `make NAME DAYS` makes another one. */
function certified(days: number, more = ""): string {
  return `cp -a /etc "$DIR/etc"; mount --bind "$DIR/etc" /etc; mkdir -p /etc/kcore/certs
make() { at=/etc/kcore/certs/$1; openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout "$at.key" -out "$at.csr"
  openssl x509 -req -in "$at.csr" -signkey "$at.key" -days "$2" -out "$at.crt"; } >/dev/null 2>&1
make node ${days}; ${more} cp /etc/kcore/certs/node.crt /etc/kcore/certs/ca.crt`;
}

interface Row {
  readonly is: string;
  readonly broken?: string;
  readonly topic: string;
  readonly words?: readonly string[];
  readonly check: string;
  readonly found: RegExp;
  /** The severity is `warning`: the command ends with 0. */
  readonly warns?: true;
}

const rows: readonly Row[] = [
  {
    is: "a full disk",
    broken: 'mkdir "$DIR/full"; mount -t tmpfs -o size=64k none "$DIR/full"',
    topic: "machine",
    words: ["--set", "paths=[DIR/full]", "--set", "space=1M"],
    check: "free space",
    found: /0 MiB on .*\/full, at least 1 MiB/,
  },
  {
    is: "a file system that the kernel made read-only",
    broken: "mount --bind /var/lib /var/lib; mount -o remount,bind,ro /var/lib",
    topic: "machine",
    check: "writable",
    found: /cannot be written: \/var\/lib/,
  },
  {
    // No container has a clock of its own: the node's date(1) is another program.
    is: "a clock off by ten minutes",
    broken: program("date", 'exec /bin/date -d "10 minutes" "$@"'),
    topic: "machine",
    check: "clock",
    found: /^(?:59|60)\d s ahead of the bastion's, at most 30 s/,
  },
  {
    is: "another system",
    broken: replaced("/usr/lib/os-release", 'ID=plan9\\nPRETTY_NAME="Plan 9"\\n'),
    topic: "machine",
    check: "operating system",
    found: /^is Plan 9, not debian or ubuntu or nixos/,
  },
  { is: "too little memory", topic: "machine", words: ["--set", "memory=900T"], check: "memory", found: /at least/ },
  {
    is: "too few processors",
    topic: "machine",
    words: ["--set", "cpus=5000"],
    check: "processors",
    found: /at least 5000/,
  },
  { is: "an old kernel", topic: "machine", words: ["--set", "kernel=99.1"], check: "kernel", found: /at least 99.1/ },
  {
    is: "swap on a node of Kubernetes",
    broken: replaced("/proc/swaps", "Filename\\n/dev/sdz9 partition 1 0 -2\\n"),
    topic: "machine",
    words: ["--set", "swap=off"],
    check: "swap is off",
    found: /in use: \/dev\/sdz9/,
  },
  {
    is: "a machine-id that a clone has, too",
    topic: "machine",
    words: ["--on", "here,also"],
    check: "machine-ids differ",
    found: /also here have the same machine-id/,
  },
  {
    is: "a name that DNS does not know",
    topic: "network",
    words: ["--set", "names=[registry.invalid]"],
    check: "names resolve",
    found: /not resolved: registry.invalid/,
  },
  {
    is: "DNS with the wrong address of a node",
    broken: replaced("/etc/hosts", "127.0.0.1 localhost\\n127.0.0.1 '$(uname -n)'\\n192.0.2.99 etcd1\\n"),
    topic: "network",
    check: "names of nodes lead to them",
    found: /etcd1 \(192.0.2.99, the roster has 192.0.2.21\)/,
    warns: true,
  },
  {
    is: "a closed way to a port",
    topic: "network",
    words: ["--set", "ports={etcd: [2379]}"],
    check: "ports",
    found: /connection to 192.0.2.21:2379: no answer/,
  },
  {
    is: "a network of pods that a route crosses",
    broken: "ip route add 10.244.7.0/24 dev lo",
    topic: "network",
    words: ["--set", "pod_networks=[10.244.0.0/16]"],
    check: "networks are apart",
    found: /10.244.0.0\/16 overlaps the route 10.244.7.0\/24/,
  },
  {
    is: "networks of pods and services that overlap",
    topic: "network",
    words: ["--set", "pod_networks=[10.96.0.0/12]", "--set", "service_networks=[10.100.0.0/16]"],
    check: "networks are apart",
    found: /10.96.0.0\/12 and 10.100.0.0\/16 overlap/,
  },
  {
    // ping(8) of this machine, by a stand-in where it is not installed: it takes no packet above 1,400 bytes.
    is: "an MTU that the way does not carry",
    broken: `ip route add 192.0.2.0/24 dev lo
${program("ping", 'while [ $# -gt 1 ]; do [ "$1" != -s ] || [ "$2" -le 1372 ] || exit 1; shift; done')}`,
    topic: "network",
    check: "MTU",
    found: /192.0.2.21 \(not \d+ bytes by lo\)/,
  },
  {
    is: "a disk that is not there",
    topic: "storage",
    check: "disks are there and free",
    found: /no disk has the serial NOSUCH1/,
  },
  {
    is: "no iSCSI",
    topic: "storage",
    words: ["--set", "iscsi=true"],
    check: "iSCSI",
    found: /iscsiadm is not there|iscsid is not active/,
  },
  {
    is: "an expired certificate",
    broken: certified(-1),
    topic: "cluster",
    check: "certificates hold",
    found: /\/etc\/kcore\/certs\/node.crt ended: /,
  },
  {
    is: "a certificate that nothing renewed",
    broken: certified(5),
    topic: "cluster",
    check: "certificates have days left",
    found: /node.crt ends .* in less than 14 days/,
    warns: true,
  },
  {
    is: "a key that is not the certificate's",
    broken: certified(90, "make other 90; cp /etc/kcore/certs/other.key /etc/kcore/certs/node.key;"),
    topic: "cluster",
    check: "key and certificate belong together",
    found: /node.key is not the key of node.crt/,
  },
  {
    is: "metrics that nothing serves",
    topic: "monitoring",
    words: ["--set", "scrapes=[http://127.0.0.1:1/metrics]"],
    check: "scrapes answer",
    found: /status/,
  },
  {
    is: "a file that is not committed",
    broken: "git init -q .; git add states; git -c user.name=x -c user.email=x@x commit -q -m first",
    topic: "gitops",
    check: "nothing is uncommitted",
    found: /\?\? /,
  },
  {
    is: "a commit that is not signed",
    broken: "git init -q .; git add .; git -c user.name=x -c user.email=x@x commit -q -m first",
    topic: "gitops",
    words: ["--set", "signed=true"],
    check: "the commit is signed",
    found: /git/,
  },
];

const changing = `params:
  file: { type: string }
steps:
  - id: made
    file.managed: { path: "{{params.file}}", content: made }
`;

describe("kcore validate and kcore doctor", () => {
  let project: TestProject;
  beforeEach(() => {
    project = new TestProject({
      "states/change.yaml": changing,
    });
    project.write({
      "project/roster/more.yaml": `nodes:
  also: { transport: local, stateDir: ${project.path}/other }
  etcd1: { address: 192.0.2.21, roles: [etcd], disks: [] }
  disked: { transport: local, stateDir: ${project.path}/third, disks: [{ serial: NOSUCH1, use: volumes }] }
`,
    });
  });
  afterEach(() => project.remove());

  for (const { is, broken = "", topic, words = [], check, found, warns } of rows)
    it(`stops at ${is}`, async () => {
      const node = topic === "storage" && check.startsWith("disks") ? "disked" : "here";
      const on = words.includes("--on") ? [] : ["--on", node];
      const asked = words.map((word) => word.replace("DIR", project.path));
      const end = await kcoreBroken(project, broken, ["validate", topic, ...on, ...asked, "-o", "json"]);
      const made = answerOf(end).checks.find((one) => one.check.startsWith(check) && one.result !== "ok");
      expect(made?.found, JSON.stringify(answerOf(end).checks, null, 1)).to.match(found);
      expect([made?.topic, made?.result, made?.remedy !== undefined]).to.deep.equal([
        topic,
        warns ? "warning" : "failed",
        true,
      ]);
      expect(end.code).to.equal(warns ? 0 : 1);
    });

  it("has every check in its result, passed ones too, and in its reports", async () => {
    const xml = join(project.path, "checks.xml");
    const end = await project.kcore("validate", "machine", "--on", "here", "--set", "cpus=5000", "--report", xml);
    expect(end.code, end.stderr).to.equal(1);
    expect(end.stdout).to.match(/^ok +machine +writable +here$/m);
    expect(end.stdout).to.match(/^failed +machine +processors +here +\d+, at least 5000 are needed$/m);
    expect(end.stdout).to.contain("to mend it: give the machine more");
    expect(end.stdout).to.match(/^\d+ checks: .*1 failed/m);
    const { stdout } = await run("grep", ["-c", "<testcase", xml]);
    expect(Number(stdout)).to.be.above(9);
  });

  it("goes on behind a failed check with checks alone, also in later segments, and gives a warning without a failure", async () => {
    project.write({ "project/states/own.yaml": ownState(join(project.path, "changed")) });
    const end = await project.kcore("state", "apply", "own", "--on", "here", "-o", "json");
    const events = end.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as RunEvent);
    const ends = events.flatMap((event) =>
      event.type === "step.finished" ? [`${event.title}: ${event.outcome}${event.warning ? " (warning)" : ""}`] : [],
    );
    expect(ends).to.deep.equal([
      "first: failed",
      "advice: ok (warning)",
      "told: ok",
      "needs the first: skipped",
      "in a second segment: ok",
    ]);
    const problem = events.flatMap((event) => (event.type === "step.finished" ? (event.problem ?? []) : []))[0];
    expect(problem).to.include({
      message: "first: no such licence",
      hint: "buy one on here",
      code: "ASSERTION_FAILED",
    });
    expect(problem?.detail).to.contain("the shop stops at midnight");
    expect([end.code, existsSync(join(project.path, "changed"))]).to.deep.equal([1, false]);
  });

  it("lets an orchestration go on only if every node passed", async () => {
    const made = join(project.path, "made");
    const stages = (cpus: number) => `params: { nodes: { type: target, required: true } }
stages:
  - include: validate
    with: { nodes: "{{params.nodes}}", topics: [machine], cpus: ${cpus}, all_pass: true }
  - { id: change, on: here, apply: [change], with: { file: ${made} } }
`;
    project.write({ "project/orchestrate/site.yaml": stages(5000) });
    const refused = await project.kcore("orchestrate", "site", "disked");
    expect([refused.code, existsSync(made)]).to.deep.equal([1, false]);
    expect(refused.stdout).to.contain("NODES_FAILED");
    project.write({ "project/orchestrate/site.yaml": stages(1) });
    const done = await project.kcore("orchestrate", "site", "disked");
    expect([done.code, existsSync(made)], done.stdout).to.deep.equal([0, true]);
  });

  it("names the cause first: a node that does not answer, a full disk before the rest; and packs a bundle", async () => {
    const broken = `mkdir "$DIR/full"; mount -t tmpfs -o size=64k none "$DIR/full"
${program("date", 'exec /bin/date -d "10 minutes" "$@"')}`;
    const file = join(project.path, "all.tar.gz");
    const set = ["--set", `paths=[${project.path}/full]`, "--set", "space=1M", "--set", "cpus=5000"];
    const end = await kcoreBroken(project, broken, ["doctor", "here or gone", ...set, "--bundle", file, "-o", "json"]);
    const { findings = [] } = answerOf(end);
    expect(findings.slice(0, 3).map(({ topic, cause }) => `${topic} ${cause.split(":")[0]}`)).to.deep.equal([
      "reach gone cannot be reached at 127.0.0.1 port 1",
      `machine free space ${project.path}/full`,
      "machine clock",
    ]);
    expect(findings.every(({ remedy }) => remedy !== undefined)).to.equal(true);
    const { stdout } = await run("tar", ["-tzf", file]);
    expect(stdout).to.match(/^all\/doctor.json$/m);
    expect(stdout).to.match(/^all\/runs\/.*events.ndjson$/m);
  });

  it("packs no value that an operator typed, into a new file for one user", async () => {
    const file = join(project.path, "typed.tar.gz");
    project.write({
      "project/states/typed.yaml": `params:\n  pw: { type: string }\nsteps:\n  - { id: typed, command.run: { cmd: "true", check: true } }\n`,
    });
    await project.kcore("state", "apply", "typed", "--on", "here", "--set", "pw=hunter 2'3");
    await project.kcore("exec", "--on", "here", "--lock", "--", "echo", "hunter 2'3");
    const end = await project.kcore("doctor", "here", "--bundle", file);
    expect(end.stderr).to.contain("Bundle written");
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const { stdout } = await run("tar", ["-xzOf", file]);
    expect(stdout).to.contain("typed/typed").and.to.contain('"run.finished"').and.not.to.contain("hunter");
    const again = await project.kcore("doctor", "here", "--bundle", file);
    expect([again.code, again.stdout]).to.deep.equal([2, ""]);
    expect(again.stderr).to.contain("[FILE_IN_THE_WAY]");
  });

  it("tells of the run that failed last, and of what changed since the last good one", async () => {
    const made = join(project.path, "made");
    await project.kcore("state", "apply", "change", "--on", "here", "--set", `file=${made}`);
    project.write({
      "project/states/later.yaml": `steps:\n  - { id: other, file.managed: { path: ${made}2, content: x } }\n  - { id: bad, command.run: { cmd: "false" } }\n`,
    });
    await project.kcore("state", "apply", "later", "--on", "here");
    await project.kcore("state", "apply", "change", "--on", "here", "--set", `file=${made}`, "--limit", "here");
    await project.kcore("state", "apply", "later", "--on", "here");
    const end = await project.kcore("doctor", "here");
    expect(end.stdout).to.match(/warning: the last run ended as failed/);
    expect(end.stdout).to.match(/note: since the last good run .*\n {3}\| here: later\/other \(run /);
  });
});

/** A state with checks around a change of this file. */
function ownState(file: string): string {
  return `steps:
  - id: first
    command.run: { cmd: "echo no such licence >&2; exit 1", check: true }
    severity: error
    reason: the shop stops at midnight
    remedy: "buy one on {{node.name}}"
  - id: advice
    command.run: { cmd: "echo old >&2; exit 1", check: true }
    severity: warning
  - id: told
    command.run: { cmd: echo later, check: true }
    severity: error
    register: told
  - id: needs the first
    command.run: { cmd: "true", check: true }
    severity: error
    require: first
  - id: changes
    file.managed: { path: ${file}, content: x }
  - id: in a second segment
    command.run: { cmd: "test {{shell steps.told.stdout}} = later", check: true }
    severity: error
`;
}
