import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { listRunIds } from "#engine/run/run-folder.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject } from "#support/kcore.ts";
import { kcoreEnvironment } from "#support/program.ts";

describe("kcore exec", () => {
  let project: TestProject;
  beforeEach(() => {
    project = new TestProject();
    const { path } = project;
    project.write({
      "project/roster/nodes.yaml": `nodes:
  a1: { address: 127.0.0.1, transport: local, stateDir: ${path}/state/a1, roles: [up] }
  b22: { address: 127.0.0.1, transport: local, stateDir: ${path}/state/b22, roles: [up] }
  gone: { address: 127.0.0.1, port: 1, roles: [down], identityFile: ${path}/key }
`,
    });
  });
  afterEach(() => project.remove());
  const shell = (on: string, command: string, ...more: readonly string[]) =>
    project.kcore("exec", "--on", on, ...more, "--shell", "--", command);

  it("ends the command when the reader of its output closes the pipe", async () => {
    const child = spawn(kcoreProgram, ["exec", "--on", "a1", "--", "yes"], {
      cwd: project.project,
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, ...kcoreEnvironment, KCORE_HOME: join(project.path, "home") },
    });
    await once(child.stdout, "data");
    child.stdout.destroy();
    expect(await once(child, "exit")).to.deep.equal([130, null]);
  });

  /** Exit code, stdout and stderr of `kcore WORDS…`, as bytes. */
  async function bytesOf(
    words: readonly string[],
    input?: Uint8Array,
  ): Promise<{ code: unknown; out: Buffer; err: Buffer }> {
    const child = spawn(kcoreProgram, words, {
      cwd: project.project,
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...kcoreEnvironment, KCORE_HOME: join(project.path, "home") },
    });
    child.stdin.end(input);
    const closed = once(child, "close");
    const [out, err] = await Promise.all([buffer(child.stdout), buffer(child.stderr)]);
    await closed;
    return { code: child.exitCode, out, err };
  }

  it("leaves nothing on the node; on the bastion one audit line and no record", async () => {
    rmSync(join(project.path, "state"), { recursive: true });
    await project.kcore("exec", "--on", "a1", "--", "true");
    await project.kcore("ping", "--on", "a1,b22");
    await project.kcore("facts", "a1");
    expect(existsSync(join(project.path, "state"))).to.equal(false);
    expect(existsSync(join(project.project, ".kcore/runs"))).to.equal(false);
    const { stdout } = await project.kcore("audit", "show", "--runs", "-o", "json");
    expect(JSON.parse(stdout)).to.have.length(3);
    expect((JSON.parse(stdout) as object[])[1]).to.deep.include({
      type: "adhoc.started",
      command: "kcore ping --on a1,b22",
      nodes: ["a1", "b22"],
    });
  });

  it("runs beside a run that holds the node's lock, and takes the lock only with --lock", async () => {
    const gate = join(project.path, "gate");
    execFileSync("mkfifo", [gate]);
    const held = project.start(["exec", "--lock", "--on", "a1", "--", "cat", gate]).ended;
    await project.driver();
    while (globSync(join(project.path, "state/a1/lock/*")).length === 0) await sleep(20);
    const seen = await project.kcore("exec", "--on", "a1", "--", "echo", "beside");
    expect(seen).to.deep.equal({ code: 0, stdout: "beside\n", stderr: "" });
    expect((await project.kcore("exec", "--lock", "--on", "a1", "--", "true")).stderr).to.contain("[NODE_LOCKED]");
    writeFileSync(gate, "through\n");
    expect(await held).to.deep.equal({ code: 0, stdout: "through\n", stderr: "" });
    const shown = await project.kcore("runs", "show", (await listRunIds(project.project))[0] ?? "", "--events");
    expect(shown.stdout).to.contain("› a1  | through\n");
  });

  it("passes stdin unchanged to one node, and all of it to each of several", async () => {
    const input = Buffer.concat([Buffer.from("a\0b\n"), randomBytes(300_000)]);
    const one = await bytesOf(["exec", "--on", "a1", "--", "cat"], input);
    expect([one.code, one.out.equals(input)]).to.deep.equal([0, true]);
    const many = await bytesOf(["exec", "--on", "role:up", "--", "sha256sum"], input);
    const sum = createHash("sha256").update(input).digest("hex");
    expect(String(many.out).split("\n").toSorted()).to.deep.equal(["", `a1   ${sum}  -`, `b22  ${sum}  -`]);
  });

  it("ends the command and all of its processes at the first Ctrl-C", async () => {
    const file = join(project.path, "log");
    writeFileSync(file, "first\n");
    const { child, ended } = project.start(["exec", "--on", "a1", "--shell", "--", `echo $$; tail -f ${file} | cat`]);
    let pid = "";
    while (!pid.includes("first\n")) pid += String((await once(child.stdout as Readable, "data"))[0]);
    child.kill("SIGINT");
    expect((await ended).code).to.equal(130);
    expect(existsSync(`/proc/${Number.parseInt(pid, 10)}`)).to.equal(false);
  });

  it("exits with one node's exit code, and keeps stdout and stderr apart", async () => {
    const ended = await shell("a1", "echo out; echo err >&2; exit 7");
    expect(ended).to.deep.equal({ code: 7, stdout: "out\n", stderr: "err\n" });
    expect((await shell("a1", "kill -9 $$")).code).to.equal(137);
  });

  it("passes one node's output through byte for byte", async () => {
    const file = join(project.path, "bytes");
    const bytes = Buffer.concat([Buffer.from("\u001b[1mé\r\n\0\xc3"), randomBytes(300_000), Buffer.from([0xe2, 0x82])]);
    writeFileSync(file, bytes);
    const { code, out, err } = await bytesOf(["exec", "--on", "a1", "--shell", "--", `cat ${file}; cat ${file} >&2`]);
    expect(code).to.equal(0);
    expect(out.equals(bytes), `${out.length} of ${bytes.length} bytes`).to.equal(true);
    expect(err.equals(bytes)).to.equal(true);
  });

  it("loses no output that the command writes faster than kcore can print it", async () => {
    const bytes = execFileSync("seq", ["1", "3000000"], { maxBuffer: 1e8 });
    const { code, out, err } = await bytesOf(["exec", "--on", "a1", "--", "seq", "1", "3000000"]);
    expect([code, String(err)]).to.deep.equal([0, ""]);
    expect(out.equals(bytes), `${out.length} of ${bytes.length} bytes`).to.equal(true);
  });

  it("loses no output that is still in transit when the runner has already ended", async () => {
    const { ended } = project.start(["exec", "--lock", "--on", "a1", "--", "seq", "1", "3000000"]);
    const driver = await project.driver();
    const journal = () =>
      globSync(join(project.path, "state/a1/runs/*/journal")).map((file) => readFileSync(file, "utf8"));
    const until = async (words: string) => {
      while (!journal().join().includes(words)) await sleep(20);
    };
    await until(" start ");
    process.kill(driver, "SIGSTOP");
    await until(" bye ");
    // The next heartbeat is due; the bastion then checks that the runner lives.
    await sleep(5500);
    process.kill(driver, "SIGCONT");
    const { code, stdout, stderr } = await ended;
    expect([code, stderr]).to.deep.equal([0, ""]);
    expect(stdout === execFileSync("seq", ["1", "3000000"], { encoding: "utf8", maxBuffer: 1e8 })).to.equal(true);
  });

  it("reports on stderr why a single node did not answer, and exits 255", async () => {
    const { code, stdout, stderr } = await project.kcore("exec", "--on", "gone", "--", "true");
    expect({ code, stdout }).to.deep.equal({ code: 255, stdout: "" });
    expect(stderr).to.match(/^gone {2}unreachable: .*\[HOST_UNREACHABLE\]$/m);
  });

  it("prefixes each line with its node when there are several, and prints the failures last", async () => {
    const { code, stdout, stderr } = await shell("*", `mkdir ${project.path}/once || exit 4; printf 'one\\ntwo'`);
    expect(stdout).to.match(/^(a1 {2}|b22 ) {2}one\n\1 {2}two\n$/);
    const failed = stdout.startsWith("a1") ? "b22" : "a1";
    expect(stderr).to.match(
      new RegExp(
        `^${failed.padEnd(4)}  mkdir: .*exists\n${failed}  exit code 4\n` +
          "gone  unreachable: .*\\[HOST_UNREACHABLE\\]\n  hint: .*\n$",
      ),
    );
    expect(code).to.equal(1);
  });

  it("prints identical answers once with --group", async () => {
    const same = await shell("role:up", "echo one; echo two", "--group");
    expect(same).to.deep.equal({ code: 0, stdout: "a1, b22 (2 nodes)\n  one\n  two\n", stderr: "" });
    const { stdout, stderr, code } = await shell(
      "role:up",
      `mkdir ${project.path}/once || exit 4; echo one`,
      "--group",
    );
    expect(stdout).to.match(/^(a1|b22)\n {2}one\n$/);
    expect(stderr).to.match(/^(a1|b22) {2}exit code 4\n {2}mkdir: .*exists\n$/);
    expect(code).to.equal(1);
  });

  it("prints the usual lines of a run with --verbose", async () => {
    const { code, stdout } = await shell("a1", "echo hello; exit 7", "--verbose");
    expect(stdout).to.match(/^→ exec .* — 1 node: a1\n/);
    expect(stdout).to.contain("› a1  | hello\n");
    expect(code).to.equal(7);
  });

  it("keeps exit code and undecodable bytes in machine-readable output", async () => {
    const { stdout } = await shell("a1", "echo text; exit 7", "-o", "json");
    expect(JSON.parse(stdout)).to.have.length(1).and.to.have.nested.property("[0].exitCode", 7);
    const streamed = await shell("a1", "printf 'a\\377'", "-o", "events");
    const lines = streamed.stdout.trim().split("\n");
    const printed = lines.map((line) => JSON.parse(line) as RunEvent).filter(({ type }) => type === "step.output");
    expect(printed).to.have.length(1);
    expect(printed[0]).to.include({ text: "a�", bytes: Buffer.from([0x61, 0xff]).toString("base64") });
  });
});
