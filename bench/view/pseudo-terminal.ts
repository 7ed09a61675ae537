import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { descendantsOf } from "#support/children.ts";

const kcore = new URL("../../bin/kcore", import.meta.url).pathname;

/** kcore in a terminal of its own (by script(1)): its output, and the time until a text appears. */
export class PseudoTerminal {
  readonly #script: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<unknown>;
  /** Milliseconds (performance.now) at which kcore itself was started. */
  started = 0;
  text = "";

  constructor(project: string, words: readonly string[], { columns = 160, rows = 48, redirect = "" } = {}) {
    const line = words.map((word) => `'${word}'`).join(" ");
    const inside = `stty cols ${columns} rows ${rows}; printf GO; exec '${kcore}' ${line} ${redirect}`;
    this.#script = spawn("script", ["-qefc", inside, "/dev/null"], {
      cwd: project,
      env: { ...process.env, TERM: "xterm-256color", LANG: "C.UTF-8", CI: "" },
    });
    this.#script.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      if (this.started === 0 && chunk.includes("GO")) this.started = performance.now();
      this.text += chunk;
      // A long replay writes much, so only the end is kept.
      if (this.text.length > 1e6) this.text = this.text.slice(-5e5);
    });
    this.#ended = once(this.#script, "close");
  }

  send(keys: string): void {
    this.#script.stdin.write(keys);
  }

  /** Waits until the pattern stands in the output; resolves with the milliseconds that took. */
  async waitFor(pattern: RegExp, patience = 20_000): Promise<number> {
    const start = performance.now();
    while (!pattern.test(this.text)) {
      if (performance.now() - start > patience) throw new Error(`no ${String(pattern)} in:\n${this.text.slice(-2000)}`);
      await sleep(1);
    }
    return performance.now() - start;
  }

  /** The process of kcore's view. */
  async view(): Promise<number> {
    for (;;) {
      for (const pid of await descendantsOf(this.#script.pid ?? 0)) {
        const line = commandLine(pid);
        if (line.includes("main.js") && !line.includes("run-main")) return pid;
      }
      await sleep(5);
    }
  }

  async end(): Promise<void> {
    await this.#ended;
  }
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** Mebibytes that a process has held at most. */
export function peakOf(pid: number): number {
  return Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
}

/** Mebibytes that belong to a process alone now. Memory that processes share, such as Node's program, does not count. */
export function privateOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return [...text.matchAll(/^Private_\w+:\s*(\d+)/gm)].reduce((sum, [, size]) => sum + Number(size), 0) / 1024;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}
