import { poll } from "#base/wait.ts";
import type { RunControl, RunEvent } from "#engine/events/event.ts";
import { emptyRun, type RunModel } from "#engine/events/run-model.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { RunFold } from "#engine/events/reduce.ts";
import { titleOf } from "#engine/orchestrate/run-types.ts";
import { RunClient, type RunClientOptions } from "#engine/run/run-client.ts";
import type { LaunchedRun } from "#engine/run/launch-run.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { readHeader, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { escapeControls } from "#errors/draw.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";
import type { PlainOptions, RunDrawing } from "#tui/plain.ts";
import { upcomingStages } from "#tui/questions.ts";
import { printEnd } from "./print-end.ts";
import { listenToInterrupts } from "./interrupts.ts";
import type { RunControls } from "./live-view.ts";
import { canPrompt } from "../terminal/prompt.ts";
import { promptInTurn } from "./run-prompts.ts";
import { wantsColor } from "../terminal/report-failure.ts";
import type { LineStyle, ViewName } from "../terminal/choose-view.ts";
import { toStderr } from "../terminal/say.ts";
import { guardTerminal } from "../terminal/terminal-guard.ts";
import { whoAmI } from "../process/who.ts";

/** The view of a run. `quiet` shows only questions and errors, for commands that print a result of their own. */
export type RunOutput = ViewName | "quiet";

export interface WatchOptions {
  readonly folder: RunFolder;
  readonly output: RunOutput;
  /** The form of lines; by default every step. */
  readonly style?: LineStyle;
  readonly launched?: RunClientOptions["launched"];
  /** The header of a run that has just been started, shown before the first event. */
  readonly header?: RunHeader;
  /** Whether to leave as soon as the run has begun. */
  readonly detach?: boolean;
  /** Whether to show the present record and then end. */
  readonly replayOnly?: boolean;
  /** Events up to this number were shown before; only JSON has them again. */
  readonly since?: number;
  /** Called with each event, before it is drawn. */
  readonly onEvent?: (event: RunEvent) => void;
  /** Whether the live view closes at the run's end, even after a failure. */
  readonly noStay?: boolean;
  /** Resumes the run, which the live view offers after a failure. */
  readonly relaunch?: () => Promise<LaunchedRun>;
}

export interface WatchResult {
  readonly exitCode: ExitCode;
  readonly model: RunModel;
  /** Whether the view left before the end of the run. */
  readonly leftEarly: boolean;
}

interface OpenView extends RunDrawing {
  close?(): Promise<void>;
  rest?(): Promise<"leave" | "resume">;
}

/**
 * Follows a run as one of its views until the run ends or the operator leaves; and again if the operator resumes it.
 * @throws KcoreError RUN_DIED
 */
export async function watchRun(options: WatchOptions): Promise<WatchResult> {
  const { folder, relaunch, header: _, ...rest } = options;
  let next = await watchOnce(options);
  while (next.isResumed && relaunch) {
    const isOurs = await isFree(folder, next.endedWith);
    const since = next.model.lastSeq;
    if (!isOurs) toStderr(`Run ${folder.id} was resumed elsewhere meanwhile: this shows what became of it.`);
    next = await watchOnce({
      ...rest,
      folder,
      relaunch,
      since,
      isUsed: true,
      ...(isOurs && { launched: await relaunch() }),
    });
  }
  return next;
}

/**
 * Waits until the run can be resumed: until the process that ended it is gone, which stays until all views have read the end.
 * Returns false as soon as another process has resumed the run.
 */
export async function isFree(
  folder: Pick<RunFolder, "id" | "header">,
  endedWith: RunHeader["process"],
): Promise<boolean> {
  const readMark = async (): Promise<"free" | "resumed" | undefined> => {
    const { process: mark } = await readHeader(folder);
    if (JSON.stringify(mark) !== JSON.stringify(endedWith)) return "resumed";
    return isAlive(mark) ? undefined : "free";
  };
  return (await poll(readMark, { everyMs: 20 })) === "free";
}

interface WatchOnceOptions extends WatchOptions {
  /** Whether the operator has used the keys before. */
  readonly isUsed?: boolean;
}

async function watchOnce(
  options: WatchOnceOptions,
): Promise<WatchResult & { readonly isResumed?: boolean; readonly endedWith?: RunHeader["process"] }> {
  const { folder, launched, detach = false, replayOnly = false, since = 0, style = {}, onEvent } = options;
  const output = options.output === "ink" && (detach || replayOnly) ? "plain" : options.output;
  // The live view asks on its own terminal, wherever stderr goes.
  const answers = (output === "ink" || canPrompt()) && !detach && !replayOnly;
  const follower = new RunClient({ folder, by: whoAmI(), answers, replayOnly, ...(launched ? { launched } : {}) });
  const run = new RunFold();
  let leaveReason: "left" | "detached" | undefined;
  const leave = (why: "left" | "detached") => {
    leaveReason ??= why;
    follower.leave();
  };
  let lastControl: "stop" | "abort" | undefined;
  const send = (control: RunControl) => {
    if (control.type !== "answer") lastControl = control.type;
    follower.send(control);
  };
  const controls: RunControls = { send, leave };
  // A reader that closes the output must not stop the run.
  const onGone = () => leave("detached");
  process.stdout.on("error", onGone);
  // In the live view, keys and signals belong to the view.
  const talk = replayOnly || output === "ink" ? undefined : talkInLines(controls, run, answers);
  let view: OpenView | undefined;
  let after: "leave" | "resume" | undefined;
  let endedWith: RunHeader["process"];
  try {
    // The view opens before the run's process is ready.
    view = await openView(options, { output, controls, run });
    for await (const event of follower.events()) {
      onEvent?.(event);
      // The drawing of an event depends on the events before it.
      view.draw(event);
      run.add(event);
      if (answers) talk?.follow(event, run);
      if (detach && event.type === "run.started" && event.seq > since) leave("detached");
    }
    // After a mistake in the input the view must not stay, since the problems are printed below it.
    const isOver = run.borrowedModel.state === "finished" && run.borrowedModel.exitCode !== exitCodes.usage;
    if (leaveReason === undefined) await launched?.ended;
    ({ process: endedWith } = await readHeader(folder));
    if (leaveReason === undefined && isOver && options.noStay !== true) after = await view.rest?.();
  } finally {
    await view?.close?.();
    talk?.close();
    process.stdout.off("error", onGone);
  }
  const { model } = run;
  if (after === "resume") return { exitCode: exitCodes.failed, model, leftEarly: false, isResumed: true, endedWith };
  if (leaveReason !== undefined && model.state !== "finished") {
    if (output !== "json") process.stderr.write(`${detachMessage({ ...model, runId: folder.id }, lastControl)}\n`);
    return { exitCode: leaveReason === "left" ? exitCodes.interrupted : exitCodes.done, model, leftEarly: true };
  }
  await printEnd(model, { output, style, folder });
  return { exitCode: (model.exitCode ?? exitCodes.failed) as ExitCode, model, leftEarly: false };
}

/** The model of a run before its first event. */
function modelBefore({ id, request, who }: RunHeader): RunModel {
  const { what, command, dryRun } = request;
  return { ...emptyRun, runId: id, title: titleOf(what), command, who, dryRun };
}

async function openView(
  { folder, since = 0, style = {}, isUsed = false, header }: WatchOnceOptions,
  { output, controls, run }: { readonly output: RunOutput; readonly controls: RunControls; readonly run: RunFold },
): Promise<OpenView> {
  switch (output) {
    case "ink": {
      // Until the view reads keys, Ctrl-C means that no new step starts, which the view then shows.
      const stop = () => controls.send({ type: "stop" });
      process.on("SIGINT", stop);
      try {
        const guard = guardTerminal(`The view was killed; the run goes on: kcore runs attach ${folder.id}`);
        const { openLiveView } = await import("./live-view.ts");
        return await openLiveView({
          folder,
          since,
          before: header ? modelBefore(header) : emptyRun,
          guard,
          isUsed,
          ...controls,
        });
      } finally {
        process.off("SIGINT", stop);
      }
    }
    case "quiet":
      return { draw: () => undefined };
    case "plain":
    case "json":
      return openLines(output, { since, style, run });
  }
}

/** A view that writes lines to the output. Plain lines leave out events up to `since`; JSON has all events. */
export async function openLines(
  output: "plain" | "json",
  { style, ...more }: { readonly style?: LineStyle } & Pick<PlainOptions, "since" | "run"> = {},
): Promise<RunDrawing> {
  if (output === "json")
    // Each event as it is recorded; a CI finds no commands in the lines.
    return { draw: (event) => void process.stdout.write(escapeControls(formatEvent(event))) };
  const { createPlainView } = await import("#tui/plain.ts");
  const { detectCi } = await import("#tui/ci.ts");
  const ci = detectCi(process.env);
  return createPlainView({ out: process.stdout, color: wantsColor(process.stdout), ci, ...style, ...more });
}

/** Handles signals and questions for a view of lines, on stderr and with typed lines. */
function talkInLines({ send, leave }: RunControls, run: RunFold, canChoose: boolean) {
  const interrupts = listenToInterrupts({
    send,
    leave,
    running: () => describeRunning(run.borrowedModel),
    say: toStderr,
    canChoose,
  });
  const prompt = promptInTurn((id, value) => send({ type: "answer", id, value }), interrupts.interrupt);
  return {
    follow: ({ type }: RunEvent, { borrowedModel }: RunFold) => {
      if (type.startsWith("question.") || type.startsWith("run."))
        prompt(borrowedModel.questions, upcomingStages(borrowedModel));
    },
    close: () => {
      prompt([]);
      interrupts.close();
    },
  };
}

/** The running steps in a sentence: “Running: n1 disks/data, n2 nix/install.” */
function describeRunning(model: RunModel): string {
  const running = [...model.nodes.values()].flatMap(({ name, steps }) =>
    steps.filter(({ outcome }) => outcome === undefined).map(({ title }) => `${name} ${title}`),
  );
  if (running.length === 0) return "Nothing runs on a node at the moment.";
  const more = running.length > 8 ? ` and ${running.length - 8} more` : "";
  return `Running: ${running.slice(0, 8).join(", ")}${more}.`;
}

/** The message of a view that leaves its run before the end. `lastControl`: the last control that the view sent. */
export function detachMessage(
  { runId, stopping }: Pick<RunModel, "runId" | "stopping">,
  lastControl?: "stop" | "abort",
): string {
  const back = `kcore runs attach ${runId}`;
  const how = lastControl === "abort" ? lastControl : (stopping?.how ?? lastControl);
  if (how === undefined) return `The run goes on: ${back}`;
  if (how === "stop") return `The run ends after the steps that are running: ${back}`;
  return `The run is being aborted; how it ends tells ${back}`;
}
