import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { makeCpuGroup } from "#support/cpu-group.ts";

export interface Command {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Measured {
  /** From the start of the program to its end. */
  readonly seconds: number;
  /** CPU of it and of everything that it started, detached processes too: by a cgroup, or by wait(2) where none can be made. */
  readonly cpu: number;
  readonly code: number;
  readonly stdout: string;
}

// The first process of a namespace inherits orphans, so that no CPU time is lost. Work after the end is CPU, but no
// waiting: a run's process writes its last lines, and ssh's masters are ended.
const account = `echo go >&3
"$@" 3>&-
echo "end $?" >&3
tries=0
while kill -s 0 -- -1 2>/dev/null && [ $tries -lt 20 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -s KILL -- -1 2>/dev/null
while kill -s 0 -- -1 2>/dev/null; do sleep 0.01; done
times >&3`;

/** Runs a command in a process namespace of its own, for exact accounts, and waits until everything of it is gone. */
export async function measure({ words, cwd, env = {} }: Command): Promise<Measured> {
  const [out, err] = [join(cwd, "stdout"), join(cwd, "stderr")];
  const files = [openSync(out, "w"), openSync(err, "w")] as const;
  const group = makeCpuGroup();
  const space = ["--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const child = spawn("setpriv", [...space, "sh", "-c", `${group?.enter ?? ""}${account}`, "sh", ...words], {
    cwd,
    env: { ...process.env, ...env },
    // Without the terminal of the bench.
    detached: true,
    stdio: ["ignore", ...files, "pipe"],
  });
  for (const file of files) closeSync(file);
  let [text, started, ended] = ["", 0, 0];
  const told = child.stdio[3] as Readable;
  told.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    if (started === 0 && text.startsWith("go\n")) started = performance.now();
    if (ended === 0 && text.includes("\nend ")) ended = performance.now();
  });
  await once(child, "close");
  const counted = group?.cpuSeconds();
  await group?.remove();
  const code = Number(/^end (\d+)$/m.exec(text)?.[1] ?? -1);
  const stdout = readFileSync(out, "utf8");
  if (code !== 0)
    throw new Error(
      `${words.join(" ")}: exit ${code}\n${stdout.slice(-2000)}\n${readFileSync(err, "utf8").slice(-2000)}`,
    );
  const times = [...text.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, seconds]) => Number(minutes) * 60 + Number(seconds),
  );
  return {
    seconds: (ended - started) / 1000,
    cpu: counted ?? times.reduce((sum, time) => sum + time, 0),
    code,
    stdout,
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? NaN)
    : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}
