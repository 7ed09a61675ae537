import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { eventually } from "#support/cluster.ts";
import { TestProject } from "#support/kcore.ts";
import { kcoreEnvironment } from "#support/program.ts";

const has = (shell: string): boolean => spawnSync(shell, ["-c", "exit 0"]).status === 0;

describe("completion in real shells", () => {
  let project: TestProject;
  let env: NodeJS.ProcessEnv;

  before(() => {
    project = new TestProject();
    project.write({
      "home/config": "current-context: lab\ncontexts:\n  lab: { controllers: ['192.0.2.1:9090'] }\n  prod: {}\n",
    });
    const bin = join(project.path, "bin");
    mkdirSync(bin);
    const launcher = join(import.meta.dirname, "../../../bin/kcore");
    writeFileSync(join(bin, "kcore"), `#!/bin/sh\nexec '${launcher}' "$@"\n`, { mode: 0o755 });
    env = {
      ...process.env,
      PATH: `${bin}:${process.env["PATH"] ?? ""}`,
      HOME: project.path,
      ...kcoreEnvironment,
      KCORE_HOME: join(project.path, "home"),
      TMUX_TMPDIR: project.path,
    };
  });
  after(() => project.remove());

  const run = (shell: string, args: readonly string[]): string =>
    execFileSync(shell, [...args], { cwd: project.project, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

  /** Asks bash, in one shell, for the completions of each line with the cursor at its end. */
  const offersInBash = (wanted: Readonly<Record<string, readonly string[]>>): void => {
    const asked = Object.keys(wanted).map((line) => {
      // bash itself splits words at “:” and “=”.
      const own = line
        .split(/\s+/)
        .flatMap((word) => (word === "" ? [""] : word.split(/([:=])/).filter((part) => part !== "")));
      const array = own.map((word) => `'${word}'`).join(" ");
      return `COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=(${array}); COMP_CWORD=${own.length - 1}; _kcore; echo "\${COMPREPLY[*]}"`;
    });
    const script = ["source <(kcore completion bash)", ...asked].join("\n");
    const offered = run("bash", ["--norc", "-c", script]).trimEnd().split("\n");
    expect(
      Object.fromEntries(Object.keys(wanted).map((line, index) => [line, offered[index]?.split(" ")])),
    ).to.deep.equal(wanted);
  };

  it("bash completes commands, flags, values, nodes, contexts, words with a colon, and file names", () => {
    offersInBash({
      "kcore des": ["describe"],
      "kcore get no": ["nodes", "node"],
      "kcore get nodes -o ": ["table", "wide", "json", "yaml"],
      "kcore get nodes --wat": ["--watch"],
      "kcore node approve ": ["here", "gone"],
      "kcore config use-context p": ["prod"],
      "kcore --context ": ["lab", "prod"],
      "kcore schema ": ["state", "roster", "orchestration", "manifest", "project"],
      "kcore check -o g": ["github", "gitlab"],
      "kcore modules file.m": ["file.managed"],
      "kcore state show prefl": ["preflight"],
      "kcore ping --on role:w": ["worker"],
      "kcore get nodes --output=j": ["json"],
      "kcore -s 192.0.2.1:90": ["9090"],
      "kcore create cluster --passphrase-file ros": ["roster"],
    });
  });

  it("bash completes the steps, stages and tags of the work before, and the nodes of a copy", () => {
    project.write({
      "project/states/inner.yaml": "steps: [{ id: deep, file.absent: { path: /d }, tags: [low] }]\n",
      "project/states/web.yaml": `steps:
  - { id: page, file.absent: { path: /p }, tags: [config] }
  - { include: inner, tags: [all] }
`,
      "project/orchestrate/site.yaml": `params: { nodes: { type: target, required: true } }
stages:
  - { id: first, on: "{{params.nodes}}", apply: web, tags: [early] }
  - { id: last, on: "{{params.nodes}}", apply: web }
`,
    });
    offersInBash({
      "kcore state apply web --only ": ["page", "deep"],
      "kcore state apply web --tags=config,": ["config,all", "config,low"],
      "kcore orchestrate site --from ": ["first", "last", "page", "deep"],
      "kcore orchestrate site gone --tags e": ["early"],
      "kcore orchestrate nowhere --only ": [""],
      "kcore cp here:ros": [""],
      "kcore cp ros": ["roster"],
      "kcore cp roster he": ["here:"],
    });
  });

  it("bash completes the places of a file's secrets and the names of recipients", () => {
    project.write({ "project/recipients.yaml": "alice: age1a\nci: age1c\n" });
    offersInBash({
      "kcore secrets set roster/nodes.yaml nodes.here.st": ["nodes.here.stateDir"],
      "kcore secrets show roster/nodes.yaml nodes.": [""],
      "kcore secrets recipients remove a": ["alice"],
      "kcore secrets edit ros": ["roster"],
    });
  });

  it("loads neither YAML nor the reader of rosters and states while its index is valid", () => {
    const root = join(import.meta.dirname, "../../..");
    const hooks = `import { registerHooks } from "node:module";
      registerHooks({ load(url, context, next) { process.stderr.write(url + "\\n"); return next(url, context); } });`;
    const loaded = (...words: readonly string[]): string =>
      spawnSync(
        process.execPath,
        ["--import", `data:text/javascript,${encodeURIComponent(hooks)}`, join(root, "src/cli/main.ts"), ...words],
        { cwd: project.project, env, encoding: "utf8" },
      ).stderr;
    loaded("completion", "candidates", "--", "state", "apply", "p");
    expect(existsSync(join(project.project, ".kcore")), "a folder made by a completion").to.equal(false);
    mkdirSync(join(project.project, ".kcore"));
    for (const words of [
      ["orchestrate", "deploy_node", "h"],
      ["state", "apply", "p"],
    ]) {
      const complete = () => loaded("completion", "candidates", "--", ...words);
      complete();
      expect(complete())
        .to.include("/src/cli/completion/candidate-index.ts")
        .and.not.match(/node_modules\/(yaml|zod)\/|load-roster|open-states|modules\/registry/);
    }
    project.write({ "project/roster/more.yaml": "nodes: {}\n" });
    expect(loaded("completion", "candidates", "--", "orchestrate", "deploy_node", "h")).to.include("load-roster");
  });

  it("fish completes the same, with descriptions", function () {
    if (!has("fish")) this.skip();
    const inFish = (line: string): string =>
      run("fish", ["--no-config", "-c", `kcore completion fish | source; complete -C '${line}'`]);
    expect(inFish("kcore describe no")).to.match(/^node\tShow a node: /);
    expect(inFish("kcore node approve ")).to.equal("gone\t127.0.0.1 DC1 worker\nhere\t127.0.0.1 DC1 worker\n");
    expect(inFish("kcore config use-context l").trim()).to.equal("lab");
  });

  it("zsh completes the same at a prompt", async function () {
    if (!has("zsh") || !has("tmux")) this.skip();
    const tmux = (...args: readonly string[]): string =>
      run("tmux", ["-L", `kcore-completion-${process.pid}`, "-f", "/dev/null", ...args]);
    const type = (...keys: readonly string[]): string => tmux("send-keys", ...keys);
    const shows = (text: string) => eventually(() => tmux("capture-pane", "-p").replaceAll(/\s+/g, " ").includes(text));
    tmux("new-session", "-d", "-x", "160", "-y", "40", "zsh -f -i");
    try {
      type("autoload -U compinit; compinit -u -D; source <(kcore completion zsh); echo re''ady", "Enter");
      await shows("ready");
      type("kcore config use-context p", "Tab");
      await shows("use-context prod");
      type("C-u");
      type("kcore get no", "Tab", "Tab");
      await shows("nodes -- List nodes");
    } finally {
      tmux("kill-server");
    }
  });
});
