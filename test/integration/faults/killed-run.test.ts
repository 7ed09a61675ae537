import { spawn } from "node:child_process";
import { expect } from "chai";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  lstatSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kcoreEnvironment } from "#support/program.ts";

const kcore = new URL("../../../bin/kcore", import.meta.url).pathname;
const steps = 6;

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

describe("a run under signals", () => {
  let project: string;
  let target: string;
  beforeEach(() => {
    project = mkdtempSync(join(tmpdir(), "kcore-killed-"));
    chmodSync(project, 0o755);
    target = join(project, "target");
    for (const name of ["roster", "states", "orchestrate", "target"]) mkdirSync(join(project, name));
    writeFileSync(
      join(project, "roster", "nodes.yaml"),
      `nodes:\n  here:\n    address: 127.0.0.1\n    transport: local\n    id: 6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11\n    stateDir: ${project}/state\n`,
    );
    const lines = Array.from(
      { length: steps },
      (_, index) => `  - id: step ${index}\n    command.run: { cmd: "sleep 0.15; echo x >>${target}/${index}" }\n`,
    );
    writeFileSync(join(project, "states", "work.yaml"), `description: Work\nsteps:\n${lines.join("")}`);
    writeFileSync(
      join(project, "states", "long.yaml"),
      `description: Long\nsteps:\n  - id: long\n    command.run: { cmd: "echo begun >>${target}/long; sleep 2; echo x >>${target}/long" }\n${lines[0]}`,
    );
  });
  // A run of its own process may still write its last lines.
  afterEach(() => rmSync(project, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));

  const env = { PATH: process.env["PATH"], HOME: "/nonexistent", ...kcoreEnvironment };
  function start(
    args: readonly string[],
    wrap: readonly string[] = [],
  ): { child: ReturnType<typeof spawn>; ended: Promise<Ended> } {
    const [program = "", ...rest] = [...wrap, kcore, ...args];
    const child = spawn(program, rest, { cwd: project, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    return { child, ended: new Promise((resolve) => child.once("close", (code) => resolve({ code, output }))) };
  }
  const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const runs = (): string[] =>
    existsSync(join(project, ".kcore/runs")) ? readdirSync(join(project, ".kcore/runs")) : [];
  /** The pid of the run's own process, from its record. */
  const driver = (): number | undefined => {
    const [id = ""] = runs();
    const header = JSON.parse(readFileSync(join(project, ".kcore/runs", id, "run.json"), "utf8")) as {
      process?: { pid: number };
    };
    return header.process?.pid;
  };
  const counts = (): number[] =>
    Array.from({ length: steps }, (_, index) => {
      const file = join(target, String(index));
      return existsSync(file) ? readFileSync(file, "utf8").length / 2 : 0;
    });
  const lockIsFree = (): boolean => {
    const folder = join(project, "state", "lock");
    const [newest = 0] = readdirSync(folder)
      .map(Number)
      .toSorted((a, b) => b - a);
    try {
      // A holder's is a link.
      return lstatSync(join(folder, String(newest))).isFile();
    } catch {
      // A newer generation has just taken its place.
      return false;
    }
  };
  const until = async (test: () => boolean): Promise<void> => {
    while (!test()) await pause(20);
  };

  for (const point of [0, 1, 3, 5, 7])
    it(`F-3 is resumed to the same end after its process was killed, point ${point}`, async () => {
      const { ended } = start(["state", "apply", "work", "--on", "here", "--yes"]);
      await until(() => existsSync(join(target, "0")) || point < 2);
      await until(
        () =>
          runs().length > 0 &&
          existsSync(join(project, ".kcore/runs", runs()[0] ?? "", "run.json")) &&
          driver() !== undefined,
      );
      await pause(point * 110 + Math.random() * 100);
      try {
        process.kill(driver() ?? -1, "SIGKILL");
      } catch {
        // It had ended already.
      }
      await ended;
      const [id = ""] = runs();
      const resumed = await start(["runs", "resume", id]).ended;
      // At the last point it may have ended before it could be killed.
      if (!resumed.output.includes("RUN_FINISHED")) expect(resumed.code, resumed.output).to.equal(0);
      expect(counts()).to.deep.equal(Array.from({ length: steps }, () => 1));
      expect(lockIsFree()).to.equal(true);
    });

  it("F-17 SIGHUP of a view detaches: the run goes on to its end", async () => {
    const { child, ended } = start(["state", "apply", "long", "--on", "here", "--yes"]);
    await until(() => existsSync(join(target, "long")));
    child.kill("SIGHUP");
    await ended;
    await until(() => counts()[0] === 1);
    expect(readFileSync(join(target, "long"), "utf8")).to.equal("begun\nx\n");
    await until(() => lockIsFree());
    expect(lockIsFree()).to.equal(true);
  });

  for (const [signals, expected] of [
    [["SIGINT"], "begun\nx\n"],
    [["SIGINT", "SIGINT"], "begun\n"],
    [["SIGTERM"], undefined],
  ] as const)
    it(`F-17 ends with 130 and frees the node after ${signals.join(" and ")}`, async () => {
      const { child, ended } = start(["state", "apply", "long", "--on", "here", "--yes"]);
      await until(() => existsSync(join(target, "long")));
      for (const signal of signals) {
        child.kill(signal);
        await pause(300);
      }
      const { code, output } = await ended;
      expect(code, output).to.be.oneOf(expected === undefined ? [130, 143] : [130]);
      if (expected === undefined) return;
      expect(readFileSync(join(target, "long"), "utf8")).to.equal(expected);
      expect(counts()[0]).to.equal(0);
      await until(() => lockIsFree());
      expect(lockIsFree()).to.equal(true);
      const [id = ""] = readdirSync(join(project, "state", "runs"));
      expect(readdirSync(join(project, "state", "runs", id))).to.deep.equal(["journal"]);
    });

  it("F-17 Ctrl-C on a terminal stops the run after its step, and ends with 130", async () => {
    const command = `${kcore} state apply long --on here --yes`;
    // script(1) gives it a terminal; what it reads on stdin is what is typed there.
    const child = spawn("script", ["-qefc", command, "/dev/null"], {
      cwd: project,
      env: { ...env, TERM: "xterm" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    await until(() => existsSync(join(target, "long")));
    child.stdin.write("\u0003");
    const code = await ended;
    expect(code, output).to.equal(130);
    expect(readFileSync(join(target, "long"), "utf8")).to.equal("begun\nx\n");
    expect(counts()[0]).to.equal(0);
    expect(lockIsFree()).to.equal(true);
  });
});
