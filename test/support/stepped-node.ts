import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { execFileSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { join } from "node:path";
import { quote } from "#base/quote.ts";
import { openLocal } from "#engine/transport/local-host.ts";
import type { Host } from "#engine/transport/host.ts";
import { hangLimit } from "./limit.ts";

/** All programs that a batch may start. */
const programs = "cat chgrp chmod chown head ln ls mkdir mv readlink rm rmdir sha256sum stat sync tr wc".split(" ");

/**
 * This machine as a node on which a batch stops at a point: each start of a program by the batch is a point, counted from 1.
 * In a mount namespace, /usr/local/sbin holds a stand-in for each program that counts, waits at the chosen point, and then execs the real one.
 * /bin/sh is the shell under test.
 */
export class SteppedNode {
  readonly state: string;
  readonly #folder: string;
  readonly #shell: string;
  #hosts: Host[] = [];

  constructor(folder: string, shell: string) {
    this.#folder = folder;
    this.#shell = shell;
    this.state = join(folder, "state");
    const bin = join(folder, "bin");
    mkdirSync(bin);
    execFileSync("mkfifo", [this.#path("gate")]);
    for (const name of programs) {
      const real = ["/usr/bin", "/bin"].map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name;
      writeFileSync(join(bin, name), this.#standIn(real));
      chmodSync(join(bin, name), 0o755);
    }
    this.reset();
  }

  get #hasOwnPrograms(): boolean {
    return this.#shell.endsWith("busybox");
  }

  #batchBegan(): boolean {
    const runs = join(this.state, "runs");
    return existsSync(runs) && readdirSync(runs).some((run) => existsSync(join(runs, run, "batch")));
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #standIn(real: string): string {
    return `#!/bin/dash
for run in ${this.state}/runs/*; do [ ! -e "$run/batch" ] || [ ! -s "$run/current" ] || inside=1; done
[ -n "$inside" ] || exec ${real} "$@"
echo x >>${this.#path("count")}
read -r point <${this.#path("point")}
# Several programs may start at once: the first at or behind the point waits.
if [ "$point" != 0 ] && [ "$(/usr/bin/wc -l <${this.#path("count")})" -ge "$point" ] && /bin/mkdir ${this.#path("reached")} 2>/dev/null; then
  read -r _ <${this.#path("gate")}
fi
exec ${real} "$@"
`;
  }

  /** Counts anew; the programs stop at `point`, or nowhere at 0. */
  reset(point = 0): void {
    rmSync(this.#path("reached"), { force: true, recursive: true });
    writeFileSync(this.#path("count"), "");
    writeFileSync(this.#path("point"), `${point}\n`);
  }

  /** The number of points passed. */
  get count(): number {
    // BusyBox runs its own applets, so a point is a moment: quarters of a millisecond from the batch's beginning.
    if (this.#hasOwnPrograms) return 40;
    return readFileSync(this.#path("count"), "utf8").length / 2;
  }

  /** Resolves with true when the point is reached, with false if `over` settles first. */
  async reached(over: Promise<unknown>): Promise<boolean> {
    let ended = false;
    void over.then(() => (ended = true));
    if (this.#hasOwnPrograms) {
      while (!ended && !this.#batchBegan()) await pause(1);
      await pause(Number(readFileSync(this.#path("point"), "utf8")) / 4);
      return !ended;
    }
    while (!ended && !existsSync(this.#path("reached"))) await pause(5);
    return existsSync(this.#path("reached"));
  }

  /** Continues the stopped program, and stops none after it. */
  release(): void {
    if (this.#hasOwnPrograms || !existsSync(this.#path("reached"))) return;
    writeFileSync(this.#path("point"), "0\n");
    execFileSync("/bin/sh", ["-c", `echo >${this.#path("gate")}`], { timeout: hangLimit });
  }

  readonly connect = (): Promise<Host> => {
    const host = openLocal("n1");
    this.#hosts.push(host);
    const binds = [
      `mount --bind ${this.#path("bin")} /usr/local/sbin`,
      `mount --bind ${readlinkOrSelf(this.#shell)} ${readlinkOrSelf("/bin/sh")}`,
    ];
    return Promise.resolve({
      ...host,
      exec: (command, options) =>
        host.exec(
          `exec unshare -m --propagation private /bin/dash -c ${quote(`${binds.join(" && ")} && exec /bin/sh -c ${quote(command)}`)}`,
          options,
        ),
    });
  };

  /** Cuts all connections. */
  async cut(): Promise<void> {
    const hosts = this.#hosts;
    this.#hosts = [];
    for (const host of hosts) await host.close();
  }

  /** The pids of the runner and of the step's process group, from their own records, for `signal`. */
  atWork(): readonly number[] {
    const [run = ""] = readdirSync(join(this.state, "runs"));
    const folder = join(this.state, "runs", run);
    // Before its first step there is no such file.
    const current = join(folder, "current");
    const [step = ""] = existsSync(current) ? readFileSync(current, "utf8").split(" ") : [];
    const [runner = ""] = readFileSync(join(folder, "pid"), "utf8").split(" ");
    return [Number(runner), -Number(step)].filter((pid) => Math.abs(pid) > 1);
  }

  /** Sends a signal. To continue stopped processes, pass the pids of the stop: a stopped runner may have been about to record others. */
  signal(name: NodeJS.Signals, pids = this.atWork()): void {
    for (const pid of pids)
      try {
        process.kill(pid, name);
      } catch {
        // It has ended already.
      }
  }
}

function readlinkOrSelf(path: string): string {
  try {
    return join("/bin", readlinkSync(path));
  } catch {
    return path;
  }
}
