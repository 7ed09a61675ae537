import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
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

  /** What bash would offer for a line with the cursor at its end. */
  const inBash = (line: string): readonly string[] => {
    const words = line.split(/\s+/);
    // bash itself ends words at “:” and “=”.
    const own = words.flatMap((word) => (word === "" ? [""] : word.split(/([:=])/).filter((part) => part !== "")));
    const array = own.map((word) => `'${word}'`).join(" ");
    const script = `source <(kcore completion bash); COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=(${array}); COMP_CWORD=${own.length - 1}; _kcore; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return run("bash", ["--norc", "-c", script]).trimEnd().split("\n");
  };

  it("bash: commands, flags, values, nodes of the roster, contexts, and what follows a colon", () => {
    expect(inBash("kcore des")).to.deep.equal(["describe"]);
    expect(inBash("kcore get no")).to.deep.equal(["nodes", "node"]);
    expect(inBash("kcore get nodes -o ")).to.deep.equal(["table", "wide", "json", "yaml"]);
    expect(inBash("kcore get nodes --wat")).to.deep.equal(["--watch"]);
    expect(inBash("kcore node approve ")).to.deep.equal(["here", "gone"]);
    expect(inBash("kcore config use-context p")).to.deep.equal(["prod"]);
    expect(inBash("kcore --context ")).to.deep.equal(["lab", "prod"]);
    expect(inBash("kcore schema ")).to.deep.equal(["state", "roster", "orchestration", "manifest"]);
    expect(inBash("kcore check -o g")).to.deep.equal(["github", "gitlab"]);
    expect(inBash("kcore modules file.m")).to.deep.equal(["file.managed"]);
    expect(inBash("kcore state show prefl")).to.deep.equal(["preflight"]);
    expect(inBash("kcore ping --on role:w")).to.deep.equal(["worker"]);
    expect(inBash("kcore get nodes --output=j")).to.deep.equal(["json"]);
    expect(inBash("kcore -s 192.0.2.1:90")).to.deep.equal(["9090"]);
  });

  it("bash: names of files where a flag takes one", () => {
    expect(inBash("kcore create cluster --passphrase-file ros")).to.deep.equal(["roster"]);
  });

  it("bash: what may be sealed in a file, and whose keys are there", () => {
    project.write({ "project/recipients.yaml": "alice: age1a\nci: age1c\n" });
    expect(inBash("kcore secrets set roster/nodes.yaml nodes.here.st")).to.deep.equal(["nodes.here.stateDir"]);
    expect(inBash("kcore secrets show roster/nodes.yaml nodes.")).to.deep.equal([""]);
    expect(inBash("kcore secrets recipients remove a")).to.deep.equal(["alice"]);
    expect(inBash("kcore secrets edit ros")).to.deep.equal(["roster"]);
  });

  it("fish: the same, with descriptions", function () {
    if (!has("fish")) this.skip();
    const inFish = (line: string): string =>
      run("fish", ["--no-config", "-c", `kcore completion fish | source; complete -C '${line}'`]);
    expect(inFish("kcore describe no")).to.match(/^node\tWhat is known of a node/);
    expect(inFish("kcore node approve ")).to.equal("gone\t127.0.0.1 DC1 worker\nhere\t127.0.0.1 DC1 worker\n");
    expect(inFish("kcore config use-context l").trim()).to.equal("lab");
  });

  it("zsh: the same, typed at a prompt", async function () {
    if (!has("zsh") || !has("tmux")) this.skip();
    const tmux = (...args: readonly string[]): string =>
      run("tmux", ["-L", `kcore-completion-${process.pid}`, "-f", "/dev/null", ...args]);
    const type = (...keys: readonly string[]): string => tmux("send-keys", ...keys);
    const seen = (text: string) => eventually(() => tmux("capture-pane", "-p").replaceAll(/\s+/g, " ").includes(text));
    tmux("new-session", "-d", "-x", "160", "-y", "40", "zsh -f -i");
    try {
      type("autoload -U compinit; compinit -u -D; source <(kcore completion zsh); echo re''ady", "Enter");
      await seen("ready");
      type("kcore config use-context p", "Tab");
      await seen("use-context prod");
      type("C-u");
      type("kcore get no", "Tab", "Tab");
      await seen("nodes -- List nodes");
    } finally {
      tmux("kill-server");
    }
  });
});
