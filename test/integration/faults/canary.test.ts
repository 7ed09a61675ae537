import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { expect } from "chai";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { placeText } from "#engine/encrypted-values/places.ts";
import { sealFor } from "#engine/encrypted-values/recipients.ts";
import { hangLimit } from "#support/limit.ts";
import { kcoreEnvironment } from "#support/program.ts";
import { person } from "#support/encrypted-values.ts";

const kcore = new URL("../../../bin/kcore", import.meta.url).pathname;

/** Searches arguments and environment of every process for the texts from stdin, and prints its findings. */
const watcher = `
const { readdirSync, readFileSync } = require("node:fs");
const words = JSON.parse(readFileSync(0, "utf8"));
let rounds = 0;
const look = () => {
  for (const pid of readdirSync("/proc")) {
    if (!/^[0-9]+$/.test(pid)) continue;
    for (const file of ["cmdline", "environ"]) {
      try {
        const text = readFileSync("/proc/" + pid + "/" + file, "latin1");
        for (const word of words) if (text.includes(word)) console.log("HIT " + file + " " + text.slice(0, 200).replace(/\\0/g, " "));
      } catch {}
    }
  }
  rounds++;
};
const timer = setInterval(look, 2);
process.on("SIGTERM", () => { clearInterval(timer); console.log("rounds " + rounds); process.exit(0); });
`;

describe("secrets in whole runs of kcore", () => {
  let project: string;
  let state: string;
  let target: string;
  let watching: ChildProcess;
  let seen = "";
  const canaries = {
    file: `canary-file-${Math.random().toString(36).slice(2)}`,
    command: `canary-command-${Math.random().toString(36).slice(2)}`,
    literal: `canary-literal-${Math.random().toString(36).slice(2)}`,
    sealed: `canary-sealed-${Math.random().toString(36).slice(2)}`,
  };
  const words = Object.values(canaries).flatMap((word) => [
    word,
    Buffer.from(word).toString("base64").replace(/=+$/, "").slice(2, -2),
  ]);

  before(async () => {
    project = mkdtempSync(join(tmpdir(), "kcore-canary-"));
    chmodSync(project, 0o700);
    state = join(project, "state");
    target = join(project, "target");
    for (const name of ["roster", "states", "orchestrate", "target", "secrets"])
      mkdirSync(join(project, name), { mode: 0o755 });
    writeFileSync(join(project, "secrets", "file"), `${canaries.file}\n`, { mode: 0o600 });
    writeFileSync(join(project, "secrets", "command"), `${canaries.command}\n`, { mode: 0o600 });
    // The literal stands in the state file itself, in a sensitive step.
    writeFileSync(
      join(project, "roster", "nodes.yaml"),
      `nodes:\n  here:\n    address: 127.0.0.1\n    transport: local\n    id: 6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11\n    stateDir: ${state}\n`,
    );
    const { identity, recipient } = await person("operator");
    mkdirSync(join(project, ".config", "kcore"), { recursive: true, mode: 0o700 });
    writeFileSync(join(project, ".config", "kcore", "age-identity.txt"), `${identity}\n`, { mode: 0o600 });
    words.push(identity);
    const sealed = await sealFor(
      canaries.sealed,
      [recipient],
      placeText("states/sealed.yaml", ["params", "sealed", "default"]),
    );
    const step = (extra: string): string => `steps:
  - id: literal
    sensitive: true
    file.managed: { path: ${target}/literal, content: "password=${canaries.literal}\\n", mode: "0600" }
  - id: to a command
    sensitive: true
    command.run: { cmd: "cat >${target}/stdin; wc -c <${target}/stdin; cat ${target}/stdin", stdin: "${canaries.literal}" }
${extra}`;
    const states: Readonly<Record<string, string>> = {
      good: step(""),
      referenced: `params:
  file: { type: secret, default: "file:${project}/secrets/file" }
  command: { type: secret, default: "command:cat ${project}/secrets/command" }
steps:
  - id: from a file
    file.managed: { path: ${target}/from-file, content: "token={{params.file}}", mode: "0600" }
  - id: from a command
    command.run: { cmd: "cat >${target}/from-command; cat ${target}/from-command; false", stdin: "{{params.command}}" }
`,
      sealed: `params:
  sealed: { type: secret, default: "${sealed}" }
steps:
  - id: to a file
    file.managed: { path: ${target}/from-seal, content: "token={{params.sealed}}", mode: "0600" }
  - id: to a command
    command.run: { cmd: "cat >${target}/sealed; cat ${target}/sealed; cat ${target}/sealed >&2; false", stdin: "{{params.sealed}}" }
`,
      failing: step(
        `  - id: fails\n    sensitive: true\n    command.run: { cmd: "cat; cat >&2 ${target}/literal; exit 3", stdin: "${canaries.literal}" }\n`,
      ),
      slow: step(
        `  - id: slow\n    sensitive: true\n    timeout: 1s\n    command.run: { cmd: "cat; sleep 20", stdin: "${canaries.literal}" }\n`,
      ),
      broken: step(
        `  - id: broken\n    sensitive: true\n    file.managed: { path: ${target}/no/such/folder, mode: 5,
        content: "${canaries.literal}" }\n`,
      ),
    };
    for (const [name, text] of Object.entries(states))
      writeFileSync(join(project, "states", `${name}.yaml`), `description: ${name}\n${text}`);
    watching = spawn(process.execPath, ["-e", watcher], { stdio: ["pipe", "pipe", "inherit"] });
    watching.stdout?.on("data", (chunk: Buffer) => (seen += chunk.toString()));
    watching.stdin?.end(JSON.stringify(words));
    await new Promise((resolve) => setTimeout(resolve, 300));
  });
  after(() => {
    watching.kill("SIGKILL");
    rmSync(project, { recursive: true, force: true });
  });

  function run(...args: string[]): { code: number; output: string } {
    const env = { PATH: process.env["PATH"], HOME: project, ...kcoreEnvironment };
    try {
      return {
        code: 0,
        output: execFileSync("/bin/sh", ["-c", `exec "$0" "$@" 2>&1`, kcore, ...args], {
          cwd: project,
          env,
          encoding: "utf8",
          timeout: hangLimit,
        }),
      };
    } catch (error) {
      const { status, stdout } = error as { status: number; stdout: string };
      return { code: status, output: stdout };
    }
  }

  const expected: readonly [string, string[], number][] = [
    ["success", ["good"], 0],
    ["a dry run", ["good", "--dry-run"], 0],
    ["JSON", ["good", "--output", "json"], 0],
    ["a failure", ["failing"], 1],
    ["a timeout", ["slow"], 1],
    ["secrets by reference, a failure", ["referenced"], 1],
    ["sealed secrets, a dry run", ["sealed", "--dry-run"], 0],
    ["sealed secrets, a failure, with --debug", ["sealed", "--debug"], 1],
    ["a mistake in the state", ["broken"], 2],
    ["a failure with --debug", ["failing", "--debug"], 1],
  ];
  for (const [what, [state = "", ...options], code] of expected)
    it(`S-7 are not printed: ${what}`, () => {
      const result = run("state", "apply", state, "--on", "here", "--yes", ...options);
      for (const word of words) expect(result.output).to.not.include(word);
      expect(result.code, result.output).to.equal(code);
    });

  it("S-7 are not in records, logs and the node's state folder", () => {
    const found = words.flatMap((word) => {
      try {
        // The word goes by stdin: the watcher would find it in grep's own arguments.
        return execFileSync("grep", ["-rlaFf", "-", join(project, ".kcore"), state], {
          encoding: "utf8",
          input: `${word}\n`,
        })
          .trim()
          .split("\n");
      } catch {
        return [];
      }
    });
    expect(found).to.deep.equal([]);
    expect(readdirSync(join(project, ".kcore", "runs")).length).to.be.greaterThan(4);
    expect(readFileSync(join(target, "literal"), "utf8")).to.include(canaries.literal);
    expect(readFileSync(join(target, "from-seal"), "utf8")).to.equal(`token=${canaries.sealed}`);
  });

  it("S-7 were in no process's arguments or environment at any moment", async () => {
    watching.kill("SIGTERM");
    await new Promise((resolve) => watching.once("exit", resolve));
    expect(seen).to.match(/rounds (\d{2,})\n$/);
    expect(seen).to.not.include("HIT");
  });
});
