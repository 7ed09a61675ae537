import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { formatBytes } from "#base/units.ts";
import type { RunEventBody } from "#engine/events/event.ts";
import { formatProblem, type Problem } from "#errors/problem.ts";
import { logName, type RunFolder } from "./run-folder.ts";

/** Milliseconds until waiting lines are written. */
const flushAfter = 200;
/** Characters of waiting lines above which they are written at once. */
const maxWaiting = 1 << 20;

/**
 * Writes a node's events, output included, as text to `nodes/NAME.log`, and the bastion's own work to
 * `bastion.log`; many lines at a time, since it is expensive to open a file.
 */
export class NodeLogs {
  readonly #folder: RunFolder;
  readonly #now: () => number;
  readonly #onError: (error: unknown) => void;
  /** Waiting lines, by their files. */
  readonly #waiting = new Map<string, string>();
  #length = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(folder: RunFolder, now: () => number, onError: (error: unknown) => void) {
    this.#folder = folder;
    this.#now = now;
    this.#onError = onError;
    mkdirSync(folder.nodeLogs, { recursive: true, mode: 0o700 });
  }

  add(event: RunEventBody): void {
    const text = describe(event);
    if (text === undefined) return;
    const file = logName(nodeOf(event));
    const stamp = new Date(this.#now()).toISOString();
    const lines = text.replace(/\n$/, "").split("\n");
    const block = lines.map((line) => `${stamp} ${line}\n`).join("");
    this.#waiting.set(file, (this.#waiting.get(file) ?? "") + block);
    this.#length += block.length;
    if (this.#length > maxWaiting) this.flush();
    else this.#flushLater();
  }

  /** Writes the waiting lines. If too many files are open, the lines wait for a further try, unless this is the `last` try. */
  flush({ last = false }: { readonly last?: boolean } = {}): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#length = 0;
    for (const [file, text] of this.#waiting)
      try {
        appendFileSync(join(this.#folder.path, file), text, { mode: 0o600 });
        this.#waiting.delete(file);
      } catch (error) {
        if (!last && isShortOfFiles(error)) return this.#flushLater();
        this.#waiting.delete(file);
        this.#onError(error);
      }
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => this.flush(), flushAfter).unref();
  }
}

/** Whether too many files are open, in this process or on the whole machine: a later try may succeed when others are closed (F-30). */
function isShortOfFiles(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "EMFILE" || code === "ENFILE";
}

function nodeOf(event: RunEventBody): string | undefined {
  return "node" in event ? event.node : "action" in event ? event.item : undefined;
}

function describe(event: RunEventBody): string | undefined {
  switch (event.type) {
    case "node.connecting":
      return `-- connecting${event.attempt > 1 ? `, attempt ${event.attempt}` : ""}`;
    case "node.connected":
      return `-- connected ${event.fingerprint}`;
    case "node.disconnected":
      return `-- disconnected: ${event.reason}`;
    case "node.waiting":
      return `-- waiting: ${event.reason}`;
    case "node.rebooted":
      return "-- rebooted";
    case "node.sent":
      return `-- sent ${event.name}${event.from === undefined ? "" : ` from ${event.from}`}, ${formatBytes(event.bytes)}`;
    case "node.milestone":
      return `-- milestone ${event.milestone}`;
    case "node.finished":
      return `-- ${event.outcome}${event.problem ? `: ${formatProblem(event.problem)}` : ""}`;
    case "step.started":
      return `== ${event.step} (${event.module})`;
    case "step.note":
      return `   ${event.text}`;
    case "action.started":
      return `== ${event.stage} (${event.action})`;
    case "action.note":
      return `   ${event.text}`;
    case "step.output":
    case "action.output":
      return `${event.skipped ? `… ${event.skipped} bytes left out\n` : ""}${event.text.replace(/\n$/, "").replaceAll(/^/gm, event.stream === "err" ? " ! " : " | ")}`;
    case "action.finished":
      return `== ${event.stage}: ${event.outcome}${event.reason ? ` (${event.reason})` : ""}${problemText(event.problem)}`;
    case "step.finished": {
      const changes = (event.changes ?? []).map(
        ({ name, have, want }) => `\n   ${name}: ${have ?? "(absent)"} -> ${want}`,
      );
      return `== ${event.step}: ${event.outcome}${event.reason ? ` (${event.reason})` : ""}${changes.join("")}${event.diff ? `\n${event.diff}` : ""}${problemText(event.problem)}`;
    }
    case "warning":
      return `-- warning: ${event.text}`;
    default:
      return undefined;
  }
}

function problemText(problem: Problem | undefined): string {
  if (!problem) return "";
  return `\n   ${formatProblem(problem)}${problem.detail ? `\n${problem.detail}` : ""}`;
}
