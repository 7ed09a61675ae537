import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunEvent } from "#engine/events/event.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { listRunIds, readHeader, runFolder } from "#engine/run/run-folder.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { makeProject } from "./project.ts";

/** The end of a command; `code` is 137 if SIGKILL ended it, and 129 for any other signal. */
export interface KcoreEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KcoreOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly timeout?: number;
  /** The program; by default `bin/kcore`. */
  readonly program?: string;
  /** Kills it (SIGKILL). */
  readonly signal?: AbortSignal;
}

/** A bastion: a project and a `KCORE_HOME` of its own, and the real `bin/kcore`. */
export interface Bastion {
  readonly project: string;
  readonly home: string;
  /** Runs `bin/kcore` in the project and waits for its end. */
  kcore(args: readonly string[], options?: KcoreOptions): Promise<KcoreEnd>;
  /** Starts `bin/kcore` and resolves when its run, the newest, is on record. */
  begin(args: readonly string[]): Promise<{ readonly run: string; readonly ended: Promise<KcoreEnd> }>;
  /** Runs `bin/kcore` and returns its stdout. @throws an Error with all output unless it exits 0 */
  does(...args: readonly string[]): Promise<string>;
  /** Runs `deploy_node` on these nodes. */
  deploy(target: string, ...more: readonly string[]): Promise<KcoreEnd>;
  write(files: Readonly<Record<string, string>>): Promise<void>;
  /** The runs of the project, the newest last. */
  runs(): Promise<readonly string[]>;
  /** The recorded events of a run, by default of the newest. */
  events(run?: string): Promise<readonly RunEvent[]>;
  /** Waits until the newest run's events satisfy `holds`. */
  until(holds: (events: readonly RunEvent[]) => boolean, what: string, limit?: number): Promise<readonly RunEvent[]>;
  /** Kills the process of the newest run (SIGKILL). */
  killDriver(): Promise<void>;
  /** Ends running processes and removes the folder. */
  remove(): Promise<void>;
}

export const kcoreProgram = join(import.meta.dirname, "../../bin/kcore");

/** A project with these files; with `cluster` also a cluster's CA. */
export async function openBastion(
  files: Readonly<Record<string, string>>,
  { cluster = false }: { readonly cluster?: boolean } = {},
): Promise<Bastion> {
  const folder = await makeProject(files);
  const project = folder.path;
  const home = join(project, "home");
  const env = {
    PATH: process.env["PATH"] ?? "",
    LC_ALL: "C.UTF-8",
    HOME: process.env["HOME"] ?? project,
    KCORE_HOME: home,
    // kcore makes the identity for sealed secrets in this folder.
    XDG_CONFIG_HOME: join(home, "config"),
  };
  const started = new Set<ChildProcess>();
  const runs = (): Promise<readonly string[]> => listRunIds(project);
  const newest = async (): Promise<string> => (await runs()).at(-1) ?? "";
  const bastion: Bastion = {
    project,
    home,
    runs,
    kcore: (args, { env: extra = {}, timeout = 600_000, signal, program = kcoreProgram } = {}) => {
      const child = spawn(program, args, {
        cwd: project,
        env: { ...env, ...extra },
        stdio: ["ignore", "pipe", "pipe"],
      });
      signal?.addEventListener("abort", () => child.kill("SIGKILL"));
      started.add(child);
      return endOf(child, timeout);
    },
    begin: async (args) => {
      const before = await newest();
      const ended = bastion.kcore(args);
      let over: KcoreEnd | undefined;
      void ended.then((end) => (over = end));
      for (; over === undefined; await sleep(30)) {
        const run = await newest();
        if (run !== before && (await bastion.events(run)).length > 0) return { run, ended };
      }
      throw new Error(`no run has begun:\n${over.stdout}${over.stderr}`);
    },
    does: async (...args) => {
      const { code, stdout, stderr } = await bastion.kcore(args);
      if (code !== 0) throw new Error(`kcore ${args.join(" ")}: exit ${code}\n${stdout}${stderr}`);
      return stdout;
    },
    deploy: (target, ...more) =>
      bastion.kcore(["orchestrate", "deploy_node", target, "--passphrase-file", "passphrase", "--yes", ...more]),
    write: async (more) => {
      for (const [name, text] of Object.entries(more)) {
        await mkdir(dirname(join(project, name)), { recursive: true });
        await writeFile(join(project, name), text);
      }
    },
    events: async (run) => {
      const text = await readFile(runFolder(project, run ?? (await newest())).events, "utf8").catch(() => "");
      // The line being written has no end yet.
      return text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as RunEvent);
    },
    until: async (holds, what, limit = 600_000) => {
      let events: readonly RunEvent[] = [];
      for (const end = Date.now() + limit; Date.now() < end; await sleep(50)) {
        events = (await newest()) === "" ? [] : await bastion.events();
        if (holds(events)) return events;
      }
      const last = events.slice(-5).map((event) => JSON.stringify(event));
      throw new Error([`waited ${limit / 1000} s in vain for: ${what}; the last events are`, ...last].join("\n"));
    },
    killDriver: async () => {
      const { process: mark } = await readHeader(runFolder(project, await newest()));
      if (!mark || !isAlive(mark)) throw new Error("the newest run has no living process");
      process.kill(mark.pid, "SIGKILL");
    },
    remove: async () => {
      for (const child of started) child.kill("SIGKILL");
      for (const run of await runs()) {
        const header = await readHeader(runFolder(project, run)).catch(() => undefined);
        if (header?.process && isAlive(header.process)) process.kill(header.process.pid, "SIGKILL");
      }
      await folder.remove();
    },
  };
  if (cluster) {
    await writeFile(join(project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    await bastion.does("create", "cluster", "--context", "test", "--passphrase-file", "passphrase");
  }
  return bastion;
}

async function endOf(child: ChildProcess, timeout: number): Promise<KcoreEnd> {
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (text: string) => (printed[name] += text));
  const timer = setTimeout(() => child.kill("SIGKILL"), timeout);
  const code = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status, signal) => resolve(status ?? (signal === "SIGKILL" ? 137 : 129)));
  });
  clearTimeout(timer);
  return { code, ...printed };
}

/** Titles of the steps with this outcome on this node, or on all. */
export function stepsThat(outcome: string, events: readonly RunEvent[], node?: string): readonly string[] {
  return events.flatMap((event) =>
    event.type === "step.finished" && event.outcome === outcome && (node ?? event.node) === event.node
      ? [node === undefined ? `${event.node} ${event.title}` : event.title]
      : [],
  );
}

/** The outcomes that a step may have after a dry run's verdict. A step that was unknown may end in any way. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  ok: ["ok"],
  "would-change": ["changed"],
  failed: ["failed"],
  skipped: ["skipped"],
};

/** Steps whose run contradicts the dry run: `NODE STEP: VERDICT, then OUTCOME`. */
export function contradictions(plan: readonly RunEvent[], run: readonly RunEvent[]): readonly string[] {
  const done = new Map<string, string>();
  for (const event of run) if (event.type === "step.finished") done.set(`${event.node} ${event.step}`, event.outcome);
  return plan.flatMap((event) => {
    if (event.type !== "step.finished") return [];
    const name = `${event.node} ${event.step}`;
    const outcome = done.get(name) ?? "not at all";
    const isEither = event.reason?.startsWith("unless ") && ["ok", "changed"].includes(outcome);
    return !isEither && allowed[event.outcome]?.includes(outcome) === false
      ? [`${name}: ${event.outcome}, then ${outcome}`]
      : [];
  });
}

/** The number of segments that went to each node. */
export function exchangesOf(events: readonly RunEvent[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const event of events) if (event.type === "node.segment") counts[event.node] = event.exchange;
  return counts;
}

/** The output of a command that root runs on a node. @throws an Error unless it exits 0 */
export async function on(node: LabNode, command: string, timeout = 600_000): Promise<string> {
  const { code, stdout, stderr } = await node.exec(command, { timeout });
  if (code !== 0) throw new Error(`${node.name}: ${command}: exit ${code}\n${stdout}${stderr}`);
  return stdout.trim();
}

/** Both streams of an ended command, for a failed expectation. */
export const outputOf = ({ stdout, stderr }: KcoreEnd): string => `${stdout}${stderr}`;

/** Paths of all files below a folder. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** A checksum of each file, link and folder (with mode and owner) under `/etc` and `/var/lib`, except kcore's runs and lock. */
export async function contentsOf(node: LabNode): Promise<string> {
  const kept = "! -path /var/lib/kcore ! -path '/var/lib/kcore/runs*' ! -path '/var/lib/kcore/lock*'";
  return on(
    node,
    `find /etc /var/lib -xdev ${kept} -exec stat -c '%n %F %a %u:%g %N' {} + | sort;
     find /etc /var/lib -xdev ${kept} -type f -exec sha256sum {} + | sort -k2`,
  );
}

/** The lab's roster, with more fields of single nodes. */
export async function labRoster(lab: Lab, fields: Readonly<Record<string, string>> = {}): Promise<string> {
  let text = await lab.roster();
  for (const [node, lines] of Object.entries(fields)) text = text.replace(`  ${node}:\n`, `  ${node}:\n    ${lines}\n`);
  return text;
}
