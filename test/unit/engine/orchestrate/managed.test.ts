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
/** Every step is in order. */
const anyStep: Readonly<Record<string, PreparedStep>> = new Proxy(
  {},
  { get: (_, name) => (String(name).startsWith("w1 ") ? undefined : {}) },
);

interface Run {
  /** The steps of the state `web`. */
  readonly web?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
  readonly request?: Partial<RunRequest>;
  readonly lessons?: Readonly<Record<string, PreparedStep>>;
  /** Resources that are no longer managed, as the warnings name them. */
  readonly tells?: readonly string[];
}

/** Runs r1, r2 … in one project, `state apply web` by default; each must give exactly its warnings. */
async function play(...runs: readonly Run[]): Promise<void> {
  await inProject({ "roster/r.yaml": ROSTER }, async (path) => {
    for (const [index, { web, files = {}, request, lessons = {}, tells = [] }] of runs.entries()) {
      for (const [name, text] of Object.entries({ ...(web && { "states/web.yaml": stateOf(web) }), ...files })) {
        mkdirSync(dirname(join(path, name)), { recursive: true });
        writeFileSync(join(path, name), text);
      }
      const events: RunEventBody[] = [];
      const nodes = fakeNodes(new Proxy(lessons, { get: (own, name) => own[String(name)] ?? anyStep[String(name)] }));
      await executeRun(
        runRequest({ what: { kind: "state", names: ["web"] }, on: "w1", ...request }),
        runDependencies(nodes, events, { runId: `r${index + 1}`, project: path, managed: managedThings(path) }),
      );
      const told = events.flatMap((event) => (event.type === "warning" ? `${event.node}: ${event.text}` : []));
      expect(told, `r${index + 1}`).to.deep.equal(
        tells.length > 0 ? [`w1: no longer managed: ${tells.join(", ")}`] : [],
      );
    }
  });
}

const stateOf = (steps: readonly string[]) => (steps.length === 0 ? "steps: []\n" : `steps:\n${steps.join("")}`);
const step = (id: string, module: string, keys = "") => `  - { id: ${id}, ${module}${keys} }\n`;
const file = (name: string, keys = "") => step(name, `file.managed: { path: /etc/${name}, content: x }`, keys);
const gone = (what: string, by: string, run = "r1") => `${what} (made by run ${run}; to remove it: ${by})`;
const goneFile = (name: string, run = "r1") => gone(`file /etc/${name}`, `file.absent: { path: /etc/${name} }`, run);
const ad = (...names: readonly string[]): Partial<RunRequest> => ({ what: { kind: "state", names } });
const orchestrated: Partial<RunRequest> = { what: { kind: "orchestration", name: "deploy" } };
const deploy = (...stages: readonly string[]) => ({
  "orchestrate/deploy.yaml": `params: { on: { type: target, required: true }, wants: { type: boolean, default: true } }\nstages:\n${stages.join("")}`,
});
const stage = (id: string, keys: string) => `  - { id: ${id}, on: "{{params.on}}", ${keys} }\n`;

describe("what is no longer managed", () => {
  it("G6: is told once, by the run that first lacks it, with the run that made it and the step that removes it", () =>
    play(
      { web: [file("a"), file("b")] },
      { web: [file("a"), file("b"), step("y", "service.running: { name: y }")] },
      {
        web: [file("a")],
        tells: [goneFile("b"), gone("service y.service", "service.stopped: { name: y.service }", "r2")],
      },
      { web: [file("a")] },
    ));

  it("G6: is told of each kind of thing by the step that takes it away", () => {
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
    const tells = [
      gone("package nginx", absent("package.installed", "nginx")),
      gone("package jq", absent("package.installed", "jq")),
      gone("user alice", absent("user.managed", "alice")),
      gone("file.line /etc/x a b", 'file.line: { path: /etc/x, line: "a b", state: absent }'),
      gone("cron tidy", absent("cron.managed", "tidy")),
      gone("hosts.entry m1", "hosts.entry: { names: m1, state: absent }"),
      gone("hosts.entry m2", "hosts.entry: { names: m2, state: absent }"),
      gone("directory /srv/x", "file.absent: { path: /srv/x }"),
      gone("git /srv/z", "file.absent: { path: /srv/z, recurse: true }"),
      gone("symlink /srv/y", "file.absent: { path: /srv/y }"),
      gone("sysctl vm.swappiness", absent("sysctl.set", "vm.swappiness")),
      gone(`authorized_key alice ${key}`, `authorized_key.present: { user: alice, keys: "${key}", state: absent }`),
    ];
    return play({ web }, { web: [], tells });
  });

  it("G6: is what a condition leaves out, an emptied each, an include and a state that are gone from where they stood", () => {
    const base = { "states/base.yaml": stateOf([file("base")]), "states/other.yaml": stateOf([file("other")]) };
    const include = "  - { include: base }\n";
    const many = (names: string) =>
      `  - { id: m, each: [${names}], file.managed: { path: "/etc/{{item}}", content: x } }\n`;
    const request = orchestrated;
    return play(
      {
        files: { ...base, ...deploy(stage("s", "apply: [web, other]")) },
        web: [file("a"), include, many("m, n")],
        request,
      },
      { web: [file("a", ", when: false"), include, many("m, n")], request, tells: [goneFile("a")] },
      { web: [include, many("n")], request, tells: [goneFile("m")] },
      { web: [many("")], request, tells: [goneFile("base"), goneFile("n")] },
      { files: deploy(stage("s", "apply: [web]")), request, tells: [goneFile("other")] },
    );
  });

  it("G6: is told by a dry run as well, which forgets nothing", () => {
    const request = { dryRun: true };
    const tells = [goneFile("a", "r2")];
    return play(
      { web: [file("never")], request },
      { web: [file("a")] },
      { web: [], request, tells },
      { web: [], request, tells },
      { web: [], tells },
      { web: [] },
    );
  });

  it("G6: is nothing that is only called otherwise, stands in another state, has another version or is done by another module", () => {
    const pkg = (version: string) => step("p", `package.installed: { name: nginx=${version} }`);
    const other = (name: string, steps: readonly string[]) => ({ [`states/${name}.yaml`]: stateOf(steps) });
    return play(
      { web: [file("a"), pkg("1"), step("t", "cron.managed: { name: t, schedule: '@daily', command: ls }")] },
      { web: [step("renamed", "symlink.managed: { path: /etc/a, target: x }"), pkg("2"), file("cron.d/t")] },
      { files: other("new", [file("a"), pkg("2")]), request: ad("new") },
      { web: [file("cron.d/t")] },
      { web: [], files: other("late", [file("cron.d/t")]), request: ad("web", "late") },
    );
  });

  it("G6: is nothing that a step takes away, or the folder that it lay in", () => {
    const pkg = (more = "") => step("p", `package.installed: { name: nginx${more} }`);
    const absent = (path: string) => step(path, `file.absent: { path: /etc/${path}, recurse: true }`);
    const stopped = step("s", "service.stopped: { name: y.service }");
    return play(
      { web: [file("a"), file("d/b"), pkg(), step("s", "service.running: { name: y }")] },
      { web: [step("a", "file.absent: { path: /etc/a }"), absent("d"), pkg(", state: absent"), stopped] },
      { web: [] },
    );
  });

  it("G6: is no part of a file that is now kept as a whole, nor a file that is now kept in parts, nor what a user took along", () => {
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
    return play(
      { web: parts },
      { web: others },
      { web: [line('line: "a 1"')], tells: [goneFile("hosts", "r2"), goneFile("cron.d/t", "r2")] },
      { web: [line('line: "a 1", match: ^a')] },
      { web: [b, second] },
      { web: [b], tells: [gone("file.line /etc/x ^a", removed, "r3")] },
    );
  });

  it("G6: is a user, though another step keeps the home folder, and a package that is named as a repository is", async () => {
    const home = step("h", "directory.managed: { path: /home/bob }");
    await play(
      { web: [step("u", "user.managed: { name: bob, createHome: true }"), home] },
      { web: [home], tells: [gone("user bob", "user.managed: { name: bob, state: absent }")] },
    );
    const source = "{ name: r, uris: 'https://a/b', suites: s, components: [m], trusted: true }";
    const tells = [gone("package r", "package.installed: { name: r, state: absent }")];
    await play(
      { web: [step("p", "package.installed: { name: r }")] },
      { web: [step("r", `package.repository: ${source}`)], tells },
    );
  });

  it("G6: is what a run made before it failed, when the project goes back", () =>
    play(
      { web: [file("a")] },
      { web: [file("b"), file("c"), file("d")], lessons: { "web/c": { outcome: "failed" } } },
      { web: [], tells: [goneFile("b", "r2"), goneFile("a")] },
    ));

  it("G6: is nothing of other nodes, if a run is about a part of them", () => {
    const many = 'each: "{{split params.names \',\'}}", file.managed: { path: "/etc/{{item}}", content: x }';
    const files = {
      "roster/r.yaml": `${ROSTER}  w2: { address: 192.0.2.2 }\n`,
      "states/u.yaml": `params: { names: { type: string } }\nsteps:\n  - { id: m, ${many} }\n`,
      ...deploy(stage("one", 'apply: [u], with: { names: "{{params.on}}" }')),
    };
    return play({ files, request: { ...orchestrated, on: "w1,w2" } }, { request: orchestrated });
  });

  it("G6: is nothing of a stage that was left out, of other parameters, or of a run that failed", () => {
    const kept = step("f", 'file.managed: { path: "/etc/{{params.n}}", content: x }');
    const files = {
      "states/u.yaml": `params: { n: { type: string, required: true } }\n${stateOf([kept])}`,
      ...deploy(
        stage("one", "apply: [u], with: { n: one }"),
        stage("two", 'apply: [u], with: { n: two }, when: "{{params.wants}}"'),
      ),
    };
    const n = (value: string) => ({ ...ad("u"), params: { n: value } });
    return play(
      { files, request: orchestrated },
      { request: { ...orchestrated, params: { wants: false } } },
      { request: n("alice") },
      { request: n("bob") },
      { request: orchestrated },
      { web: [file("a"), file("b")] },
      { web: [file("a")], lessons: { "web/a": { outcome: "failed" } } },
      { web: [file("a")], tells: [goneFile("b", "r6")] },
      {
        files: deploy(stage("one", "apply: [u], with: { n: other }")),
        request: orchestrated,
        tells: [goneFile("one")],
      },
    );
  });

  it("G6: is nothing of a step that answers of the node leave out, or that a dry run cannot know", async () => {
    const key = step("k", "command.run: { cmd: make }, creates: /key, register: k");
    const late = (name: string) => step("l", `file.managed: { path: "/etc/{{steps.k.stdout}}${name}", content: x }`);
    const told = (outcome: "changed" | "ok") => ({ "web/k": { outcome, registered: { stdout: "s" } } });
    const reaction = file("r", ', when: "{{steps.k.changed}}"');
    const web = [key, late("c"), reaction];
    await play(
      { web: [key, late("a"), file("b"), reaction], lessons: told("changed") },
      { web, lessons: told("changed"), request: { dryRun: true }, tells: [goneFile("b")] },
      { web, lessons: told("ok"), tells: [goneFile("sa"), goneFile("b")] },
      { web, lessons: told("ok") },
      { web: [key, late("c")], lessons: told("ok"), tells: [goneFile("r")] },
    );
    const files = {
      "states/k.yaml": stateOf([key]),
      "states/u.yaml": `params: { is: { type: boolean } }\n${stateOf([file("u", ', when: "{{params.is}}"')])}`,
      ...deploy(stage("one", "apply: [k]"), stage("two", 'apply: [u], with: { is: "{{stages.one.k.changed}}" }')),
    };
    const made = (outcome: "changed" | "ok") => ({ request: orchestrated, lessons: { "k/k": { outcome } } });
    await play({ files, ...made("changed") }, made("ok"));
  });

  it("G6: is the same however a state without parameters is applied, and remembered for this node alone", () => {
    const other = ROSTER.replace("{ ", "{ id: 0d4bd4a8-3d3b-4ad1-9e8f-3d3f6a3e1f11, ");
    return play(
      { web: [file("a"), file("b")], files: deploy(stage("s", "apply: [web]")), request: orchestrated },
      { web: [file("b")], tells: [goneFile("a")] },
      { web: [], files: { "roster/r.yaml": other } },
    );
  });

  it("G6: names no line of a sensitive step", () => {
    const line = step("l", "file.line: { path: /etc/x, line: hush }", ", sensitive: true");
    return play({ web: [line, file("a", ", sensitive: true")] }, { web: [], tells: [goneFile("a")] });
  });
});
