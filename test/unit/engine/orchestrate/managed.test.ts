import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { executeRun } from "#engine/orchestrate/execute-run.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { managedThings } from "#engine/orchestrate/managed.ts";
import { fakeNodes, type PreparedStep } from "#support/fake-session.ts";
import { inProject } from "#support/in-project.ts";
import { runDependencies, runRequest } from "#support/runs.ts";

const ROSTER = "nodes:\n  w1: { address: 192.0.2.1 }\n";
/** Prepared steps by id: every step of w1 is in order. */
const anyStep: Readonly<Record<string, PreparedStep>> = new Proxy(
  {},
  { get: (_, name) => (String(name).startsWith("w1 ") ? undefined : {}) },
);

interface Run {
  /** The steps of the state `web`. */
  readonly web?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
  readonly request?: Partial<RunRequest>;
  readonly prepared?: Readonly<Record<string, PreparedStep>>;
  /** Resources that are no longer managed, as the warnings name them. */
  readonly unmanaged?: readonly string[];
}

/** Executes runs r1, r2 … in one project, `state apply web` by default; each must warn of exactly its unmanaged resources. */
async function executeInTurn(...runs: readonly Run[]): Promise<void> {
  await inProject({ "roster/r.yaml": ROSTER }, async (path) => {
    for (const [index, { web, files = {}, request, prepared = {}, unmanaged = [] }] of runs.entries()) {
      for (const [name, text] of Object.entries({ ...(web && { "states/web.yaml": stateOf(web) }), ...files })) {
        mkdirSync(dirname(join(path, name)), { recursive: true });
        writeFileSync(join(path, name), text);
      }
      const events: RunEventBody[] = [];
      const nodes = fakeNodes(new Proxy(prepared, { get: (own, name) => own[String(name)] ?? anyStep[String(name)] }));
      await executeRun(
        runRequest({ what: { kind: "state", names: ["web"] }, on: "w1", ...request }),
        runDependencies(nodes, events, { runId: `r${index + 1}`, project: path, managed: managedThings(path) }),
      );
      const warnings = events.flatMap((event) => (event.type === "warning" ? `${event.node}: ${event.text}` : []));
      expect(warnings, `r${index + 1}`).to.deep.equal(
        unmanaged.length > 0 ? [`w1: no longer managed: ${unmanaged.join(", ")}`] : [],
      );
    }
  });
}

const stateOf = (steps: readonly string[]) => (steps.length === 0 ? "steps: []\n" : `steps:\n${steps.join("")}`);
const step = (id: string, module: string, keys = "") => `  - { id: ${id}, ${module}${keys} }\n`;
const file = (name: string, keys = "") => step(name, `file.managed: { path: /etc/${name}, content: x }`, keys);
const removable = (resource: string, step: string, run = "r1") =>
  `${resource} (made by run ${run}; to remove it: ${step})`;
const removableFile = (name: string, run = "r1") =>
  removable(`file /etc/${name}`, `file.absent: { path: /etc/${name} }`, run);
const applying = (...names: readonly string[]): Partial<RunRequest> => ({ what: { kind: "state", names } });
const orchestrated: Partial<RunRequest> = { what: { kind: "orchestration", name: "deploy" } };
const deploy = (...stages: readonly string[]) => ({
  "orchestrate/deploy.yaml": `params: { on: { type: target, required: true }, wants: { type: boolean, default: true } }\nstages:\n${stages.join("")}`,
});
const stage = (id: string, keys: string) => `  - { id: ${id}, on: "{{params.on}}", ${keys} }\n`;

describe("the warning of resources that are no longer managed", () => {
  it("comes once, with the run that made the resource and the step that removes it", () =>
    executeInTurn(
      { web: [file("a"), file("b")] },
      { web: [file("a"), file("b"), step("y", "service.running: { name: y }")] },
      {
        web: [file("a")],
        unmanaged: [removableFile("b"), removable("service y.service", "service.stopped: { name: y.service }", "r2")],
      },
      { web: [file("a")] },
    ));

  it("names the removing step of each kind of resource", () => {
    const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${"J".repeat(43)}`;
    const absent = (module: string, name: string) => `${module}: { name: ${name}, state: absent }`;
    const web = [
      step("a", "package.installed: { names: [nginx=1.2, jq] }"),
      step("b", "user.managed: { name: alice }"),
      step("c", 'file.line: { path: /etc/x, line: "a b" }'),
      step("d", 'cron.managed: { name: tidy, schedule: "@daily", command: "true" }'),
      step("e", "hosts.entry: { address: 192.0.2.9, names: [m1, m2] }"),
      step("f", "directory.managed: { path: /srv/x }"),
      step("git", "git.cloned: { path: /srv/z, url: 'https://a/b', ref: main }"),
      step("g", "symlink.managed: { path: /srv/y, target: x }"),
      step("h", "sysctl.set: { name: vm.swappiness, value: 1 }"),
      step("i", `authorized_key.present: { user: alice, keys: [${key} alice] }`),
    ];
    const unmanaged = [
      removable("package nginx", absent("package.installed", "nginx")),
      removable("package jq", absent("package.installed", "jq")),
      removable("user alice", absent("user.managed", "alice")),
      removable("file.line /etc/x a b", 'file.line: { path: /etc/x, line: "a b", state: absent }'),
      removable("cron tidy", absent("cron.managed", "tidy")),
      removable("hosts.entry m1", "hosts.entry: { names: m1, state: absent }"),
      removable("hosts.entry m2", "hosts.entry: { names: m2, state: absent }"),
      removable("directory /srv/x", "file.absent: { path: /srv/x }"),
      removable("git /srv/z", "file.absent: { path: /srv/z, recurse: true }"),
      removable("symlink /srv/y", "file.absent: { path: /srv/y }"),
      removable("sysctl vm.swappiness", absent("sysctl.set", "vm.swappiness")),
      removable(
        `authorized_key alice ${key}`,
        `authorized_key.present: { user: alice, keys: "${key}", state: absent }`,
      ),
    ];
    return executeInTurn({ web }, { web: [], unmanaged });
  });

  it("comes for a false condition, a shorter each, a removed include and a removed state", () => {
    const base = { "states/base.yaml": stateOf([file("base")]), "states/other.yaml": stateOf([file("other")]) };
    const include = "  - { include: base }\n";
    const many = (names: string) =>
      `  - { id: m, each: [${names}], file.managed: { path: "/etc/{{item}}", content: x } }\n`;
    const request = orchestrated;
    return executeInTurn(
      {
        files: { ...base, ...deploy(stage("s", "apply: [web, other]")) },
        web: [file("a"), include, many("m, n")],
        request,
      },
      { web: [file("a", ", when: false"), include, many("m, n")], request, unmanaged: [removableFile("a")] },
      { web: [include, many("n")], request, unmanaged: [removableFile("m")] },
      { web: [many("")], request, unmanaged: [removableFile("base"), removableFile("n")] },
      { files: deploy(stage("s", "apply: [web]")), request, unmanaged: [removableFile("other")] },
    );
  });

  it("comes in each dry run until a real run", () => {
    const request = { dryRun: true };
    const unmanaged = [removableFile("a", "r2")];
    return executeInTurn(
      { web: [file("never")], request },
      { web: [file("a")] },
      { web: [], request, unmanaged },
      { web: [], request, unmanaged },
      { web: [], unmanaged },
      { web: [] },
    );
  });

  it("does not come for a resource with another step id, state, version or module", () => {
    const pkg = (version: string) => step("p", `package.installed: { name: nginx=${version} }`);
    const other = (name: string, steps: readonly string[]) => ({ [`states/${name}.yaml`]: stateOf(steps) });
    return executeInTurn(
      { web: [file("a"), pkg("1"), step("t", "cron.managed: { name: t, schedule: '@daily', command: ls }")] },
      { web: [step("renamed", "symlink.managed: { path: /etc/a, target: x }"), pkg("2"), file("cron.d/t")] },
      { files: other("new", [file("a"), pkg("2")]), request: applying("new") },
      { web: [file("cron.d/t")] },
      { web: [], files: other("late", [file("cron.d/t")]), request: applying("web", "late") },
    );
  });

  it("does not come for a resource that a step removes, alone or with its folder", () => {
    const pkg = (more = "") => step("p", `package.installed: { name: nginx${more} }`);
    const absent = (path: string) => step(path, `file.absent: { path: /etc/${path}, recurse: true }`);
    const stopped = step("s", "service.stopped: { name: y.service }");
    return executeInTurn(
      { web: [file("a"), file("d/b"), pkg(), step("s", "service.running: { name: y }")] },
      { web: [step("a", "file.absent: { path: /etc/a }"), absent("d"), pkg(", state: absent"), stopped] },
      { web: [] },
    );
  });

  it("does not come for lines of a file now managed as a whole, a file now managed by lines, or keys of a removed user", () => {
    const line = (keys: string) => step("l", `file.line: { path: /etc/x, ${keys} }`);
    const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${"J".repeat(43)}`;
    const parts = [
      line('line: "a 1"'),
      step("h", "hosts.entry: { address: 192.0.2.9, names: m1 }"),
      step("t", "cron.managed: { name: t, schedule: '@daily', command: ls }"),
      step("z", "symlink.managed: { path: /etc/localtime, target: /usr/share/zoneinfo/UTC }"),
      step("k", `authorized_key.present: { user: alice, keys: ${key} }`),
    ];
    const user = step("u", "user.managed: { name: alice, state: absent }");
    const others = [file("x"), file("hosts"), file("cron.d/t"), step("z", "timezone.set: { zone: UTC }"), user];
    const [b, second] = [line("line: b"), line('line: "a 2", match: ^a').replace("id: l", "id: m")];
    const removed = 'file.line: { path: /etc/x, match: "^a", state: absent }';
    return executeInTurn(
      { web: parts },
      { web: others },
      { web: [line('line: "a 1"')], unmanaged: [removableFile("hosts", "r2"), removableFile("cron.d/t", "r2")] },
      { web: [line('line: "a 1", match: ^a')] },
      { web: [b, second] },
      { web: [b], unmanaged: [removable("file.line /etc/x ^a", removed, "r3")] },
    );
  });

  it("comes for a user whose home folder stays managed, and for a package with a repository's name", async () => {
    const home = step("h", "directory.managed: { path: /home/bob }");
    await executeInTurn(
      { web: [step("u", "user.managed: { name: bob, createHome: true }"), home] },
      { web: [home], unmanaged: [removable("user bob", "user.managed: { name: bob, state: absent }")] },
    );
    const source = "{ name: r, uris: 'https://a/b', suites: s, components: [m], trusted: true }";
    const unmanaged = [removable("package r", "package.installed: { name: r, state: absent }")];
    await executeInTurn(
      { web: [step("p", "package.installed: { name: r }")] },
      { web: [step("r", `package.repository: ${source}`)], unmanaged },
    );
  });

  it("comes for resources that a run made before it failed", () =>
    executeInTurn(
      { web: [file("a")] },
      { web: [file("b"), file("c"), file("d")], prepared: { "web/c": { outcome: "failed" } } },
      { web: [], unmanaged: [removableFile("b", "r2"), removableFile("a")] },
    ));

  it("does not come for resources of nodes outside the run", () => {
    const many = 'each: "{{split params.names \',\'}}", file.managed: { path: "/etc/{{item}}", content: x }';
    const files = {
      "roster/r.yaml": `${ROSTER}  w2: { address: 192.0.2.2 }\n`,
      "states/u.yaml": `params: { names: { type: string } }\nsteps:\n  - { id: m, ${many} }\n`,
      ...deploy(stage("one", 'apply: [u], with: { names: "{{params.on}}" }')),
    };
    return executeInTurn({ files, request: { ...orchestrated, on: "w1,w2" } }, { request: orchestrated });
  });

  it("does not come for a skipped stage, other parameters, or in a failed run", () => {
    const kept = step("f", 'file.managed: { path: "/etc/{{params.n}}", content: x }');
    const files = {
      "states/u.yaml": `params: { n: { type: string, required: true } }\n${stateOf([kept])}`,
      ...deploy(
        stage("one", "apply: [u], with: { n: one }"),
        stage("two", 'apply: [u], with: { n: two }, when: "{{params.wants}}"'),
      ),
    };
    const n = (value: string) => ({ ...applying("u"), params: { n: value } });
    return executeInTurn(
      { files, request: orchestrated },
      { request: { ...orchestrated, params: { wants: false } } },
      { request: n("alice") },
      { request: n("bob") },
      { request: orchestrated },
      { web: [file("a"), file("b")] },
      { web: [file("a")], prepared: { "web/a": { outcome: "failed" } } },
      { web: [file("a")], unmanaged: [removableFile("b", "r6")] },
      {
        files: deploy(stage("one", "apply: [u], with: { n: other }")),
        request: orchestrated,
        unmanaged: [removableFile("one")],
      },
    );
  });

  it("does not come for a step that depends on the node's answers, or is unknown in a dry run", async () => {
    const key = step("k", "command.run: { cmd: make }, creates: /key, register: k");
    const late = (name: string) => step("l", `file.managed: { path: "/etc/{{steps.k.stdout}}${name}", content: x }`);
    const keyStep = (outcome: "changed" | "ok") => ({ "web/k": { outcome, registered: { stdout: "s" } } });
    const reaction = file("r", ', when: "{{steps.k.changed}}"');
    const web = [key, late("c"), reaction];
    await executeInTurn(
      { web: [key, late("a"), file("b"), reaction], prepared: keyStep("changed") },
      { web, prepared: keyStep("changed"), request: { dryRun: true }, unmanaged: [removableFile("b")] },
      { web, prepared: keyStep("ok"), unmanaged: [removableFile("sa"), removableFile("b")] },
      { web, prepared: keyStep("ok") },
      { web: [key, late("c")], prepared: keyStep("ok"), unmanaged: [removableFile("r")] },
    );
    const files = {
      "states/k.yaml": stateOf([key]),
      "states/u.yaml": `params: { is: { type: boolean } }\n${stateOf([file("u", ', when: "{{params.is}}"')])}`,
      ...deploy(stage("one", "apply: [k]"), stage("two", 'apply: [u], with: { is: "{{stages.one.k.changed}}" }')),
    };
    const made = (outcome: "changed" | "ok") => ({ request: orchestrated, prepared: { "k/k": { outcome } } });
    await executeInTurn({ files, ...made("changed") }, made("ok"));
  });

  it("compares runs of a state by any command, and by node id", () => {
    const other = ROSTER.replace("{ ", "{ id: 0d4bd4a8-3d3b-4ad1-9e8f-3d3f6a3e1f11, ");
    return executeInTurn(
      { web: [file("a"), file("b")], files: deploy(stage("s", "apply: [web]")), request: orchestrated },
      { web: [file("b")], unmanaged: [removableFile("a")] },
      { web: [], files: { "roster/r.yaml": other } },
    );
  });

  it("shows no content of a sensitive step", () => {
    const line = step("l", "file.line: { path: /etc/x, line: hush }", ", sensitive: true");
    return executeInTurn({ web: [line, file("a", ", sensitive: true")] }, { web: [], unmanaged: [removableFile("a")] });
  });
});
