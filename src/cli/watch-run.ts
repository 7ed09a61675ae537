import { join, relative } from "node:path";
import type { Question, RunEvent } from "#engine/events/event.ts";
import { emptyRun, type RunModel } from "#engine/events/model.ts";
import { reduceRun } from "#engine/events/reduce.ts";
import { RunFollower, type FollowOptions } from "#engine/run/follow-run.ts";
import { nodeLogName, type RunFolder } from "#engine/run/run-folder.ts";
import { drawProblems } from "#errors/draw.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";
import type { RunDrawing } from "#tui/drawing.ts";
import { Interrupts } from "./interrupts.ts";
import { canPrompt, promptLine } from "./prompt.ts";
import { sourceLines, wantsColor } from "./report.ts";
import { whoAmI } from "./who.ts";

/** How a run is shown. `quiet`: nothing but questions and errors, for commands that print a result of their own. */
export type RunOutput = "plain" | "json" | "quiet";

export interface WatchOptions {
  readonly folder: RunFolder;
  readonly output: RunOutput;
  readonly launched?: FollowOptions["launched"];
  /** Leave as soon as the run has begun. */
  readonly detach?: boolean;
  /** Only show what is recorded. */
  readonly replayOnly?: boolean;
  /** Events up to this number were shown before and are not drawn again. */
  readonly since?: number;
  /** Called with each event, before it is drawn. */
  readonly onEvent?: (event: RunEvent) => void;
}

export interface Watched {
  readonly exitCode: ExitCode;
  readonly model: RunModel;
  /** The run went on when this view left. */
  readonly left: boolean;
}

/** Follows a run as one of its views until it ends or the user leaves. @throws KcoreError RUN_DIED */
export async function watchRun(options: WatchOptions): Promise<Watched> {
  const { folder, output, launched, detach = false, replayOnly = false, since = 0, onEvent } = options;
  const answers = canPrompt() && !detach && !replayOnly;
  const follower = new RunFollower({ folder, by: whoAmI(), answers, replayOnly, ...(launched ? { launched } : {}) });
  const drawing = openDrawing(output, since);
  let model = emptyRun;
  let left: "left" | "detached" | undefined;
  const leave = (why: "left" | "detached") => {
    left ??= why;
    follower.leave();
  };
  const say = (text: string) => void process.stderr.write(`${text}\n`);
  const interrupts = new Interrupts({
    send: (control) => follower.send(control),
    leave,
    running: () => describeRunning(model),
    say,
    canChoose: answers,
  });
  // Whoever read our output went away: that is no reason to stop the run.
  const onGone = () => leave("detached");
  process.stdout.on("error", onGone);
  if (!replayOnly) interrupts.listen();
  const questions = new Prompts(
    (id, value) => follower.send({ type: "answer", id, value }),
    () => interrupts.interrupt(),
  );
  try {
    for await (const event of follower.events()) {
      model = reduceRun(model, event);
      onEvent?.(event);
      (await drawing).draw(event);
      if (answers) questions.follow(model.questions);
      if (detach && event.type === "run.started" && event.seq > since) leave("detached");
    }
  } finally {
    questions.follow([]);
    interrupts.close();
    process.stdout.off("error", onGone);
  }
  if (left !== undefined && model.state !== "finished") {
    if (output !== "json") say(`The run goes on: kcore runs attach ${folder.id}`);
    return { exitCode: left === "left" ? exitCodes.interrupted : exitCodes.done, model, left: true };
  }
  await drawEnd(model, output, folder);
  return { exitCode: (model.exitCode ?? exitCodes.failed) as ExitCode, model, left: false };
}

async function openDrawing(output: RunOutput, since: number): Promise<RunDrawing> {
  if (output === "json") return (await import("#tui/ndjson.ts")).createJsonView((text) => process.stdout.write(text));
  if (output === "quiet") return { draw: () => undefined };
  return (await import("#tui/plain.ts")).createPlainView({
    out: process.stdout,
    color: wantsColor(process.stdout),
    since,
  });
}

async function drawEnd(model: RunModel, output: RunOutput, folder: RunFolder): Promise<void> {
  if (output === "json") return;
  const sourceLine = sourceLines(folder.project);
  if (model.runId === "" || output === "quiet") {
    const { ownProblems } = await import("#tui/summary.ts");
    const drawn = drawProblems(ownProblems(model), { color: wantsColor(process.stderr), sourceLine });
    if (drawn !== "") process.stderr.write(`${drawn}\n`);
    return;
  }
  const { drawSummary } = await import("#tui/summary.ts");
  const logOf = (node: string) => relative(process.cwd(), join(folder.nodeLogs, nodeLogName(node)));
  process.stdout.write(`\n${drawSummary(model, { color: wantsColor(process.stdout), sourceLine, logOf })}\n`);
}

/** “Running: n1 disks/data, n2 nix/install”. */
function describeRunning(model: RunModel): string {
  const running = [...model.nodes.values()].flatMap(({ name, steps }) =>
    steps.filter(({ outcome }) => outcome === undefined).map(({ title }) => `${name} ${title}`),
  );
  if (running.length === 0) return "Nothing runs on a node at the moment.";
  const more = running.length > 8 ? ` and ${running.length - 8} more` : "";
  return `Running: ${running.slice(0, 8).join(", ")}${more}.`;
}

/** Asks one open question after the other; takes the prompt away when another view answered. */
class Prompts {
  readonly #answer: (id: string, value: string) => void;
  readonly #onInterrupt: () => void;
  readonly #asked = new Set<string>();
  #current: { readonly id: string; readonly stop: AbortController } | undefined;
  #open: readonly Question[] = [];

  constructor(answer: (id: string, value: string) => void, onInterrupt: () => void) {
    this.#answer = answer;
    this.#onInterrupt = onInterrupt;
  }

  follow(open: readonly Question[]): void {
    this.#open = open;
    if (this.#current && !open.some(({ id }) => id === this.#current?.id)) this.#current.stop.abort();
    if (!this.#current) void this.#next();
  }

  async #next(): Promise<void> {
    const question = this.#open.find(({ id }) => !this.#asked.has(id));
    if (!question) return;
    const { id, secret, node, kind } = question;
    this.#asked.add(id);
    const stop = new AbortController();
    this.#current = { id, stop };
    const text = `${node === undefined ? "" : `${node}  `}${question.text}${kind === "confirm" ? " [yes/no]" : ""}`;
    const answer = await promptLine({ text, secret, signal: stop.signal, onInterrupt: this.#onInterrupt });
    if (answer !== undefined) this.#answer(id, answer);
    this.#current = undefined;
    await this.#next();
  }
}
