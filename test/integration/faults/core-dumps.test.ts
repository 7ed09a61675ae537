import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { sh } from "#engine/step/sh.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { eventually } from "#support/cluster.ts";
import { kcoreEnvironment } from "#support/program.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const kcore = new URL("../../../bin/kcore", import.meta.url).pathname;
const pattern = readFileSync("/proc/sys/kernel/core_pattern", "utf8").trim();

describe("core dumps", () => {
  const at = folderOfEachTest("core");
  beforeEach(() => {
    chmodSync(at(), 0o700);
  });

  const cores = (): string[] =>
    readdirSync(at(), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.startsWith(pattern))
      .map(({ parentPath, name }) => join(parentPath, name));
  const childrenOf = (pid: number): number[] => {
    const file = `/proc/${pid}/task/${pid}/children`;
    const children = existsSync(file) ? readFileSync(file, "utf8").trim().split(" ").filter(Boolean).map(Number) : [];
    return children.flatMap((child) => [child, ...childrenOf(child)]);
  };

  it("S-7: are disabled for every process of a run, on bastion and node", async function () {
    // If the kernel pipes core dumps elsewhere, only the limits can be tested.
    const isPlain = /^[a-z]+$/.test(pattern);
    const free = ["-c", 'ulimit -c unlimited && exec "$@"', "sh"];
    if (isPlain) {
      // A shell without the limit leaves a core dump, so that the test can fail.
      spawn("/bin/sh", [...free, "/bin/sh", "-c", "kill -SEGV $$"], { cwd: at() });
      await eventually(() => cores()[0]);
      for (const core of cores()) rmSync(core);
    }
    const state = at("state");
    for (const name of ["roster", "states", "orchestrate"]) mkdirSync(at(name));
    const secret = `canary-${Math.random().toString(36).slice(2)}`;
    const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
    writeFileSync(
      at("roster", "nodes.yaml"),
      `nodes:\n  here: { address: 127.0.0.1, transport: local, id: ${id}, stateDir: ${state} }\n`,
    );
    writeFileSync(
      at("states", "waits.yaml"),
      `steps:\n  - id: waits\n    sensitive: true\n    command.run: { cmd: "read -r x; sleep 1000", stdin: "${secret}" }\n`,
    );
    const words = ["state", "apply", "waits", "--on", "here", "--output", "json"];
    const env = { ...kcoreEnvironment, HOME: at() };
    const cli = spawn("/bin/sh", [...free, kcore, ...words], { cwd: at(), env, stdio: "ignore" });
    const runs = at(".kcore", "runs");
    const headerOf = (): { pid: number } | undefined => {
      const [run] = existsSync(runs) ? readdirSync(runs).filter((name) => !name.startsWith(".")) : [];
      if (run === undefined) return undefined;
      return (JSON.parse(readFileSync(join(runs, run, "run.json"), "utf8")) as { process?: { pid: number } }).process;
    };
    const { pid: run } = await eventually(headerOf);
    const read = (name: string): number | undefined => {
      const [there] = existsSync(join(state, "runs")) ? readdirSync(join(state, "runs")) : [];
      const file = join(state, "runs", there ?? "", name);
      return (there !== undefined && existsSync(file) && Number(readFileSync(file, "utf8").split(" ")[0])) || undefined;
    };
    const step = await eventually(() => read("current"));
    const runner = await eventually(() => read("pid"));
    const pids = [...new Set([step, runner, ...childrenOf(run), run, ...childrenOf(cli.pid ?? 0), cli.pid ?? 0])];
    try {
      const kept = pids.map(coreLimitOf);
      expect([step, runner, run, cli.pid ?? 0].map(coreLimitOf)).to.deep.equal(["0", "0", "0", "0"]);
      // A child may have ended in the meantime.
      expect(kept.filter((limit) => limit !== undefined && limit !== "0")).to.deep.equal([]);
      for (const pid of [run, cli.pid]) {
        const [filter = ""] = readFileSync(`/proc/${pid}/coredump_filter`, "utf8").split("\n");
        expect(Number.parseInt(filter, 16)).to.equal(0);
      }
    } finally {
      for (const pid of pids)
        try {
          process.kill(pid, "SIGSEGV");
        } catch {
          // It ended with another process.
        }
    }
    await eventually(() => !pids.some((pid) => existsSync(`/proc/${pid}/exe`) && isAlive(pid)));
    expect(cores()).to.deep.equal([]);
  });

  it("S-7: are disabled in shells of a node whose logins enable them", async () => {
    const transport = createTransport({ home: at() });
    const run = sessionOn(at(), {
      connect: async (...target) => {
        const host = await transport.connect(...target);
        return { ...host, exec: (command, options) => host.exec(`ulimit -Sc unlimited; ${command}`, options) };
      },
    });
    const follower = sh`fact limits "$(ulimit -Sc) $(grep "core file" "/proc/$(cat "$K_RUN/attached")/limits" | tr -s " " | cut -d " " -f 5)"`;
    const drafts = [draftOf("looks", { want: { limits: "0 0" }, probe: follower })];
    const result = await run.session.perform([{ stage: "s", drafts }], { isLast: true });
    await run.session.finish(result.outcome);
    expect([result.problem?.detail, run.outcomes()]).to.deep.equal([undefined, ["looks ok"]]);
  });
});

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** The core limit (`ulimit -c`) of a process; undefined if it is gone. */
function coreLimitOf(pid: number): string | undefined {
  try {
    return /Max core file size\s+(\S+)/.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
